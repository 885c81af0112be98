#!/usr/bin/env python3
"""first_light.py - the path through `lgm standalone`, measured by `lgm verify`.

Every run publishes to a topic of its own and consumes it afterwards.  The shapes take turns, so
that a noisy minute hits all of them; the medians are printed, with the CPU time of the server (broker
and bookies, one process) a message.
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import lgm  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
SHAPES = {  # name: bookies, records, more options
    "1 bookie, batched, 1 KiB": (1, 300000, ["--size", "1024"]),
    "1 bookie, batched, 128 B": (1, 600000, ["--size", "128"]),
    "1 bookie, single entries, 1 KiB": (1, 100000, ["--size", "1024", "--no-batching"]),
    "3 bookies (3/2/2), batched, 1 KiB": (3, 300000, ["--size", "1024"]),
}


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mib(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(build, bookies, records, options):
    with tempfile.TemporaryDirectory(prefix="lgm-bench-") as folder:
        server = lgm.Standalone(build, folder, bookies=bookies).start()
        log, pid = os.path.join(folder, "log"), server.process.pid
        idle = rss_mib(pid)
        cpu, began = cpu_seconds(pid), time.monotonic()
        server.run("verify", "produce", "bench", "--count", str(records), "--log", log, *options)
        produced = time.monotonic() - began
        cpu_in, began = cpu_seconds(pid) - cpu, time.monotonic()
        got = lgm.verdict(server.run("verify", "consume", "bench", "--log", log).stdout)
        consumed = time.monotonic() - began
        assert got["lost"] == got["duplicated"] == got["reordered"] == 0 and got["checked"] == records
        busy = rss_mib(pid)
        server.stop()
    return {"in/s": records / produced, "out/s": records / consumed,
            "CPU us in": cpu_in / records * 1e6, "idle MiB": idle, "busy MiB": busy}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    runs = {name: [] for name in SHAPES}
    for _ in range(args.rounds):
        for name, shape in SHAPES.items():
            runs[name].append(measure(args.build, *shape))
    columns = list(next(iter(runs.values()))[0])
    print(f"{'median of ' + str(args.rounds) + ' runs':36}" + "".join(f"{c:>12}" for c in columns))
    for name, results in runs.items():
        medians = [statistics.median(r[c] for r in results) for c in columns]
        print(f"{name:36}" + "".join(f"{m:12,.1f}" if m < 1000 else f"{m:12,.0f}" for m in medians))


main()
