#!/usr/bin/python3
# tests/run: limit 400
"""sr5 create, inspect and scan: answers, refusals that change nothing (P4), cases of section A.

    test_create.py [TEXT]      only cases whose sentence contains TEXT
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import MIB, SR5, TMP, Daemon, Tests, read_export, run, same, sha256_file, sr5  # noqa: E402

LEVELS = {"0": 2, "1": 2, "4": 3, "5": 4, "6": 5, "10": 4}


def folder(name):
    path = os.path.join(TMP, name)
    os.makedirs(path)
    return path


def members(place, count, size=None):
    paths = [f"{place}/m{i}" for i in range(count)]
    for path in paths if size else []:
        with open(path, "wb") as f:
            f.truncate(size)
    return paths


def hashes(paths):
    return {path: sha256_file(path) for path in paths}


def refused(paths, code, *args, ok=(3,)):
    """The command is refused with that code and not one byte has changed; its answer."""
    before, listing = hashes(paths), sorted(os.listdir(os.path.dirname(paths[0])))
    answer = sr5(*args, ok=ok)
    same(answer.error, code, f"code of {args}: {answer}")
    same(answer.json["changed"], False)
    assert answer.json["message"], answer
    same(hashes(paths), before, "members")
    same(sorted(os.listdir(os.path.dirname(paths[0]))), listing, "files")
    return answer


def create_answers_as_the_contract_says(level):
    place = folder(f"contract{level}")
    paths = members(place, LEVELS[level])
    answer = sr5("create", "tank", *paths, "--level", level, "--size-each", "20M").json
    same(answer["schema"], "sr5.create/1")
    for key, kind in {"name": str, "uuid": str, "level": str, "size_bytes": int, "chunk_bytes": int, "members": list,
                      "dry_run": bool}.items():
        same(type(answer[key]), kind, key)
    same((answer["name"], answer["level"], answer["dry_run"]), ("tank", f"raid{level}", False))
    same([m["path"] for m in answer["members"]], paths)
    same([os.stat(p).st_size for p in paths], [20 * MIB] * len(paths))
    same([os.stat(p).st_mode & 0o777 for p in paths], [0o600] * len(paths))
    said = sr5("inspect", *paths).json
    same(said["schema"], "sr5.inspect/1")
    for role, member in enumerate(said["members"]):
        same((member["state"], member["class"], member["damage"]), ("member", "active", []))
        same((member["super"]["array_uuid"], member["super"]["device_role"]), (answer["uuid"], f"active {role}"))
        same(member["super"]["state"], "clean")
    found = sr5("scan", place).json
    same(found["schema"], "sr5.scan/1")
    array, = found["arrays"]
    same((array["name"], array["uuid"], array["format"], array["class"]), ("tank", answer["uuid"], "md-1.2", "complete"))
    same([(m["path"], m["role"]) for m in array["members"]], [(p, i) for i, p in enumerate(paths)])


def case_A10_dry_run_prints_what_the_export_will_have():
    rng = random.Random(10)
    for turn in range(12):
        level = rng.choice(list(LEVELS))
        count = LEVELS[level] + rng.randrange(3)
        place = folder(f"A10-{turn}")
        paths = members(place, count)
        args = ["create", "tank", *paths, "--level", level, "--size-each", f"{rng.randrange(16, 40)}M"]
        if level != "1":
            args += ["--chunk", rng.choice(["4K", "64K", "128K"])]
        dry = sr5(*args, "--dry-run").json
        same((dry["dry_run"], os.listdir(place)), (True, []), "a dry run makes nothing")
        rows = sum(dry[k] for k in ("parity_bytes", "metadata_bytes", "log_bytes", "slack_bytes", "size_bytes"))
        same(rows, dry["raw_bytes"], f"sum of the rows of {args}")
        real = sr5(*args).json
        same({k: real[k] for k in dry if k.endswith("_bytes")}, {k: dry[k] for k in dry if k.endswith("_bytes")}, str(args))
        with Daemon("--members", place) as daemon:
            same(daemon.status("tank")["size_bytes"], dry["size_bytes"])
            same(int(run("nbdinfo", "--size", daemon.uri("tank"))), dry["size_bytes"])


def case_A1_create_instead_of_start_is_refused():
    place = folder("A1")
    paths = members(place, 3)
    uuid = sr5("create", "tank", *paths, "--level", "5", "--size-each", "20M").json["uuid"]
    with Daemon("--members", place) as daemon:
        with open(f"{TMP}/A1.data", "wb") as f:
            f.write(b"precious" * 512)
        daemon.sr5("cp", f"{TMP}/A1.data", "tank:1M")
    answer = refused(paths, "E_MEMBER_OF_ARRAY", "create", "tank", *paths, "--level", "5")
    assert "tank" in answer.json["message"] and uuid[:8] in " ".join(answer.json["fix"]), answer
    refused(paths, "E_MEMBER_OF_ARRAY", "create", "other", *paths, "--level", "5", "--overwrite-array=00000000")
    made = sr5("create", "other", *paths, "--level", "5", f"--overwrite-array={uuid[:8]}").json
    assert made["uuid"] != uuid
    same(sr5("scan", place).json["arrays"][0]["name"], "other")


def case_A2_the_order_of_paths_does_not_matter():
    place = folder("A2")
    paths = [f"{place}/{n}" for n in "cadb"]
    sr5("create", "tank", *paths, "--level", "5", "--size-each", "20M", "--chunk", "4K")
    contents = random.Random(2).randbytes(3 * MIB)
    with open(f"{TMP}/A2.data", "wb") as f:
        f.write(contents)
    orders = [paths, sorted(paths), sorted(paths, reverse=True), [paths[2], paths[0], paths[3], paths[1]]]
    with Daemon() as daemon:
        for turn, order in enumerate(orders):
            daemon.start(*order)
            if turn == 0:
                daemon.sr5("cp", f"{TMP}/A2.data", "tank")
            same(read_export(daemon.uri("tank"))[:len(contents)], contents, f"contents with the order {order}")
            daemon.sr5("stop", "tank")



def case_A4_what_lies_on_a_member_is_shown_and_not_gone_over():
    place = folder("A4")
    paths = members(place, 2, 20 * MIB)
    run("mkfs.ext4", "-q", paths[1])
    answer = refused(paths, "E_SIGNATURE", "create", "tank", *paths, "--level", "1")
    assert "ext4" in answer.json["message"], answer
    refused(paths, "E_SIGNATURE", "create", "tank", *paths, "--level", "1", "--overwrite-signature=xfs")
    sr5("create", "tank", *paths, "--level", "1", "--overwrite-signature=ext4")
    same([m["state"] for m in sr5("inspect", *paths).json["members"]], ["member"] * 2)
    same(subprocess.run(["blkid", "-p", "-o", "value", "-s", "TYPE", paths[1]], capture_output=True).stdout.strip(),
         b"linux_raid_member", "what blkid finds")


def case_A8_every_check_comes_before_the_first_write():
    place = folder("A8")
    good = members(place, 3, 20 * MIB)
    short, missing, text = f"{place}/short", f"{place}/missing", f"{place}/text"
    with open(short, "wb") as f:
        f.truncate(MIB)
    with open(text, "w") as f:
        f.write("not a member")
    for bad, codes in ((short, ("E_MEMBER_SHORT",)), (missing, ("E_OPEN",)), (text, ("E_MEMBER_SHORT",)), (place, ("E_OPEN",)),
                       ("/dev/null", ("E_OPEN",))):
        before = hashes(good + [short, text])
        answer = sr5("create", "tank", *good, bad, "--level", "5", ok=(1, 2, 3))
        assert answer.error in codes, answer
        same(hashes(good + [short, text]), before, f"after {bad}")
    refused(good, "E_USAGE", "create", "tank", *good, good[0], "--level", "5", ok=(2,))
    refused(good, "E_LOG_DEVICE_LATER", "create", "tank", *good, "--level", "5", "--log", short, ok=(2,))
    refused(good, "E_LEVEL_UNKNOWN", "create", "tank", *good, "--level", "7", ok=(2,))
    refused(good, "E_LAYOUT_UNKNOWN", "create", "tank", *good, "--level", "5", "--layout", "sideways", ok=(2,))
    refused(good, "E_GEOMETRY", "create", "tank", *good, "--level", "5", "--chunk", "5K", ok=(1, 2, 3))
    refused(good, "E_GEOMETRY", "create", "tank", *good[:2], "--level", "6", ok=(1, 2, 3))
    for name in ("", "a/b", "a:b", "x" * 33, "a b", "a\nb"):
        refused(good, "E_NAME", "create", name, *good, "--level", "5", ok=(2,))


def members_in_use_are_refused():
    place = folder("inuse")
    paths = members(place, 3)
    uuid = sr5("create", "tank", *paths, "--level", "5", "--size-each", "20M").json["uuid"]
    with Daemon("--members", place) as daemon:
        answer = sr5("create", "x", *paths, "--level", "5", f"--overwrite-array={uuid[:8]}", ok=(3, 6))
        same(answer.error, "E_IN_USE")
        same(daemon.status("tank")["state"], "online")
        same(sr5("scan", place).json["arrays"][0]["class"], "in use")


def case_A14_a_failed_create_leaves_nothing():
    place = folder("A14")
    paths = members(place, 3)
    with open(paths[2], "wb") as f:
        f.write(b"mine")
    refused([paths[2]], "E_EXISTS", "create", "tank", *paths, "--level", "5", "--size-each", "20M")
    same(os.listdir(place), ["m2"], "files left")
    same(open(paths[2], "rb").read(), b"mine")
    refused([paths[2]], "E_OPEN", "create", "tank", paths[0], f"{place}/no/such", "--level", "1", "--size-each", "20M", ok=(1,))
    refused([paths[2]], "E_GEOMETRY", "create", "tank", paths[0], paths[1], "--level", "6", "--size-each", "20M", ok=(1, 2, 3))
    same(os.listdir(place), ["m2"], "files left")


def case_A14_killed_at_any_moment_it_is_whole_or_nothing():
    for turn in range(12):
        place = folder(f"A14k{turn}")
        paths = members(place, 3, 20 * MIB)
        process = subprocess.Popen([SR5, "create", "tank", *paths, "--level", "5"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(turn * 0.006)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        arrays = sr5("scan", place).json["arrays"]
        if not arrays:
            continue
        # Either it is complete, or nothing of it can be started and creating again is possible.
        if arrays[0]["class"] != "complete":
            assert arrays[0]["class"] in ("refused", "orphan"), arrays


def create_takes_existing_files_spares_and_layouts():
    place = folder("existing")
    paths = members(place, 5, 24 * MIB)
    answer = sr5("create", "tank", *paths[:4], "--level", "10", "--layout", "far=2", "--chunk", "32K", "--spare", paths[4]).json
    same((answer["layout"], answer["chunk_bytes"]), ("far=2", 32768))
    same([m["role"] for m in answer["members"]], [0, 1, 2, 3, -1])
    said = sr5("inspect", paths[4]).json["members"][0]
    same(said["super"]["device_role"], "spare")


def inspect_reads_what_is_damaged_blank_or_no_member():
    place = folder("inspect")
    paths = members(place, 4)
    sr5("create", "tank", *paths, "--level", "5", "--size-each", "20M")
    with open(paths[0], "r+b") as f:  # the first MiB is gone
        f.write(bytes(MIB))
    with open(paths[1], "r+b") as f:  # a flipped bit in the superblock
        f.seek(4096 + 100)
        f.write(b"\xff")
    blank, text = f"{place}/blank", f"{place}/text"

    with open(blank, "wb") as f:
        f.truncate(20 * MIB)
    with open(text, "w") as f:
        f.write("short")
    before = hashes(paths + [blank, text])
    answer = sr5("inspect", *paths, blank, text, ok=(4,))
    same([m["state"] for m in answer.json["members"]], ["damaged", "damaged", "member", "member", "blank", "blank"])
    same(hashes(paths + [blank, text]), before)
    same(sr5("inspect", f"{place}/nothing", ok=(1,)).error, "E_OPEN")
    said = run(SR5, "inspect", paths[2])
    assert said.startswith("member "), said


def scan_tells_the_classes_apart():
    place = folder("B14")
    for name, count, gone in (("whole", 3, []), ("hurt", 3, [1]), ("orphan", 3, [0, 2])):
        sr5("create", name, *(f"{place}/{name}{i}" for i in range(count)), "--level", "5", "--size-each", "20M")
        for i in gone:
            os.remove(f"{place}/{name}{i}")
    with open(f"{place}/README", "w") as f:
        f.write("hello")
    arrays = {a["name"]: a for a in sr5("scan", place).json["arrays"]}
    same({n: a["class"] for n, a in arrays.items()}, {"whole": "complete", "hurt": "degraded", "orphan": "orphan"})
    same(sr5("scan", place).json, sr5("scan", place).json, "scanning twice (B10)")
    with Daemon("--members", f"{place}/whole*") as daemon:
        daemon.sr5("fail", "whole", "1", "--confirm", "whole")
    found = sr5("scan", f"{place}/whole*").json["arrays"][0]
    same((found["class"], [m["class"] for m in found["members"]]), ("degraded", ["active", "faulty", "active"]))
    same(sr5("scan", f"{place}/README").json["arrays"], [])
    sr5("scan", f"{place}/nothing", ok=(1,))


if __name__ == "__main__":
    tests = Tests("cli/create")
    for level in LEVELS:
        tests.run(f"create_answers_as_the_contract_says_raid{level}", create_answers_as_the_contract_says, level)
    for test in (case_A10_dry_run_prints_what_the_export_will_have, case_A1_create_instead_of_start_is_refused,
                 case_A2_the_order_of_paths_does_not_matter, case_A4_what_lies_on_a_member_is_shown_and_not_gone_over,
                 case_A8_every_check_comes_before_the_first_write, members_in_use_are_refused,
                 case_A14_a_failed_create_leaves_nothing, case_A14_killed_at_any_moment_it_is_whole_or_nothing,
                 create_takes_existing_files_spares_and_layouts, inspect_reads_what_is_damaged_blank_or_no_member,
                 scan_tells_the_classes_apart):
        tests.run(test.__name__, test)
    tests.end()
