#!/usr/bin/env python3
"""seek_test.py - where subscriptions read: seeks that are kept over kill -9, a thousand of them in a
row, by time over many ledgers, and readers from every start."""
import argparse
import asyncio
import json
import os
import random
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import wire  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build
TOPIC = "persistent://public/default/t"
EARLIEST, LATEST = wire.NO_REQUEST, (1 << 63) - 1
SMALL = ("--set", "managedLedgerMaxEntriesPerLedger=50", "--set", "managedLedgerMinLedgerRolloverTimeMinutes=0")


def started(folder, args=SMALL):
    return lgm.Standalone(BUILD, folder, args=args).start()


def asked(server, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.web_port}{path}", timeout=30) as answer:
        return json.load(answer)


def stats(server):
    return asked(server, "/admin/v2/persistent/public/default/t/stats")["subscriptions"]


def body(sequence, ms):
    metadata = wire.pack({1: "wire", 2: sequence, 3: ms})
    return len(metadata).to_bytes(4, "big") + metadata + str(sequence).encode()


async def published(server, n, ms=lambda i: 1000 + 10 * i):
    """Numbers from 0 on, with those times; gives their ids."""
    w, ids = await wire.Wire.connect(server.port), []
    w.producer(1, 1, TOPIC)
    await w.expect(wire.PRODUCER_SUCCESS)
    for i in range(n):
        w.put(wire.SEND, {1: 1, 2: i}, body(i, ms(i)))
        if i % 25 == 24 or i == n - 1:
            while len(ids) <= i:
                ids.append((await w.expect(wire.SEND_RECEIPT))[1][3])
    w.close()
    return ids


class Reading:
    """One consumer, or reader: messages are taken as they come."""

    def __init__(self, server, subscription="s", permits=1000, fields=None):
        self.server, self.subscription, self.permits, self.fields = server, subscription, permits, fields or {}
        self.request = 100

    async def begin(self):
        """Until it is in: another one may not be gone yet."""
        while True:
            self.w = await wire.Wire.connect(self.server.port)
            try:
                await self.subscribe()
                return self
            except AssertionError:
                self.w.close()
                await asyncio.sleep(0.05)

    async def subscribe(self):
        self.request += 1
        self.w.subscribe(1, self.request, TOPIC, self.subscription, fields=self.fields)
        await self.w.expect(wire.SUCCESS)
        self.w.flow(1, self.permits)

    async def numbers(self, n):
        return [int((await self.w.expect(wire.MESSAGE))[2]) for _ in range(n)]

    async def nothing(self):
        self.w.put(wire.PING)
        await self.w.expect(wire.PONG)

    async def until(self, kind):
        while True:
            found, fields, _ = await self.w.get()
            if found == kind:
                return fields
            assert found == wire.MESSAGE, f"{found}: {fields}"

    async def ask_seek(self, **where):
        self.request += 1
        self.w.put(wire.SEEK, {1: 1, 2: self.request, **({3: where["to"]} if "to" in where else {4: where["ms"]})})

    async def seek(self, **where):
        """Closed first, then it is done; then it comes back."""
        await self.ask_seek(**where)
        assert (await self.until(wire.CLOSE_CONSUMER))[1] == 1
        assert (await self.w.expect(wire.SUCCESS))[1][1] == self.request
        await self.subscribe()

    def close(self):
        self.w.close()


def at(number):
    return wire.pack({1: number, 2: number})


async def reader(server, name, start):
    return await Reading(server, name, fields={8: 0, 9: start}).begin()


def run(function):
    def case(folder):
        server = started(folder)
        try:
            asyncio.run(function(server))
        finally:
            if server.process.poll() is None:
                server.stop()
    return case


async def an_answered_seek_survives_kill_9(server):
    await Reading(server, "keeps", permits=1).begin()
    s = await Reading(server).begin()
    ids = await published(server, 300)
    await s.numbers(300)
    for round_, to in enumerate((250, 20, 299, 0, 120)):
        if round_ % 2:
            await s.seek(ms=1000 + 10 * to)
        else:
            await s.ask_seek(to=ids[to])
            await s.until(wire.CLOSE_CONSUMER)
            await s.w.expect(wire.SUCCESS)
        server.kill()
        s.close()
        server.start()
        s = await Reading(server).begin()
        assert await s.numbers(300 - to) == list(range(to, 300)), to
        await s.nothing()


async def a_thousand_seeks_with_a_consumer_attached(server):
    rng = random.Random(7)
    await Reading(server, "keeps", permits=1).begin()
    s = await Reading(server, permits=20).begin()
    ids = await published(server, 500)
    for i in range(1000):
        to = rng.randrange(500)
        if i % 3 == 2:
            await s.seek(ms=1000 + 10 * to)
        else:
            await s.seek(to=ids[to])
        if i % 10 == 0:
            n = min(20, 500 - to)
            assert await s.numbers(n) == list(range(to, to + n)), i
    await s.seek(to=at(EARLIEST))
    assert await s.numbers(20) == list(range(20))
    said = asked(server, "/lgm/v1/persistent/public/default/t/subscription/s/explain")
    assert said["reason"] == "no-permits" and said["backlog"] == 500, said


async def seeks_by_time_over_several_ledgers(server):
    await Reading(server, "keeps", permits=1).begin()
    s = await Reading(server).begin()
    await published(server, 400)
    ledgers = asked(server, "/admin/v2/persistent/public/default/t/internalStats")["ledgers"]
    assert len(ledgers) >= 4, ledgers
    await s.numbers(400)
    for to in (0, 1, 49, 50, 51, 199, 333, 399):
        for early in (0, 5):
            await s.seek(ms=1000 + 10 * to - early)
            assert await s.numbers(400 - to) == list(range(to, 400)), to
            await s.nothing()
    await s.seek(ms=1000 + 10 * 400)
    await s.nothing()


async def times_that_repeat_lead_to_the_first_of_them(server):
    await Reading(server, "keeps", permits=1).begin()
    s = await Reading(server).begin()
    await published(server, 300, ms=lambda i: 1000 + i // 100)
    await s.numbers(300)
    for part in (2, 1, 0):
        await s.seek(ms=1000 + part)
        assert await s.numbers(1) == [100 * part]


async def readers_from_each_start(server):
    await Reading(server, "keeps", permits=1).begin()
    ids = await published(server, 200)
    started_at = {"earliest": (at(EARLIEST), 0), "first": (ids[0], 0), "inside": (ids[49], 49),
                  "border": (ids[50], 50), "last": (ids[199], 199), "latest": (at(LATEST), 200)}
    readers = {}
    for name, (start, first) in started_at.items():
        readers[name] = await reader(server, name, start)
        assert await readers[name].numbers(200 - first) == list(range(first, 200)), name
        await readers[name].nothing()
    found = stats(server)
    assert all(not found[name]["isDurable"] for name in started_at) and found["keeps"]["isDurable"]
    for one in readers.values():
        one.close()
    await asyncio.sleep(0)  # the sockets close now
    lgm.wait_until(lambda: list(stats(server)) == ["keeps"], 30, "readers are forgotten")


async def a_reader_goes_on_by_itself_after_kill_9(server):
    await Reading(server, "keeps", permits=1).begin()
    ids = await published(server, 200)
    one = await reader(server, "reader", at(EARLIEST))
    assert await one.numbers(120) == list(range(120))
    server.kill()
    one.close()
    server.start()
    assert list(stats(server)) == ["keeps"]
    one = await reader(server, "reader", ids[120])
    assert await one.numbers(80) == list(range(120, 200))


async def seeks_cut_off_by_kill_9_are_done_or_not(server):
    await Reading(server, "keeps", permits=1).begin()
    ids = await published(server, 100)
    s = await Reading(server).begin()
    await s.seek(to=ids[10])
    for to in (70, 30, 90, 50):
        await s.ask_seek(to=ids[to])
        server.kill()
        s.close()
        server.start()
        s = await Reading(server).begin()
        first = (await s.numbers(1))[0]
        assert first in (to, 10), first
        await s.seek(to=ids[10])


cases = lgm.Cases()
for case in (an_answered_seek_survives_kill_9, a_thousand_seeks_with_a_consumer_attached,
             seeks_by_time_over_several_ledgers, times_that_repeat_lead_to_the_first_of_them,
             readers_from_each_start, a_reader_goes_on_by_itself_after_kill_9,
             seeks_cut_off_by_kill_9_are_done_or_not):
    cases.run(case.__name__, run(case))
cases.end()
