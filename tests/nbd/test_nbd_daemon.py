#!/usr/bin/python3
# tests/run: limit 200
"""sr5d over NBD: sizes, transports, clients that go, members that fail or hang under load.

    test_nbd_daemon.py [TEXT]      only cases whose sentence contains TEXT
"""
import contextlib
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

import nbd

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../cli")]
from cases import BLOCK, Array, Writer, block, connect, doomed, fill, generation_of, verify  # noqa: E402
from rig import MIB, Daemon, Tests, same, sr5  # noqa: E402

LONGEST = 0xfffffe00  # what nbdcopy and blkdiscard send
ENOUGH = 30  # seconds in which anything has to have happened, however busy the host
MAGIC_OPTION, MAGIC_REQUEST = 0x49484156454f5054, 0x25609513
READ, WRITE, DISC = 0, 1, 2


@contextlib.contextmanager
def served(array, *options, fault=False):
    with Daemon(*options) as daemon:
        daemon.start(*(f"fault:delay=0:{p}" if fault else p for p in array.paths))
        yield daemon


def complete(client, cookie, limit=ENOUGH):
    """Until a command has been answered."""
    end = time.monotonic() + limit
    while not client.aio_command_completed(cookie):
        assert time.monotonic() < end, "no answer"
        client.poll(100)


def error_of(call):
    try:
        call()
    except nbd.Error as e:
        return e.errno
    return "success"


class Refused(Exception):
    pass


class Raw:
    """A client that keeps to no rule: it is past the handshake, then the test sends what it likes."""

    def __init__(self, daemon, name=b"tank"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(ENOUGH)
        self.socket.connect(daemon.socket)
        self.take(18)
        self.socket.sendall(struct.pack(">I", 3))
        self.socket.sendall(struct.pack(">QII", MAGIC_OPTION, 1, len(name)) + name)  # EXPORT_NAME
        self.take(10)

    def take(self, size):
        got = b""
        while len(got) < size:
            piece = self.socket.recv(size - len(got))
            if not piece:
                raise Refused
            got += piece
        return got

    def request(self, kind, off, size, payload=b""):
        self.socket.sendall(struct.pack(">IHHQQI", MAGIC_REQUEST, 0, kind, 1, off, size) + payload)

    def vanish(self):
        """As a host that lost its power and came back: a reset where the transport has one."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


# ---- large requests ---------------------------------------------------------------------------------------

def the_longest_trims_and_zeroes_are_quick_and_let_others_through():
    big = Array("big", "5", 3, size="4G")
    size = big.size
    marks = [BLOCK * (i * 99991 % (size // BLOCK)) for i in range(20)]
    with served(big) as daemon:
        writer, reader = connect(daemon), connect(daemon)
        for turn, (send, off) in enumerate([(writer.aio_zero, 0), (writer.aio_trim, 0), (writer.aio_zero, size - LONGEST),
                                            (writer.aio_trim, 512), (writer.aio_zero, 512)]):
            for at in marks:
                writer.pwrite(block(at // BLOCK, turn + 1), at)
            outside = [at for at in marks if not (off - BLOCK < at < off + LONGEST)]
            start = time.monotonic()
            cookie = send(LONGEST, off)
            slow, count = 0, 0
            while True:
                begun = time.monotonic()
                reader.pread(BLOCK, marks[count % len(marks)] // BLOCK * BLOCK)
                slow += time.monotonic() - begun > 1
                count += 1
                while writer.poll(0) > 0:
                    pass
                if writer.aio_command_completed(cookie):
                    break
            took = time.monotonic() - start
            assert took < ENOUGH and slow <= 2, f"turn {turn}: {took:.1f} s, {slow} of {count} reads took longer than a second"
            for at in outside:
                same(generation_of(reader, at // BLOCK), turn + 1, f"outside, turn {turn}")
            if send == writer.aio_zero:
                for at in marks:
                    if off <= at and at + BLOCK <= off + LONGEST:
                        same(any(reader.pread(BLOCK, at)), False, f"zeroes at {at}, turn {turn}")
        allocated = sum(os.stat(p).st_blocks for p in big.paths) * 512
        assert allocated < 256 * MIB, f"{allocated} bytes are allocated"
        writer.shutdown()
        reader.shutdown()
    big.gone()


def what_is_too_long_is_refused_and_the_client_goes_on():
    array = Array("range", "5", 3)
    with served(array) as daemon:
        client = connect(daemon)
        client.set_strict_mode(0)
        for call in (lambda: client.pread(512, array.size), lambda: client.pwrite(bytes(512), array.size - 256),
                     lambda: client.zero(LONGEST, 0), lambda: client.trim(LONGEST, 512), lambda: client.pread(64 * MIB, 0)):
            assert error_of(call) in ("EINVAL", "ENOSPC", "EOVERFLOW", "ERANGE"), error_of(call)
        fill(client, 1, range(8))
        verify(client, 1, range(8))
        client.shutdown()
    array.gone()


# ---- transports and clients ---------------------------------------------------------------------------------

def free_port(family, host):
    with socket.socket(family) as s:
        s.bind((host, 0))
        return s.getsockname()[1]


def tcp_carries_data_in_both_families():
    array = Array("tcp", "5", 3)
    hosts = [("127.0.0.1", free_port(socket.AF_INET, "127.0.0.1"))]
    with contextlib.suppress(OSError):
        hosts.append(("[::1]", free_port(socket.AF_INET6, "::1")))
    options = [o for host, port in hosts for o in ("--listen", f"{host}:{port}")]
    with served(array, *options, "--insecure-plaintext") as daemon:
        data = random.Random(5).randbytes(5 * MIB + 512)
        for host, port in hosts:
            for off in (0, 123):
                client = nbd.NBD()
                client.connect_uri(f"nbd://{host}:{port}/tank")
                client.pwrite(data, off)
                client.flush()
                same(client.pread(len(data), off) == data, True, f"{host}, offset {off}")
                client.shutdown()
        local = connect(daemon)
        same(local.pread(len(data), 123) == data, True, "by the other socket")
        local.shutdown()
    array.gone()


def eight_clients_come_and_vanish_while_another_verifies(seed):
    array = Array("resets", "5", 4)
    with served(array, "--threads", 2) as daemon:
        steady = connect(daemon)
        fill(steady, 1, range(64))
        ended = threading.Event()
        trouble = []

        def vanishing(n):
            rng = random.Random(seed * 100 + n)
            mine = range(100 + n * 16, 116 + n * 16)
            try:
                while not ended.is_set():
                    try:
                        raw = Raw(daemon)
                    except Refused:  # those that vanished have not all been noticed: no room for another
                        continue
                    for _ in range(rng.randrange(1, 12)):
                        lba = rng.choice(mine)
                        if rng.random() < 0.5:
                            raw.request(READ, lba * BLOCK, rng.choice((512, BLOCK, 2 * MIB)))
                        else:
                            payload = block(lba, rng.randrange(1, 1 << 40))
                            raw.request(WRITE, lba * BLOCK, BLOCK, payload)
                    if rng.random() < 0.5:  # in the middle of a request
                        raw.request(WRITE, rng.choice(mine) * BLOCK, BLOCK, payload=bytes(rng.randrange(BLOCK)))
                    raw.vanish()
            except Exception as e:
                trouble.append(f"client {n}: {e}")

        threads = [threading.Thread(target=vanishing, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for turn in range(2, 8):
            fill(steady, turn, range(64))
            verify(steady, turn, range(64))
        ended.set()
        for thread in threads:
            thread.join(ENOUGH)
        same(trouble, [])
        for lba in range(100, 100 + 8 * 16):
            generation_of(steady, lba)  # whole, whatever generation
        same(daemon.status()["state"], "online")
        steady.shutdown()
    array.gone()


def sigterm_ends_in_seconds_with_idle_and_stuck_clients():
    array = Array("term", "5", 3)
    with served(array, "--threads", 2) as daemon:
        idle = connect(daemon)
        silent = socket.socket(socket.AF_UNIX)  # never says a word
        silent.connect(daemon.socket)
        half = Raw(daemon)  # stopped in the middle of a write
        half.request(WRITE, 0, MIB, bytes(5000))
        deaf = Raw(daemon)  # reads no replies
        deaf.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(100):
                deaf.request(READ, 0, MIB)
        fill(idle, 1, range(8))
        start = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        same(daemon.process.wait(ENOUGH), 0, daemon.said())
        assert time.monotonic() - start < 15, f"{time.monotonic() - start:.1f} s"
        for s in (silent, half.socket, deaf.socket):
            s.close()
    same([m["super"]["state"] for m in sr5("inspect", *array.paths).json["members"]], ["clean"] * 3)
    array.gone()


def a_client_without_a_goodbye_loses_nothing_that_was_answered():
    array = Array("vanish", "5", 3)
    with doomed() as daemon:
        daemon.start(*array.paths)
        raw, other = Raw(daemon), connect(daemon)
        for lba in range(16):
            raw.request(WRITE, lba * BLOCK, BLOCK, block(lba, 7))
            same(raw.take(16)[:8], struct.pack(">II", 0x67446698, 0))
        raw.request(WRITE, 0, 64 * BLOCK, block(0, 8) * 3)  # never whole
        raw.vanish()
        verify(other, 7, range(16))
        other.pwrite(block(0, 9), 0)
        verify(other, 9, range(1))
    with served(array) as daemon:
        client = connect(daemon)
        verify(client, 9, range(1))
        verify(client, 7, range(1, 16))
        client.shutdown()
    array.gone()


def one_clients_flush_covers_the_others_writes():
    """CAN_MULTI_CONN: written on A, flushed on B, the daemon dies: it is there, on A's word and without B."""
    array = Array("multi", "5", 3)
    with doomed("--threads", 2) as daemon:
        daemon.start(*array.paths)
        a, b = connect(daemon), connect(daemon)
        same(a.can_multi_conn(), True)
        for lba in range(64):
            a.pwrite(block(lba, 1), lba * BLOCK)
            same(generation_of(b, lba), 1, "seen by the other at once")
        b.flush()
        flushes = [m["flushes"] for m in daemon.sr5("stats", "tank").json["members"]]
        assert all(n > 0 for n in flushes), flushes
    with served(array) as daemon:
        client = connect(daemon)
        verify(client, 1, range(64))
        client.shutdown()
    array.gone()


# ---- members under load -----------------------------------------------------------------------------------------

def settled(daemon, wanted):
    end = time.monotonic() + ENOUGH
    while daemon.status()["state"] != wanted:
        assert time.monotonic() < end, f"{daemon.status()['state']}, not {wanted}"
        time.sleep(0.05)


def a_member_fails_under_load(rule, what):
    array = Array(f"load-{rule}", "5", 4)
    with served(array, "--threads", 2, fault=True) as daemon:
        writers = [Writer(daemon, range(i * 40, i * 40 + 40), fua=i % 2 == 0, seed=i) for i in range(4)]
        for writer in writers:
            writer.wait(10)
        daemon.sr5("fault", "tank", 2, rule)
        for writer in writers:
            writer.wait(20)
        for writer in writers:
            writer.end()
            same(writer.error, None, "what the client saw")
            writer.check(writer.client)
        member = daemon.status()["members"][2]
        if what == "dies":
            same((daemon.status()["state"], member["state"]), ("degraded", "faulty"))
        for writer in writers:
            writer.client.shutdown()
    with served(array) as daemon:
        client = connect(daemon)
        for writer in writers:
            writer.check(client)
        client.shutdown()
    array.gone()


def data_offset(path):
    return sr5("inspect", path).json["members"][0]["super"]["data_offset_bytes"]


def an_unreadable_place_is_read_around_and_written_again():
    array = Array("eio", "5", 3)
    with served(array, fault=True) as daemon:
        client = connect(daemon)
        fill(client, 1, range(64))
        at = data_offset(array.paths[1])
        daemon.sr5("fault", "tank", 1, f"eio-read@{at}+64K")
        for _ in range(3):
            verify(client, 1, range(64))
        status = daemon.status()
        member = status["members"][1]
        assert status["state"] == "online" and member["state"] in ("online", "suspect"), status
        assert member["read_errors"] > 0, member
        daemon.sr5("fault", "tank", 1, "")
        verify(client, 1, range(64))
        client.shutdown()
    array.gone()


def a_member_that_hangs_holds_up_and_then_goes_on():
    array = Array("hang", "5", 3)
    with served(array, fault=True) as daemon:
        client = connect(daemon)
        fill(client, 1, range(8))
        daemon.sr5("fault", "tank", 0, "hang")
        cookies = [client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(block(lba, 2))), lba * BLOCK) for lba in range(8)]
        same(daemon.status()["state"], "online", "the daemon answers meanwhile")
        same(any(client.aio_command_completed(c) for c in cookies), False)
        daemon.sr5("fault", "tank", 0, "delay=20")
        for cookie in cookies:
            complete(client, cookie)
        verify(client, 2, range(8))
        client.shutdown()
    array.gone()


def a_member_that_hangs_for_good_does_not_keep_sr5d_from_ending():
    array = Array("hung", "5", 3)
    with doomed() as daemon:
        daemon.start(*(f"fault:delay=0:{p}" for p in array.paths))
        client = connect(daemon)
        fill(client, 1, range(16))
        daemon.sr5("fault", "tank", 0, "hang")
        for lba in range(4):
            client.aio_pwrite(nbd.Buffer.from_bytearray(bytearray(block(lba, 2))), lba * BLOCK)
        daemon.process.send_signal(signal.SIGTERM)
        same(daemon.process.wait(60), 1, daemon.said())
        assert "E_HUNG" in daemon.said(), daemon.said()
    with served(array) as daemon:
        client = connect(daemon)
        for lba in range(16):
            assert generation_of(client, lba) in ((1, 2) if lba < 4 else (1,)), lba
        client.shutdown()
    array.gone()


if __name__ == "__main__":
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"SEED={seed}")
    tests = Tests("nbd/daemon")
    waits = threading.Thread(target=tests.run, args=("a member that hangs for good does not keep sr5d from ending",
                                                     a_member_that_hangs_for_good_does_not_keep_sr5d_from_ending))
    waits.start()  # it waits for nearly all of its time
    for test in (the_longest_trims_and_zeroes_are_quick_and_let_others_through, what_is_too_long_is_refused_and_the_client_goes_on,
                 tcp_carries_data_in_both_families, sigterm_ends_in_seconds_with_idle_and_stuck_clients,
                 a_client_without_a_goodbye_loses_nothing_that_was_answered, one_clients_flush_covers_the_others_writes,
                 an_unreadable_place_is_read_around_and_written_again, a_member_that_hangs_holds_up_and_then_goes_on):
        tests.run(test.__name__.replace("_", " "), test)
    tests.run("eight clients come and vanish while another verifies", eight_clients_come_and_vanish_while_another_verifies, seed)
    for rules, result in (("gone", "dies"), ("eio-write", "dies"), ("enospc", "dies"), ("delay=5", "is slow"), ("eio-flush", "does not flush"),
                          ("eio-read", "cannot be read")):
        tests.run(f"a member fails under load: {rules}", a_member_fails_under_load, rules, result)
    waits.join()
    tests.end()
