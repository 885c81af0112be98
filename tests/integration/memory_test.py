#!/usr/bin/env python3
"""memory_test.py - under a flood that nobody reads, `lgm standalone` stays under its memory limit: it
takes on less and does not die, and what it acknowledged is there afterwards."""
import argparse
import asyncio
import os
import re
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import wire  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
ARGS = parser.parse_args()
MIB = 1 << 20
ROOM, MARGIN = 60, 24  # MiB: from an idle process to its limit; past it at the worst
STALL = 50  # seconds: sooner than keep-alive rids it of those who do not read
COUNT, SIZE, TOPICS = 2500, 16 * 1024, 3
TOPIC = "persistent://public/default/"
SMALL = ("--set", "managedLedgerCacheSizeMB=16", "--set", "statsUpdateFrequencyInSecs=3600",
         "--bookie-set", "dbStorage_writeCacheMaxSizeMb=16",
         "--bookie-set", "dbStorage_readAheadCacheMaxSizeMb=4", "--bookie-set", "journalMaxMemorySizeMb=8",
         "--bookie-set", "flushInterval=500")


def anonymous(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) * 1024


class Watch(threading.Thread):
    """How much it had at the most, and which levels it was at."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.most, self.over = server, 0, threading.Event()

    def run(self):
        while not self.over.is_set():
            self.most = max(self.most, anonymous(self.server.process.pid))
            time.sleep(0.02)

    def end(self):
        self.over.set()
        self.join()


def level(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.web_port}/metrics", timeout=10) as r:
        return int(re.search(r"^lgm_memory_level(?:\{[^}]*\})? (\d+)", r.read().decode(), re.M)[1])


async def hoarders(port, n):
    """Consumers that ask for all and read nothing: what is sent to them stays with the broker."""
    all_ = []
    for i in range(n):
        w = await wire.Wire.connect(port)
        w.subscribe(1, 1, f"{TOPIC}flood-{i % TOPICS}", f"hoard-{i}")
        await w.expect(wire.SUCCESS)
        w.flow(1, 1000000)
        await w.writer.drain()
        w.writer.transport.pause_reading()
        all_.append(w)
    return all_


def idle_size(folder):
    """Of one that has served a little."""
    s = lgm.Standalone(ARGS.build, folder, args=SMALL).start()
    s.run("produce", "small", "-m", "x")
    size = anonymous(s.process.pid)
    s.stop()
    return size


def levels_of(log):
    return re.findall(r"memory.level_changed level=(\w+)", log)


async def flood(server, folder):
    hoard = await hoarders(server.port, 4 * TOPICS)
    logs = [os.path.join(folder, f"run-{i}.log") for i in range(TOPICS)]
    producers = [server.spawn("verify", "produce", f"flood-{i}", "--count", str(COUNT), "--size", str(SIZE),
                              "--no-batching", "--log", log) for i, log in enumerate(logs)]
    for p in producers:
        out, err = await asyncio.to_thread(p.communicate, timeout=240 * lgm.SLOW)
        assert p.returncode == 0, (out[-2000:], err[-2000:])
    for w in hoard:
        w.writer.transport.abort()
    return logs


def a_flood_that_nobody_reads(folder):
    limit = idle_size(folder) // MIB + ROOM
    server = lgm.Standalone(ARGS.build, folder, args=(*SMALL, "--set", f"lgmMemoryLimitMB={limit}")).start()
    watch = Watch(server)
    watch.start()
    try:
        began = time.monotonic()
        logs = asyncio.run(flood(server, folder))
        took = time.monotonic() - began
        lgm.wait_until(lambda: level(server) == 0, 60, "there is plenty again")
        for i, log in enumerate(logs):
            got = lgm.verdict(server.run("verify", "consume", f"flood-{i}", "--log", log).stdout)
            assert got["lost"] == got["duplicated"] == got["reordered"] == 0, got
            assert got["checked"] == COUNT, got
    finally:
        watch.end()
        print(f"      limit {limit} MiB, at most {watch.most // MIB}; levels {levels_of(server.output())[:40]}",
              flush=True)
    assert "low" in levels_of(server.output())
    assert watch.most < (limit + MARGIN) * MIB
    assert took < STALL * lgm.SLOW, took
    server.stop()


cases = lgm.Cases()
for case in (a_flood_that_nobody_reads,):
    cases.run(case.__name__, case)
cases.end()
