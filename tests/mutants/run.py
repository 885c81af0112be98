#!/usr/bin/env python3
"""run.py - plants each bug of mutants.py, and shows that the simulation or a unit test kills it.

A mutant is one core with one edit, linked into the simulation and into the unit test of that
core in front of the library that has the sound one. Its line says who killed it; one that
survives is a failure, and so is one that cannot be planted.
"""
import argparse
import concurrent.futures
import os
import pathlib
import resource
import shlex
import signal
import subprocess
import sys
import tempfile

from mutants import BOOKIE_TESTS, BROKER_TESTS, EXHAUSTED, MUTANTS, NOT_LIVED, RARE_TOPIC_SEEDS

LIMIT_S, BOOKIE_LIMIT_S = 120, 300
# A test of bookie/ waits at most 15 s for what a bug keeps from coming, in each of its cases; and
# where RocksDB's syncs cost nothing: what it needs of its own disk is in memory.
IMPATIENT = {**os.environ, "CK_TIMEOUT_MULTIPLIER": "0.25"}
IN_MEMORY = {**IMPATIENT, "TMPDIR": "/dev/shm"} if os.path.isdir("/dev/shm") else IMPATIENT
WARN = ["-Wno-error", "-w"]


def flags(*packages):
    out = subprocess.run(["pkg-config", "--cflags", "--libs", *packages], capture_output=True,
                         text=True, check=True)
    return shlex.split(out.stdout)


def run(command, limit_s=LIMIT_S, env=None):
    """How a program ended: "" when it passed. Time is the processor's: others may be busy."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))

    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=5 * limit_s, errors="replace", text=True, env=env,
                              preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode == 0:
        return ""
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "hangs"
    said = [line for line in done.stdout.splitlines() if line.strip()]
    seeds = [line for line in said if line.startswith(("seed ", "FAULT"))]
    failed = [line for line in said if ":F:" in line or ":E:" in line]
    return (seeds + failed + said[-1:] + ["died"])[0]


class Bench:
    def __init__(self, args):
        build = pathlib.Path(args.build)
        self.args, self.build = args, build
        self.libs = [str(build / f"lib{name}.a") for name in
                     ("ledger", "metadata", "proto", "common")]
        self.sim = sorted(map(str, (build / "tests/sim").glob("*.o")))
        self.exhaust = sorted(map(str, (build / "tests/sim/exhaust").glob("*.o")))
        self.topic = sorted(map(str, (build / "tests/sim/topic").glob("*.o")))
        self.topic += sorted(map(str, (build / "broker/managed_ledger").glob("*.o")))
        self.check = flags("check")
        self.unit_libs = flags("check", "libevent", "libevent_pthreads", "libevent_openssl",
                               "libprotobuf-c", "rocksdb", "libzstd", "liblz4", "libisal",
                               "json-c", "openssl", "zlib", "libcurl", "libnghttp2")
        self.unit_libs += ["-lroaring", "-lsnappy", "-lpcre2-8", "-lm"]
        self.topic_libs = flags("libprotobuf-c", "libzstd", "liblz4", "zlib", "libisal")
        self.topic_libs += ["-lroaring", "-lsnappy", "-lm"]
        self.bookie_libs = flags("libevent", "libevent_pthreads", "libevent_openssl", "openssl",
                                 "libprotobuf-c", "rocksdb", "json-c", "libisal", "libnghttp2", "zlib")

    def link(self, out, objects, extra=()):
        subprocess.run([self.args.cc, "-pthread", "-o", out, *objects, *self.libs, *extra],
                       check=True)
        return out

    def plant(self, mutant, folder):
        file, edits = mutant[1], mutant[2:]
        if isinstance(edits[0], str):
            edits = [edits]
        text = pathlib.Path(file).read_text()
        for sound, sick in edits:
            if text.count(sound) != 1:
                return None
            text = text.replace(sound, sick)
        source = folder / pathlib.Path(file).name
        source.write_text(text)
        made = source.with_suffix(".o")
        built = subprocess.run([self.args.cc, "-std=gnu17", "-g", "-O1", "-D_GNU_SOURCE", *WARN,
                                "-I.", "-isystem", str(self.build / "gen"), "-c", "-o", str(made), str(source)])
        return str(made) if built.returncode == 0 else None

    def by_sim(self, sick, folder):
        sound = str(self.build / "tests/sim" / pathlib.Path(sick).name)
        made = self.link(str(folder / "sim"), [sick if o == sound else o for o in self.sim])
        return run([made, "--brief", "--seeds", str(self.args.seeds)])

    def by_topic(self, sick, folder):
        sound = str(self.build / "broker/managed_ledger" / pathlib.Path(sick).name)
        objects = [sick if o == sound else o for o in self.topic]
        made = self.link(str(folder / "topic"), objects, self.topic_libs)
        for seed in RARE_TOPIC_SEEDS:
            found = run([made, "--brief", "--first", str(seed), "--seeds", "1"])
            if found:
                return found
        return run([made, "--brief", "--seeds", str(self.args.topic_seeds)])

    def by_broker(self, core, sick, folder):
        """By the unit test that BROKER_TESTS names for the file, if any."""
        test = BROKER_TESTS.get(core)
        if not test:
            return ""
        made = self.link(str(folder / "unit"),
                         [sick, str(self.build / f"tests/unit/broker/managed_ledger/{test}_test.o"),
                          *[str(self.build / f"lib{name}.a") for name in
                            ("tests", "broker", "client", "bookie")]], self.unit_libs)
        return run([made])

    def by_its_tests(self, mutant, sick, folder):
        """By those that BOOKIE_TESTS names for its file; else by the file's own."""
        file = pathlib.Path(mutant[1])
        for test in BOOKIE_TESTS.get(file.stem, [file.stem]):
            made = self.link(str(folder / test),
                             [sick, str(self.build / f"tests/unit/{file.parent}/{test}_test.o"),
                              str(self.build / "libtests.a"), str(self.build / "libbookie.a")],
                             [*self.libs, *self.check, *self.bookie_libs])
            found = run([made], BOOKIE_LIMIT_S, IN_MEMORY)
            if found:
                return found
        return ""

    def by_exhaust(self, sick, folder, setting):
        made = self.link(str(folder / "exhaust"), [sick, *self.exhaust])
        return run([made, "--seconds", "60", *setting.split()])

    def killer(self, mutant):
        """(is dead, what is said of it)"""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            sick = self.plant(mutant, folder)
            if not sick:
                return False, "cannot be planted: the code has changed, or it does not compile"
            core = pathlib.Path(mutant[1]).stem
            if mutant[1].startswith("broker/"):
                by_topic = "" if core in NOT_LIVED else self.by_topic(sick, folder)
                by_unit = "" if by_topic else self.by_broker(core, sick, folder)
                how = f"topic: {by_topic}" if by_topic else f"unit: {by_unit}"
                return bool(by_topic or by_unit), how if by_topic or by_unit else "SURVIVES"
            if mutant[1].startswith(("bookie/", "common/")):
                by_unit = self.by_its_tests(mutant, sick, folder)
                return bool(by_unit), f"unit: {by_unit}" if by_unit else "SURVIVES"
            if mutant[0] in EXHAUSTED:
                found = self.by_exhaust(sick, folder, EXHAUSTED[mutant[0]])
                if "FAULT" not in found:
                    return False, "SURVIVES every order of everything"
            if mutant[1].startswith("tests/sim/"):
                by_sim = self.by_sim(sick, folder)
                return bool(by_sim), f"sim: {by_sim}" if by_sim else "SURVIVES"
            sim = self.link(str(folder / "sim"), [sick, *self.sim], self.unit_libs)
            unit = self.link(str(folder / "unit"),
                             [sick, str(self.build / f"tests/unit/ledger/{core}_test.o"),
                              str(self.build / "libtests.a")], self.unit_libs)
            by_sim = run([sim, "--brief", "--seeds", str(self.args.seeds)])
            by_unit = run([unit])
        how = [f"sim: {by_sim}"] if by_sim else []
        how += [f"unit: {by_unit}"] if by_unit else []
        return bool(how), "; ".join(how) or "SURVIVES"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=20000)
    parser.add_argument("--topic-seeds", type=int, default=6000)
    parser.add_argument("--only", default="", help="those of this file, or with this in their name")
    args = parser.parse_args()
    bench = Bench(args)
    dead = 0
    chosen = [m for m in MUTANTS if args.only in m[0] or args.only in m[1]]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for mutant, (killed, how) in zip(chosen, pool.map(bench.killer, chosen)):
            dead += killed
            print(f"{'dead' if killed else 'ALIVE':6} {mutant[0]}: {how}", flush=True)
    print(f"{dead} passed, {len(chosen) - dead} failed")
    return dead != len(chosen)


if __name__ == "__main__":
    sys.exit(main())
