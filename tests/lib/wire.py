"""wire.py - a client of the Pulsar protocol for tests: sends what it is told, right or wrong.

    w = await Wire.connect(port)
    w.producer(1, 10, "persistent://public/default/t")
    await w.expect(PRODUCER_SUCCESS)
    w.send(1, 0, b"payload")
    kind, fields, payload = await w.get()

Fields of a command are {number: value}, of a sub-message its bytes; PING is answered by itself,
unless `mute`.
"""
import asyncio
import itertools
import struct
import time

(CONNECT, CONNECTED, SUBSCRIBE, PRODUCER, SEND, SEND_RECEIPT, SEND_ERROR, MESSAGE, ACK, FLOW,
 UNSUBSCRIBE, SUCCESS, ERROR, CLOSE_PRODUCER, CLOSE_CONSUMER, PRODUCER_SUCCESS, PING,
 PONG) = range(2, 20)
LOOKUP, LOOKUP_RESPONSE, SEEK = 23, 24, 28
GET_TOPICS, TOPICS = 32, 33
WATCH_TOPICS, WATCHING_TOPICS, TOPICS_CHANGED, UNWATCH_TOPICS = 64, 65, 66, 67
EXCLUSIVE, SHARED = 0, 1
NO_REQUEST = (1 << 64) - 1


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def pack(fields):
    out = bytearray()
    for number, value in fields.items():
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return bytes(out)


def read_varint(data, at):
    value = 0
    for shift in itertools.count(0, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at


def unpack(data):
    fields, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            fields[key >> 3], at = read_varint(data, at)
        elif key & 7 == 2:
            size, at = read_varint(data, at)
            fields[key >> 3] = data[at:at + size]
            at += size
        else:
            raise ValueError(f"wire type {key & 7}")
    return fields


def repeated(data, number):
    """All values of a field that holds bytes, in order."""
    found, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        size, at = read_varint(data, at)
        if key & 7 == 2:
            if key >> 3 == number:
                found.append(data[at:at + size])
            at += size
    return found


def command(kind, fields, body=b""):
    """A whole frame; the commands used here have their type for a field number."""
    base = pack({1: kind, kind: pack(fields)})
    return struct.pack(">II", 4 + len(base) + len(body), len(base)) + base + body


def publish(producer, sequence, payload):
    metadata = pack({1: "wire", 2: sequence, 3: int(time.time() * 1000)})
    return command(SEND, {1: producer, 2: sequence},
                   struct.pack(">I", len(metadata)) + metadata + payload)


def payload_of(body):
    """Of a MESSAGE: behind magic and checksum, if they are there, and the metadata."""
    at = 6 if body[:2] == b"\x0e\x01" else 0
    size, = struct.unpack_from(">I", body, at)
    return body[at + 4 + size:]


class Wire:
    def __init__(self, reader, writer):
        self.reader, self.writer, self.mute = reader, writer, False
        self.raw = b""  # the last command's fields, for repeated()

    @classmethod
    async def dial(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    @classmethod
    async def connect(cls, port):
        w = await cls.dial(port)
        w.put(CONNECT, {1: "wire", 4: 21})
        await w.expect(CONNECTED)
        return w

    def put(self, kind, fields=None, body=b""):
        self.writer.write(command(kind, fields or {}, body))

    async def get(self, seconds=30):
        """(kind, fields, payload); ConnectionError when it was closed."""
        while True:
            try:
                head = await asyncio.wait_for(self.reader.readexactly(8), seconds)
                size, base = struct.unpack(">II", head)
                rest = await asyncio.wait_for(self.reader.readexactly(size - 4), seconds)
            except asyncio.IncompleteReadError:
                raise ConnectionError("closed by the broker") from None
            found = unpack(rest[:base])
            kind = found[1]
            if kind == PING and not self.mute:
                self.put(PONG)
                continue
            body = rest[base:]
            self.raw = found.get(kind, b"")
            return kind, unpack(found.get(kind, b"")), payload_of(body) if body else b""

    async def expect(self, kind, seconds=30):
        """The next command must be of this kind."""
        got = await self.get(seconds)
        assert got[0] == kind, f"{got[0]} instead of {kind}: {got[1]}"
        return got

    def close(self):
        self.writer.transport.abort()

    def producer(self, id_, request, topic, **more):
        self.put(PRODUCER, {1: topic, 2: id_, 3: request, **more.get("fields", {})})

    def subscribe(self, id_, request, topic, subscription, kind=EXCLUSIVE, **more):
        self.put(SUBSCRIBE, {1: topic, 2: subscription, 3: kind, 4: id_, 5: request, 13: 1,
                             **more.get("fields", {})})

    def send(self, producer, sequence, payload):
        self.writer.write(publish(producer, sequence, payload))

    def flow(self, consumer, permits):
        self.put(FLOW, {1: consumer, 2: permits})

    def ack(self, consumer, message_id):
        """`message_id` as its bytes came in a MESSAGE."""
        self.put(ACK, {1: consumer, 2: 0, 3: message_id})
