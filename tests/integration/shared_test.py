#!/usr/bin/env python3
"""shared_test.py - eight consumers of a shared subscription that come and go, and a broker that is
killed: every record at least once, none lost."""
import argparse
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
ARGS = parser.parse_args()
COUNT = 600000


def verify(server, *words):
    return subprocess.Popen([server.lgm, "verify", *words, "--url", server.url],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def consumers_and_broker_are_killed(folder):
    server = lgm.Standalone(ARGS.build, folder).start()
    log = os.path.join(folder, "run.log")
    produce = verify(server, "produce", "t", "--count", str(COUNT), "--log", log)
    lgm.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > 0, 30, "the log")
    consume = verify(server, "consume", "t", "--log", log, "-t", "Shared", "--consumers", "8",
                     "--churn", "200", "--idle", "60")
    for _ in range(2):
        time.sleep(1)
        server.kill()
        server.start()
    said = produce.communicate(timeout=300)[0]
    assert produce.returncode == 0, said
    said = consume.communicate(timeout=300)[0]
    assert consume.returncode == 0 and "lost=0 duplicated=0" in said, said
    server.stop()


cases = lgm.Cases()
cases.run("eight consumers, kill -9", consumers_and_broker_are_killed)
cases.end()
