#!/usr/bin/env python3
"""shared_test.py - `lgm verify --consumers 8 -t Shared`; and the same while consumers and the broker
are killed: every record at least once, none lost.  The short form of `tests/crash.py --consumers 8`."""
import argparse
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
import lgm  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
ARGS = parser.parse_args()


def one_command(folder):
    server = lgm.Standalone(ARGS.build, folder).start()
    done = server.run("verify", "--consumers", "8", "-t", "Shared", "--count", "200000", "--churn", "50")
    got = lgm.verdict(done.stdout)
    assert got["lost"] == got["duplicated"] == 0 and got["checked"] == 200000, done.stdout
    assert "acknowledged=200000 failed=0" in done.stdout
    wrong = server.run("verify", "--consumers", "8", check=False)  # of an exclusive subscription
    assert wrong.returncode == 2 and "Shared" in wrong.stderr, wrong
    server.stop()


def killed(_folder):
    subprocess.run([sys.executable, os.path.join(here, "..", "crash.py"), "--build", ARGS.build, "--rounds",
                    "3", "--consumers", "8"], check=True)


cases = lgm.Cases()
cases.run("lgm verify --consumers 8 -t Shared", one_command)
cases.run("consumers and the broker are killed", killed)
cases.end()
