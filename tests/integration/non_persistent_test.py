#!/usr/bin/env python3
"""non_persistent_test.py - topics that keep nothing: who keeps up gets everything, what nobody can
take is dropped and counted to the message, who does not read costs no memory."""
import argparse
import asyncio
import json
import os
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402
import wire  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("--messages", type=int, default=100000)
ARGS = parser.parse_args()
NS = "non-persistent://public/default/"
ADMIN = "/admin/v2/non-persistent/public/default"
WINDOW = 500  # below maxConcurrentNonPersistentMessagePerConnection
NOWHERE = wire.pack({1: 0, 2: 0})


def http(port, method, path, body=None):
    """(status, answer)"""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method, data=body)
    if body:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except urllib.error.URLError as e:  # it was sent to a broker that has died
        return 0, str(e)


def stats(port, name):
    status, found = http(port, "GET", f"{ADMIN}/{name}/stats")
    assert status == 200, found
    return found


async def settled(w):
    """What this connection said before has been heard."""
    w.put(wire.PING)
    await w.expect(wire.PONG)


async def consumer(port, name, subscription, permits, id_=1):
    w = await wire.Wire.connect(port)
    w.subscribe(id_, 1, NS + name, subscription)
    await w.expect(wire.SUCCESS)
    if permits:
        w.flow(id_, permits)
    await settled(w)
    return w


async def producer(port, name):
    w = await wire.Wire.connect(port)
    w.producer(1, 1, NS + name)
    await w.expect(wire.PRODUCER_SUCCESS)
    return w


async def publish(w, numbers, payload=lambda i: b"%d" % i):
    """A window at a time; gives how many the broker took."""
    taken, window = 0, []
    for i in numbers:
        w.send(1, i, payload(i))
        window.append(i)
        if len(window) < WINDOW and i != numbers[-1]:
            continue
        for expected in window:
            _, receipt, _ = await w.expect(wire.SEND_RECEIPT)
            assert receipt[2] == expected, receipt
            taken += receipt[3] == NOWHERE
        window = []
    return taken


async def receive(w, n):
    got = []
    while len(got) < n:
        kind, _, payload = await w.get()
        assert kind == wire.MESSAGE, kind
        got.append(payload)
    return got


async def keeps_up(port, web_port):
    n = ARGS.messages
    await publish(await producer(port, "fast"), range(10))  # nobody is there: gone
    one, two = await consumer(port, "fast", "a", n), await consumer(port, "fast", "b", n)
    p = await producer(port, "fast")
    sent, *got = await asyncio.gather(publish(p, range(n)), receive(one, n), receive(two, n))
    assert sent == n
    for each in got:
        assert each == [b"%d" % i for i in range(n)]
    found = stats(web_port, "fast")
    assert found["msgDropCounter"] == 0 and found["msgInCounter"] == n + 10, found
    for w in (one, two, p):
        w.close()


async def lags(port, web_port):
    """Permits come now and then: what comes between is dropped."""
    n = 5000
    w, p = await consumer(port, "slow", "s", 0), await producer(port, "slow")

    async def sip():
        got = 0
        for _ in range(10):
            w.flow(1, 7)
            got += len(await receive(w, 7))
            await asyncio.sleep(0.02)
        return got

    drinking = asyncio.create_task(sip())
    sent = 0
    while not drinking.done():
        await publish(p, range(sent, sent + n))
        sent += n
    found = stats(web_port, "slow")["subscriptions"]["s"]
    assert drinking.result() == 70 == found["msgOutCounter"], found
    assert found["msgDropCounter"] == sent - 70, (sent, found)
    w.close()
    p.close()


def resident(process):
    with open(f"/proc/{process.pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024


async def is_deaf(server):
    n, size = 3000, 100 * 1024  # 300 MB
    w = await consumer(server.port, "deaf", "s", 1000000)
    w.writer.transport.pause_reading()
    p = await producer(server.port, "deaf")
    await publish(p, range(100), lambda i: b"x" * size)
    before = resident(server.process)
    await publish(p, range(100, n), lambda i: b"x" * size)
    grown = resident(server.process) - before
    assert grown < 64 << 20, f"{grown >> 20} MB more"
    found = stats(server.web_port, "deaf")["subscriptions"]["s"]
    delivered = n - found["msgDropCounter"]
    assert 0 < delivered < n // 2, found
    w.writer.transport.resume_reading()
    assert len(await receive(w, delivered)) == delivered
    await publish(p, range(n, n + 1))
    assert await receive(w, 1) == [b"%d" % n]
    w.close()
    p.close()


async def too_many_at_a_time(port, web_port):
    """One connection may have so many under way; the rest is dropped, and answered in its place."""
    n = 20000
    w, p = await consumer(port, "burst", "s", n), await producer(port, "burst")

    async def answers():
        taken = 0
        for i in range(n):
            _, receipt, _ = await p.expect(wire.SEND_RECEIPT)
            assert receipt[2] == i
            taken += receipt[3] == NOWHERE
        return taken

    for i in range(n):
        p.send(1, i, b"x")
    taken = await answers()
    await receive(w, taken)
    found = stats(web_port, "burst")
    assert found["publishers"][0]["msgDropCounter"] == n - taken, found
    assert found["msgDropCounter"] == n - taken and found["msgInCounter"] == taken, found
    w.close()
    p.close()


async def is_unloaded(port, web_port):
    w, p = await consumer(port, "moved", "s", 10), await producer(port, "moved")
    assert await asyncio.to_thread(http, web_port, "PUT", f"{ADMIN}/moved/unload") == (204, None)
    await w.expect(wire.CLOSE_CONSUMER)
    await p.expect(wire.CLOSE_PRODUCER)
    assert http(web_port, "GET", f"{ADMIN}/moved/stats")[0] == 404
    assert http(web_port, "PUT", f"{ADMIN}/moved/unload")[0] == 404
    w.close()
    p.close()


def standalone(folder):
    server = lgm.Standalone(ARGS.build, folder).start()
    asyncio.run(keeps_up(server.port, server.web_port))
    asyncio.run(lags(server.port, server.web_port))
    asyncio.run(is_deaf(server))
    asyncio.run(too_many_at_a_time(server.port, server.web_port))
    asyncio.run(is_unloaded(server.port, server.web_port))
    refused = server.run("verify", NS + "t", check=False)
    assert refused.returncode != 0 and "promises nothing" in refused.stderr, refused
    server.stop()


def administered(folder):
    server = lgm.Standalone(ARGS.build, folder).start()
    port = server.web_port
    t, parts = f"{ADMIN}/t", f"{ADMIN}/p"
    assert http(port, "GET", f"{t}/stats")[0] == 404
    assert http(port, "PUT", t)[0] == 204
    assert http(port, "PUT", t)[0] == 409
    assert http(port, "PUT", f"{parts}/partitions", b"2")[0] == 204
    assert http(port, "PUT", f"{parts}/partitions", b"2")[0] == 409
    assert http(port, "POST", f"{parts}/partitions", b"4")[0] == 204
    assert http(port, "GET", f"{parts}/partitions")[1]["partitions"] == 4
    assert http(port, "GET", f"{ADMIN}/partitioned") == (200, [NS + "p"])
    assert http(port, "GET", f"{ADMIN}") == (200, [NS + "t"])
    assert http(port, "GET", "/admin/v2/persistent/public/default") == (200, [])
    topics = "/admin/v2/namespaces/public/default/topics?mode="
    assert http(port, "GET", topics + "NON_PERSISTENT") == (200, [NS + "t"])
    assert http(port, "GET", topics + "PERSISTENT") == (200, [])
    consumers = [server.spawn("consume", f"{NS}p-partition-{i}", "-s", "s", "-n", "2")
                 for i in range(4)]
    for i, consume in enumerate(consumers):
        lgm.wait_until(lambda: http(port, "GET", f"{parts}-partition-{i}/subscriptions") ==
                       (200, ["s"]), 30, "the subscription")
        server.run("produce", f"{NS}p-partition-{i}", "--lines", "-", input="a\nb\n")
        assert consume.communicate(timeout=60)[0] == "a\nb\n"
    assert http(port, "GET", f"{parts}/subscriptions") == (200, ["s"])
    found = http(port, "GET", f"{parts}/partitioned-stats")[1]
    assert found["msgInCounter"] == 8 and found["metadata"]["partitions"] == 4, found
    inside = http(port, "GET", f"{t}/internalStats")[1]
    assert inside["ledgers"] == [] and inside["cursors"] == {}, inside
    for path in ("terminate", "subscription/s/skip_all"):
        status, answer = http(port, "POST", f"{t}/{path}")
        assert status == 405 and "non-persistent" in answer, answer
    why = http(port, "GET", "/lgm/v1/non-persistent/public/default/t/explain")[1]
    assert "not stored" in why["producers"]["sentence"], why
    assert http(port, "DELETE", f"{parts}-partition-0/subscription/s")[0] == 204
    assert http(port, "DELETE", f"{parts}-partition-0/subscription/s")[0] == 404
    assert http(port, "DELETE", f"{parts}/partitions")[0] == 204
    assert http(port, "GET", f"{ADMIN}/partitioned") == (200, [])
    assert http(port, "DELETE", t)[0] == 204
    assert http(port, "DELETE", t)[0] == 404
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert "pulsar_subscription_msg_drop_rate" in metrics
    server.stop()


def two_brokers(folder):
    with lgm_cluster.Cluster(ARGS.build, folder, bookies=1, brokers=2) as c:
        for k in range(6):
            name, lines = f"t{k}", "".join(f"{k}.{i}\n" for i in range(100))
            consume = c.spawn("consume", NS + name, "-s", "s", "-n", "100", broker=k % 2)
            at = c.brokers[(k + 1) % 2].web_port
            lgm.wait_until(lambda: http(at, "GET", f"{ADMIN}/{name}/subscriptions")[1] == ["s"],
                           30, "the subscription")
            c.run("produce", NS + name, "--lines", "-", broker=(k + 1) % 2, input=lines)
            assert consume.communicate(timeout=60)[0] == lines
        served = [http(b.web_port, "GET", ADMIN)[1] for b in c.brokers]
        assert sorted(sum(served, [])) == [f"{NS}t{k}" for k in range(6)], served
        c.brokers[0].kill()  # what it passed on is gone; what comes now is served by the other
        at = c.brokers[1].web_port
        for k in range(6):
            consume = c.spawn("consume", f"{NS}t{k}", "-s", "again", "-n", "1", broker=1)
            lgm.wait_until(lambda: "again" in http(at, "GET", f"{ADMIN}/t{k}/subscriptions")[1],
                           30, "the subscription at the other broker")
            c.run("produce", f"{NS}t{k}", "-m", "again", broker=1)
            assert consume.communicate(timeout=60)[0] == "again\n"


cases = lgm.Cases()
cases.run("nothing is kept, everything is counted", standalone)
cases.run("administered", administered)
cases.run("two brokers", two_brokers)
cases.end()
