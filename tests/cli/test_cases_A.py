#!/usr/bin/python3
# tests/run: limit 200
"""Cases of section A that no other test has: what happens to metadata outside of sr5.

    test_cases_A.py [TEXT]      only cases whose name contains TEXT
"""
import contextlib
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import BLOCK, WORK, Array, connect, fill, problems, run_all, verify  # noqa: E402
from rig import MIB, Daemon, Tests, same, sha256_file, sr5  # noqa: E402

SUPER = 4096  # where md 1.2 has its superblock
LEVELS = {"0": 2, "1": 2, "4": 3, "5": 3, "6": 4, "10": 4}
SOME = range(0, 2000, 17)  # blocks that are filled


def overwrite(path, off, data):
    with open(path, "r+b") as f:
        f.seek(off)
        f.write(data)


def read_at(path, off, size):
    with open(path, "rb") as f:
        f.seek(off)
        return f.read(size)


@contextlib.contextmanager
def served(array, *options, degraded="now"):
    with Daemon("--members", array.place, f"--degraded={degraded}", *options) as daemon:
        client = connect(daemon)
        yield daemon, client
        client.shutdown()


def super_events(paths):
    return [m["super"]["events"] for m in sr5("inspect", *paths).json["members"]]


def case_A5_the_first_MiB_of_all_members_is_zeroed(level):
    array = Array(f"A5-front-{level}", level, LEVELS[level])
    with served(array) as (_, client):
        fill(client, 1, SOME)
    for path in array.paths:
        overwrite(path, 0, bytes(MIB))
    found, = sr5("scan", array.place).json["arrays"]
    same((found["name"], found["uuid"], found["class"]), ("tank", array.uuid, "complete"))
    same([m["from_backup"] for m in found["members"]], [True] * len(array.paths))
    before = array.hashes()
    with served(array, "--read-only") as (daemon, client):  # which repairs nothing
        verify(client, 1, SOME)
        assert "SUPER_FROM_BACKUP" in problems(daemon.status()), daemon.status()
    same(array.hashes(), before)
    with served(array) as (daemon, client):
        same([(p["member"], p["severity"]) for p in daemon.status()["problems"] if p["code"] == "SUPER_FROM_BACKUP"],
             [(path, "info") for path in array.paths])
        # They are back at once, not with the first write.
        same([read_at(path, SUPER, 4) for path in array.paths], [struct.pack("<I", 0xa92b4efc)] * len(array.paths))
        verify(client, 1, SOME)
        fill(client, 2, SOME)
    said = sr5("inspect", *array.paths).json["members"]
    same([(m["super"]["state"], m["damage"]) for m in said], [("clean", [])] * len(said))
    if level != "0":  # the bitmaps were gone, too: md must find good ones where the superblocks say
        for path in array.paths:
            at = SUPER + 512 * struct.unpack("<i", read_at(path, SUPER + 96, 4))[0]
            same(read_at(path, at, 4), b"bitm", f"bitmap of {path}")
    with served(array) as (daemon, client):
        same((daemon.status()["state"], "SUPER_FROM_BACKUP" in problems(daemon.status())), ("online", False))
        verify(client, 2, SOME)
    array.gone()


def case_A5_the_first_MiB_of_one_member_is_zeroed():
    array = Array("A5-one", "5", 3)
    with served(array) as (_, client):
        fill(client, 1, SOME)
    kept = read_at(array.paths[1], SUPER, 256)
    overwrite(array.paths[1], 0, bytes(MIB))
    with served(array) as (daemon, client):
        same(daemon.status()["state"], "online")
        same(read_at(array.paths[1], SUPER, 256), kept, "beside others it goes back as it was")
        verify(client, 1, SOME)
    with served(array, "--read-only") as (daemon, client):
        same((daemon.status()["state"], problems(daemon.status())), ("read-only", ["WRITE_HOLE_OPEN"]))


def case_A5_the_last_MiB_of_all_members_is_zeroed():
    array = Array("A5-back", "5", 3, size="1100M")  # with at least that much slack
    assert array.answer["slack_bytes"] >= MIB * len(array.paths), array.answer
    with served(array) as (_, client):
        fill(client, 1, SOME)
        last = array.size // BLOCK - 1
        fill(client, 1, range(last - 3, last + 1))
    for path in array.paths:
        overwrite(path, os.path.getsize(path) - MIB, bytes(MIB))
    with served(array) as (daemon, client):
        same((daemon.status()["state"], "SUPER_FROM_BACKUP" in problems(daemon.status())), ("online", False))
        verify(client, 1, SOME)
        verify(client, 1, range(last - 3, last + 1))
    array.gone()


def case_A5_one_member_loses_both():
    array = Array("A5-both", "5", 3)
    with served(array) as (_, client):
        fill(client, 1, SOME)
    size = os.path.getsize(array.paths[2])
    overwrite(array.paths[2], 0, bytes(2 * MIB))  # the area of the copies begins at the first MiB
    overwrite(array.paths[2], size - MIB, bytes(MIB))
    found, = sr5("scan", array.place).json["arrays"]
    same((found["class"], [m["path"] for m in found["members"]]), ("degraded", array.paths[:2]))
    before = array.hashes(array.paths[2:])
    with served(array) as (daemon, client):
        status = daemon.status()
        same((status["state"], status["members_online"], "MEMBER_MISSING" in problems(status)), ("degraded", 2, True))
        verify(client, 1, SOME)
        fill(client, 2, SOME)
        verify(client, 2, SOME)
    same(array.hashes(array.paths[2:]), before, "the member that is none")


def checksum(sb):
    """md's: of the superblock and its role table, as 32-bit words, with its own field left out."""
    roles, = struct.unpack_from("<I", sb, 220)
    size = 256 + 2 * roles
    body = bytearray(sb[:size])
    body[216:220] = bytes(4)
    total = sum(struct.unpack(f"<{size // 4}I", body[:size // 4 * 4]))
    if size % 4 == 2:
        total += struct.unpack_from("<H", body, size - 2)[0]
    return ((total & 0xffffffff) + (total >> 32)) & 0xffffffff


def patch(path, fields):
    """Change fields of a superblock, with a good checksum: fields is {offset: u32}."""
    sb = bytearray(read_at(path, SUPER, 4096))
    same(struct.unpack_from("<I", sb, 216)[0], checksum(sb), "our idea of the checksum")
    for off, value in fields.items():
        struct.pack_into("<I", sb, off, value)
    struct.pack_into("<I", sb, 216, checksum(sb))
    overwrite(path, SUPER, sb)


def case_A6_an_unknown_layout_is_refused():
    for level, layout in (("0", 3), ("5", 17), ("6", 99), ("10", 0x70201)):
        array = Array(f"A6-{level}", level, LEVELS[level])
        for path in array.paths:
            patch(path, {76: layout})
        before = array.hashes()
        found, = sr5("scan", array.place).json["arrays"]
        same((found["class"], found["error"]["code"]), ("refused", "E_LAYOUT_UNKNOWN"), f"RAID {level}")
        assert str(layout) in found["error"]["message"] or hex(layout) in found["error"]["message"], found["error"]
        with Daemon() as daemon:
            same(daemon.start(*array.paths, ok=None).error, "E_LAYOUT_UNKNOWN", f"RAID {level}")
            same(daemon.sr5("status", ok=None).code, 5)
        same(array.hashes(), before, f"members of RAID {level}")
        array.gone()


def case_A6_an_unequal_stripe_whose_layout_nobody_recorded_is_refused():
    place = os.path.join(WORK, "A6-unequal")
    os.makedirs(place)
    paths = [f"{place}/m{i}" for i in range(3)]
    for path, size in zip(paths, (20 * MIB + 65536, 30 * MIB, 40 * MIB)):  # an odd chunk: md's two layouts differ beyond it
        with open(path, "wb") as f:
            f.truncate(size)
    made = sr5("create", "mixed", *paths, "--level", "0").json
    blocks = range(0, made["size_bytes"] // BLOCK, 31)
    for fresh in (True, False):  # its rule is in the superblock
        with Daemon("--members", place) as daemon:
            client = connect(daemon, "mixed")
            if fresh:
                fill(client, 1, blocks)
            verify(client, 1, blocks)
            client.shutdown()
    for path in paths:
        features, = struct.unpack("<I", read_at(path, SUPER + 8, 4))
        assert features & 4096, hex(features)
        patch(path, {8: features & ~4096, 76: 0})
    before = [sha256_file(p) for p in paths]
    with Daemon() as daemon:
        same(daemon.start(*paths, ok=None).error, "E_LAYOUT_UNKNOWN")
    same([sha256_file(p) for p in paths], before)


def case_A9_the_block_sizes_of_an_export_outlive_a_restart():
    """Members of unlike sectors need block devices, or a wrapper that reports others than the file's: see README.md."""
    array = Array("A9", "5", 3)
    seen = []
    for _ in range(2):
        with served(array) as (_, client):
            seen.append([client.get_block_size(kind) for kind in range(3)] + [client.get_size()])
    same(seen[1], seen[0])
    same(seen[0][0], 1)


if __name__ == "__main__":
    tests = Tests("cli/cases A")
    for raid in LEVELS:
        tests.run(f"case_A5_the_first_MiB_of_all_members_is_zeroed, RAID {raid}",
                  case_A5_the_first_MiB_of_all_members_is_zeroed, raid)
    del case_A5_the_first_MiB_of_all_members_is_zeroed
    run_all(tests, globals())
