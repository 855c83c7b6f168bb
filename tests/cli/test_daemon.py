#!/usr/bin/python3
# tests/run: limit 400
"""sr5d as its users meet it: answers of the verbs, waiting, stopping, signals; cases of section B.

    test_daemon.py [TEXT]      only cases whose sentence contains TEXT
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import nbd

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import MIB, SR5, SR5D, TMP, Daemon, Tests, read_export, run, same, sha256_file, sr5  # noqa: E402


def array(name, level="5", count=3, *more, size="20M"):
    """A new array tank in a folder of its own; (folder, paths, uuid)."""
    place = os.path.join(TMP, name)
    os.makedirs(place)
    paths = [f"{place}/m{i}" for i in range(count)]
    uuid = sr5("create", "tank", *paths, "--level", level, "--size-each", size, *more).json["uuid"]
    return place, paths, uuid


def data(name, size, seed=1):
    path = os.path.join(TMP, name)
    with open(path, "wb") as f:
        f.write(random.Random(seed).randbytes(size))
    return path


def until(what, function, limit=20):
    end = time.monotonic() + limit
    while not function():
        assert time.monotonic() < end, f"{what} did not happen within {limit} s"
        time.sleep(0.1)


def exports(daemon):
    return [e["export-name"] for e in json.loads(run("nbdinfo", "--list", "--json", daemon.uri(), ok=(0, 1)) or "{}").get("exports", [])]


def typed(answer, fields):
    for key, kind in fields.items():
        same(type(answer[key]), kind, key)


# ---- answers --------------------------------------------------------------------------------------

def status_list_members_and_stats_answer_as_the_contract_says():
    place, paths, uuid = array("contract", "5", 4)
    with Daemon("--members", place) as daemon:
        status = daemon.sr5("status", "tank", ok=(0, 4)).json
        same((status["schema"], status["worst"]), ("sr5.status/1", "online"))
        tank, = status["arrays"]
        typed(tank, {"name": str, "uuid": str, "level": str, "layout": str, "chunk_bytes": int, "state": str, "size_bytes": int,
                     "members_total": int, "members_online": int, "failures_survivable": int, "policy": str, "cache": dict,
                     "members": list, "problems": list, "jobs": list, "lost_ranges": list})
        typed(tank["cache"], {"mode": str, "reason": str, "dirty_bytes": int, "log_bytes": int, "log_used_bytes": int})
        same((tank["name"], tank["uuid"], tank["level"], tank["layout"], tank["chunk_bytes"], tank["state"]),
             ("tank", uuid, "raid5", "left-symmetric", 65536, "online"))
        same((tank["members_total"], tank["members_online"], tank["failures_survivable"]), (4, 4, 1))
        for role, member in enumerate(tank["members"]):
            typed(member, {"role": int, "id": str, "path": str, "state": str, "read_errors": int, "write_errors": int, "repaired": int})
            same((member["role"], member["path"], member["state"]), (role, paths[role], "online"))
        for problem in tank["problems"]:
            typed(problem, {"code": str, "severity": str, "member": str, "since": str, "fix": list})
        listed = daemon.sr5("list").json
        same(listed["schema"], "sr5.list/1")
        same([(a["name"], a["state"], a["size_bytes"]) for a in listed["arrays"]], [("tank", "online", tank["size_bytes"])])
        members = daemon.sr5("members", "tank").json
        same((members["schema"], len(members["members"])), ("sr5.members/1", 4))
        daemon.sr5("cp", data("contract.data", MIB), "tank")
        stats = daemon.sr5("stats", "tank").json
        same(stats["schema"], "sr5.stats/1")
        typed(stats, dict.fromkeys(("reads", "writes", "flushes", "read_bytes", "write_bytes", "log_appends", "log_bytes",
                                    "full_stripe_writes", "rmw_writes", "rcw_writes", "group_commit_flushes"), int))
        assert stats["writes"] >= 1 and stats["write_bytes"] == MIB and stats["flushes"] >= 1, stats
        for member in stats["members"]:
            typed(member, dict.fromkeys(("reads", "writes", "flushes", "read_bytes", "write_bytes"), int))
        assert sum(m["write_bytes"] for m in stats["members"]) > MIB, stats["members"]
        assert stats["latency_us"]["write"]["count"] == stats["writes"], stats["latency_us"]
        assert stats["latency_us"]["write"]["p50"] <= stats["latency_us"]["write"]["p99"], stats["latency_us"]
        said = run(SR5, "status", "--control", daemon.control, ok=(0, 4))
        assert said.startswith("online tank: "), said
        same(daemon.sr5("version").json["daemon"]["version"], sr5("version").json["version"])


def exit_codes_of_status_follow_the_state():
    place, _, _ = array("codes", "1", 3)
    with Daemon("--members", place) as daemon:
        same(daemon.sr5("status", ok=None).code, 0, "online")
        daemon.sr5("fail", "tank", "1", "--confirm", "tank")
        answer = daemon.sr5("status", ok=None)
        same((answer.code, answer.json["worst"]), (4, "degraded"))
        said = run(SR5, "status", "--problems", "--control", daemon.control, ok=(4,))
        assert said.startswith("degraded tank"), said
        daemon.sr5("stop", "tank")
        same(daemon.sr5("status", "tank", ok=None).code, 5, "stopped")
        same(daemon.sr5("stats", "tank", ok=None).error, "E_NOT_SERVED")
    with Daemon() as daemon:
        answer = daemon.sr5("status", ok=None)
        same((answer.code, answer.json["arrays"]), (5, []), "no array at all")
        same(daemon.sr5("status", "tank", ok=None).error, "E_NO_SUCH_ARRAY")


def arrays_and_members_are_named_in_several_ways():
    place, paths, uuid = array("names", "5", 4)
    with Daemon("--members", place) as daemon:
        for name in ("tank", uuid, uuid.replace(":", ""), uuid[:8], uuid.replace(":", "-").upper()):
            same(daemon.sr5("members", name).json["name"], "tank", name)
        for name in ("tan", uuid[:7], "00000000", ""):
            same(daemon.sr5("members", name, ok=(1,)).error, "E_NO_SUCH_ARRAY", name)
        member = daemon.status()["members"][2]
        for name in ("2", member["id"], member["id"][:8], paths[2], os.path.relpath(paths[2])):
            answer = daemon.sr5("fail", "tank", name, "--dry-run")
            same((answer.json["path"], answer.json["role"]), (paths[2], 2), name)
        for name in ("9", "-1", "nothing", "/nowhere/m2"):
            answer = daemon.sr5("fail", "tank", name, "--dry-run", ok=(1, 2))
            assert answer.error in ("E_NO_SUCH_MEMBER", "E_USAGE"), answer


# ---- fail --------------------------------------------------------------------------------------------

def case_A11_fail_is_confirmed_by_name_and_never_asked_for():
    place, paths, _ = array("confirm", "5", 3)
    with Daemon("--members", place) as daemon:
        before = [sha256_file(p) for p in paths]
        for more in ([], ["--confirm", "tan"], ["--confirm", ""]):
            same(daemon.sr5("fail", "tank", "1", *more, ok=(3,)).error, "E_CONFIRM", more)
        dry = daemon.sr5("fail", "tank", "1", "--dry-run").json
        same((dry["before"], dry["after"], dry["survivable_before"], dry["survivable_after"]), ("online", "degraded", 1, 0))
        same([sha256_file(p) for p in paths], before, "members")
        same(daemon.status()["state"], "online")
        done = daemon.sr5("fail", "tank", "1", "--confirm", "tank").json
        same((done["before"], done["after"]), ("online", "degraded"))
        same(daemon.status()["members"][1]["state"], "faulty")
        before = [sha256_file(p) for p in paths]
        for more in (["--confirm", "tank"], ["--dry-run"]):
            same(daemon.sr5("fail", "tank", "0", *more, ok=(3,)).error, "E_LAST_GOOD_COPY")
        same([sha256_file(p) for p in paths], before, "members after the refusal")


def fault_rules_change_while_the_array_is_used():
    _, paths, _ = array("fault", "5", 3)
    with Daemon() as daemon:
        daemon.start(f"fault:delay=0:{paths[0]}", *paths[1:])
        file = data("fault.data", 2 * MIB)
        daemon.sr5("cp", file, "tank")
        same(daemon.sr5("fault", "tank", "0", "nonsense", ok=(2,)).json["changed"], False)
        same(daemon.sr5("fault", "tank", "1", "gone", ok=(2,)).error, "E_NO_FAULT")
        daemon.sr5("fault", "tank", "0", "gone")
        daemon.sr5("cp", file, "tank")
        status = daemon.status()
        same((status["state"], status["members"][0]["state"]), ("degraded", "faulty"))
        daemon.sr5("cp", "tank:0+2M", file + ".back")
        same(sha256_file(file + ".back"), sha256_file(file))


# ---- waiting ------------------------------------------------------------------------------------------

def case_B2_name_uuid_and_size_come_from_the_members_alone():
    place, _, uuid = array("B2", "5", 3)
    seen = []
    for _ in range(2):
        with Daemon("--members", place) as daemon:
            tank = daemon.status()
            seen.append((tank["name"], tank["uuid"], tank["size_bytes"], exports(daemon)))
    same(seen[0][:2], ("tank", uuid))
    same(seen[1], seen[0])


def case_B3_a_mirror_that_lacks_one_waits_then_serves():
    place, paths, _ = array("B3", "1", 2)
    os.rename(paths[1], os.path.join(TMP, "B3.away"))
    with Daemon("--members", place, "--degraded-wait", "8") as daemon:
        answer = daemon.sr5("status", ok=None)
        same((answer.code, answer.json["worst"]), (5, "waiting"))
        tank = answer.json["arrays"][0]
        assert "MEMBER_MISSING" in [p["code"] for p in tank["problems"]], tank
        same((tank["members_total"], tank["members_online"]), (2, 1))
        same(exports(daemon), [])
        until("a degraded start", lambda: daemon.status()["state"] == "degraded")
        same(exports(daemon), ["tank"])
    # Now it is written down that the other is not to be waited for: it starts at once, whatever is said.
    with Daemon("--members", place, "--degraded=never") as daemon:
        same(daemon.status()["state"], "degraded")


def case_B3_a_mirror_that_lacks_one_never_starts_by_itself_when_told_so():
    place, paths, _ = array("B3-never", "1", 2)
    os.rename(paths[1], os.path.join(TMP, "B3-never.away"))
    with Daemon("--members", place, "--degraded=never", "--degraded-wait", "0") as daemon:
        time.sleep(1.5)
        same(daemon.sr5("status", ok=None).code, 5)
        same(daemon.status()["state"], "waiting")
        answer = daemon.sr5("start", "tank", "--degraded=now", ok=(4,)).json
        same(answer["arrays"][0]["state"], "degraded")
    with Daemon("--members", place, "--degraded=now") as daemon:
        same(daemon.status()["state"], "degraded")


def case_B4_too_few_members_are_seen_by_nobody():
    place, paths, _ = array("B4", "5", 4)
    for path in paths[1:]:
        os.remove(path)
    before = sha256_file(paths[0])
    with Daemon("--members", place, "--degraded=now") as daemon:
        answer = daemon.sr5("status", "tank", ok=None)
        same((answer.code, answer.json["arrays"][0]["state"]), (5, "waiting"))
        same((exports(daemon), [a["state"] for a in daemon.sr5("list").json["arrays"]]), ([], ["waiting"]))
        same(daemon.sr5("cp", "tank", TMP + "/B4.out", ok=None).error, "E_NOT_SERVED")
        same(os.path.exists(TMP + "/B4.out"), False)
        daemon.sr5("stop", "tank")
        same(daemon.status("tank")["state"], "stopped")
    same(sha256_file(paths[0]), before, "the member")


def a_member_that_turns_up_completes_the_array():
    place, paths, _ = array("late", "5", 3)
    away = os.path.join(TMP, "late.away")
    os.rename(paths[2], away)
    with Daemon("--members", place) as daemon:
        same(daemon.status()["state"], "waiting")
        os.rename(away, paths[2])
        until("the start", lambda: daemon.status()["state"] == "online", 10)


def case_B10_the_same_member_by_another_path_and_twice():
    place, paths, uuid = array("B10", "1", 2)
    links = os.path.join(TMP, "B10.links")
    os.makedirs(links)
    for i, path in enumerate(paths):
        os.symlink(path, f"{links}/x{i}")
    with Daemon() as daemon:
        ids = []
        for folder in (place, links):
            answer = daemon.start(f"{folder}/")
            same([a["uuid"] for a in answer.json["arrays"]], [uuid])
            ids.append([m["id"] for m in daemon.status("tank")["members"]])
            same(daemon.start(f"{folder}/").json["arrays"][0]["state"], "online", "twice")
            daemon.sr5("stop", "tank")
        same(ids[1], ids[0])


def case_B14_starting_one_array_touches_only_its_members():
    place = os.path.join(TMP, "B14")
    os.makedirs(place)
    uuids = {}
    for name in ("one", "two"):
        uuids[name] = sr5("create", name, *(f"{place}/{name}{i}" for i in range(3)), "--level", "5", "--size-each", "20M").json["uuid"]
    before = [sha256_file(f"{place}/two{i}") for i in range(3)]
    with Daemon() as daemon:
        answer = daemon.start(*(f"{place}/one{i}" for i in range(3))).json
        same([a["name"] for a in answer["arrays"]], ["one"])
        daemon.sr5("cp", data("B14.data", MIB), "one")
        same(exports(daemon), ["one"])
    same([sha256_file(f"{place}/two{i}") for i in range(3)], before)
    with Daemon("--members", place) as daemon:
        same(sorted(exports(daemon)), ["one", "two"])


def case_B7_a_second_daemon_keeps_off():
    place, paths, _ = array("B7", "5", 3)
    with Daemon("--members", place) as first:
        done = subprocess.run([SR5D, "--socket", first.socket + "2", "--control", first.control], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=30)
        same(done.returncode, 6, "the same control socket")
        assert b"E_IN_USE" in done.stderr, done.stderr
        with Daemon("--members", place) as second:
            tank = second.status()
            same((tank["state"], exports(second)), ("waiting", []))
            assert "E_IN_USE" in [p["code"] for p in tank["problems"]], tank["problems"]
            same(second.sr5("start", *paths, ok=None).error, "E_IN_USE")
            same(first.status()["state"], "online")
            first.stop()
            until("taking over", lambda: second.status()["state"] == "online", 10)


def dry_runs_change_nothing():
    _, paths, _ = array("dry", "5", 3)
    before = [sha256_file(p) for p in paths]
    with Daemon() as daemon:
        answer = daemon.sr5("start", *paths, "--dry-run").json
        same([sha256_file(p) for p in paths], before)
        same((answer["dry_run"], [a["state"] for a in answer["arrays"]]), (True, ["online"]))
        same(daemon.sr5("list").json["arrays"], [])
        daemon.start(*paths)
        answer = daemon.sr5("stop", "tank", "--dry-run").json
        same((answer["before"], answer["after"], daemon.status()["state"]), ("online", "stopped", "online"))


def read_only_writes_nothing():
    place, paths, _ = array("readonly", "5", 3)
    before = [sha256_file(p) for p in paths]
    with Daemon() as daemon:
        daemon.start(place, read_only=True)
        same(daemon.status()["state"], "read-only")
        client = nbd.NBD()
        client.connect_uri(daemon.uri("tank"))
        same(client.is_read_only(), True)
        client.shutdown()
        same(daemon.sr5("cp", data("ro.data", 4096), "tank", ok=None).error, "E_READ_ONLY")
    same([sha256_file(p) for p in paths], before)


# ---- stopping, signals, processes -------------------------------------------------------------------------

def stop_and_start_keep_the_contents():
    place, paths, _ = array("stop", "5", 3)
    file = data("stop.data", 3 * MIB)
    with Daemon("--members", place) as daemon:
        daemon.sr5("cp", file, "tank:1M")
        client = nbd.NBD()
        client.connect_uri(daemon.uri("tank"))
        answer = daemon.sr5("stop", "tank").json
        same((answer["schema"], answer["before"], answer["after"]), ("sr5.stop/1", "online", "stopped"))
        same([m["super"]["state"] for m in sr5("inspect", *paths).json["members"]], ["clean"] * 3)
        time.sleep(2)
        same(daemon.status("tank")["state"], "stopped", "it stays stopped")
        daemon.sr5("stop", "tank")
        daemon.start("tank", ok=(0,))
        daemon.sr5("cp", "tank:1M+3M", file + ".back")
        same(sha256_file(file + ".back"), sha256_file(file))


def sigterm_ends_within_seconds_with_idle_and_busy_clients():
    place, paths, _ = array("term", "5", 3)
    with Daemon("--members", place, "--threads", "3") as daemon:
        clients = []
        for _ in range(6):
            client = nbd.NBD()
            client.connect_uri(daemon.uri("tank"))
            clients.append(client)
        for i in range(64):
            clients[i % 3].aio_pwrite(nbd.Buffer.from_bytearray(bytearray(65536)), i * 65536)
        start = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGTERM)
        same(daemon.process.wait(20), 0, f"exit code; {daemon.said()}")
        assert time.monotonic() - start < 8, f"took {time.monotonic() - start:.1f} s"
        same([os.path.exists(p) for p in (daemon.socket, daemon.control)], [False, False], "sockets")
    same([m["super"]["state"] for m in sr5("inspect", *paths).json["members"]], ["clean"] * 3)


def killed_and_started_again_it_replaces_its_sockets():
    place, paths, _ = array("kill", "5", 3)
    file = data("kill.data", MIB)
    daemon = Daemon("--members", place)
    daemon.sr5("cp", file, "tank")
    daemon.kill()
    again = [SR5D, "--socket", daemon.socket, "--control", daemon.control, "--members", place]
    process = subprocess.Popen(again, stdin=subprocess.DEVNULL, stdout=daemon.log, stderr=daemon.log)
    try:
        until("an answer", lambda: daemon.sr5("list", ok=None).code == 0)
        until("the array", lambda: daemon.status() and daemon.status()["state"] in ("online", "rebuilding"))
        daemon.sr5("cp", "tank:0+1M", file + ".back")
        same(sha256_file(file + ".back"), sha256_file(file))
    finally:
        process.terminate()
        code = process.wait(20)
        shutil.rmtree(daemon.dir)
    same(code, 0)


def stdio_serves_one_client_and_ends():
    place, _, _ = array("stdio", "5", 3)
    file = data("stdio.data", MIB)
    serve = [SR5D, "--stdio", "--members", place]
    client = nbd.NBD()
    client.connect_command(serve)
    assert client.get_size() > 0
    with open(file, "rb") as f:
        client.pwrite(f.read(), 4096)
    client.flush()
    client.shutdown()
    del client
    client = nbd.NBD()
    client.connect_command(serve)
    with open(file, "rb") as f:
        same(client.pread(MIB, 4096) == f.read(), True, "contents")
    client.shutdown()


def sockets_are_for_the_owner_only():
    with Daemon() as daemon:
        for path in (daemon.socket, daemon.control):
            same(os.stat(path).st_mode & 0o777, 0o600, path)


def tcp_needs_the_word_for_its_risk():
    place, _, _ = array("tcp", "1", 2)
    done = subprocess.run([SR5D, "--listen", "127.0.0.1:0"], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    same(done.returncode, 3)
    assert b"E_PLAINTEXT" in done.stderr and b"--insecure-plaintext" in done.stderr, done.stderr
    port = random.randrange(20000, 60000)
    with Daemon("--members", place, "--listen", f"127.0.0.1:{port}", "--insecure-plaintext"):
        assert int(run("nbdinfo", "--size", f"nbd://127.0.0.1:{port}/tank")) > 0


def a_configuration_file_says_what_the_options_say():
    place, paths, _ = array("config", "1", 2)
    os.remove(paths[1])
    config = os.path.join(TMP, "sr5d.conf")
    with open(config, "w") as f:
        f.write(f"# a comment\n\nmembers = {place}\n  degraded=now\nthreads = 2\nio=libaio\nsocket = /nonexistent/nbd\n")
    with Daemon("--config", config) as daemon:
        same(daemon.status()["state"], "degraded")
    for text, known in (("colour = blue\n", "members"), ("threads\n", "option = value"), ("threads = many\n", "1 to"),
                        ("degraded = perhaps\n", "now|wait|never"), ("read-only = maybe\n", "yes or no")):
        with open(config, "w") as f:
            f.write("\n" + text)
        done = subprocess.run([SR5D, "--config", config], capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
        same(done.returncode, 2, text)
        assert known.encode() in done.stderr, done.stderr
    same(subprocess.run([SR5D, "--config", TMP + "/none"], capture_output=True, timeout=30).returncode, 2)


# ---- cp ------------------------------------------------------------------------------------------------------

def case_O4_cp_reads_and_writes_ranges_without_another_client():
    place, _, _ = array("cp", "5", 3)
    file, odd = data("cp.data", 5 * MIB + 12345), data("cp.odd", 777, 2)
    with Daemon("--members", place) as daemon:
        size = daemon.status()["size_bytes"]
        done = daemon.sr5("cp", file, "tank").json
        same((done["schema"], done["copied_bytes"]), ("sr5.cp/1", 5 * MIB + 12345))
        daemon.sr5("cp", odd, "tank:1000001")
        with open(file, "r+b") as f, open(odd, "rb") as o:
            f.seek(1000001)
            f.write(o.read())
        daemon.sr5("cp", f"tank:0+{5 * MIB + 12345}", file + ".back")
        run("cmp", file, file + ".back")
        control = ["--control", daemon.control]
        out = subprocess.run([SR5, "cp", "tank:1000001+777", "-", *control], capture_output=True, stdin=subprocess.DEVNULL).stdout
        with open(odd, "rb") as o:
            same(out == o.read(), True, "stdout")
        same(subprocess.run([SR5, "cp", "-", "tank:7", *control], input=b"from stdin").returncode, 0)
        same(subprocess.run([SR5, "cp", "tank:7+10", "-", *control], capture_output=True).stdout, b"from stdin")
        with open(TMP + "/big", "wb") as f:
            f.truncate(size + 1)
        for args, code in (([TMP + "/big", "tank"], "E_RANGE"), ([file, f"tank:{size - 5}"], "E_RANGE"),
                           ([f"tank:{size}+1", TMP + "/x"], "E_RANGE"), (["tank:0+99999999999999999999", TMP + "/x"], "E_NO_SUCH_ARRAY"),
                           (["tank", "tank"], "E_USAGE"), (["./tank", "./other"], "E_NO_SUCH_ARRAY"),
                           ([TMP + "/none", "tank"], "E_IO"), (["tank", f"{place}/m0"], "E_IN_USE")):
            same(daemon.sr5("cp", *args, ok=None).error, code, args)
        same(os.path.exists(TMP + "/x"), False, "a target that was refused")
        same(len(read_export(daemon.uri("tank"))), size)


if __name__ == "__main__":
    tests = Tests("cli/daemon")
    for name, test in list(globals().items()):
        if callable(test) and getattr(test, "__module__", "") == "__main__" and \
                name not in ("array", "data", "until", "exports", "typed"):
            tests.run(name, test)
    tests.end()
