"""What tests in Python have at hand: a daemon of their own, sr5, clients, a way to count.

A test program is run by tests/run, which sets SR5_BUILD (the folder of sr5d and sr5) and TEST_TMP (a folder to itself).
"""
import atexit
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BUILD = os.environ.get("SR5_BUILD", os.path.join(os.path.dirname(__file__), "../build/release"))
SR5D, SR5 = os.path.join(BUILD, "sr5d"), os.path.join(BUILD, "sr5")
TMP = os.environ.get("TEST_TMP") or tempfile.mkdtemp(prefix="sr5-test-")
MIB = 1 << 20


class Tests:
    """Counts; `case` is one test, named by a sentence.  With an argument only cases containing it run."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.only = sys.argv[1] if len(sys.argv) > 1 else ""
        self.lock = threading.Lock()

    def run(self, sentence, function, *args):
        if self.only not in sentence:
            return
        start, trouble = time.monotonic(), ""
        try:
            function(*args)
        except Exception as e:
            frames = traceback.extract_tb(e.__traceback__)[1:]
            where = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
            trouble = f"{type(e).__name__}: {e} [{where}]"
        with self.lock:
            self.failed += bool(trouble)
            self.passed += not trouble
            print(f"FAILED: {sentence}: {trouble}" if trouble else f"ok: {sentence} ({time.monotonic() - start:.1f} s)",
                  flush=True)

    def skip(self, sentence, why):
        self.skipped += 1
        print(f"skipped: {sentence}: {why}", flush=True)

    def end(self):
        more = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.name}: {self.passed} passed, {self.failed} failed{more}")
        sys.exit(1 if self.failed else 0)


def memory_dir(bytes_wanted):
    """A folder in memory, where there is room for that much, gone at the end; else one in TMP."""
    with contextlib.suppress(OSError):
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_bsize >= bytes_wanted:
            folder = tempfile.mkdtemp(prefix="sr5-test-", dir="/dev/shm")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            return folder
    return TMP


def same(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {got!r}")


def run(*command, ok=(0,), input=None, timeout=120):
    """Run a command and return its output; anything but an expected exit code is an error that shows it."""
    done = subprocess.run(command, input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout,
                          stdin=None if input is not None else subprocess.DEVNULL)
    text = done.stdout.decode(errors="replace")
    if done.returncode not in ok:
        raise AssertionError(f"{' '.join(command)[:300]}: exit code {done.returncode}\n{text[-3000:]}")
    return text


class Answer:
    """What sr5 --json said: code (exit code), json (of stdout), text (stderr)."""

    def __init__(self, done):
        self.code, self.text = done.returncode, done.stderr.decode(errors="replace")
        try:
            self.json = json.loads(done.stdout or b"{}")
        except ValueError:
            self.json = {"not json": done.stdout.decode(errors="replace")}
        self.error = self.json.get("code", "") if self.json.get("schema") == "sr5.error/1" else ""

    def __str__(self):
        return f"exit code {self.code}, {json.dumps(self.json)[:1500]} {self.text[-1500:]}"


def sr5(*args, ok=(0,), timeout=60):
    """Run sr5 with --json.  An exit code that is not in ok is an error; ok=None takes any."""
    done = subprocess.run([SR5, *map(str, args), "--json"], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    answer = Answer(done)
    if done.returncode < 0 or "Sanitizer" in answer.text or "runtime error" in answer.text:
        raise AssertionError(f"sr5 {' '.join(map(str, args))} died: {answer}")
    if ok is not None and answer.code not in ok:
        raise AssertionError(f"sr5 {' '.join(map(str, args))}: {answer}")
    return answer


class Daemon:
    """An sr5d with sockets of its own.  `with Daemon() as d:` stops it, by SIGTERM, and wants exit code 0."""

    def __init__(self, *args):
        self.dir = tempfile.mkdtemp(prefix="d", dir="/tmp")  # socket paths are short: 108 bytes at most
        self.socket, self.control = self.dir + "/nbd", self.dir + "/ctl"
        self.log = open(self.dir + "/log", "w+", errors="replace")
        self.process = subprocess.Popen([SR5D, "--foreground", "--socket", self.socket, "--control", self.control,
                                         *map(str, args)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.wait_until_ready()

    def wait_until_ready(self):
        for _ in range(600):
            if self.process.poll() is not None:
                raise AssertionError(f"sr5d ended with {self.process.returncode}: {self.said()}")
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as s, socket.socket(socket.AF_UNIX) as nbd:
                s.connect(self.control)
                nbd.connect(self.socket)
                return
            time.sleep(0.02)
        self.process.kill()
        raise AssertionError(f"sr5d does not answer: {self.said()}")

    def said(self):
        self.log.seek(0)
        return self.log.read()[-3000:]

    def sr5(self, *args, ok=(0,)):
        return sr5(*args, "--control", self.control, ok=ok)

    def start(self, *members, ok=(0, 4), read_only=False, degraded="now"):
        """Serve what is on these members."""
        return self.sr5("start", *members, f"--degraded={degraded}", *(["--read-only"] if read_only else []), ok=ok)

    def uri(self, name=""):
        return f"nbd+unix:///{name}?socket={self.socket}"

    def status(self, name=""):
        arrays = self.sr5("status", *([name] if name else []), ok=None).json["arrays"]
        return arrays[0] if arrays else None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            raise AssertionError(f"sr5d did not end within 30 s of SIGTERM: {self.said()}") from None
        same(code, 0, f"exit code of sr5d, which said: {self.said()}\n")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.stop()
            else:
                print(f"sr5d said: {self.said()}", flush=True)
        finally:
            if self.process.poll() is None:
                self.kill()
            self.log.close()
            run("rm", "-rf", self.dir)


@contextlib.contextmanager
def stdio(members, *options, leaks=True):
    """An sr5d for one client, on a socket pair: yields the connected client and wants a clean end.  Quicker than a Daemon."""
    import nbd
    ours, theirs = socket.socketpair()
    control = tempfile.mktemp(prefix="c", dir="/tmp")
    log = tempfile.TemporaryFile("w+", errors="replace")
    environment = dict(os.environ, ASAN_OPTIONS="detect_leaks=0") if not leaks else None
    process = subprocess.Popen([SR5D, "--stdio", "--control", control, "--degraded=now", *options,
                                *(f"--members={m}" for m in members)],
                               stdin=theirs, stdout=theirs, stderr=log, env=environment)
    theirs.close()
    client = nbd.NBD()
    try:
        client.connect_socket(ours.detach())
        yield client
        client.shutdown()
        same(process.wait(30), 0, "exit code of sr5d")
    except Exception as e:
        log.seek(0)
        raise AssertionError(f"{e}; sr5d said: {log.read()[-2000:]}") from e
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        log.close()


def read_all(client):
    """All of an export.  (Not by aio_pread: that of libnbd 1.14 never frees its buffers.)"""
    size, content = client.get_size(), bytearray()
    for at in range(0, size, 4 * MIB):
        content += client.pread(min(4 * MIB, size - at), at)
    return content


def sha256_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(MIB):
            digest.update(block)
    return digest.hexdigest()


def read_export(uri):
    """All of an export, by nbdcopy."""
    done = subprocess.run(["nbdcopy", uri, "-"], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"nbdcopy {uri}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()
