#!/usr/bin/env python3
"""descriptors_test.py - no descriptors left: those who are served stay served, nothing spins."""
import argparse
import os
import resource
import socket
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build
SPARE = 50


def limit(server, n):
    """The soft limit; gives what it was."""
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (n, hard))
    return soft


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def crowd(port):
    return [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(SPARE + 100)]


def check_port(server, log, port):
    """Every descriptor goes to connections that say nothing; more of them wait."""
    room = open_files(server) + SPARE
    before, said_before = limit(server, room), len(server.output())
    everyone = crowd(port)
    lgm.wait_until(lambda: open_files(server) >= room, 20, "none left")
    lgm.wait_until(lambda: "EMFILE" in server.output()[said_before:], 20, "it says so")
    lines = server.output().count("\n")
    since, size = time.monotonic(), os.path.getsize(log)
    lgm.wait_until(lambda: os.path.getsize(log) > size + 20000 and time.monotonic() - since > 1, 20,
                   "the producer goes on")
    said = server.output().count("\n") - lines
    assert said < 100 * (time.monotonic() - since), f"{said} lines"
    for s in everyone:
        s.close()
    limit(server, before)


def none_left(folder):
    server = lgm.Standalone(BUILD, folder).start()
    log = os.path.join(folder, "run.log")
    busy = server.spawn("verify", "produce", "t", "--count", "1000000000", "--log", log, "--rate", "2000")
    lgm.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 1000, 20, "it writes")
    for port in (server.port, server.web_port):
        check_port(server, log, port)
    server.run("produce", "other", "-m", "x")  # and all is as before
    url = f"http://127.0.0.1:{server.web_port}/admin/v2/brokers/health"
    assert urllib.request.urlopen(url, timeout=20).status == 200
    busy.kill()
    busy.communicate()
    server.stop()


cases = lgm.Cases()
cases.run("none_left", none_left)
cases.end()
