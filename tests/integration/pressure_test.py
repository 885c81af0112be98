#!/usr/bin/env python3
"""pressure_test.py - a producer that sends more than the bookies take is put off alone: its socket
is read on, for all others on it nothing changes, and nothing is lost, doubled or out of order."""
import argparse
import asyncio
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import wire  # noqa: E402
from lgm_cluster import ETCD, Cluster  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
ARGS = parser.parse_args()
TOPIC = "persistent://public/default/"
SIZE, COUNT, BUFFER = 64 * 1024, 640, 8  # 40 MiB are sent where there is room for 8
CONF = {"maxMessagePublishBufferSizeInMB": BUFFER, "maxMessageSize": 1 << 20}


def metric(broker, name):
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)", broker.http("/metrics")[1], re.M)
    return float(found[1]) if found else None


def rss(process):
    with open(f"/proc/{process.pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1]) * 1024


def need_etcd():
    if not os.path.exists(ETCD):
        raise lgm.Skip(f"there is no {ETCD} (Debian package etcd-server)")


def payload(i):
    return b"%08d" % i + b"x" * (SIZE - 8)


async def opened(w, id_, topic):
    """Looked up first, so that a broker takes the topic."""
    for request in range(id_ * 1000, id_ * 1000 + 100):
        w.put(wire.LOOKUP, {1: topic, 2: request})
        await w.expect(wire.LOOKUP_RESPONSE)
        w.producer(id_, request, topic)
        if (await w.get())[0] == wire.PRODUCER_SUCCESS:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"{topic} is not served")


async def is_served(w, consumer, so_far):
    """Ping, lookup and flow, while a producer of the same socket floods; the answers come in time,
    and nothing of the flood's with them: no bookie has stored it."""
    w.put(wire.PING)
    await w.expect(wire.PONG, 5)
    w.put(wire.LOOKUP, {1: TOPIC + "flood", 2: 500})
    await w.expect(wire.LOOKUP_RESPONSE, 5)
    w.flow(consumer, 5)
    for i in range(so_far, so_far + 5):
        assert (await w.expect(wire.MESSAGE, 5))[2] == b"%d" % i


async def answers(w, next_):
    """Until both have happened: the flood was answered in part and told to go, the other's only
    message was answered.  Gives the first of the flood that was not."""
    told = other = False
    while not (told and other):
        kind, fields, _ = await w.get()
        if kind == wire.CLOSE_PRODUCER:
            assert fields == {1: 1, 2: wire.NO_REQUEST} and not told
            told = True
        else:
            assert kind == wire.SEND_RECEIPT
            if fields[1] == 2:
                other = True
            else:
                assert fields[2] == next_ and not told, (fields, next_)
                next_ += 1
    return next_


async def send_the_rest(w, next_):
    """As clients do: open it again, send what was not answered; as often as it takes."""
    for id_ in range(1000):
        if next_ == COUNT:
            return id_
        w.producer(1, id_ + 1000, TOPIC + "flood", fields={8: id_ + 1})
        await w.expect(wire.PRODUCER_SUCCESS)
        for i in range(next_, COUNT):
            w.send(1, i, payload(i))
        while next_ < COUNT:
            kind, fields, _ = await w.get()
            if kind == wire.CLOSE_PRODUCER:
                break
            assert kind == wire.SEND_RECEIPT and fields[2] == next_, (kind, fields, next_)
            next_ += 1
    raise AssertionError(f"{next_} of {COUNT} after 1000 times")


async def flood(cluster):
    broker, bookie = cluster.brokers[0], cluster.bookies[0]
    w = await wire.Wire.connect(broker.port)
    await opened(w, 1, TOPIC + "flood")
    await opened(w, 2, TOPIC + "calm")
    w.subscribe(3, 103, TOPIC + "calm", "s")
    await w.expect(wire.SUCCESS)
    for i in range(20):
        w.send(2, i, b"%d" % i)
        await w.expect(wire.SEND_RECEIPT)
    before = rss(broker.process)
    bookie.freeze()
    try:
        for i in range(COUNT):
            w.send(1, i, payload(i))
        await asyncio.wait_for(w.writer.drain(), 10)
        for i in range(4):
            await is_served(w, 3, i * 5)
        w.send(2, 20, b"20")  # its own limit is its own
        w.put(wire.PING)
        await w.expect(wire.PONG, 5)
        assert metric(broker, "lgm_publish_accepted_bytes") <= BUFFER << 20
        grown = rss(broker.process) - before
        print(f"      {grown >> 20} MiB more while 40 MiB wait")
        assert grown < 3 * BUFFER << 20  # the publishes, what the bookie's socket holds, and slack
    finally:
        bookie.thaw()
    next_ = await answers(w, 0)
    assert 0 < next_ < COUNT
    times = await send_the_rest(w, next_)
    print(f"      put off {times} times")
    await drained(w)
    w.close()


async def drained(w):
    """Each once, in order; and the calm one's."""
    w.subscribe(4, 104, TOPIC + "flood", "s")
    await w.expect(wire.SUCCESS)
    w.flow(4, COUNT + 100)
    for i in range(COUNT):
        assert (await w.expect(wire.MESSAGE))[2] == payload(i)
    w.flow(3, 5)
    assert (await w.expect(wire.MESSAGE))[2] == b"20"
    w.put(wire.PING)
    await w.expect(wire.PONG)


def one_producer_is_put_off_and_nobody_else(folder):
    need_etcd()
    with Cluster(ARGS.build, folder, bookies=1, broker_conf=CONF) as c:
        asyncio.run(flood(c))


def stands(log):
    before = os.path.getsize(log)
    time.sleep(0.3)
    return os.path.getsize(log) == before


def lgm_verify_sees_nothing_of_it(folder):
    need_etcd()
    with Cluster(ARGS.build, folder, bookies=1, broker_conf=CONF) as c:
        log = os.path.join(folder, "run.log")
        producer = c.spawn("verify", "produce", "t", "--count", "6000", "--size", "8000", "--no-batching",
                           "--log", log)
        for turn in range(3):
            lgm.wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > turn * 40000 + 1000,
                           30, "it writes")
            c.bookies[0].freeze()
            lgm.wait_until(lambda: stands(log), 30, "nothing is stored")
            c.bookies[0].thaw()
        out, err = producer.communicate(timeout=120 * lgm.SLOW)
        assert producer.returncode == 0, (out, err)
        got = lgm.verdict(c.run("verify", "consume", "t", "--log", log).stdout)
        assert got["lost"] == got["duplicated"] == got["reordered"] == 0, got
        assert got["checked"] == 6000 and got["resent"] == 0, got
        times = metric(c.brokers[0], "lgm_producers_put_off_total")
        print(f"      put off {times:.0f} times")
        assert times > 3


cases = lgm.Cases()
for case in (one_producer_is_put_off_and_nobody_else, lgm_verify_sees_nothing_of_it):
    cases.run(case.__name__, case)
cases.end()
