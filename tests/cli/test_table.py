#!/usr/bin/python3
"""Help, completion and man page say the same (K8), none of it needs a daemon, nothing ever asks (A11).

    test_table.py [TEXT]      only cases whose sentence contains TEXT
"""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import SR5, SR5D, TMP, Tests, run, same, sr5  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
VERBS = [v["name"] for v in sr5("help").json["verbs"]]


def options_of(text):
    return sorted(set(re.findall(r"^ +--([a-z-]+)", text, re.M)))


def man_options(page):
    """Options of each verb in the man page: {"create": ["chunk", ...], "": [those before the verbs]}."""
    out, verb = {"": []}, ""
    with open(os.path.join(ROOT, "docs", page)) as f:
        for line in f:
            if m := re.match(r"\.It Cm ([a-z]+)", line):
                verb = m.group(1)
                out[verb] = []
            elif m := re.match(r"\.It Fl -([a-z-]+)", line):
                out[verb].append(m.group(1))
            elif line.startswith(".Sh EXIT"):
                verb = ""
    return out


def case_K8_man_page_of_sr5_lists_every_verb_and_option():
    man = man_options("sr5.8")
    same(sorted(v for v in man if v), sorted(VERBS), "verbs")
    for verb in VERBS:
        said = options_of(run(SR5, verb, "--help"))
        same(sorted(man[verb] + man[""]), said, f"options of {verb}")


def case_K8_man_page_of_sr5d_lists_every_option():
    same(sorted(man_options("sr5d.8")[""]), options_of(run(SR5D, "--help")), "options")


def completion_is_what_the_table_says():
    with open(os.path.join(ROOT, "cli/sr5.bash-completion")) as f:
        same(f.read(), run(SR5, "completion"), "cli/sr5.bash-completion; `sr5 completion` prints it")


def complete(*words):
    script = (f". {ROOT}/cli/sr5.bash-completion; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _sr5;"
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script], capture_output=True, cwd=TMP, stdin=subprocess.DEVNULL)
    return done.stdout.decode().split()


def completion_completes_verbs_options_and_values():
    same(complete("sr5", "sta"), ["start", "stats", "status"])
    same(complete("sr5", "create", "--siz"), ["--size-each"])
    same(complete("sr5", "start", "--degraded", "n"), ["now", "never"])


def every_code_is_explained():
    codes = sr5("explain").json["codes"]
    assert len(codes) > 20, codes
    same([c["code"] for c in codes], sorted(c["code"] for c in codes), "order")
    for code in codes[::5]:
        answer = sr5("explain", code["code"]).json
        same(answer["schema"], "sr5.explain/1")
        assert answer["summary"] and answer["explanation"], answer


def usage_errors_exit_with_2_and_list_what_is_known():
    for args, known in ((["nonsense"], "create"), (["list", "--nonsense"], "--json"), (["create", "x", "y", "--lev", "5"], "--level"),
                        (["start", "x", "--degraded=maybe"], "now|wait|never"), (["inspect"], "MEMBER"), (["list", "x"], "nothing"),
                        (["create", "x", "y", "--level", "7"], "0, 1, 4, 5, 6 and 10"), (["explain", "E_NONSENSE"], "sr5 explain"),
                        (["create", "x", "y", "--level", "5", "--level", "6"], "twice"), (["list", "-x"], "--json")):
        answer = sr5(*args, ok=(2,))
        assert answer.error.startswith("E_"), answer
        assert known in answer.json["message"], answer
        same(answer.json["changed"], False)
        assert answer.text.startswith(f"sr5: {answer.error}: "), answer.text
    same(subprocess.run([SR5], capture_output=True).returncode, 2, "no verb at all")
    said = subprocess.run([SR5D, "--nonsense"], capture_output=True, stdin=subprocess.DEVNULL)
    same(said.returncode, 2)
    assert b"--members" in said.stderr, said.stderr


def no_daemon_is_7_and_says_where_it_looked():
    for verb in (["list"], ["status"], ["members", "x"], ["stats", "x"], ["start", "x"], ["stop", "x"], ["fail", "x", "0"],
                 ["cp", "x", "y"], ["fault", "x", "0", "gone"]):
        answer = sr5(*verb, "--control", TMP + "/nobody", ok=(7,))
        same(answer.error, "E_NO_DAEMON")
        assert TMP + "/nobody" in answer.json["message"] and answer.json["fix"], answer
    same(sr5("version", "--control", TMP + "/nobody").json["daemon"], None)
    done = subprocess.run([SR5, "list"], env=dict(os.environ, SR5_CONTROL="/nonexistent/x"), capture_output=True)
    same(done.returncode, 7)
    assert b"/nonexistent/x" in done.stderr


def case_A11_no_verb_ever_waits_for_an_answer_without_a_terminal():
    for verb in VERBS + ["completion", "fault"]:
        for args in ([], ["x"], ["x", "0"]):
            start = time.monotonic()
            subprocess.run([SR5, verb, *args, "--control", TMP + "/nobody"], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=10, cwd=TMP)
            assert time.monotonic() - start < 5, f"{verb} {args} took long"


def case_K3_json_errors_and_answers_are_one_object():
    for args in (["version"], ["help"], ["help", "create"], ["explain"], ["nonsense"], ["list", "--nonsense"]):
        done = subprocess.run([SR5, *args, "--json"], capture_output=True, stdin=subprocess.DEVNULL)
        same(done.stdout.count(b"\n"), 1, f"lines of {args}")
        assert done.stdout.startswith(b"{"), done.stdout


def sizes_are_read_as_the_contract_says():
    create = ["create", "t", *(f"{TMP}/none{i}" for i in range(3)), "--level", "5", "--dry-run"]
    for text, size in (("32M", 32 << 20), ("32MiB", 32 << 20), ("40MB", 40000000), ("33554432", 32 << 20), ("32768k", 32 << 20)):
        same(sr5(*create, "--size-each", text).json["raw_bytes"], 3 * size, text)
    for text in ("", "M", "-1", "1X", "99999999999999999999", "16777216T", "1.5M", "0x10"):
        answer = sr5(*create, "--size-each", text, ok=(2,))
        same(answer.error, "E_USAGE", text)
    same(sr5(*create, "--size-each", "1M", ok=(2,)).error, "E_MEMBER_SHORT")


TESTS = [
    case_K8_man_page_of_sr5_lists_every_verb_and_option, case_K8_man_page_of_sr5d_lists_every_option,
    completion_is_what_the_table_says, completion_completes_verbs_options_and_values, every_code_is_explained,
    usage_errors_exit_with_2_and_list_what_is_known, no_daemon_is_7_and_says_where_it_looked,
    case_A11_no_verb_ever_waits_for_an_answer_without_a_terminal, case_K3_json_errors_and_answers_are_one_object,
    sizes_are_read_as_the_contract_says,
]
if __name__ == "__main__":
    tests = Tests("cli/table")
    for test in TESTS:
        tests.run(test.__name__, test)
    tests.end()
