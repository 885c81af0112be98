#!/usr/bin/env python3
"""topic_lists_test.py - the topics of a namespace, listed and watched, over one broker and over two:
by whichever of them a topic is made or deleted, every watcher is told."""
import argparse
import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402
import wire  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
ARGS = parser.parse_args()
NS = "persistent://public/default/"
PERSISTENT, NON_PERSISTENT, ALL = 0, 1, 2


def http(web_port, method, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{web_port}{path}", method=method, data=body)
    if body:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def make(web_port, name):
    http(web_port, "PUT", f"/admin/v2/persistent/public/default/{name}")


def delete(web_port, name):
    http(web_port, "DELETE", f"/admin/v2/persistent/public/default/{name}?force=true")


def names(w, number):
    return sorted(n.decode().removeprefix(NS) for n in wire.repeated(w.raw, number))


async def listed(w, mode=PERSISTENT, pattern=None, known=None):
    """(names, hash, changed, filtered)"""
    fields = {1: 1, 2: "public/default", 3: mode}
    if pattern:
        fields[4] = pattern
    if known:
        fields[5] = known
    w.put(wire.GET_TOPICS, fields)
    _, found, _ = await w.expect(wire.TOPICS)
    return names(w, 2), found[4].decode(), found.get(5, 1) == 1, found.get(3, 0) == 1


async def watch(w, id_, pattern, known=None):
    fields = {1: id_, 2: id_, 3: "public/default", 4: pattern}
    if known:
        fields[5] = known
    w.put(wire.WATCH_TOPICS, fields)
    _, found, _ = await w.expect(wire.WATCHING_TOPICS)
    assert found[1] == id_ and found[2] == id_
    return names(w, 3), found[4].decode()


async def until_told(w, added, deleted=()):
    """Updates until all of these names have come; nothing else may."""
    added, deleted = set(added), set(deleted)
    found = {}
    while added or deleted:
        _, found, _ = await w.expect(wire.TOPICS_CHANGED)
        for name in names(w, 2):
            added.remove(name)
        for name in names(w, 3):
            deleted.remove(name)
    return found[4].decode()


async def lists_and_watches(ports, web_ports):
    """The first broker is asked; the last one makes and deletes."""
    here, there = web_ports[0], web_ports[-1]
    make(here, "a-1")
    make(there, "b-1")
    http(there, "PUT", "/admin/v2/persistent/public/default/a-parts/partitions", b"3")
    partitions = [f"a-parts-partition-{i}" for i in range(3)]
    all_names = ["a-1", *partitions, "b-1"]
    producers = [await wire.Wire.connect(port) for port in ports]
    for i, name in enumerate(partitions):
        for p in producers:
            p.producer(i, i, NS + name)  # whoever serves it makes it
    other = await wire.Wire.connect(ports[-1])
    end = time.monotonic() + 30 * lgm.SLOW
    while (await listed(other, ALL))[0] != all_names:
        assert time.monotonic() < end, (await listed(other, ALL))[0]
        await asyncio.sleep(0.05)

    w = await wire.Wire.connect(ports[0])
    found, hash_, changed, filtered = await listed(w, pattern="persistent://public/default/a-.*")
    assert found == ["a-1", *partitions] and changed and filtered
    assert await listed(w, pattern="public/default/a-.*", known=hash_) == ([], hash_, False, True)
    assert (await listed(w, NON_PERSISTENT))[0] == []
    assert http(here, "GET", "/admin/v2/namespaces/public/default/topics?mode=ALL") == \
        http(here, "GET", "/admin/v2/namespaces/public/default/topics")
    assert http(here, "GET", "/admin/v2/namespaces/public/default/topics?mode=NON_PERSISTENT") == []

    assert await watch(w, 1, "public/default/a-.*") == (found, hash_)
    assert await watch(other, 2, "public/default/.*", "00000000") == \
        (all_names, (await listed(w))[1])
    make(there, "a-2")
    make(there, "c-2")
    hash_ = await until_told(w, {"a-2"})
    assert (await listed(w, pattern="public/default/a-.*", known=hash_))[2] is False
    await until_told(other, {"a-2", "c-2"})
    make(here, "a-3")
    await until_told(w, {"a-3"})
    await until_told(other, {"a-3"})
    for web_port in web_ports:  # whichever of them serves it
        try:
            delete(web_port, "a-1")
            break
        except urllib.error.HTTPError:
            pass
    await until_told(w, (), {"a-1"})
    await until_told(other, (), {"a-1"})
    w.put(wire.UNWATCH_TOPICS, {1: 9, 2: 1})
    await w.expect(wire.SUCCESS)
    for c in (w, other, *producers):
        c.close()


async def many(port, web_port, n):
    """A burst of new topics is told whole, while publishes go on."""
    w, p = await wire.Wire.connect(port), await wire.Wire.connect(port)
    p.producer(1, 1, f"{NS}beat")
    await p.expect(wire.PRODUCER_SUCCESS)
    _, hash_ = await watch(w, 1, "public/default/many-.*")
    for i in range(n):
        await asyncio.to_thread(make, web_port, f"many-{i}")
        p.send(1, i, b"x")
        await p.expect(wire.SEND_RECEIPT)
    told = set()
    while len(told) < n:
        kind, found, _ = await w.get()
        if kind == wire.TOPICS_CHANGED:
            told.update(names(w, 2))
            hash_ = found[4].decode()
    assert told == {f"many-{i}" for i in range(n)}
    w.close()
    w = await wire.Wire.connect(port)
    assert await watch(w, 1, "public/default/many-.*", hash_) == ([], hash_)
    w.close()
    p.close()


def standalone(folder):
    server = lgm.Standalone(ARGS.build, folder).start()
    asyncio.run(lists_and_watches([server.port], [server.web_port]))
    asyncio.run(many(server.port, server.web_port, 300))
    server.stop()


def two_brokers(folder):
    with lgm_cluster.Cluster(ARGS.build, folder, bookies=1, brokers=2) as c:
        asyncio.run(lists_and_watches([b.port for b in c.brokers],
                                      [b.web_port for b in c.brokers]))


cases = lgm.Cases()
cases.run("lists and watches, standalone", standalone)
cases.run("lists and watches, two brokers", two_brokers)
cases.end()
