#!/usr/bin/env python3
"""acks.py - a million acknowledgements in random order, and what is left after kill -9.

Publishes messages one by one, acknowledges all but every hole of them in random order, each by its
own command with an answer once it is durable, kills the broker, starts it again and receives what
is left: exactly the holes.  Prints the rates of both, and of acknowledging with many holes open.
"""
import argparse
import os
import random
import select
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "lib"))
import lgm  # noqa: E402

TOPIC = "persistent://public/default/acks"
CONNECT, SUBSCRIBE, PRODUCER, SEND, RECEIPT, MESSAGE, ACK, FLOW = 2, 4, 5, 6, 7, 9, 10, 11
PING, PONG, ACK_RESPONSE = 18, 19, 38


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def text(field, value):
    value = value if isinstance(value, bytes) else value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def frame(kind, member, body, payload=b""):
    command = number(1, kind) + text(member, body)
    return struct.pack(">II", 4 + len(command) + len(payload), len(command)) + command + payload


def fields(data):
    """Numbers and byte strings of one message, by field."""
    out, at = {}, 0

    def one():
        nonlocal at
        n = shift = 0
        while True:
            byte = data[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return n
    while at < len(data):
        key = one()
        n = one()
        if key & 7 == 2:
            out[key >> 3] = data[at:at + n]
            at += n
        else:
            out[key >> 3] = n
    return out


class Raw:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.pump([frame(CONNECT, 2, text(1, "acks") + number(4, 21))], 1, 1)

    def split(self):
        """Whole frames that have come; PINGs are answered and left out."""
        out, at = [], 0
        while len(self.buffer) - at >= 8:
            size, command = struct.unpack_from(">II", self.buffer, at)
            if len(self.buffer) - at < 4 + size:
                break
            body = self.buffer[at + 8:at + 8 + command]
            at += 4 + size
            if body[1] == PING:
                self.socket.sendall(frame(PONG, 19, b""))
            else:
                out.append(body)
        self.buffer = self.buffer[at:]
        return out

    def pump(self, frames, answers, window):
        """Sends the frames, never more than `window` unanswered, until so many answers came."""
        got, sent = [], 0
        while len(got) < answers:
            if sent < len(frames) and sent - len(got) < window:
                more = min(window - (sent - len(got)), 1000, len(frames) - sent)
                self.socket.sendall(b"".join(frames[sent:sent + more]))
                sent += more
            busy = sent < len(frames) and sent - len(got) < window
            if select.select([self.socket], [], [], 0 if busy else 60)[0]:
                data = self.socket.recv(1 << 20)
                assert data, "the broker has closed the connection"
                self.buffer += data
                got += self.split()
            else:
                assert busy, f"{len(got)} of {answers} answers, then silence"
        return got


def publish(raw, n):
    raw.pump([frame(PRODUCER, 5, text(1, TOPIC) + number(2, 1) + number(3, 1) + text(4, "p"))], 1, 1)
    head = text(1, "p")
    frames = []
    for i in range(n):
        meta = head + number(2, i) + number(3, 1)
        frames.append(frame(SEND, 6, number(1, 1) + number(2, i),
                            struct.pack(">I", len(meta)) + meta + b"x" * 100))
    began = time.monotonic()
    got = raw.pump(frames, n, 900)
    seconds = time.monotonic() - began
    ids = [fields(fields(fields(g)[7])[3]) for g in got]
    return [(i[1], i[2]) for i in ids], seconds


def subscribe(raw):
    answer = raw.pump([frame(SUBSCRIBE, 4, text(1, TOPIC) + text(2, "s") + number(3, 1) + number(4, 1)
                             + number(5, 2) + number(13, 1))], 1, 1)[0]
    assert answer[1] == 13, fields(answer)


def acknowledge(raw, ids):
    frames = [frame(ACK, 10, number(1, 1) + number(2, 0) + text(3, number(1, l) + number(2, e))
                    + number(8, 10 + i)) for i, (l, e) in enumerate(ids)]
    began = time.monotonic()
    got = raw.pump(frames, len(frames), 5000)
    assert all(g[1] == ACK_RESPONSE for g in got)
    return time.monotonic() - began


def receive(raw, n):
    raw.socket.sendall(frame(FLOW, 11, number(1, 1) + number(2, 10000000)))
    got = raw.pump([], n, 1)
    ids = [fields(fields(fields(g)[9])[2]) for g in got]
    more = select.select([raw.socket], [], [], 2)[0]
    assert not more or raw.split() == [], "more than the holes came"
    return [(i[1], i[2]) for i in ids]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--acks", type=int, default=1000000)
    parser.add_argument("--holes", type=int, default=300000)
    args = parser.parse_args()
    n, step = args.acks + args.holes, (args.acks + args.holes) // args.holes
    settings = ["maxUnackedMessagesPerConsumer=0", "maxUnackedMessagesPerSubscription=0"]
    with tempfile.TemporaryDirectory() as folder:
        server = lgm.Standalone(args.build, folder, args=[a for s in settings for a in ("--set", s)])
        server.start()
        raw = Raw(server.port)
        subscribe(raw)
        ids, seconds = publish(raw, n)
        rate = n / seconds
        print(f"published {n} in {seconds:.1f} s, {rate:.0f} a second", flush=True)
        holes = set(ids[step - 1::step][:args.holes])
        rest = [i for i in ids if i not in holes]
        some = rest[:args.acks // 2]
        first, others = some[::2][:100000], set(some[::2][:100000])
        rest = [i for i in rest if i not in others]
        random.seed(1)
        random.shuffle(rest)
        acknowledge(raw, first)
        part, rest = rest[:200000], rest[200000:]
        seconds = acknowledge(raw, part)
        print(f"100,000 holes open: {len(part) / seconds:.0f} durable acknowledgements a second, "
              f"{len(part) / seconds / rate:.2f} of the publish rate", flush=True)
        seconds = acknowledge(raw, rest)
        print(f"the other {len(rest)} in {seconds:.1f} s, {len(rest) / seconds:.0f} a second",
              flush=True)
        server.kill()
        server.start(120)
        raw = Raw(server.port)
        began = time.monotonic()
        subscribe(raw)
        print(f"killed; ready in {server.ready_s:.1f} s, the subscription in "
              f"{time.monotonic() - began:.2f} s", flush=True)
        began = time.monotonic()
        left = receive(raw, len(holes))
        seconds = time.monotonic() - began
        assert set(left) == holes and len(left) == len(holes)
        print(f"{len(holes)} holes, and nothing else, came back in {seconds:.1f} s", flush=True)
        server.stop()


main()
