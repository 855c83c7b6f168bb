#!/usr/bin/python3
# tests/run: limit 400
"""Programs by others as clients of sr5d, on every level, whole and with a member failed.

fio, qemu-io, qemu-img, nbdcopy, nbdinfo, and the error matrix through libnbd with its own checks switched off.
    test_foreign.py [TEXT]      only cases whose sentence contains TEXT
"""
import concurrent.futures
import json
import os
import random
import sys

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import MIB, TMP, Daemon, Tests, read_export, run, same, sr5  # noqa: E402

# name: (level, members, more options of create, how many members may fail)
ARRAYS = {
    "raid0": ("0", 3, [], 0),
    "raid1": ("1", 2, [], 1),
    "raid4": ("4", 4, [], 1),
    "raid5": ("5", 4, [], 1),
    "raid5-16k": ("5", 3, ["--chunk", "16K"], 1),
    "raid6": ("6", 5, [], 2),
    "raid10": ("10", 4, [], 1),
    "raid10-far": ("10", 3, ["--layout", "far=2"], 1),
    "raid10-offset": ("10", 3, ["--layout", "offset=2"], 1),
}
MEMBER_SIZE = "40M"


def nbdinfo(daemon, name, size):
    for uri in daemon.uri(), daemon.uri(name):
        export = json.loads(run("nbdinfo", "--json", uri))["exports"][0]
        same(export["export-size"], size, "size")
        same(export["is_read_only"], False, "read-only")
        for able in "can_flush", "can_fua", "can_trim", "can_zero", "can_multi_conn", "can_cache":
            same(export[able], True, able)
    listed = json.loads(run("nbdinfo", "--list", "--json", daemon.uri()))["exports"]
    assert name in [e["export-name"] for e in listed], f"exports listed: {listed}"


def nbdcopy(daemon, size, seed):
    """A whole image in, the same image out, by several connections; qemu-img finds no difference either."""
    path = os.path.join(TMP, f"image-{seed}")
    image = random.Random(seed).randbytes(size)
    with open(path, "wb") as f:
        f.write(image)
    run("nbdcopy", "--flush", "--connections=4", "--requests=32", "--request-size=1048576", path, daemon.uri())
    assert read_export(daemon.uri()) == image, "what came back differs"
    run("qemu-img", "compare", "-f", "raw", "-F", "raw", path, daemon.uri())
    run("nbdcopy", "--synchronous", "--request-size=65536", daemon.uri(), path + ".back")
    run("cmp", path, path + ".back")
    os.remove(path + ".back")
    os.remove(path)


QEMU_IO = """
write -P 0xaa 0 4M
read -P 0xaa 0 4M
write -P 0x77 511 1025
read -P 0x77 511 1025
read -P 0xaa 0 511
read -P 0xaa 1536 1M
write -P 0x11 65535 2
read -P 0x11 65535 2
read -P 0xaa 65537 1000
write -z 1M 64k
read -P 0 1M 64k
write -zu 2097153 131071
read -P 0 2097153 131071
read -P 0xaa 2097152 1
write -f -P 0x5a 4k 4k
read -P 0x5a 4k 4k
discard 3M 512k
write -P 0x33 3M 512k
read -P 0x33 3M 512k
aio_write -P 1 5M 64k
aio_write -P 2 5308416 64k
aio_write -P 3 8M 3M
aio_flush
read -P 1 5M 64k
read -P 2 5308416 64k
read -P 3 8M 3M
flush
"""


def qemu_io(daemon):
    said = run("qemu-io", "-f", "raw", daemon.uri(), input=QEMU_IO.encode())
    assert "failed" not in said.lower() and "error" not in said.lower(), said


def fio(daemon, size, seed, *options):
    # Blocks divide the size: fio rounds up, and one client would write into the part of the next.
    run("fio", "--name=v", "--ioengine=nbd", f"--uri={daemon.uri()}", f"--size={size & ~(MIB - 1)}", "--iodepth=16",
        f"--randseed={seed}", "--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--output=/dev/null", *options)


def fio_mixed(daemon, size, seed):
    fio(daemon, size, seed, "--rw=randrw", "--bsrange=512-1M", "--blockalign=512", "--bs_unaligned=1",
        "--io_size=48M", "--fsync=50")


def fio_small(daemon, size, seed):
    fio(daemon, size, seed, "--rw=randwrite", "--bs=4k", "--io_size=8M", "--fsync=64")


def fio_streams(daemon, size, seed):
    """Four clients on one export, each with a part of its own."""
    fio(daemon, size // 4, seed, "--rw=write", "--bs=256k", "--numjobs=4", "--thread",
        f"--offset_increment={size // 4 & ~(MIB - 1)}")


def errno_of(request):
    try:
        request()
    except nbd.Error as e:
        return e.errno
    return "OK"


def error_matrix(daemon, size):
    h = nbd.NBD()
    h.set_strict_mode(0)
    h.set_request_structured_replies(False)
    h.connect_uri(daemon.uri())
    block, unknown_flag = b"x" * 4096, 1 << 9
    before = h.pread(65536, 0)
    for what, request, expected in (
        ("write past the end", lambda: h.pwrite(block, size - 512), "ENOSPC"),
        ("write beyond the end", lambda: h.pwrite(block, size + MIB), "ENOSPC"),
        ("write at 2^63", lambda: h.pwrite(block, (1 << 63) - 4096), "ENOSPC"),
        ("zeroes past the end", lambda: h.zero(4096, size - 512), "ENOSPC"),
        ("read past the end", lambda: h.pread(4096, size - 512), "EINVAL"),
        ("trim past the end", lambda: h.trim(4096, size - 512), "EINVAL"),
        ("cache past the end", lambda: h.cache(4096, size - 512), "EINVAL"),
        ("unknown flag on write", lambda: h.pwrite(block, 0, unknown_flag), "EINVAL"),
        ("unknown flag on read", lambda: h.pread(4096, 0, unknown_flag), "EINVAL"),
        ("NO_HOLE on write", lambda: h.pwrite(block, 0, nbd.CMD_FLAG_NO_HOLE), "EINVAL"),
        ("DF without structured replies", lambda: h.pread(4096, 0, nbd.CMD_FLAG_DF), "EINVAL"),
        ("FUA on read", lambda: h.pread(4096, 0, nbd.CMD_FLAG_FUA), "OK"),
        ("FUA on flush", lambda: h.flush(nbd.CMD_FLAG_FUA), "OK"),
        ("empty write", lambda: h.pwrite(b"", 0), "OK"),
        ("empty trim", lambda: h.trim(0, 0), "OK"),
        ("empty zeroes", lambda: h.zero(0, 0), "OK"),
        ("read 33 MiB", lambda: h.pread(33 * MIB, 0), "OK"),
        ("last byte", lambda: h.pread(1, size - 1), "OK"),
    ):
        same(errno_of(request), expected, what)
    same(h.pread(65536, 0), before, "what refused requests left behind")
    h.pwrite(b"still here", 7, nbd.CMD_FLAG_FUA)
    same(h.pread(10, 7), b"still here", "after all that")
    h.shutdown()


def read_only_array(name, paths, content):
    with Daemon() as daemon:
        daemon.start(*paths, read_only=True)
        export = json.loads(run("nbdinfo", "--json", daemon.uri()))["exports"][0]
        same(export["is_read_only"], True, "read-only")
        h = nbd.NBD()
        h.set_strict_mode(0)
        h.connect_uri(daemon.uri())
        for what, request in (("write", lambda: h.pwrite(b"x" * 512, 0)), ("trim", lambda: h.trim(512, 0)),
                              ("zeroes", lambda: h.zero(512, 0))):
            same(errno_of(request), "EPERM", what)
        h.shutdown()
        assert read_export(daemon.uri()) == content, "content differs"


def try_array(tests, name, seed):
    level, count, options, may_fail = ARRAYS[name]
    if tests.only and not any(word in name for word in tests.only.split(" ")[:1]):
        return
    folder = os.path.join(TMP, name)
    os.makedirs(folder)
    paths = [os.path.join(folder, f"m{i}.img") for i in range(count)]
    made = sr5("create", name, "--level", level, "--size-each", MEMBER_SIZE, *options, *paths).json
    size = made["size_bytes"]
    with Daemon() as daemon:
        daemon.start(*paths)
        exercise(tests, daemon, name, size, seed, "")
        for number in range(may_fail):
            member = (seed + number * 2) % count
            daemon.sr5("fail", name, str(member), "--confirm", name)
            exercise(tests, daemon, name, size, seed + 1 + number, f" without {number + 1}")
            same(daemon.status(name)["state"], "degraded", "state")
        content = read_export(daemon.uri())
    tests.run(f"{name}: read-only after a restart", read_only_array, name, paths, content)
    run("rm", "-rf", folder)


def exercise(tests, daemon, name, size, seed, state):
    tests.run(f"{name}{state}: nbdinfo", nbdinfo, daemon, name, size)
    tests.run(f"{name}{state}: nbdcopy in and out", nbdcopy, daemon, size, seed)
    tests.run(f"{name}{state}: qemu-io patterns", qemu_io, daemon)
    tests.run(f"{name}{state}: fio random, 512 B to 1 MiB", fio_mixed, daemon, size, seed)
    tests.run(f"{name}{state}: fio random 4 KiB", fio_small, daemon, size, seed)
    tests.run(f"{name}{state}: fio by four clients", fio_streams, daemon, size, seed)
    tests.run(f"{name}{state}: errors", error_matrix, daemon, size)


def main():
    tests = Tests("foreign")
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"foreign: seed {seed} (SEED={seed} repeats it)")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(try_array, tests, name, seed + i * 10) for i, name in enumerate(ARRAYS)]:
            done.result()
    tests.end()


main()
