#!/usr/bin/python3
# tests/run: limit 200
"""Cases of section B that no other test has: members that leave, come back, and never win when they are older.

    test_cases_B.py [TEXT]      only cases whose name contains TEXT
"""
import itertools
import os
import shutil
import sys

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from cases import Array, Writer, connect, doomed, fill, generation_of, problems, run_all, verify  # noqa: E402
from rig import MIB, Daemon, Tests, same, sha256_file, sr5, stdio  # noqa: E402


def why(found):
    """What a scan says of each member: {path's end: (class, events, why)}."""
    return {os.path.basename(m["path"]): (m["class"], m["events"], m["why"]) for m in found["members"]}


def case_B1_every_member_that_is_not_used_has_a_reason():
    """Five members, cut off from each other at different moments of the same run."""
    array = Array("B1", "5", 5)
    with Daemon() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        writer = Writer(daemon, range(64))
        writer.wait(20)
        torn = array.copy("B1-torn")  # as after a cut at any moment: superblocks and data of one instant, more or less
        daemon.sr5("fault", "tank", "3", "gone")
        writer.wait(20)
        writer.end()
        writer.check(writer.client)
        same(writer.error, None)
        writer.client.shutdown()
    # A plan, without doing it.
    with Daemon() as daemon:
        before = array.hashes()
        plan = daemon.sr5("start", *array.paths, "--degraded=now", "--dry-run").json
        same((plan["dry_run"], plan["arrays"][0]["state"]), (True, "degraded"))
        same(array.hashes(), before)
    found, = sr5("scan", array.place).json["arrays"]
    same(found["class"], "degraded")
    said = why(found)
    same([said[f"m{i}"][0] for i in range(5)], ["active", "active", "active", "faulty", "active"])
    assert "behind by" in said["m3"][2] and "rebuilt" in said["m3"][2], said["m3"]
    same([said[f"m{i}"][2] for i in (0, 1, 2, 4)], [""] * 4)
    # What was copied in the middle of it starts whole, or says why it does not.
    found, = sr5("scan", os.path.dirname(torn[0])).json["arrays"]
    for class_, _, reason in why(found).values():
        assert class_ == "active" or reason, found
    # Two whose last updates are each of their own time: three of five are too few, and every reason is given.
    for i in (1, 2):
        shutil.copy(torn[i], array.paths[i])
    before = array.hashes()
    with Daemon("--members", array.place, "--degraded=now") as daemon:
        status = daemon.status()
        same(status["state"], "waiting")
        reasons = {os.path.basename(p["member"]): p["text"] for p in status["problems"] if p["code"] == "MEMBER_NOT_USED"}
        same(sorted(reasons), ["m1", "m2", "m3"], status["problems"])
        assert all("behind by" in text for text in reasons.values()), reasons
        same({os.path.basename(m["path"]): m["state"] for m in status["members"]},
             {"m0": "active", "m1": "stale", "m2": "stale", "m3": "faulty", "m4": "active"})
    same(array.hashes(), before, "members of an array that was not started")
    array.gone()


def case_B5_old_member_never_wins():
    """Three mirrors leave one after another under writes; whoever comes back, in whatever order, the last one's word counts."""
    array = Array("B5", "1", 3)
    blocks = range(32)
    with doomed() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        writer = Writer(daemon, blocks)
        writer.wait(30)
        daemon.sr5("fault", "tank", "0", "gone")
        writer.wait(30)
        at_second = dict(writer.acknowledged)
        daemon.sr5("fault", "tank", "1", "gone")
        writer.wait(30)
        daemon.sr5("fault", "tank", "2", "gone")  # the last copy: writes end in errors, not in lies
        writer.join(30)
        assert writer.error is not None, "a write without any member was acknowledged"
        same([m["state"] for m in daemon.status()["members"]][:2], ["faulty", "faulty"])
    assert at_second != writer.acknowledged
    for count in (1, 2, 3):
        for subset in itertools.combinations(range(3), count):
            found, = sr5("scan", *(array.paths[i] for i in subset)).json["arrays"]
            if 2 in subset:
                same(why(found)["m2"][0], "active")
                same([c for name, (c, _, _) in why(found).items() if name != "m2"], ["faulty"] * (count - 1), found)
            elif subset == (0, 1):
                same(why(found)["m1"][0], "active")
                same(why(found)["m0"][0], "faulty")
    for order in (o for count in (1, 2, 3) for o in itertools.permutations(range(3), count) if 2 in o):
        paths = array.copy("B5-copy", order)
        with stdio(paths) as client:
            writer.check(client)
            fill(client, 10 ** 6, range(32, 36))
        # Those that were there and not used are as they were.
        for i, path in zip(order, paths):
            if i != 2:
                same(sha256_file(path), sha256_file(array.paths[i]), f"m{i} of {order}")
    # m0 and m1 without m2: m1 knows that m0 failed, but nobody that m1 did.  Its tables list m2 as working, and so does
    # everything it holds; so nothing but waiting for m2 protects its user, which is why that needs --degraded=now.  md
    # serves it as well.  A member that is alone is asked about by E_STALE_ALONE only if it knows better.
    with Daemon() as daemon:
        same(daemon.start(*array.paths[:2], degraded="never", ok=None).json["arrays"][0]["state"], "waiting")
    paths = array.copy("B5-copy", (0, 1))
    with stdio(paths) as client:
        for lba in blocks:
            assert at_second[lba] <= generation_of(client, lba) <= writer.sent[lba]
    array.gone()


def case_B5_one_that_went_on_alone_and_the_last_are_never_merged():
    """m1 was served alone after m2 had gone on without it: two sides, and nobody guesses."""
    array = Array("B5-alone", "1", 2)
    blocks = range(16)
    with Daemon() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        writer = Writer(daemon, blocks)
        writer.wait(20)
        daemon.sr5("fault", "tank", "0", "gone")
        writer.wait(20)
        writer.end().client.shutdown()
    with stdio(array.paths[:1]) as client:
        fill(client, 10 ** 6, blocks)
    before = array.hashes()
    for order in itertools.permutations(array.paths):
        with Daemon() as daemon:
            same(daemon.start(*order, ok=None).error, "E_DIVERGED")
        same(array.hashes(), before)
    array.gone()


def case_B6_halves_written_apart_are_never_merged(level, halves):
    """Both halves of a redundant array are served alone; then they meet."""
    array = Array(f"B6-{level}", level, len(halves[0]) + len(halves[1]))
    a, b = ([array.paths[i] for i in half] for half in halves)
    with Daemon("--members", array.place) as daemon:
        client = connect(daemon)
        fill(client, 1, range(40))
        client.shutdown()
    for half, generation, blocks in ((a, 2, range(20)), (b, 3, range(20, 40))):
        with stdio(half) as client:
            fill(client, generation, blocks)
    before = array.hashes()
    found, = sr5("scan", array.place).json["arrays"]
    same(found["class"], "diverged")
    with Daemon("--members", array.place, "--degraded=now") as daemon:
        same((daemon.status()["state"], problems(daemon.status())), ("failed", ["E_DIVERGED"]))
        refusal = daemon.start(*array.paths, ok=(3,))
        same(refusal.error, "E_DIVERGED")
        assert any(p in refusal.json["message"] for p in a) and any(p in refusal.json["message"] for p in b), refusal
        same(len([f for f in refusal.json["fix"] if "--keep=" in f]), 2, refusal)
        same(daemon.sr5("start", array.place + "/", "--keep", "/nonexistent", ok=None).error, "E_DIVERGED")
    same(array.hashes(), before, "members after the refusals")
    for kept, other, generations in ((a, b, (2, 1)), (b, a, (1, 3))):
        paths = array.copy("B6-copy")
        place = os.path.dirname(paths[0])
        at = {p: f"{place}/{os.path.basename(p)}" for p in array.paths}
        other_before = [sha256_file(at[p]) for p in other]
        with Daemon() as daemon:
            same(daemon.sr5("start", *paths, "--degraded=now", "--keep", at[kept[0]], ok=(4,)).json["arrays"][0]["state"], "degraded")
            client = connect(daemon)
            verify(client, generations[0], range(20))
            verify(client, generations[1], range(20, 40))
            fill(client, 4, range(10, 30))
            client.shutdown()
        same([sha256_file(at[p]) for p in other], other_before, "the other side")
        # Nobody forgets: without that choice it is refused, with it, in any order, it stays the same.
        with Daemon() as daemon:
            same(daemon.start(*paths, ok=None).error, "E_DIVERGED")
            daemon.sr5("start", *paths[::-1], "--degraded=now", "--keep", at[kept[-1]], ok=(4,))
            client = connect(daemon)
            verify(client, 4, range(10, 30))
            verify(client, generations[0], range(10))
            verify(client, generations[1], range(30, 40))
            client.shutdown()
        same([sha256_file(at[p]) for p in other], other_before, "the other side, later")
    array.gone()


def case_B8_three_of_four_vanish_together_and_come_back(level):
    """Too many members at once: writes fail, none is acknowledged falsely, and all is there when they are."""
    array = Array(f"B8-{level}", level, 4)
    with doomed() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        writers = [Writer(daemon, range(i * 16, i * 16 + 16), fua=i % 2 == 0, seed=i) for i in range(3)]
        for writer in writers:
            writer.wait(15)
        for i in (1, 2, 3):
            daemon.sr5("fault", "tank", i, "gone")
        for writer in writers:
            writer.wait(10)  # a mirror may still serve a part
            writer.end()
        errors = [w.error is not None for w in writers]
        assert any(errors) if level == "10" else all(errors), "writes go on without the members"
        same(daemon.status()["state"], "failed")
        client = connect(daemon)
        for call in (lambda: client.pwrite(bytes(MIB), 8 * MIB, nbd.CMD_FLAG_FUA), client.flush):
            try:
                call()
            except nbd.Error as e:
                assert e.errno in ("EIO", "ESHUTDOWN"), e
            else:
                raise AssertionError("acknowledged without members")
        killed = array.copy("B8-killed")
        for i in (1, 2, 3):
            daemon.sr5("fault", "tank", i, "delay=0")
        for writer in writers:
            # In a RAID 5 the second one's blocks are those of the first member to go: computed, and without a log the writes
            # that failed half-way beside them have left nothing to trust for that (WRITE_HOLE_OPEN).
            if level != "5" or writer is not writers[1]:
                writer.check(client)
        client.pread(4 * MIB, 0)  # from every member
        # The first to go was recorded as failed; those without which nothing works never are, and answer again.
        states = [m["state"] for m in daemon.status()["members"]][1:]
        same((states.count("faulty"), daemon.status()["state"]), (2 if level == "10" else 1, "degraded"), states)
        daemon.sr5("stop", "tank", ok=None)
    for paths in (array.paths, killed):
        before = [sha256_file(p) for p in paths]
        with Daemon("--members", os.path.dirname(paths[0]), "--degraded=now") as daemon:
            status = daemon.status()
            if level == "5":
                # What failed half-way left a parity that may not stand in for a member (the write hole): refused until
                # the member that was lost first can be brought back (reattach), and nothing is changed.
                same((status["state"], problems(status)[0]), ("failed", "E_DIRTY_DEGRADED"))
            else:
                assert status["state"] in ("degraded", "rebuilding"), status
        if level == "5":
            same([sha256_file(p) for p in paths], before)
            continue
        with stdio(paths) as client:
            for writer in writers:
                writer.check(client)
    array.gone()


def case_B8_a_parity_that_a_failed_write_left_behind_is_never_trusted():
    array = Array("B8-half", "5", 4)
    with Daemon() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        client = connect(daemon)
        fill(client, 1, range(64))
        daemon.sr5("fault", "tank", 1, "gone")
        fill(client, 2, range(32))  # the second chunk is on member 1: it is noticed now, not whenever it is marked next
        daemon.sr5("fault", "tank", 2, "eio-write@3M+16M")  # of data: the third chunk, but not its parity
        try:
            client.pwrite(bytes(4096), 40 * 4096)
        except nbd.Error as e:
            same(e.errno, "EIO")
        else:
            raise AssertionError("acknowledged")
        assert "RESYNC_INCOMPLETE" in problems(daemon.status()), daemon.status()["problems"]
        daemon.sr5("fault", "tank", 2, "")
        client.shutdown()
    with Daemon("--members", array.place, "--degraded=now") as daemon:
        same((daemon.status()["state"], problems(daemon.status())[0]), ("failed", "E_DIRTY_DEGRADED"))
    array.gone()


if __name__ == "__main__":
    tests = Tests("cli/cases B")
    for raid, parts in (("1", ([0], [1])), ("10", ([0, 2], [1, 3]))):
        tests.run(f"case_B6_halves_written_apart_are_never_merged, RAID {raid}", case_B6_halves_written_apart_are_never_merged, raid, parts)
    for raid in ("5", "10"):
        tests.run(f"case_B8_three_of_four_vanish_together_and_come_back, RAID {raid}",
                  case_B8_three_of_four_vanish_together_and_come_back, raid)
    del case_B8_three_of_four_vanish_together_and_come_back
    del case_B6_halves_written_apart_are_never_merged
    run_all(tests, globals())
