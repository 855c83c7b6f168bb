"""What tests of the cases in docs/ have in common: arrays of files, writers that know what they were promised."""
import contextlib
import os
import random
import shutil
import struct
import threading

import nbd

from rig import Daemon, memory_dir, same, sha256_file, sr5

BLOCK = 4096
WORK = memory_dir(1 << 30)


class Array:
    """An array tank on new files in a folder of its own."""

    def __init__(self, name, level, count, *more, size="20M"):
        self.place = os.path.join(WORK, name)
        os.makedirs(self.place)
        self.paths = [f"{self.place}/m{i}" for i in range(count)]
        self.answer = sr5("create", "tank", *self.paths, "--level", level, "--size-each", size, *more).json
        self.uuid, self.size = self.answer["uuid"], self.answer["size_bytes"]

    def hashes(self, only=None):
        return {p: sha256_file(p) for p in only or self.paths}

    def copy(self, name, which=None):
        """Copies of the members as they are now, in another folder."""
        place = os.path.join(WORK, name)
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        paths = []
        for i in which if which is not None else range(len(self.paths)):
            paths.append(f"{place}/m{i}")
            os.system(f"cp --sparse=always {self.paths[i]} {paths[-1]}")
        return paths

    def gone(self):
        shutil.rmtree(self.place)


@contextlib.contextmanager
def doomed(*args):
    """A daemon that is killed in the end: what it served had come to an end before."""
    daemon = Daemon(*args)
    try:
        yield daemon
    except Exception:
        print(f"sr5d said: {daemon.said()}", flush=True)
        raise
    finally:
        daemon.kill()
        daemon.log.close()
        shutil.rmtree(daemon.dir)


def connect(daemon, name="tank"):
    client = nbd.NBD()
    client.connect_uri(daemon.uri(name))
    return client


def block(lba, generation):
    """A block that says what it is; the rest of it follows from that."""
    head = struct.pack("<QQ", lba, generation)
    return head + random.Random(head).randbytes(BLOCK - len(head))


def fill(client, generation, blocks):
    for lba in blocks:
        client.pwrite(block(lba, generation), lba * BLOCK)
    client.flush()


def generation_of(client, lba):
    """Which generation a block holds; one that is mixed, or another's, is an error.  0: never written."""
    got = client.pread(BLOCK, lba * BLOCK)
    if not any(got):
        return 0
    at, generation = struct.unpack_from("<QQ", got)
    same((at, got == block(lba, generation)), (lba, True), f"block {lba}, generation {generation}")
    return generation


def verify(client, generation, blocks):
    for lba in blocks:
        same(generation_of(client, lba), generation, f"generation of block {lba}")


class Writer(threading.Thread):
    """Writes generation after generation over `blocks`; knows which write was acknowledged last, and which was the last sent.

    With `fua` what is acknowledged is durable, too.  Ends with the first error, or by end()."""

    def __init__(self, daemon, blocks, fua=True, seed=1):
        super().__init__(daemon=True)
        self.client = connect(daemon)
        self.blocks, self.rng = list(blocks), random.Random(seed)
        self.flags = nbd.CMD_FLAG_FUA if fua else 0
        self.acknowledged = {lba: 0 for lba in self.blocks}
        self.sent = dict(self.acknowledged)
        self.count, self.error, self.ended = 0, None, False
        self.progress = threading.Condition()
        self.start()

    def run(self):
        generation = 0
        try:
            while not self.ended:
                generation += 1
                lba = self.rng.choice(self.blocks)
                self.sent[lba] = generation
                self.client.pwrite(block(lba, generation), lba * BLOCK, self.flags)
                self.acknowledged[lba] = generation
                with self.progress:
                    self.count += 1
                    self.progress.notify_all()
        except nbd.Error as e:
            self.error = e
        with self.progress:
            self.ended = True
            self.progress.notify_all()

    def wait(self, more):
        """Until so many more writes have been acknowledged, or it has ended."""
        with self.progress:
            target = self.count + more
            assert self.progress.wait_for(lambda: self.ended or self.count >= target, 30), "the writer does not get on"

    def end(self):
        self.ended = True
        self.join(30)
        same(self.is_alive(), False, "the writer still runs")
        return self

    def check(self, client):
        """Every block holds what was acknowledged last, or something sent later."""
        for lba in self.blocks:
            found = generation_of(client, lba)
            assert self.acknowledged[lba] <= found <= self.sent[lba], \
                f"block {lba}: generation {found}, acknowledged {self.acknowledged[lba]}, sent {self.sent[lba]}"


def problems(array):
    return [p["code"] for p in array["problems"]]


def run_all(tests, module):
    """Every case_ function of a module, in order."""
    for name, test in list(module.items()):
        if name.startswith("case_"):
            tests.run(name, test)
    tests.end()
