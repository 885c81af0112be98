#!/usr/bin/env python3
"""soak.py - an hour of writers, readers, deletion and compaction, and `kill -9` every minute.

    tests/soak.py --build build                 an hour
    tests/soak.py --build build --minutes 5

etcd, a broker, three bookies.  Two topics are written: one is consumed as it goes, so that its ledgers
roll and are deleted; a slow one is kept to the end, so that a little of every entry log must be moved
before the log can go.  It is read from its beginning again and again.  Every minute a bookie or the broker
is killed and comes back; the last bookie never is, and its memory is looked at through all the time.

In the end nothing is lost, doubled or out of order, the disks hold little more than what is kept, and
memory does not grow.
"""
import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
sys.path.insert(0, os.path.join(here, "lib"))
import lgm  # noqa: E402
from lgm_cluster import Cluster  # noqa: E402
from tiers import Load  # noqa: E402

MIB = 1 << 20
LOG, JOURNAL, CACHE, SIZE = 32, 32, 32, 1000  # MiB, MiB, MiB, bytes
BOOKIE = {"gcWaitTime": 5000, "lgmGcTrashSeconds": 5, "logSizeLimit": LOG * MIB, "journalMaxSizeMB": JOURNAL,
          "dbStorage_writeCacheMaxSizeMb": CACHE, "flushInterval": 2000, "minorCompactionInterval": 10,
          "majorCompactionInterval": 20, "compactionRateByEntries": -1, "lgmGcReserveMB": 16,
          "lgmGcVanishedShare": 1}
BROKER = {"managedLedgerMinLedgerRolloverTimeMinutes": 0, "managedLedgerMaxEntriesPerLedger": 20000,
          "bookkeeperClientTimeoutInSeconds": 5}
GOES_IN_S = 120  # from when a message is acknowledged until its space is free: rolled, deleted, compacted
GROWTH = 1.25    # of memory, from the middle third of the time to the last


def bytes_below(folder):
    total = 0
    for d, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(d, name)).st_blocks * 512
            except FileNotFoundError:
                continue  # it went meanwhile
    return total


def rss(process):
    try:
        with open(f"/proc/{process.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        return 0


def value(process, name):
    """Of a metric, all its series together."""
    page = process.http("/metrics")[1]
    return sum(float(x) for x in re.findall(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", page, re.M))


class Kept:
    """A topic that is written slowly and consumed only in the end."""

    def __init__(self, cluster, folder, rate):
        self.cluster, self.log = cluster, os.path.join(folder, "kept.log")
        self.producer = self.spawn("verify", "produce", "kept", "--count", "1000000000", "--log", self.log,
                                   "--rate", str(rate), "--size", str(SIZE), "--no-batching")
        lgm.wait_until(lambda: os.path.exists(self.log) and self.records() > 10, 30, "the kept topic is written")
        self.reader, self.times_read = None, 0

    def spawn(self, *words):
        return subprocess.Popen([self.cluster.lgm, *words, "--url", self.cluster.brokers[0].url], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def records(self):
        with open(self.log, "rb") as f:
            return f.read().count(b"\n")

    def read_again(self):
        """From its beginning, beside everything else; one that met a kill is started again."""
        if self.reader and self.reader.poll() is None:
            return
        self.times_read += bool(self.reader and self.reader.returncode == 0)
        self.reader = subprocess.Popen(
            [self.cluster.lgm, "perf", "read", "kept", "-m", "earliest", "-n", str(self.records()), "-time", "50",
             "-u", self.cluster.brokers[0].url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        if self.reader:
            self.reader.kill()
            self.reader.wait()
        self.producer.send_signal(signal.SIGINT)
        out, error = self.producer.communicate(timeout=60 * lgm.SLOW)
        assert self.producer.returncode == 0, f"the kept topic's producer: {out} {error}"
        done = self.spawn("verify", "consume", "kept", "--log", self.log, "--idle", "60")
        out, error = done.communicate(timeout=900 * lgm.SLOW)
        print(f"      kept, read {self.times_read} times meanwhile: {out.strip()} {error.strip()}", flush=True)
        verdict = lgm.verdict(out)
        assert done.returncode == 0 and verdict["lost"] == verdict["duplicated"] == verdict["reordered"] == 0
        assert verdict["checked"] > 0


class Minutes:
    """What was seen in each."""

    def __init__(self, cluster):
        self.cluster, self.rows = cluster, []

    def note(self, number, killed, gone, kept):
        c = self.cluster
        row = {"disk": [bytes_below(b.folder) for b in c.bookies], "kept": kept * SIZE,
               "rss": {p.name: rss(p) for p in [*c.bookies, *c.brokers]}}
        self.rows.append(row)
        freed = value(c.bookies[-1], "bookie_gc_REMOVED_LOGS") + value(c.bookies[-1], "bookie_gc_COMPACTED_LOGS")
        print(f"minute {number}: {gone:,} written and read, {kept:,} kept; MiB on disk "
              + " ".join(f"{d // MIB}" for d in row["disk"]) + "; MiB resident "
              + " ".join(f"{k} {v // MIB}" for k, v in row["rss"].items())
              + f"; {freed:.0f} logs gone from {c.bookies[-1].name}; killed {killed}", flush=True)

    def judge_disk(self, rate):
        """What is kept, with a share of garbage in its logs; what is on its way out; and what never goes."""
        fixed = 4 * JOURNAL + 4 * LOG + 100
        for number, row in enumerate(self.rows, 1):
            bound = 2 * row["kept"] + rate * SIZE * GOES_IN_S + fixed * MIB
            most = max(row["disk"])
            assert most < bound, f"minute {number}: {most // MIB} MiB on a disk, more than {bound // MIB}"

    def judge_memory(self):
        n = len(self.rows)
        if n < 6:
            return "memory: too short to tell"
        said = []
        for name in [self.cluster.bookies[-1].name]:
            middle = statistics.median(r["rss"][name] for r in self.rows[n // 3:2 * n // 3])
            last = statistics.median(r["rss"][name] for r in self.rows[2 * n // 3:])
            said.append(f"{name} {middle // MIB:.0f} -> {last // MIB:.0f} MiB")
            assert last < middle * GROWTH + 16 * MIB, f"{name} grows: {said[-1]}"
        return "memory: " + ", ".join(said)


def kill(victim, rng):
    victim.kill()
    time.sleep(rng.uniform(0.5, 3))
    victim.start(60)


def soak(args, folder):
    rng = random.Random(args.seed)
    with Cluster(args.build, folder, bookie_conf=BOOKIE, broker_conf=BROKER) as c:
        gone = Load(c, folder, "gone", args.rate, ["--size", str(SIZE), "--no-batching"])
        kept, minutes = Kept(c, folder, args.rate // 50), Minutes(c)
        try:
            victims = [c.bookies[0], c.bookies[1], c.brokers[0]]
            for number in range(1, args.minutes + 1):
                began = time.monotonic()
                kept.read_again()
                time.sleep(rng.uniform(10, 40))
                victim = victims[number % len(victims)]
                kill(victim, rng)
                gone.wait_for_progress(60, f"publishing goes on after {victim.name} came back")
                time.sleep(max(0.0, 60 - (time.monotonic() - began)))
                minutes.note(number, victim.name, gone.lines(), kept.records())
            gone.end()
            kept.end()
        finally:
            for p in (gone.producer, gone.consumer, kept.producer, kept.reader):
                if p and p.poll() is None:
                    p.kill()
        minutes.judge_disk(args.rate)
        print(f"      disks bounded; {minutes.judge_memory()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--rate", type=int, default=2000, help="messages a second of the topic that goes")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    cases = lgm.Cases()
    cases.run(f"{args.minutes} minutes", lambda folder: soak(args, folder))
    cases.end()


if __name__ == "__main__":
    main()
