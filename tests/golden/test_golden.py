#!/usr/bin/python3
# tests/run: limit 400
"""sr5 serves every array in sets/, which the kernel's md made, bit for bit.

Each set, whole and with each tolerated set of members missing, read-only and read-write.  Read-only and refused: no
member changes by a byte.  Read-write: what was written is there after a restart, also without a member, mdadm
finds the superblocks correct, and their event counters have moved on.
    test_golden.py [TEXT]      only cases whose sentence contains TEXT
"""
import concurrent.futures
import itertools
import os
import re
import shutil
import sys
import zlib

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import Daemon, Tests, TMP, read_export, run, same, sha256, sha256_file  # noqa: E402

SETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sets")

# Not served, whatever members are there: the code, and why.
REFUSED = {
    "raid5-reshape-3to4": "E_RESHAPE",
    "raid5x4-ppl-dirty": "E_PPL_DIRTY",
    "raid5x3-journal-wt-dirty": "E_JOURNAL",
    "raid5x3-journal-wb-dirty": "E_JOURNAL",
}
DIRTY = {"raid5x4-dirty", "raid6x5-dirty", "raid5x4-bitmap-dirty"}  # degraded, they are refused: E_DIRTY_DEGRADED
STALE = {"raid5x4-degraded": {"m2.img"}}  # members never to be used
# m1 has bad blocks that only m0 can answer for (byte ranges of the array): without m0 they are EIO.
BAD_BLOCKS = {"raid1x2-badblocks": [(1000 * 512, 8 * 512), (5000 * 512, 512 * 512), (5512 * 512, 188 * 512)]}


class Set:
    """A folder of sets/: its manifest, and its members unpacked once."""

    def __init__(self, name):
        self.name, self.members = name, {}
        self.dir = os.path.join(TMP, name)
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

    def copy(self, where, members):
        os.makedirs(where)
        run("cp", "--sparse=always", *(os.path.join(self.dir, m) for m in members), where)
        return [os.path.join(where, m) for m in members]

    def unchanged(self, paths):
        for path in paths:
            same(sha256_file(path), self.members[os.path.basename(path)]["sha256"], f"{path} has been written to")

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
        """(members that are gone, tolerated) of every subset up to one member beyond tolerance."""
        most = {"raid1": self.disks, "raid10": self.disks, "raid6": 3}.get(self.level, 2)
        beyond = 0
        for count in range(0, min(most, len(self.members) - 1) + 1):
            for gone in map(set, itertools.combinations(sorted(self.members), count)):
                tolerated = self.tolerates(self.missing_roles(gone))
                beyond += not tolerated
                if tolerated or beyond <= 2:  # a sample of those is enough
                    yield gone, tolerated


def refuse(golden, paths, code):
    with Daemon() as daemon:
        for read_only in (True, False):
            answer = daemon.start(*paths, read_only=read_only, ok=None)
            if answer.code in (0, 4):
                raise AssertionError(f"has been started: {answer}")
            same(answer.error, code, f"{answer}")
        same(daemon.status(), None, "arrays served")
    golden.unchanged(paths)


def serve_read_only(golden, paths):
    with Daemon() as daemon:
        daemon.start(*paths, read_only=True)
        content = read_export(daemon.uri())
    same(len(content), golden.bytes, "size of the export")
    same(sha256(content), golden.array_sha256, "digest of the export")
    golden.unchanged(paths)


def write_here_and_there(uri, content):
    """Write at places that make every kind of stripe update, into the export and the expectation."""
    client = nbd.NBD()
    client.connect_uri(uri)
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
    client.shutdown()


def examine(path):
    said = run("mdadm", "--examine", path)
    return {key: re.search(rf"^ +{key} : (.*)$", said, re.M)[1] for key in ("Checksum", "Events", "State")}


def serve_read_write(golden, paths, gone):
    with Daemon() as daemon:
        daemon.start(*paths)
        content = bytearray(read_export(daemon.uri()))
        same(sha256(content), golden.array_sha256, "digest of the export")
        write_here_and_there(daemon.uri(), content)
        same(sha256(read_export(daemon.uri())), sha256(content), "read back")
    for path in paths:
        member, now = golden.members[os.path.basename(path)], examine(path)
        if os.path.basename(path) in STALE.get(golden.name, ()):
            golden.unchanged([path])
            continue
        assert now["Checksum"].endswith("correct"), f"{path}: {now}"
        same(now["State"], "clean", f"{path} after a clean stop")
        if golden.level != "raid0" and member["role"].isdigit():  # md never touches RAID 0's either
            assert int(now["Events"]) > member["events"], f"{path}: events {now['Events']}, were {member['events']}"
    if gone:  # the absent come back, and are not to be trusted: they missed what was written
        with Daemon() as daemon:
            daemon.start(*paths, *golden.copy(os.path.dirname(paths[0]) + "-late", gone), read_only=True)
            same(sha256(read_export(daemon.uri())), sha256(content), f"with {gone}, which had been away")
    # And again, from what is on disk, without one more member where that is tolerated: parity has to be right.
    spare = [p for p in paths if os.path.basename(p) not in STALE.get(golden.name, ()) and
             golden.tolerates(golden.missing_roles(gone | {os.path.basename(p)}))]
    if spare:
        paths = [p for p in paths if p != spare[zlib.crc32(f"{golden.name} {sorted(gone)}".encode()) % len(spare)]]
    with Daemon() as daemon:
        daemon.start(*paths, read_only=True)
        same(sha256(read_export(daemon.uri())), sha256(content), f"after a restart, with {paths}")


def serve_without_the_bad_blocks(golden, paths):
    """The only member left has bad blocks: those are EIO, everything else is there."""
    with open(os.path.join(golden.dir, "m0.img"), "rb") as f:
        f.seek(2048 * 512)
        content = f.read(golden.bytes)
    same(sha256(content), golden.array_sha256, "what is expected")
    with Daemon() as daemon:
        daemon.start(*paths, read_only=True)
        client = nbd.NBD()
        client.connect_uri(daemon.uri())
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
        client.shutdown()
    golden.unchanged(paths)


def try_set(golden, tests):
    golden.unpack()
    code = REFUSED.get(golden.name)
    for gone, tolerated in golden.situations():
        present = sorted(set(golden.members) - gone)
        paths = [os.path.join(golden.dir, m) for m in present]
        sentence = f"{golden.name} {'without ' + ' '.join(sorted(gone)) if gone else 'whole'}"
        missing = golden.missing_roles(gone)
        if code:
            if not missing:
                tests.run(f"{sentence} is refused", refuse, golden, paths, code)
            continue
        if not tolerated:
            tests.run(f"{sentence} is not enough", refuse, golden, paths, "E_NOT_ENOUGH_MEMBERS")
        elif golden.name in DIRTY and missing:
            tests.run(f"{sentence} is dirty and degraded", refuse, golden, paths, "E_DIRTY_DEGRADED")
        elif golden.name in BAD_BLOCKS and "m0.img" in gone:
            tests.run(f"{sentence} has bad blocks", serve_without_the_bad_blocks, golden, paths)
        else:
            tests.run(f"{sentence} read-only", serve_read_only, golden, paths)
            work = os.path.join(TMP, "rw", golden.name, "-".join(present))
            tests.run(f"{sentence} read-write", lambda: serve_read_write(golden, golden.copy(work, present), gone))
            shutil.rmtree(work, ignore_errors=True)
            shutil.rmtree(work + "-late", ignore_errors=True)
    shutil.rmtree(golden.dir)


def main():
    tests = Tests("golden")
    golden = [Set(name) for name in sorted(os.listdir(SETS)) if os.path.isdir(os.path.join(SETS, name))]
    golden.sort(key=lambda g: -g.bytes * len(g.members))  # long ones first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(try_set, g, tests) for g in golden if tests.only.split(" ")[0] in g.name or not tests.only]:
            done.result()
    tests.end()


main()
