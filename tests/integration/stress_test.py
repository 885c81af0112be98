#!/usr/bin/env python3
"""stress_test.py - clients as they should not be: thousands that come and go in the middle of
everything, say nothing, do not read, seek without end, are frozen, or send half of a frame.

Memory stays bounded, nothing of them is left behind, and no subscription that has a consumer with
permits stands still: `explain` is asked of all of them, all the time.

    tests/integration/stress_test.py --build build [--big] [--only NAME]
"""
import argparse
import asyncio
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import wire  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("--big", action="store_true", help="the full numbers; some minutes")
parser.add_argument("--only", default="")
ARGS = parser.parse_args()
TOPIC = "persistent://public/default/"
MIB = 1 << 20
KEEP_ALIVE = 2
# Sanitizers keep what was freed, and put their own around what is not: nothing is asserted there.
MEASURES = lgm.SLOW == 1


def start(folder, *settings):
    words = [w for s in (f"keepAliveIntervalSeconds={KEEP_ALIVE * lgm.SLOW}", *settings) for w in ("--set", s)]
    return lgm.Standalone(ARGS.build, folder, args=words).start()


def get(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.web_port}{path}", timeout=30) as r:
        return r.read().decode()


def metric(server, name):
    return float(re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)", get(server, "/metrics"), re.M)[1])


def rss(server):
    with open(f"/proc/{server.process.pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) * 1024


def connections(server):
    return metric(server, "pulsar_active_connections")


def nothing_is_left(server, topics):
    """No ghosts, in the metrics and in what the topics say of themselves."""
    for name in ("pulsar_active_connections", "pulsar_broker_producers_count", "pulsar_broker_consumers_count"):
        lgm.wait_until(lambda: metric(server, name) == 0, 30, f"{name} is 0")
    assert metric(server, "lgm_publish_accepted_bytes") == 0
    for topic in topics:
        stats = json.loads(get(server, f"/admin/v2/persistent/public/default/{topic}/stats"))
        assert stats["publishers"] == [], stats["publishers"]
        for name, sub in stats["subscriptions"].items():
            assert sub["consumers"] == [], (name, sub)


class Watch:
    """Asks `explain` of the topics; one that could move and stands for STUCK seconds is stuck."""

    STUCK = 5
    COULD_MOVE = {"moving", "reading", "no-room", "read-failed", "being-changed"}

    def __init__(self, server, *topics):
        self.server, self.topics = server, topics
        self.seen, self.stuck, self.asked, self.slowest = {}, [], 0, 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, error, trace):
        self.ended.set()
        self.thread.join()
        if kind is None:
            assert not self.stuck, self.stuck
            assert self.asked > 0, "nothing was asked"

    def run(self):
        while not self.ended.wait(0.2):
            for topic in self.topics:
                self.ask(topic)

    def ask(self, topic):
        try:
            said = json.loads(get(self.server, f"/lgm/v1/persistent/public/default/{topic}/explain"))
        except urllib.error.HTTPError:
            return  # it is not there yet
        self.asked += 1
        now = time.monotonic()
        for sub, e in said["subscriptions"].items():
            could = e["consumers"] > 0 and e["backlog"] > 0 and e["reason"] in self.COULD_MOVE
            state = (e["reason"], e["backlog"], e["unacked"], e["permits"])
            if not could or self.seen.get((topic, sub), (None,))[0] != state:
                self.seen[topic, sub] = (state, now)
                continue
            stood = now - self.seen[topic, sub][1]
            self.slowest = max(self.slowest, stood)
            if stood > self.STUCK * lgm.SLOW:
                self.stuck.append((topic, sub, round(stood, 1), e))


async def opened(port, topic, producer=True, subscription=None, permits=0, kind=wire.EXCLUSIVE):
    w = await wire.Wire.connect(port)
    if producer:
        w.producer(1, 1, TOPIC + topic)
        await w.expect(wire.PRODUCER_SUCCESS)
    if subscription:
        w.subscribe(2, 2, TOPIC + topic, subscription, kind)
        await w.expect(wire.SUCCESS)
        w.flow(2, permits)
    return w


async def in_turns(n, width, one):
    """one(i) for i < n, `width` of them at a time."""
    results = [None] * n

    async def lane(first):
        for i in range(first, n, width):
            results[i] = await one(i)
    await asyncio.gather(*(lane(first) for first in range(width)))
    return results


# ---- clients that open and close in a row, with creation in flight ----

async def comes_and_goes(port, i):
    w = await wire.Wire.dial(port)
    w.put(wire.CONNECT, {1: "wire", 4: 21})
    topic = TOPIC + f"churn-{i % 5}"
    w.producer(1, 1, topic, fields={4: f"name-{i % 7}"} if i % 2 else {})
    w.subscribe(2, 2, topic, f"sub-{i % 3}", wire.SHARED if i % 3 else wire.EXCLUSIVE)
    w.flow(2, 1000)
    if i % 5 == 0:
        w.put(wire.CLOSE_PRODUCER, {1: 1, 2: 3})
        w.put(wire.CLOSE_CONSUMER, {1: 2, 2: 4})
        w.producer(1, 5, topic)
    try:
        await w.writer.drain()
        for _ in range(i % 4):  # some see an answer or two before they go
            await w.get(10)
    except (ConnectionError, OSError):
        pass
    if i % 2:
        w.close()  # with a reset
    else:
        w.writer.close()


def a_thousand_that_come_and_go(folder):
    server = start(folder)
    topics = [f"churn-{i}" for i in range(5)]
    n = 10000 if ARGS.big else 1000
    with Watch(server, *topics):
        asyncio.run(in_turns(n, 20, lambda i: comes_and_goes(server.port, i)))
        nothing_is_left(server, topics)
    for topic in topics:  # and a usual client finds it usable
        server.run("produce", topic, "-m", "x")
        assert server.run("consume", topic, "-s", "after", "-p", "Earliest", "-n", "1").stdout == "x\n"
    server.stop()


# ---- idle connections ----

def ten_thousand_idle(folder):
    wanted, spare = 10000, 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < wanted + spare and os.geteuid() == 0:
        hard = wanted + spare
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    n = min(wanted, hard - spare)
    server = start(folder, "keepAliveIntervalSeconds=30")
    server.run("produce", "t", "-m", "x")

    async def all_of_them():
        before = rss(server)
        began = time.monotonic()
        crowd = await in_turns(n, 50, lambda i: wire.Wire.connect(server.port))
        took = time.monotonic() - began
        assert connections(server) >= n
        each = (rss(server) - before) / n
        print(f"      {n} connections in {took:.1f} s, {each / 1024:.1f} KiB each")
        # A session, its conn, two events, timers: 2 KiB; a queue ring and malloc's share as much.
        assert not MEASURES or each < 8 * 1024
        server.run("produce", "t", "-m", "y")
        for w in crowd:
            w.close()
    asyncio.run(all_of_them())
    nothing_is_left(server, ["t"])
    server.stop()


# ---- who does not read ----

def consumers_that_never_read(folder):
    """They give all the permits there are; others on the same topic are served as ever."""
    server = start(folder, "managedLedgerCacheSizeMB=16", "managedLedgerMaxReadsInFlightSizeInMB=16")
    log = os.path.join(folder, "run.log")
    n, size = (200000, 2000) if ARGS.big else (40000, 2000)

    async def deaf(i):
        w = await opened(server.port, "t", producer=False, subscription=f"deaf-{i}", permits=1 << 30)
        w.writer.transport.pause_reading()
        return w

    async def whole():
        before = rss(server)
        crowd = await in_turns(40, 10, deaf)
        busy = server.spawn("verify", "produce", "t", "--count", str(n), "--size", str(size), "--log", log)
        lgm.wait_until(lambda: os.path.exists(log), 30, "the log")
        highest = 0
        with Watch(server, "t") as watch:
            judge = server.spawn("verify", "consume", "t", "--log", log, "--idle", "60")
            while judge.poll() is None:
                highest = max(highest, rss(server))
                await asyncio.sleep(0.1)
            out, err = judge.communicate()
            assert busy.wait(60) == 0 and judge.returncode == 0, (out, err)
            # They hold the socket's buffers full: not a byte leaves, and they are found out.
            lgm.wait_until(lambda: connections(server) == 0, 10 * KEEP_ALIVE, "they are gone")
        grown = highest - before
        print(f"      40 that do not read: {grown // MIB} MiB more at most; the slowest stood {watch.slowest:.1f} s")
        # Reads in flight: twice 16 MiB a loop (2 loops here at most count), the cache, the bookie's
        # write cache and journal buffers that a flood fills anyhow.
        assert not MEASURES or grown < 400 * MIB
        for w in crowd:
            w.close()
    asyncio.run(whole())
    lgm.wait_until(lambda: "keep-alive" in server.output(), 10, "it says why")
    nothing_is_left(server, ["t"])
    server.stop()


def one_that_asks_and_never_reads(folder):
    server = start(folder, "keepAliveIntervalSeconds=60")

    async def whole():
        before = rss(server)
        w = await wire.Wire.connect(server.port)
        w.writer.transport.pause_reading()
        lookups = wire.command(wire.LOOKUP, {1: TOPIC + "x" * 1000, 2: 1}) * 200
        highest = 0
        try:
            for _ in range(2000):
                w.writer.write(lookups)
                await asyncio.wait_for(w.writer.drain(), 10)
                highest = max(highest, rss(server))
        except (ConnectionError, OSError):
            pass
        lgm.wait_until(lambda: connections(server) == 0, 10, "it is gone")
        print(f"      {(highest - before) // MIB} MiB more at most")
        assert not MEASURES or highest - before < 64 * MIB  # 16 MiB of answers, and lookups under way
        w.close()
    asyncio.run(whole())
    lgm.wait_until(lambda: "answers that it does not read" in server.output(), 10, "it says why")
    nothing_is_left(server, [])
    server.stop()


# ---- half-open: a client that is frozen ----

FROZEN = """
import asyncio, sys
sys.path.insert(0, {lib!r})
import wire
async def main():
    all_ = []
    for i in range(20):
        w = await wire.Wire.connect({port})
        w.producer(1, 1, {topic!r})
        await w.expect(wire.PRODUCER_SUCCESS)
        w.subscribe(2, 2, {topic!r}, f"frozen-{{i}}")
        await w.expect(wire.SUCCESS)
        w.flow(2, 1000 if i % 2 else 1 << 30)
        all_.append(w)
    print("ready", flush=True)
    await asyncio.sleep(1000)
asyncio.run(main())
"""


def half_open_sockets(folder):
    """Frozen in the middle of everything: some with bytes that wait for them, some with none."""
    server = start(folder)
    text = FROZEN.format(lib=os.path.dirname(wire.__file__), port=server.port, topic=TOPIC + "t")
    client = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert client.stdout.readline() == "ready\n"
    client.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        busy = server.spawn("verify", "produce", "t", "--count", "20000", "--size", "2000", "--log",
                            os.path.join(folder, "run.log"))
        assert busy.wait(60 * lgm.SLOW) == 0, busy.communicate()
        lgm.wait_until(lambda: connections(server) == 0, 10 * KEEP_ALIVE, "they are gone")
        took = time.monotonic() - began
        print(f"      gone after {took:.1f} s, keep-alive {KEEP_ALIVE * lgm.SLOW} s")
        assert took < (3 * KEEP_ALIVE + 2) * lgm.SLOW  # two intervals, the one under way, and slack
    finally:
        client.kill()
        client.communicate()
    nothing_is_left(server, ["t"])
    server.stop()


# ---- half frames ----

def floods_of_half_frames(folder):
    """Each says that 5 MB will come, and sends some KB; before CONNECT and after it."""
    server = start(folder)
    n = 5000 if ARGS.big else 1000
    half = struct.pack(">I", 5000000) + bytes([0, 0, 0, 9]) + os.urandom(6000)

    async def one(i):
        w = await (wire.Wire.connect if i % 2 else wire.Wire.dial)(server.port)
        w.mute = True
        w.writer.write(half[:(5, 4, 3, len(half))[i % 4]])
        return w

    async def whole():
        before = rss(server)
        crowd = await in_turns(n, 50, one)
        lgm.wait_until(lambda: connections(server) >= n, 10, "all are there")
        grown = rss(server) - before
        print(f"      {n} half frames: {grown / n / 1024:.1f} KiB each")
        # What came and its pages, not what was said: a quarter of them sent 6 KB.
        assert not MEASURES or grown < n * 32 * 1024
        server.run("produce", "t", "-m", "x")
        lgm.wait_until(lambda: connections(server) == 0, 10 * KEEP_ALIVE, "keep-alive closed them")
        for w in crowd:
            w.close()
    asyncio.run(whole())
    nothing_is_left(server, ["t"])
    server.stop()


# ---- who seeks without end ----

EARLIEST = wire.pack({1: wire.NO_REQUEST, 2: wire.NO_REQUEST})


class Seeker:
    """A subscription, or a reader that has none, which reads a little and seeks again."""

    def __init__(self, port, i):
        self.port, self.i, self.reader = port, i, i % 2 == 1
        self.requests, self.consumer, self.seeks, self.known = 10, 1, 0, [EARLIEST]

    async def join(self, start):
        """With a new id, since the old one was closed; what is told of that is passed over."""
        self.consumer += 1
        self.requests += 1
        more = {8: 0, 9: start} if self.reader else {}
        self.w.subscribe(self.consumer, self.requests, TOPIC + "t", f"seeker-{self.i}", fields=more)
        await self.success()
        self.w.flow(self.consumer, 100)

    async def success(self):
        while True:
            kind, fields, _ = await self.w.get()
            assert kind != wire.ERROR, fields
            if kind == wire.SUCCESS and fields[1] == self.requests:
                return

    async def seek(self, to, **fields):
        self.requests += 1
        self.w.put(wire.SEEK, {1: self.consumer, 2: self.requests, **(fields.get("fields") or {3: to})})
        await self.success()
        self.seeks += 1
        await self.join(to)

    async def run(self, until):
        self.w = await wire.Wire.connect(self.port)
        await self.join(EARLIEST)
        while time.monotonic() < until:
            for _ in range(self.seeks % 7):
                kind, fields, _ = await self.w.get()
                if kind == wire.MESSAGE:
                    self.known.append(fields[2])
            if self.seeks % 3 == 0 and not self.reader:
                await self.seek(EARLIEST, fields={4: int(time.time() * 1000) - 1000})
                await self.seek(EARLIEST)  # whatever is of the last second may be nothing
            else:
                await self.seek(self.known[self.seeks * 31 % len(self.known)])

    async def reads_all(self, n):
        await self.seek(EARLIEST)
        self.w.flow(self.consumer, n)
        at = 0
        while at < n:
            kind, fields, payload = await self.w.get()
            if kind == wire.MESSAGE and fields[1] == self.consumer:
                assert payload == b"%d" % at, (self.i, payload, at)
                at += 1
        self.w.close()


def seeking_without_end(folder):
    server = start(folder)
    n, seconds = 3000, 60 if ARGS.big else 8

    async def whole():
        w = await opened(server.port, "t")
        for i in range(n):
            w.send(1, i, b"%d" % i)
        for i in range(n):
            await w.expect(wire.SEND_RECEIPT)
        seekers = [Seeker(server.port, i) for i in range(8)]
        before = rss(server)
        with Watch(server, "t"):
            await asyncio.gather(*(s.run(time.monotonic() + seconds) for s in seekers))
            grown = rss(server) - before
            await asyncio.gather(*(s.reads_all(n) for s in seekers))
        print(f"      {sum(s.seeks for s in seekers)} seeks, {grown // MIB} MiB more")
        assert not MEASURES or grown < 64 * MIB  # cursors come and go; caches fill once
        w.close()
    asyncio.run(whole())
    nothing_is_left(server, ["t"])
    server.stop()


cases = lgm.Cases()
for case in (a_thousand_that_come_and_go, ten_thousand_idle, consumers_that_never_read,
             one_that_asks_and_never_reads, half_open_sockets, floods_of_half_frames,
             seeking_without_end):
    if ARGS.only in case.__name__:
        cases.run(case.__name__, case)
cases.end()
