#!/usr/bin/python3
# tests/run: limit 900
"""sr5 serves every array in sets/, which the kernel's md made, bit for bit.

Each set, whole and with each tolerated set of members missing, read-only and read-write.  Read-only and refused: no
member changes by a byte.  Read-write: what was written is there after a restart, without one more member where that is
tolerated, with those that were away back (and not trusted); mdadm finds the superblocks correct and their event
counters moved on.
    test_golden.py [TEXT]      only cases whose sentence contains TEXT
GOLDEN=all takes every combination (.ci/run does, in the release build).  Without it: the whole array; of what lacks
members, and of what is written to, a few that the SEED picks.
"""
import concurrent.futures
import itertools
import json
import os
import random
import re
import shutil
import sys

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import Daemon, Tests, memory_dir, read_all, read_export, run, same, sha256, sha256_file, stdio  # noqa: E402

WORK = memory_dir(1 << 30)
SETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sets")

# Not served, whatever members are there: the code, and why.
REFUSED = {
    "raid5-reshape-3to4": "E_RESHAPE",
    "raid5x4-ppl-dirty": "E_PPL_DIRTY",
    "raid5x3-journal-wt-dirty": "E_JOURNAL",
    "raid5x3-journal-wb-dirty": "E_JOURNAL",
}
DIRTY = {"raid5x4-dirty", "raid6x5-dirty", "raid5x4-bitmap-dirty"}  # degraded, they are refused: E_DIRTY_DEGRADED
GOLDEN = os.environ.get("GOLDEN", "")
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
STALE = {"raid5x4-degraded": {"m2.img"}}  # members never to be used
# m1 has bad blocks that only m0 can answer for (byte ranges of the array): without m0 they are EIO.
BAD_BLOCKS = {"raid1x2-badblocks": [(1000 * 512, 8 * 512), (5000 * 512, 512 * 512), (5512 * 512, 188 * 512)]}


class Set:
    """A folder of sets/: its manifest, and its members unpacked once."""

    def __init__(self, name):
        self.name, self.members = name, {}
        self.dir = os.path.join(WORK, name)
        with open(os.path.join(SETS, name, "MANIFEST.txt")) as f:
            for line in f:
                if line.startswith("----"):
                    break
                field = re.match(r"(\w+): (.*)$", line)
                member = re.match(r"\s+(m\d+\.img) \d+ (\w+) \| dev=\d+ role=(\w+) events=(\d+) fm=(\w+)", line)
                if member:
                    replacement = int(member[5], 16) & 0x10  # it is a copy under way of another with the same role
                    self.members[member[1]] = {"sha256": member[2], "role": "replacement" if replacement else member[3],
                                               "events": int(member[4])}
                elif field and field[1] != "members":
                    setattr(self, field[1], field[2])
        self.bytes, self.disks, self.layout = int(self.array_bytes), int(self.raid_disks), int(self.layout, 0)

    def unpack(self):
        os.makedirs(self.dir)
        run("tar", "-C", self.dir, "-xJf", os.path.join(SETS, self.name, "members.tar.xz"))
        for name in self.members:
            os.utime(os.path.join(self.dir, name), ns=(0, 0))

    def copy(self, where, members):
        os.makedirs(where)
        run("cp", "--sparse=always", *(os.path.join(self.dir, m) for m in members), where)
        return [os.path.join(where, m) for m in members]

    def unchanged(self, paths):
        for path in paths:
            same(sha256_file(path), self.members[os.path.basename(path)]["sha256"], f"{path} has been written to")

    def untouched(self, paths):
        """Quicker; try_set() ends with unchanged() on all."""
        for path in paths:
            same(os.stat(path).st_mtime_ns, 0, f"{path} has been written to; its time")

    def copies(self):
        """RAID 10: the sets of roles that hold all copies of a chunk."""
        near, far = self.layout & 255, self.layout >> 8 & 255
        for first in range(0, self.disks * near, near):
            yield {(first + copy + distance * near) % self.disks for copy in range(near) for distance in range(far)}

    def tolerates(self, roles):
        """May these roles be missing?"""
        if self.level == "raid10":
            return not any(copies <= roles for copies in self.copies())
        return len(roles) <= {"raid0": 0, "raid1": self.disks - 1, "raid4": 1, "raid5": 1, "raid6": 2}[self.level]

    def missing_roles(self, gone):
        there = {m["role"] for name, m in self.members.items() if name not in gone | STALE.get(self.name, set())}
        return {role for role in range(self.disks) if str(role) not in there}

    def situations(self):
        """(members that are gone, tolerated), of every tolerated subset, and of some one member beyond."""
        most = {"raid1": self.disks, "raid10": self.disks, "raid6": 3}.get(self.level, 2)
        single, several, beyond = [], [], []
        for count in range(0, min(most, len(self.members) - 1) + 1):
            for gone in map(set, itertools.combinations(sorted(self.members), count)):
                if not self.tolerates(self.missing_roles(gone)):
                    beyond.append((gone, False))
                elif count == 0:
                    yield gone, True
                elif count == 1:
                    single.append((gone, True))
                else:
                    several.append((gone, True))
        peculiar = self.name in STALE or self.name in BAD_BLOCKS
        yield from single if GOLDEN == "all" or peculiar else pick(single, 2)
        yield from several if GOLDEN == "all" else pick(several, 1)
        # What is too little is much the same for all; a set whose stale member could fool somebody, always.
        yield from beyond[:1 if GOLDEN == "all" or self.name in STALE or SEED % 5 == len(self.name) % 5 else 0]


def pick(things, count):
    return random.Random(SEED).sample(things, min(count, len(things)))


def refuse(golden, paths, code):
    """By an error code; or, when there are too few members, by waiting for them."""
    with Daemon() as daemon:
        for read_only in (True, False) if code else (False,):
            answer = daemon.start(*paths, read_only=read_only, ok=None)
            if code:
                same(answer.error, code, f"{answer}")
                same(answer.code, 3, "exit code")
            else:
                same(answer.code, 5, f"exit code of {answer}")
                same(answer.json["arrays"][0]["state"], "waiting", "state")
        client = nbd.NBD()
        client.set_opt_mode(True)
        client.connect_unix(daemon.socket)
        same(client.opt_list(lambda name, description: None), 0, "exports")
        client.opt_abort()
    golden.unchanged(paths)


def serve_read_only(golden, paths, leaks):
    with stdio(paths, "--read-only", leaks=leaks) as client:
        same(client.get_size(), golden.bytes, "size of the export")
        same(sha256(read_all(client)), golden.array_sha256, "digest of the export")
    golden.untouched(paths)


def serve_to_nbdcopy(golden, paths):
    """The whole way as people go it: sr5d, sr5 start, a client by others."""
    with Daemon() as daemon:
        daemon.start(*paths, read_only=True)
        same(sha256(read_export(daemon.uri())), golden.array_sha256, "digest of the export")
    golden.untouched(paths)


def write_here_and_there(client, content):
    """Write at places that make every kind of stripe update, into the export and the expectation."""
    size = len(content)
    places = [(0, 4096), (size - 512, 512), (size // 2 - 700, 1400), (size // 3 & ~4095, 65536),
              (size // 5 & ~65535, min(1 << 20, size // 2)), (12345, 1)]
    for number, (offset, length) in enumerate(places):
        data = bytes((offset + number + i) & 255 for i in range(251)) * (length // 251 + 1)
        client.pwrite(data[:length], offset, nbd.CMD_FLAG_FUA if number % 2 else 0)
        content[offset:offset + length] = data[:length]
    client.zero(65536, size // 7)
    content[size // 7:size // 7 + 65536] = bytes(65536)
    client.flush()


def examine(paths):
    """What mdadm says about each member."""
    for path, said in zip(paths, re.split(r"^/.*:$", run("mdadm", "--examine", *paths), flags=re.M)[1:], strict=True):
        yield path, {key: re.search(rf"^ +{key} : (.*)$", said, re.M)[1] for key in ("Checksum", "Events", "State")}


def serve_read_write(golden, paths, gone):
    with stdio(paths, leaks=not gone) as client:
        content = read_all(client)
        same(sha256(content), golden.array_sha256, "digest of the export")
        write_here_and_there(client, content)
        same(sha256(read_all(client)), sha256(content), "read back")
    stale = STALE.get(golden.name, set())
    for path, now in examine(paths):
        member = golden.members[os.path.basename(path)]
        if os.path.basename(path) in stale:
            golden.unchanged([path])
            continue
        assert now["Checksum"].endswith("correct"), f"{path}: {now}"
        same(now["State"], "clean", f"{path} after a clean stop")
        if golden.level != "raid0" and member["role"].isdigit():  # md never touches RAID 0's, either
            assert int(now["Events"]) > member["events"], f"{path}: events {now['Events']}, were {member['events']}"
    # And again from what is on disk: without one more member where that is tolerated, since parity has to be right; and
    # with the absent ones back, which are not to be trusted: they missed what was written.
    late = golden.copy(os.path.dirname(paths[0]) + "-late", gone) if gone else []
    spare = [p for p in paths if os.path.basename(p) not in stale and
             not (golden.name in BAD_BLOCKS and os.path.basename(p) == "m0.img") and
             golden.tolerates(golden.missing_roles(gone | {os.path.basename(p)}))]
    less = {random.Random(SEED).choice(spare)} if spare else set()
    with stdio([p for p in paths if p not in less] + late, "--read-only", leaks=False) as client:
        same(sha256(read_all(client)), sha256(content), f"after a restart without {less}, with {late} back")


def serve_without_the_bad_blocks(golden, paths):
    """The only member left has bad blocks: those are EIO, everything else is there."""
    with open(os.path.join(golden.dir, "m0.img"), "rb") as f:
        f.seek(2048 * 512)
        content = f.read(golden.bytes)
    same(sha256(content), golden.array_sha256, "what is expected")
    with stdio(paths, "--read-only") as client:
        at = 0
        for offset, length in BAD_BLOCKS[golden.name] + [(golden.bytes, 0)]:
            if offset > at:
                same(sha256(client.pread(offset - at, at)), sha256(content[at:offset]), f"bytes {at} to {offset}")
            for place in (offset, offset + length - 512) if length else ():
                try:
                    client.pread(512, place)
                    raise AssertionError(f"a bad block at {place} could be read")
                except nbd.Error as e:
                    same(e.errno, "EIO", f"bad block at {place}")
            at = offset + length
    golden.unchanged(paths)


def try_set(golden, tests):
    golden.unpack()
    code = REFUSED.get(golden.name)
    situations = list(golden.situations())
    degraded = [gone for gone, tolerated in situations if gone and tolerated]
    chosen = degraded if GOLDEN == "all" else pick(degraded, 1)
    for gone, tolerated in situations:
        present = sorted(set(golden.members) - gone)
        paths = [os.path.join(golden.dir, m) for m in present]
        sentence = f"{golden.name} {'without ' + ' '.join(sorted(gone)) if gone else 'whole'}"
        missing = golden.missing_roles(gone)
        if code:
            if not missing:
                tests.run(f"{sentence} is refused", refuse, golden, paths, code)
        elif not tolerated:
            tests.run(f"{sentence} is not enough", refuse, golden, paths, None)
        elif golden.name in DIRTY and missing:
            tests.run(f"{sentence} is dirty and degraded", refuse, golden, paths, "E_DIRTY_DEGRADED")
        elif golden.name in BAD_BLOCKS and "m0.img" in gone:
            tests.run(f"{sentence} has bad blocks", serve_without_the_bad_blocks, golden, paths)
        else:
            tests.run(f"{sentence} read-only", serve_read_only, golden, paths, not gone)
            if not gone and (GOLDEN == "all" or sum(map(ord, golden.name)) % 4 == SEED % 4):
                tests.run(f"{sentence} to nbdcopy", serve_to_nbdcopy, golden, paths)
            if not gone or gone in chosen:
                work = os.path.join(WORK, "rw", golden.name, "-".join(present))
                tests.run(f"{sentence} read-write", lambda: serve_read_write(golden, golden.copy(work, present), gone))
                shutil.rmtree(work, ignore_errors=True)
                shutil.rmtree(work + "-late", ignore_errors=True)
    everything = [os.path.join(golden.dir, m) for m in golden.members]
    tests.run(f"{golden.name} has not changed by a byte after all that", golden.unchanged, everything)
    shutil.rmtree(golden.dir)


def main():
    tests = Tests("golden")
    print(f"golden: seed {SEED} (SEED={SEED} repeats it)")
    golden = [Set(name) for name in sorted(os.listdir(SETS)) if os.path.isdir(os.path.join(SETS, name))]
    golden.sort(key=lambda g: -g.bytes * len(g.members))  # long ones first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(try_set, g, tests) for g in golden if tests.only.split(" ")[0] in g.name or not tests.only]:
            done.result()
    tests.end()


main()
