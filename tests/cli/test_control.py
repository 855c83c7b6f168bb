#!/usr/bin/python3
"""The control socket under everything that is not sr5: garbage, giants, dawdlers, crowds.

    test_control.py [TEXT]      only cases whose sentence contains TEXT
"""
import json
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from rig import MIB, Daemon, Tests, same  # noqa: E402


class Line:
    """A connection that speaks lines."""

    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(daemon.control)  # waits where the queue is full
        self.socket.settimeout(20)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def answer(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def ask(self, data):
        self.send(data)
        return self.answer()


VERSION = {"sr5": 1, "verb": "version"}


def a_connection_answers_one_request_after_another(daemon):
    line = Line(daemon)
    for _ in range(3):
        assert "version" in line.ask(VERSION)["result"]
    line.send(json.dumps(VERSION).encode() + b"\n" + json.dumps({"sr5": 1, "verb": "list", "args": {}}).encode() + b"\n")
    assert "version" in line.answer()["result"]
    assert "arrays" in line.answer()["result"]
    text = json.dumps(VERSION).encode() + b"\n"
    for i in range(len(text)):  # byte by byte
        line.send(text[i:i + 1])
    assert "version" in line.answer()["result"]


def what_is_wrong_gets_an_error_and_the_connection_goes_on(daemon):
    line = Line(daemon)
    for data, code in ((b"\n", "E_PROTOCOL"), (b"garbage\n", "E_PROTOCOL"), (b"[1,2]\n", "E_PROTOCOL"), (b"null\n", "E_PROTOCOL"),
                       (b"\xff\xfe\n", "E_PROTOCOL"), (b"\0\0\n", "E_PROTOCOL"), (b'{"sr5":2,"verb":"list"}\n', "E_PROTOCOL"),
                       (b'{"verb":"list"}\n', "E_PROTOCOL"), (b'{"sr5":1}\n', "E_PROTOCOL"), (b'{"sr5":1,"verb":7}\n', "E_PROTOCOL"),
                       (b'{"sr5":1,"verb":"list","args":[]}\n', "E_PROTOCOL"), (b'{"sr5":1,"verb":"rm -rf"}\n', "E_USAGE"),
                       (b'{"sr5":1,"sr5":1,"verb":"list"}\n', "E_PROTOCOL"), (b'{"sr5":1,"verb":"list"} x\n', "E_PROTOCOL"),
                       (b"[" * 500000 + b"\n", "E_PROTOCOL"), (b'{"a":' * 100000 + b"\n", "E_PROTOCOL"),
                       ({"sr5": 1, "verb": "status", "args": {"name": "x" * 500000}}, "E_NO_SUCH_ARRAY"),
                       ({"sr5": 1, "verb": "stop"}, "E_PROTOCOL"), ({"sr5": 1, "verb": "fail", "args": {"name": "tank"}}, "E_NO_SUCH_ARRAY"),
                       ({"sr5": 1, "verb": "start", "args": {"what": []}}, "E_PROTOCOL"),
                       ({"sr5": 1, "verb": "start", "args": {"what": "tank"}}, "E_PROTOCOL"),
                       ({"sr5": 1, "verb": "start", "args": {"what": [{"text": "x", "path": "/x" * 9000}]}}, "E_NO_SUCH_ARRAY"),
                       ({"sr5": 1, "verb": "start", "args": {"what": [{"text": "x", "path": "/x", "is_path": True}] * 1025}}, "E_PROTOCOL")):
        answer = line.ask(data)
        assert answer and answer.get("error", {}).get("code") == code, f"{str(data)[:100]}: {answer}"
    assert "version" in line.ask(VERSION)["result"]


def a_line_without_end_is_cut_off(daemon):
    line = Line(daemon)
    line.socket.settimeout(5)
    try:
        for _ in range(64):
            line.send(b"x" * (MIB // 16))
    except OSError:
        pass  # it hung up on us
    try:
        answer = line.answer()
    except OSError:
        answer = None  # our bytes in its socket took the answer along
    assert answer is None or answer["error"]["code"] == "E_PROTOCOL", answer
    assert "version" in Line(daemon).ask(VERSION)["result"]


def those_who_dawdle_or_go_hurt_nobody(daemon):
    dawdlers = [Line(daemon) for _ in range(20)]
    for line in dawdlers:
        line.send(b'{"sr5":1,')
    start = time.monotonic()
    for _ in range(50):
        assert "version" in Line(daemon).ask(VERSION)["result"]
    for _ in range(50):
        Line(daemon).send(VERSION)  # and away
    assert "version" in Line(daemon).ask(VERSION)["result"]
    assert time.monotonic() - start < 10


def more_than_can_be_served_wait_for_their_turn(daemon):
    crowd = [Line(daemon) for _ in range(60)]
    for line in crowd:
        line.send(VERSION)
    for line in crowd:
        assert "version" in line.answer()["result"]
        line.file.close()
        line.socket.close()


def noise_never_stops_it(daemon):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    valid = json.dumps({"sr5": 1, "verb": "status", "args": {"name": "tank", "what": [{"text": "a", "path": "b"}]}}).encode()
    for _ in range(300):
        data = bytearray(valid if rng.random() < 0.8 else rng.randbytes(rng.randrange(1, 300)))
        for _ in range(rng.randrange(4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        line = Line(daemon)
        line.send(bytes(data).replace(b"\n", b" ") + b"\n")
        answer = line.answer()
        assert answer and ("error" in answer or "result" in answer), (data, answer)
        line.file.close()
        line.socket.close()
    same(daemon.process.poll(), None)


if __name__ == "__main__":
    tests = Tests("cli/control")
    for test in (a_connection_answers_one_request_after_another, what_is_wrong_gets_an_error_and_the_connection_goes_on,
                 a_line_without_end_is_cut_off, those_who_dawdle_or_go_hurt_nobody, more_than_can_be_served_wait_for_their_turn,
                 noise_never_stops_it):
        def with_daemon(test=test):
            with Daemon() as daemon:
                test(daemon)
        tests.run(test.__name__, with_daemon)
    tests.end()
