#!/usr/bin/env python3
"""memory.py - what `lgm standalone` holds over hours of coming and going, with one allocator beside another.

    bench/memory.py --build build --minutes 90                      # glibc's and jemalloc side by side
    bench/memory.py --build build --minutes 600 --load 4 --allocators glibc

Topics are made and deleted, producers of 100 B to 1 MiB and consumers come and go, some without a word,
a backlog builds up and is drained, over and over.  Each allocator has a server of its own, and all get the
same load at the same time.  A line a minute of each; at the end how much it came to hold, and whether it
still grew.
"""
import argparse
import asyncio
import contextlib
import os
import random
import re
import resource
import shutil
import signal
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402
import wire  # noqa: E402

MIB, TICK = 2**20, os.sysconf("SC_CLK_TCK")
PRELOAD = {"glibc": None, "jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
SMALLEST, LARGEST = 100, 2**20
NAME = "persistent://public/default/"
SEND_ERROR = wire.SEND_ERROR
# Small caches are full soon: what grows afterwards is not theirs.
SETTINGS = ["--set", "managedLedgerCacheSizeMB=32", "--set", "managedLedgerMaxEntriesPerLedger=500",
            "--set", "managedLedgerMinLedgerRolloverTimeMinutes=0",
            "--bookie-set", "dbStorage_writeCacheMaxSizeMb=32",
            "--bookie-set", "dbStorage_readAheadCacheMaxSizeMb=16", "--bookie-set", "journalMaxSizeMB=64"]


def library(name):
    """Where the dynamic linker finds it; None: it is libc's own."""
    file = PRELOAD[name]
    if not file:
        return None
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"):
        if os.path.exists(os.path.join(folder, file)):
            return os.path.join(folder, file)
    sys.exit(f"there is no {file} here")


class Server(lgm.Standalone):
    def __init__(self, build, folder, preload):
        super().__init__(build, folder, args=SETTINGS)
        self.preload = preload

    def command(self):
        return [*(["env", f"LD_PRELOAD={self.preload}"] if self.preload else []), *super().command()]

    def heap(self):
        """Bytes in use of it, bytes that it holds, and of the first what buffers have: now, and for
        the next ones; as the server says."""
        _, text = lgm_cluster.http(f"http://127.0.0.1:{self.web_port}/metrics")
        found = [re.search(rf"^{what}_bytes(?:{{[^}}]*}})? (\S+)", text, re.M)
                 for what in ("process_heap_used", "process_heap_held", "lgm_slabs_used", "lgm_slabs_kept")]
        return [float(f[1]) if f else 0.0 for f in found]

    def usage(self):
        pid = self.process.pid
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{pid}/status") as f:
            status = f.read()
        return {"rss": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024,
                "anon": int(re.search(r"RssAnon:\s+(\d+)", status)[1]) / 1024,
                "faults": int(fields[7]), "cpu": (int(fields[11]) + int(fields[12])) / TICK}


# ---- the load ------------------------------------------------------------------------------------

class Churn:
    """All that comes and goes at one server; its random numbers are the same for each."""

    def __init__(self, server, o):
        self.server, self.o, self.random = server, o, random.Random(o.seed)
        self.topics, self.made, self.slots = [], 0, []
        self.sent = self.received = self.visits = self.failed = 0
        self.why = {}

    def size(self):
        """As many of each order of magnitude, but few of the largest: 40 KiB in the mean."""
        return int(SMALLEST * (LARGEST / SMALLEST) ** (self.random.random() ** 3))

    def draining(self):
        """The last two fifths of a tide."""
        return (time.monotonic() - self.began) % (60 * self.o.tide) > 36 * self.o.tide

    async def pause(self, mean):
        await asyncio.sleep(self.random.expovariate(1 / mean) / self.o.load)

    async def make_topic(self):
        self.made += 1
        name = f"{NAME}churn-{self.made}"
        w = await wire.Wire.connect(self.server.port)
        try:
            for s in range(1 + self.made % 3):
                w.subscribe(s, s, name, f"sub-{s}", wire.SHARED)
                await w.expect(wire.SUCCESS)
        finally:
            w.close()
        self.topics.append((name, 1 + self.made % 3))

    async def delete_topic(self):
        name, _ = self.topics.pop(self.random.randrange(len(self.topics)))
        url = f"http://127.0.0.1:{self.server.web_port}/admin/v2/{name.replace('://', '/')}?force=true"
        status, text = await asyncio.to_thread(lgm_cluster.http, url, "DELETE", timeout=60)
        if status != 204:
            raise ConnectionError(f"not deleted: {status} {text[:60]}")

    async def make_and_delete(self):
        while True:
            if len(self.topics) >= self.o.topics:
                await self.pause(2)
                await self.attempt(self.delete_topic)
            await self.attempt(self.make_topic)

    async def attempt(self, what):
        """A topic may go while it is used, and that is part of the load."""
        self.visits += 1
        try:
            await what()
        except (ConnectionError, AssertionError, OSError, asyncio.TimeoutError) as e:
            self.failed += 1
            why = re.sub(r"\d+", "N", f"{type(e).__name__} {e}")[:120]
            self.why[why] = self.why.get(why, 0) + 1

    def pick(self, most):
        return [self.random.choice(self.topics) for _ in range(self.random.randint(1, most))]

    async def publish_visit(self):
        w = await wire.Wire.connect(self.server.port)
        try:
            chosen = self.pick(4)
            for i, (name, _) in enumerate(chosen):
                w.producer(i, i, name, fields={4: f"p-{self.visits}-{i}"})
                await w.expect(wire.PRODUCER_SUCCESS)
            small = self.random.random() < 0.3
            for sequence in range(self.random.randint(20, 200)):
                await self.pause(0.05 if small else 0.5)
                size = self.random.randint(SMALLEST, 1000) if small else self.size()
                w.send(sequence % len(chosen), sequence, os.urandom(64) * (size // 64 + 1))
                kind, fields, _ = await w.get()
                if kind != wire.SEND_RECEIPT:
                    raise ConnectionError(f"publish: {kind} {fields.get(2, '')}")
                self.sent += 1
        finally:
            w.close()

    async def consume_visit(self):
        w = await wire.Wire.connect(self.server.port)
        try:
            for i, (name, subscriptions) in enumerate(self.pick(20 if self.draining() else 6)):
                w.subscribe(i, i, name, f"sub-{self.random.randrange(subscriptions)}", wire.SHARED)
                while (await w.get())[0] not in (wire.SUCCESS, wire.ERROR):
                    pass
                w.flow(i, 1000)
            await self.take_all(w, time.monotonic() + self.random.expovariate(1 / 20))
            if self.random.random() < 0.5:
                w.writer.close()
        finally:
            w.close()

    async def take_all(self, w, until):
        """Some leave without a word about the last that they got."""
        while (left := until - time.monotonic()) > 0:
            try:
                kind, fields, _ = await w.get(left)
            except asyncio.TimeoutError:
                return
            if kind == wire.MESSAGE:
                self.received += 1
                w.ack(fields[1], fields[2])
                w.flow(fields[1], 1)
            await asyncio.sleep(0.002)

    async def come_and_go(self, publishes):
        while True:
            await self.pause(3)
            if publishes and not self.draining():
                await self.attempt(self.publish_visit)
            elif self.draining() or self.random.random() < 0.2:
                await self.attempt(self.consume_visit)

    async def run(self):
        self.began = time.monotonic()
        for _ in range(20):
            await self.attempt(self.make_topic)
        for work in [self.make_and_delete(), *(self.come_and_go(i % 2 == 0) for i in range(self.o.slots))]:
            self.slots.append(asyncio.ensure_future(work))
        await asyncio.gather(*self.slots)


# ---- what is told --------------------------------------------------------------------------------

class Record:
    """The samples of one server, a line each in a file and on the screen."""

    HEAD = ("minute", "rss", "anon", "used", "held", "slabs", "kept", "faults/s", "cpu%", "cpu_us/msg",
            "sent", "received", "topics", "visits", "failed")

    def __init__(self, name, churn, folder):
        self.name, self.churn, self.samples = name, churn, []
        self.file = open(os.path.join(folder, f"{name}.tsv"), "w")
        print(*self.HEAD, sep="\t", file=self.file, flush=True)
        self.began = self.at = time.monotonic()
        self.before, self.messages = churn.server.usage(), 0

    async def sample(self):
        c, now = self.churn, time.monotonic()
        used, held, slabs, kept = await asyncio.to_thread(c.server.heap)
        use, seconds = c.server.usage(), now - self.at
        cpu, messages = use["cpu"] - self.before["cpu"], c.sent + c.received
        line = {"minute": (now - self.began) / 60, "rss": use["rss"], "anon": use["anon"],
                "used": used / MIB, "held": held / MIB, "slabs": slabs / MIB, "kept": kept / MIB,
                "faults/s": (use["faults"] - self.before["faults"]) / seconds, "cpu%": 100 * cpu / seconds,
                "cpu_us/msg": 1e6 * cpu / max(1, messages - self.messages), "sent": c.sent,
                "received": c.received, "topics": len(c.topics), "visits": c.visits, "failed": c.failed}
        self.at, self.before, self.messages = now, use, messages
        self.samples.append(line)
        print(*(f"{line[h]:.1f}" for h in self.HEAD), sep="\t", file=self.file, flush=True)
        print(f"{self.name:9} " + " ".join(f"{h} {line[h]:.1f}" for h in self.HEAD[:11]), flush=True)

    def verdict(self):
        """Of the last two thirds: what it held in the middle and at most, and how it grew."""
        late = self.samples[len(self.samples) // 3:]
        if len(late) < 3:
            return f"{self.name:9} too short to tell"
        of = {h: [s[h] for s in late] for h in self.HEAD}
        hours = [m / 60 for m in of["minute"]]
        slope = statistics.linear_regression(hours, of["anon"]).slope
        used = statistics.linear_regression(hours, of["used"]).slope
        median = {h: statistics.median(v) for h, v in of.items()}
        return (f"{self.name:9} anonymous {median['anon']:.1f} MiB, at most {max(of['anon']):.1f}, "
                f"{slope:+.1f} MiB an hour; in use {median['used']:.1f} MiB, {used:+.1f} an hour; "
                f"{median['faults/s']:.1f} faults a second, CPU {median['cpu%']:.2f} %, "
                f"{median['cpu_us/msg']:.0f} us a message")


def options():
    p = argparse.ArgumentParser(description="What lgm standalone holds over hours.")
    p.add_argument("--build", default="build")
    p.add_argument("--minutes", type=float, default=60)
    p.add_argument("--allocators", default="glibc,jemalloc", help=", ".join(PRELOAD))
    p.add_argument("--load", type=float, default=1, help="how fast all of it goes (1: about 20 messages/s)")
    p.add_argument("--topics", type=int, default=150, help="that there are at a time")
    p.add_argument("--slots", type=int, default=10, help="clients that come and go")
    p.add_argument("--tide", type=float, default=10, help="minutes from one drained backlog to the next")
    p.add_argument("--every", type=float, default=60, help="seconds from sample to sample")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", default="memory", help="folder of the logs, a .tsv an allocator")
    p.add_argument("--data", default=os.environ.get("TMPDIR", "/tmp"))
    o = p.parse_args()
    o.build, o.out = os.path.abspath(o.build), os.path.abspath(o.out)
    o.allocators = o.allocators.split(",")
    for a in o.allocators:
        if a not in PRELOAD:
            p.error(f"there is no allocator {a!r}")
    return o


async def measure(o, servers):
    churns = {name: Churn(s, o) for name, s in servers.items()}
    records = [Record(name, c, o.out) for name, c in churns.items()]
    load = [asyncio.ensure_future(c.run()) for c in churns.values()]
    over = asyncio.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(s, over.set)
    end = time.monotonic() + 60 * o.minutes
    while not over.is_set() and (left := end - time.monotonic()) > 0:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(over.wait(), min(left, o.every))
        for r in records:
            await r.sample()
        for task in load:
            if task.done():
                task.result()
    for task in [*load, *(t for c in churns.values() for t in c.slots)]:
        task.cancel()
    for r in records:
        print(r.verdict(), flush=True)
        print(f"          visits that ended otherwise: {r.churn.why}")


def main():
    o = options()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    os.makedirs(o.out, exist_ok=True)
    servers, folders = {}, []
    try:
        for name in o.allocators:
            folders.append(os.path.join(o.data, f"lgm-memory-{os.getpid()}-{name}"))
            os.makedirs(folders[-1])
            servers[name] = Server(o.build, folders[-1], library(name)).start()
        asyncio.run(measure(o, servers))
    finally:
        for s in servers.values():
            s.kill()
        for f in folders:
            shutil.rmtree(f, ignore_errors=True)


if __name__ == "__main__":
    main()
