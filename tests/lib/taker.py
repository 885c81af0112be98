#!/usr/bin/env python3
"""taker.py - a consumer to be killed: takes messages of a shared subscription, acknowledges none.

    taker.py TOPIC SUBSCRIPTION PORT...

It goes to whichever of the brokers serves the topic, says so with a line for every batch of
messages that it holds, and comes back after whatever happens to the broker.
"""
import asyncio
import sys

import wire


async def take(topic, subscription, port):
    w = await wire.Wire.connect(port)
    try:
        w.put(wire.LOOKUP, {1: topic, 2: 1})
        await w.expect(wire.LOOKUP_RESPONSE)
        w.subscribe(1, 2, topic, subscription, wire.SHARED)
        await w.expect(wire.SUCCESS)
        w.flow(1, 500)
        for n in range(1, 1 << 60):
            kind, _, _ = await w.get(3600)
            if kind != wire.MESSAGE:
                return
            if n % 10 == 1:
                print(n, flush=True)
    finally:
        w.close()


async def main(topic, subscription, *ports):
    while True:
        for port in ports:
            try:
                await take(topic, subscription, int(port))
            except (AssertionError, OSError, asyncio.TimeoutError):
                await asyncio.sleep(0.1)


asyncio.run(main(*sys.argv[1:]))
