"""lgm_ledgers.py - what the metadata says of ledgers, checked against the bookies themselves: each
replica of each entry is read from the bookie that is said to have it."""
import base64
import collections
import json
import socket
import struct

from lgm import SLOW
from lgm_cluster import http

OPEN, IN_RECOVERY, CLOSED = 1, 2, 3
WINDOW = 200  # reads under way at a bookie

Ledger = collections.namedtuple("Ledger", "id ensemble write state last fragments")


def etcd_range(etcd, prefix):
    """(key, value) of all keys that begin so."""
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    body = {"key": base64.b64encode(prefix.encode()).decode(),
            "range_end": base64.b64encode(end.encode()).decode()}
    status, text = http(etcd.nodes[0].url + "/v3/kv/range", "POST", body, timeout=20)
    assert status == 200, text
    return [(base64.b64decode(kv["key"]).decode(), base64.b64decode(kv.get("value", "")))
            for kv in json.loads(text).get("kvs", [])]


def put(etcd, key, value):
    status, text = http(etcd.nodes[0].url + "/v3/kv/put", "POST",
                        {"key": base64.b64encode(key.encode()).decode(),
                         "value": base64.b64encode(value).decode()})
    assert status == 200, text


def remove(etcd, key):
    status, text = http(etcd.nodes[0].url + "/v3/kv/deleterange", "POST",
                        {"key": base64.b64encode(key.encode()).decode()})
    assert status == 200 and '"deleted":"1"' in text, text


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value - (1 << 64) if value >> 63 else value
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            yield tag >> 3, data[at:at + size]
            at += size


def read_ledger(number, value):
    head = b"BookieMetadataFormatVersion\t3\n"
    assert value.startswith(head), value
    size, at = varint(value, len(head))
    numbers, fragments = {}, []
    for field, v in fields(value[at:at + size]):
        if field == 6:
            members = tuple(m.decode() for f, m in fields(v) if f == 1)
            fragments.append((next((n for f, n in fields(v) if f == 2), 0), members))
        else:
            numbers[field] = v
    return Ledger(number, numbers[2], numbers[1], numbers[5], numbers.get(4, -1), tuple(fragments))


def ledgers(cluster):
    found = []
    for key, value in etcd_range(cluster.etcd, "/ledgers/"):
        digits = key[len("/ledgers/"):].replace("/", "").replace("L", "")
        if digits.isdigit() and "/L" in key:
            found.append(read_ledger(int(digits), value))
    return found


def number(value):
    """As a protobuf has it."""
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def owned(cluster, some):
    """Those that a topic or a subscription names.  One that its maker did not live to use is nobody's, and
    stays open."""
    nodes = [value for _, value in etcd_range(cluster.etcd, "/managed-ledgers/")]
    return [ledger for ledger in some if any(number(ledger.id) in value for value in nodes)]


def marks(cluster):
    return [key for key, _ in etcd_range(cluster.etcd, "/ledgers/underreplication/ledgers/")]


def registered(cluster):
    return {key.rsplit("/", 1)[1] for key, _ in etcd_range(cluster.etcd, "/ledgers/available/")}


def mark_key(ledger):
    """Of ledger 0x1234: /ledgers/underreplication/ledgers/0000/0000/0000/1234/urL..., by 16 bits."""
    digits = f"{ledger:016x}"
    return ("/ledgers/underreplication/ledgers/" + "/".join(digits[i:i + 4] for i in range(0, 16, 4)) +
            f"/urL{ledger:010d}")


def named_in(found):
    """How often each bookie is, in these ledgers."""
    return collections.Counter(m for ledger in found for _, members in ledger.fragments for m in members)


class Reader:
    """Entries as one bookie has them: (length, payload), None, or the error as a text."""

    def __init__(self, bookie):
        self.socket = socket.create_connection((bookie.conf["listenAddress"], bookie.port),
                                               timeout=20 * SLOW)
        self.stream = self.socket.makefile("rb")

    def close(self):
        self.stream.close()
        self.socket.close()

    def answer(self, ledger):
        size, = struct.unpack(">I", self.stream.read(4))
        answer = self.stream.read(size)
        status, got_ledger, entry = struct.unpack(">iqq", answer[4:24])
        assert got_ledger == ledger
        if status in (1, 2):
            return entry, None
        if status != 0:
            return entry, f"status {status}"
        body = answer[24:]
        return entry, (struct.unpack(">q", body[24:32])[0], body[36:])

    def read(self, ledger, entries):
        """By entry; the answers come in any order."""
        found = {}
        for at in range(0, len(entries), WINDOW):
            some = entries[at:at + WINDOW]
            self.socket.sendall(b"".join(struct.pack(">IIqq", 20, 2 << 24 | 2 << 16, ledger, e)
                                         for e in some))
            found.update(self.answer(ledger) for _ in some)
        assert len(found) == len(entries)
        return found


class Readers:
    """One for each bookie that runs, made when it is first needed."""

    def __init__(self, cluster):
        self.by_name = {b.conf["bookieId"]: b for b in cluster.bookies if b.is_running}
        self.made = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for reader in self.made.values():
            reader.close()

    def of(self, name):
        if name not in self.made and name in self.by_name:
            self.made[name] = Reader(self.by_name[name])
        return self.made.get(name)


def parts(ledger):
    """(members, its entries): the end of an open ledger's last fragment is not known."""
    for i, (first, members) in enumerate(ledger.fragments):
        assert len(set(members)) == ledger.ensemble, f"{ledger}: one bookie twice"
        after = ledger.fragments[i + 1][0] if i + 1 < len(ledger.fragments) else ledger.last + 1
        yield members, range(first, after)


def lacking_of(ledger, readers):
    """What is not as the metadata says: texts, and how many replicas were looked at."""
    wrong, checked = [], 0
    for members, entries in parts(ledger):
        copies = {entry: [] for entry in entries}
        for slot, name in enumerate(members):
            reader = readers.of(name)
            mine = [e for e in entries if (slot - e) % ledger.ensemble < ledger.write]
            if not reader:
                wrong.append(f"ledger {ledger.id} names {name}")
                continue
            for entry, copy in reader.read(ledger.id, mine).items():
                copies[entry].append(copy)
                checked += 1
        wrong += [f"ledger {ledger.id} entry {entry} of {members}" for entry, all_ in copies.items()
                  if None in all_ or len(set(all_)) != 1 or isinstance(all_[0], str)]
    return wrong, checked


def lacking(cluster, only_closed=True, found=None):
    """Of all ledgers, or of those that are given."""
    wrong, checked = [], 0
    with Readers(cluster) as readers:
        for ledger in ledgers(cluster) if found is None else found:
            if ledger.state == CLOSED or not only_closed:
                more, n = lacking_of(ledger, readers)
                wrong += more
                checked += n
    return wrong, checked
