#!/usr/bin/env python3
"""run.py - runs test programs and adds up what they counted.

Each argument is a program (with arguments, split at spaces) that ends in Check's line
"100%: Checks: N, Failures: N, Errors: N" or in "N passed, N failed". One that dies, hangs or
prints neither counts as one failure. Its output is shown only when something failed.
The last line is the sum.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import time

CHECK = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M)
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed", re.M)


def counts(output, code):
    if found := CHECK.findall(output):
        checks, failures, errors = map(int, found[-1])
        bad = failures + errors
        passed = checks - bad
    elif found := PLAIN.findall(output):
        passed, bad = map(int, found[-1])
    else:
        return 0, 1
    return (passed, bad) if code == 0 or bad else (passed, 1)


def run(command, build, limit, slow):
    words = shlex.split(command)
    if words[0].endswith(".py"):
        words = [sys.executable, *words, "--build", build]
    env = dict(os.environ, LGM_TEST_SLOW=str(slow), CK_DEFAULT_TIMEOUT="60",
               CK_TIMEOUT_MULTIPLIER=str(slow))
    for own in ("LGM_URL", "LGM_ADMIN_URL", "LGM_LOG"):  # of whoever works with a cluster beside
        env.pop(own, None)
    began = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=env, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = (process.communicate()[0] or "") + f"\nstill running after {limit} s: killed\n"
    passed, failed = counts(output, process.returncode)
    if process.returncode and not failed:
        failed = 1
    return command, passed, failed, output, time.monotonic() - began, process.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slow", type=int, default=1, help="how many times slower this build is")
    parser.add_argument("--limit", type=int, default=300, help="seconds for one program")
    parser.add_argument("commands", nargs="+")
    args = parser.parse_args()
    total_passed = total_failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(run, c, args.build, args.limit * args.slow, args.slow)
                for c in args.commands]
        for job in concurrent.futures.as_completed(jobs):
            command, passed, failed, output, seconds, code = job.result()
            total_passed += passed
            total_failed += failed
            mark = "FAILED" if failed else "ok"
            print(f"{mark:6} {passed:4} passed {failed:3} failed {seconds:6.1f} s  {command}", flush=True)
            if failed:
                print(f"---- {command} ended with {code}:\n{output[-20000:]}\n----", flush=True)
    print(f"{total_passed} passed, {total_failed} failed")
    return total_failed != 0


if __name__ == "__main__":
    sys.exit(main())
