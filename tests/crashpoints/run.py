#!/usr/bin/env python3
"""run.py - a bookie's lives are recorded, and it is started on what a crash at any moment leaves.

    tests/crashpoints/run.py --build build                  a part of all that, for --seconds
    tests/crashpoints/run.py --build build --seconds 0      everything, a few seeds
    tests/crashpoints/run.py --build build --only mutants   the planted bugs, each of which must die

The last line is "N passed, N failed".
"""
import argparse
import errno
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import lgm  # noqa: E402
from plants import FOCUS, GARBAGE_FILES, LIES, MUTANTS, plant  # noqa: E402

SLOW = lgm.SLOW


class Place:
    """A folder for one recording and what is made of it; in memory where there is room."""

    def __init__(self, args, program=None):
        shm = "/dev/shm"
        roomy = os.path.isdir(shm) and shutil.disk_usage(shm).free > 2 << 30
        self.folder = tempfile.mkdtemp(prefix="lgm-crash-", dir=shm if roomy else None)
        self.args, self.program = args, program or os.path.join(args.build, "crashpoints")
        self.layer = os.path.join(args.build, "crashpoints.so")
        self.disk, self.metadata, self.recording, self.work = (
            os.path.join(self.folder, name) for name in ("disk", "metadata", "recording", "work"))
        for d in (self.disk, self.metadata, self.work):
            os.mkdir(d)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error and os.environ.get("LGM_TEST_KEEP"):
            print(f"      kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def env(self, **more):
        return {**os.environ, "LD_PRELOAD": self.layer, **more}

    def run(self, words, env, seconds=3600):
        return subprocess.run([self.program, *map(str, words)], env=env, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=seconds * SLOW)

    def record(self, seed, *words, **more):
        """(exit code, what it said, what the bookie logged)"""
        env = self.env(CRASHPOINTS_ROOT=self.disk, CRASHPOINTS_RECORDING=self.recording,
                       CRASHPOINTS_SYNC_US=str(self.args.sync_us), **more)
        done = self.run(["record", self.disk, self.metadata, "--seed", seed, *words], env, 600)
        return done.returncode, done.stdout, done.stderr

    def check(self, *words):
        done = self.run(["check", self.recording, self.metadata, "--dir", self.work,
                         "--jobs", self.args.jobs, *words], self.env(CRASHPOINTS_NOSYNC="1"))
        return done.returncode, done.stdout + done.stderr[-2000:]


def tell(text):
    for line in text.splitlines():
        print(f"      {line}", flush=True)


def recorded(place, seed, *words, **more):
    code, said, logged = place.record(seed, *words, **more)
    assert code == 0, f"{said}\n{logged[-3000:]}"
    return said


# ---- crashes ----------------------------------------------------------------------------------

SEVERAL = ("--set", "journalDirectories=journal,journal2", "--set", "ledgerDirectories=ledgers,ledgers2,ledgers3")


# Deleted ledgers go at once, and what is left of a log with more than a little garbage moves.
GARBAGE = ["--garbage"] + [word for setting in (
    "gcWaitTime=40", "lgmGcTrashSeconds=0", "lgmGcVanishedShare=1", "majorCompactionInterval=1",
    "majorCompactionThreshold=0.95", "compactionRateByEntries=-1", "compactionRateByBytes=-1",
    "lgmGcReserveMB=1", "gcMetadataOpRateLimit=0") for word in ("--set", setting)]


def crashes(args, seed, seconds, sets=(), more=()):
    with Place(args) as p:
        recorded(p, seed, "--lives", args.lives, "--bursts", args.bursts, *sets, *more)
        code, said = p.check("--seconds", seconds, "--seed", seed, "--some", args.some, *sets)
        tell(said)
        assert code == 0, "it does not know what it must, or knows what it cannot"


def twice(args, seed, seconds):
    """A crash, and while it comes up from that another one."""
    began, tried = time.monotonic(), 0
    with Place(args) as p:
        recorded(p, seed, "--lives", args.lives, "--bursts", args.bursts)
        for crash in p.run(["list", p.recording, 1000, "--seed", seed], None).stdout.split():
            if time.monotonic() - began > seconds:
                break
            with Place(args) as q:
                p.run(["build", p.recording, crash, q.disk], None)
                shutil.rmtree(q.metadata)
                shutil.copytree(p.metadata, q.metadata)
                recorded(q, seed, "--before", f"{p.recording},{crash}", "--lives", 1, "--bursts", 3)
                code, said = q.check("--seconds", max(5, seconds // 5), "--seed", seed, "--new")
                tried += int(re.search(r"(\d+) tried", said).group(1))
                assert code == 0, f"after {crash}: {said}"
    print(f"      {tried} second crashes")


def processes(args, seed, count):
    """The same through lgm-bookie itself."""
    with Place(args) as p:
        recorded(p, seed, "--lives", args.lives, "--bursts", args.bursts)
        crashed = p.run(["list", p.recording, count, "--seed", seed], None).stdout.split()
        for crash in crashed:
            through_a_process(args, p, crash)
        print(f"      {len(crashed)} starts of lgm-bookie")


def through_a_process(args, p, crash):
    state, log = os.path.join(p.folder, "state"), os.path.join(p.folder, "log")
    for d in (state, os.path.join(p.folder, "meta")):
        shutil.rmtree(d, ignore_errors=True)
    os.mkdir(state)
    p.run(["build", p.recording, crash, state], None)
    shutil.copytree(p.metadata, os.path.join(p.folder, "meta"))
    conf = os.path.join(p.folder, "bookie.conf")
    with open(conf, "w") as f:
        f.write(p.run(["settings"], None).stdout)
        f.write(f"metadataServiceUri=rocksdb:{p.folder}/meta\n")
    with open(log, "w") as out:
        bookie = subprocess.Popen([os.path.join(args.build, "lgm-bookie"), "--conf", conf], cwd=state,
                                  stdout=out, stderr=out, env=p.env(CRASHPOINTS_NOSYNC="1"))
    try:
        def port():
            with open(log, errors="replace") as f:
                text = f.read()
            assert bookie.poll() is None, f"{crash}: it ended with {bookie.returncode}:\n{text[-3000:]}"
            return re.search(r"bookie\.started .* port=(\d+)", text)
        found = lgm.wait_until(port, 30, f"{crash}: it serves")
        done = p.run(["ask", p.recording, crash, found.group(1)], None)
        assert done.returncode == 0, f"{crash}: {done.stdout}"
    finally:
        bookie.kill()
        bookie.wait()


# ---- failures ---------------------------------------------------------------------------------

def operations(args, words):
    """How many can fail."""
    with Place(args) as p:
        recorded(p, 1, *words)
        shown = p.run(["show", p.recording], None).stdout
        kinds = ("create", "mkdir", "write", "truncate", "allocate", "rename", "unlink", "sync")
        return sum(line.split()[1] in kinds and "/LOG" not in line for line in shown.splitlines())


HURT = ("--lives", "1", "--bursts", "20", "--hurt")
HURT_GARBAGE = ("--lives", "3", "--bursts", "40", "--hurt", *GARBAGE)


def failure(args, at, why, words):
    """One operation fails: what becomes of the process, in a word."""
    with Place(args) as p:
        code, said, logged = p.record(at, *words, CRASHPOINTS_FAIL=f"{at}:{why}")
        name = errno.errorcode[why]
        assert code == 0 and "wrong:" not in said, f"{name} at {at}: {said}\n{logged[-3000:]}"
        what = outcome(said, logged)
        if what == "ended":
            assert " ERROR " in logged, f"{name} at {at}: it ended and did not say why:\n{logged[-2000:]}"
        code, found = p.check("--end", "--hurt", "--again", "1", "--some", "2")
        assert code == 0, f"{name} at {at}, it {what}:\n{found}\n{logged[-3000:]}"
        return what, logged


def outcome(said, logged):
    if "ended" in said or "refused to start" in said:
        return "ended"
    served = re.search(r"serves: (-?\d+)", said)
    if not served:
        return "ended"
    return {"0": "goes on", "105": "is read-only"}.get(served.group(1), f"answers {served.group(1)}")


def failures(args, why, seconds, words):
    count, rng, began, seen = operations(args, words), random.Random(args.seed), time.monotonic(), {}
    order = rng.sample(range(1, count + 1), count)
    for done, at in enumerate(order):
        if seconds and time.monotonic() - began > seconds:
            break
        what, logged = failure(args, at, why, words)
        seen.setdefault(what, []).append(at)
        if what.startswith("answers"):
            lines = [line for line in logged.splitlines() if " ERROR " in line]
            tell(f"{errno.errorcode[why]} at {at}: it {what} for good\n" + "\n".join(lines[-3:]))
    print(f"      {errno.errorcode[why]} at {sum(map(len, seen.values()))} of {count} operations: "
          + ", ".join(f"{len(v)} {k}" for k, v in sorted(seen.items())))


# ---- what must be found -----------------------------------------------------------------------

def lie(args, pattern):
    """A sync that is left out must be missed."""
    with Place(args) as p:
        recorded(p, args.seed, "--lives", args.lives, "--bursts", args.bursts, CRASHPOINTS_LIE=pattern,
                 CRASHPOINTS_LIE_AFTER="4")  # once the bookie has served: NOTE_SERVING
        code, said = p.check("--stop", "1", "--seconds", 120 * SLOW, "--seed", args.seed)
        tell("\n".join([line for line in said.splitlines() if "WRONG" in line][:1]))
        assert code != 0, f"no crash shows that {pattern} is not synced:\n{said}"


def mutant(args, planted):
    with tempfile.TemporaryDirectory() as folder:
        program = plant(args, planted, folder)
        with Place(args, program) as p:
            more = GARBAGE if planted[1] in GARBAGE_FILES else []
            code, said, logged = p.record(args.seed, "--lives", args.lives, "--bursts", args.bursts, *more)
            if code != 0:
                wrong = [line for line in said.splitlines() if "wrong" in line]
                tell((wrong + logged.strip().splitlines())[0])
                return
            focus = ["--focus", FOCUS[planted[0]]] if planted[0] in FOCUS else []
            code, said = p.check("--stop", "1", "--seconds", 600 * SLOW, "--seed", args.seed, *focus)
            tell("\n".join([line for line in said.splitlines() if "WRONG" in line][:1]))
            assert code != 0, f"it lives:\n{said}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=150, help="for all; 0: until all is done")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--lives", type=int, default=5)
    parser.add_argument("--bursts", type=int, default=60)
    parser.add_argument("--some", type=int, default=1)
    parser.add_argument("--sync-us", type=int, default=1000)
    parser.add_argument("--only", default="", help="crashes, twice, processes, failures, lies, mutants")
    parser.add_argument("--name", default="", help="of lies and mutants, those with this in it")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    only = args.only.split(",") if args.only else ["crashes", "twice", "processes", "failures"] + (
        [] if args.seconds else ["lies", "mutants"])
    cases = lgm.Cases()
    part = args.seconds
    if "crashes" in only:
        for seed in range(args.seed, args.seed + (1 if part else 3)):
            cases.run(f"crashes of seed {seed}", lambda _, s=seed: crashes(args, s, part * 3 // 10))
            cases.run(f"crashes of seed {seed}, several directories",
                      lambda _, s=seed: crashes(args, s, part * 2 // 10, SEVERAL))
            cases.run(f"crashes of seed {seed}, with garbage",
                      lambda _, s=seed: crashes(args, s, part * 2 // 10, (), GARBAGE))
    if "twice" in only:
        cases.run("a crash after a crash", lambda _: twice(args, args.seed, part * 15 // 100 or 900))
    if "processes" in only:
        cases.run("through processes", lambda _: processes(args, args.seed, 15 if part else 300))
    if "failures" in only:
        for why in (errno.ENOSPC, errno.EIO):
            name = errno.errorcode[why]
            cases.run(f"{name} once", lambda _, w=why: failures(args, w, part // 10, HURT))
            cases.run(f"{name} once, with garbage",
                      lambda _, w=why: failures(args, w, part // 20 or 1800, HURT_GARBAGE))
    if "lies" in only:
        for pattern in [x for x in LIES if args.name in x]:
            cases.run(f"not synced: {pattern}", lambda _, x=pattern: lie(args, x))
    if "mutants" in only:
        for m in [m for m in MUTANTS if args.name in m[0]]:
            cases.run(m[0], lambda _, m=m: mutant(args, m))
    cases.end()


if __name__ == "__main__":
    main()
