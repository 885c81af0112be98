#!/usr/bin/env python3
"""run.py - official clients, unmodified, against our processes.

Each client that can be had runs its list of features; one that cannot is printed as skipped, with
the reason.  The last line is "N passed, N failed".
"""
import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PULSAR_CLIENT = "pulsar-client==3.13.0"


def python_with_client(build):
    """A Python of its own with Apache's client from PyPI, or the reason why there is none."""
    venv = os.path.join(build, "interop-python")
    python = os.path.join(venv, "bin", "python")
    wanted = os.path.join(venv, PULSAR_CLIENT)
    if not os.path.exists(wanted):
        for command in ([sys.executable, "-m", "venv", "--clear", venv],
                        [python, "-m", "pip", "install", "-q", PULSAR_CLIENT]):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                return None, f"{' '.join(command)}: {' '.join(last)}"
        open(wanted, "w").close()
    return python, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--messages", default="1000000", help="of 1 KiB, in the large comparison")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    python, reason = python_with_client(build)
    if not python:
        print(f"skip  {PULSAR_CLIENT}: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    print(f"==== Apache's Python client, {PULSAR_CLIENT}", flush=True)
    return subprocess.run([python, os.path.join(HERE, "python_client.py"), "--build", build,
                           "--messages", args.messages]).returncode


if __name__ == "__main__":
    sys.exit(main())
