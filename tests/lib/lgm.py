"""lgm.py - starting, killing and stopping `lgm standalone` from a test, and counting what passed."""
import argparse
import itertools
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

SLOW = int(os.environ.get("LGM_TEST_SLOW", "1"))

# A shell without a terminal has what it starts in the background ignore Ctrl-C, and all below that.
signal.signal(signal.SIGINT, signal.default_int_handler)

_ports = set()


def stable_port():
    """Below the kernel's ephemeral range: no outgoing connection takes it while its owner is dead.
    Tests that run at the same time look in different places first."""
    own = 12000 + os.getpid() % 80 * 250
    for tried in itertools.count():
        port = random.randrange(own, own + 250) if tried < 500 else random.randrange(12000, 32000)
        if port in _ports:
            continue
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
        _ports.add(port)
        return port


def wait_until(condition, seconds, what):
    """Polls a condition: the answer to a question is waited for, never a length of time."""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds * SLOW} s: {what}")


class Standalone:
    """One `lgm standalone` with its own ports and data, through any number of lives."""

    def __init__(self, build, folder, bookies=1, args=()):
        self.lgm = os.path.join(build, "lgm")
        self.folder, self.data = folder, os.path.join(folder, "data")
        self.port, self.web_port = stable_port(), stable_port()
        self.url = f"pulsar://127.0.0.1:{self.port}"
        self.bookies, self.args = bookies, list(args)
        self.process, self.lives, self.ready_s = None, 0, 0.0

    def command(self):
        return [self.lgm, "standalone", "--data", self.data, "--bookies", str(self.bookies),
                "--port", str(self.port), "--web-port", str(self.web_port), *self.args]

    @property
    def log(self):
        return os.path.join(self.folder, f"standalone-{self.lives}.log")

    def start(self, seconds=30):
        self.lives += 1
        began = time.monotonic()
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(self.command(), stdout=out, stderr=subprocess.STDOUT)
        wait_until(self.is_ready, seconds, f"standalone ready:\n{self.output()[-3000:]}")
        self.ready_s = time.monotonic() - began
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise AssertionError(f"standalone ended with {self.process.returncode}:\n{self.output()}")
        return "ready after" in self.output()

    def output(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, how=signal.SIGINT, seconds=30):
        self.process.send_signal(how)
        code = self.process.wait(seconds * SLOW)
        assert code == 0, f"standalone ended with {code}:\n{self.output()[-5000:]}"

    def run(self, *words, check=True, seconds=120, **kwargs):
        """An `lgm` subcommand against this server; gives the CompletedProcess."""
        words = [self.lgm, *words, "--url", self.url]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds * SLOW, **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{words} gave {done.returncode}\n{done.stdout[-2000:]}\n"
                                 f"{done.stderr[-2000:]}")
        return done

    def spawn(self, *words, **kwargs):
        return subprocess.Popen([self.lgm, *words, "--url", self.url], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, **kwargs)


VERDICT = re.compile(r"lost=(\d+) duplicated=(\d+) reordered=(\d+) resent=(\d+) redelivered=(\d+) "
                     r"checked=(\d+)")


def verdict(text):
    found = VERDICT.search(text)
    assert found, f"no verdict in {text!r}"
    names = "lost duplicated reordered resent redelivered checked".split()
    return dict(zip(names, map(int, found.groups())))


class Taker:
    """A consumer that holds what it gets and is killed: what it held must come to the others."""

    def __init__(self, topic, ports):
        self.words = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "taker.py"),
                      f"persistent://public/default/{topic}", "verify", *map(str, ports)]
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)

    def kill(self, seconds=30):
        """Once it holds something; then another one takes its place."""
        wait_until(lambda: select.select([self.process.stdout], [], [], 0)[0], seconds, "it holds messages")
        self.end()
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, text=True)

    def end(self):
        self.process.kill()
        self.process.communicate()


def arguments():
    """What every test of many cases is asked with: where the programs are, and which cases."""
    args = argparse.ArgumentParser()
    args.add_argument("--build", default="build")
    args.add_argument("only", nargs="*")
    options = args.parse_args()
    return os.path.abspath(options.build), options.only


class Cases:
    """Runs functions that take a fresh folder; the last line is "N passed, N failed"."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def run(self, name, function):
        folder = tempfile.mkdtemp(prefix="lgm-test-")
        began = time.monotonic()
        try:
            function(folder)
        except Skip as reason:
            self.skipped += 1
            print(f"skip  {name}: {reason}", flush=True)
        except BaseException:
            self.failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
            if os.environ.get("LGM_TEST_KEEP"):
                print(f"      kept: {folder}")
                return
        else:
            self.passed += 1
            print(f"pass  {name} ({time.monotonic() - began:.1f} s)", flush=True)
        shutil.rmtree(folder, ignore_errors=True)

    def run_all(self, cases, only):
        """Those that are named, or all; ends the program."""
        for case in cases:
            if not only or case.__name__ in only:
                self.run(case.__name__.replace("_", " "), case)
        self.end()

    def end(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{skipped}")
        sys.exit(self.failed != 0)


class Skip(Exception):
    """A case that cannot be run here, and why."""
