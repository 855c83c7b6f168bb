#!/usr/bin/python3
# tests/run: limit 600
"""The kernel's md as referee of arrays that sr5 made, of every level, in User Mode Linux.

sr5 creates and fills an array here; mdadm --examine agrees with sr5 inspect about every member; in the guest md
assembles it, reads the same, finds no mismatch and writes to it (md_job.sh); sr5 then serves what md wrote.  Of some
arrays sr5 fails members halfway through the filling, of some md does before it writes: neither trusts them afterwards.
    kernel_md.py [TEXT]      only arrays whose name contains TEXT
"""
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from rig import MIB, TMP, Daemon, Tests, read_export, run, same, sha256, sr5  # noqa: E402

MEMBER_SIZE = "16M"
# name: (level, members, more options of create)
ARRAYS = {
    "raid0": ("0", 3, []),
    "raid1": ("1", 2, []),
    "raid4": ("4", 3, []),
    "raid5": ("5", 4, []),
    "raid5-zero": ("5", 3, ["--init", "zero", "--layout", "right-asymmetric"]),
    "raid5-resync": ("5", 3, ["--init", "resync", "--chunk", "16K"]),
    "raid6": ("6", 4, []),
    "raid10": ("10", 4, []),
    "raid10-far": ("10", 3, ["--layout", "far=2"]),
    "raid10-offset": ("10", 3, ["--layout", "offset=2"]),
    "raid1-failed": ("1", 3, []),
    "raid5-failed": ("5", 4, []),
    "raid6-failed": ("6", 5, []),
    "raid10-failed": ("10", 4, []),
    "raid5-failed-by-md": ("5", 3, []),
}
FAILED_BY_SR5 = {"raid1-failed": [0], "raid5-failed": [1], "raid6-failed": [1], "raid10-failed": [2]}
FAILED_BY_MD = {"raid1-failed": [2], "raid6-failed": [3], "raid10-failed": [1], "raid5-failed-by-md": [0]}


def fill(daemon, size, seed):
    """The first two thirds; the rest stays as created: md has to agree about what was never written, too."""
    path = os.path.join(TMP, "pattern")
    with open(path, "wb") as f:
        f.write(random.Random(seed).randbytes(size * 2 // 3 // 4096 * 4096 + 512))
    run("nbdcopy", "--flush", path, daemon.uri())
    os.remove(path)


def make(name, folder):
    level, count, options = ARRAYS[name]
    os.makedirs(folder)
    paths = [os.path.join(folder, f"m{i}.img") for i in range(count)]
    size = sr5("create", name, "--level", level, "--size-each", MEMBER_SIZE, *options, *paths).json["size_bytes"]
    with Daemon() as daemon:
        daemon.start(*paths)
        fill(daemon, size, 1)
        for member in FAILED_BY_SR5.get(name, []):
            daemon.sr5("fail", name, member, "--confirm", name)
            fill(daemon, size, 2 + member)
        content = read_export(daemon.uri())
    same(len(content), size, "size")
    with open(os.path.join(folder, "sha256"), "w") as f:
        f.write(sha256(content))
    with open(os.path.join(folder, "failed"), "w") as f:
        f.write(str(len(FAILED_BY_SR5.get(name, []))))
    with open(os.path.join(folder, "fail"), "w") as f:
        f.write(" ".join(f"m{member}" for member in FAILED_BY_MD.get(name, [])))


def field(text, name):
    found = re.search(rf"^ *{name} : *(.*)$", text, re.M)
    return found[1].strip() if found else None


def digits(text):
    return re.sub(r"[^0-9a-f]", "", text.lower())


def agree(folder):
    """mdadm and sr5 say the same about every member."""
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".img"):
            continue
        path = os.path.join(folder, file)
        mdadm = run("mdadm", "--examine", path)
        member = sr5("inspect", path).json["members"][0]
        ours = member["super"]
        assert field(mdadm, "Checksum").endswith("correct"), mdadm
        same(ours["events"], int(field(mdadm, "Events")), "events")
        same(digits(ours["array_uuid"]), digits(field(mdadm, "Array UUID")), "array uuid")
        same(digits(ours["device_uuid"]), digits(field(mdadm, "Device UUID")), "device uuid")
        same(ours["level"], field(mdadm, "Raid Level"), "level")
        same(ours["data_offset_bytes"], int(field(mdadm, "Data Offset").split()[0]) * 512, "data offset")
        same(ours["device_role"], field(mdadm, "Device Role").replace("Active device", "active"), "role")
        same(ours["state"], field(mdadm, "State"), "state")
        if ours["level"] != "raid0":
            assert field(mdadm, "Internal Bitmap"), mdadm
            bitmaps_agree(path, mdadm, member["bitmap"])


def bitmaps_agree(path, mdadm, ours):
    """mdadm reads the bitmap of a device only; a file that holds nothing else will do."""
    at = int(field(mdadm, "Super Offset").split()[0]) + int(field(mdadm, "Internal Bitmap").split()[0])
    with open(path, "rb") as f, open(os.path.join(TMP, "bitmap"), "wb") as copy:
        f.seek(at * 512)
        copy.write(f.read(MIB // 2))
    said = run("mdadm", "--examine-bitmap", copy.name)
    same(ours["events"], int(field(said, "Events")), "events of the bitmap")
    same(ours["bits_dirty"], int(re.search(r"(\d+) dirty", said)[1]), "bits set")


def referee(tests, scratch, names):
    """Boot once for all arrays; what the guest counts, we count."""
    guest = subprocess.run([os.path.join(HERE, "uml"), "--mem", "384M", "--limit", "540", scratch,
                            os.path.join(HERE, "md_job.sh"), *names], stdout=subprocess.PIPE, text=True)
    print(guest.stdout, flush=True)
    verdict = re.findall(r"^md: (\d+) passed, (\d+) failed$", guest.stdout, re.M)
    if not verdict:
        raise AssertionError(f"the guest ended with {guest.returncode} and no verdict")
    tests.passed += int(verdict[0][0])
    tests.failed += int(verdict[0][1])


def take_back(name, folder):
    paths = [os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith("m")]
    with open(os.path.join(folder, "sha256.md")) as f:
        expected = f.read().strip()
    with Daemon() as daemon:
        daemon.start(*paths)
        whole = name not in FAILED_BY_SR5 and name not in FAILED_BY_MD
        same(daemon.status()["state"], "online" if whole else "degraded", "state")
        same(sha256(read_export(daemon.uri())), expected, "digest of what md wrote")


def main():
    tests = Tests("kernel_md")
    if not shutil.which("linux.uml"):
        print("kernel_md: linux.uml is missing (package user-mode-linux)")
        if os.environ.get("CI") == "true":
            tests.failed += 1
        else:
            tests.skip("all of it", "no linux.uml")
        tests.end()
    scratch = os.path.join(TMP, "guest")
    names = [name for name in ARRAYS if tests.only in name]
    folders = {name: os.path.join(scratch, "arrays", name) for name in names}
    for name in names:
        tests.run(f"{name}: sr5 creates and fills it", make, name, folders[name])
    names = [name for name in names if os.path.exists(os.path.join(folders[name], "sha256"))]
    for name in names:
        tests.run(f"{name}: mdadm and sr5 agree about the members", agree, folders[name])
    if names:
        tests.run(f"the kernel's md takes over {' '.join(names)}", referee, tests, scratch, names)
    for name in names:
        tests.run(f"{name}: sr5 serves what md wrote", take_back, name, folders[name])
        tests.run(f"{name}: mdadm and sr5 agree about what md left", agree, folders[name])
    tests.end()


main()
