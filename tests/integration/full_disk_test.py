#!/usr/bin/env python3
"""full_disk_test.py - a bookie on a small file system that is filled to the brim under load, and emptied.

Needs to mount a tmpfs of its own; where that is not allowed the cases are skipped, and say so.
"""
import glob
import os
import socket
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from lgm import SLOW, Cases, Skip, wait_until, arguments  # noqa: E402
from lgm_cluster import Bookie  # noqa: E402

BUILD, ONLY = arguments()
MIB = 1024 * 1024
KEY = bytes.fromhex("850bf1071c5e3d8c24235676f8816ae0cbe2f14f")
OK, NO_LEDGER, NO_ENTRY, READ_ONLY, TOO_MANY = 0, 1, 2, 105, 106
RECOVERY = 2


class Small:
    """A tmpfs of so many MiB under a folder, with a ballast in it."""

    def __init__(self, folder, mib, ballast):
        self.path = folder
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", folder],
                              capture_output=True, text=True)
        self.reason = "" if done.returncode == 0 else done.stderr.strip() or "mount failed"
        if not self.reason and ballast:
            with open(os.path.join(folder, "ballast"), "wb") as f:
                f.write(bytes(ballast * MIB))

    def empty(self):
        os.remove(os.path.join(self.path, "ballast"))

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not self.reason:
            subprocess.run(["umount", "-l", self.path], check=True)


class Peer:
    def __init__(self, bookie):
        self.socket = socket.create_connection(("127.0.0.1", bookie.port), timeout=30 * SLOW)
        self.stream = self.socket.makefile("rb")

    def answer(self):
        size, = struct.unpack(">I", self.stream.read(4))
        body = self.stream.read(size)
        return struct.unpack(">i", body[4:8])[0], body[24:]

    def add(self, ledger, entry, size, flags=0):
        payload = bytes([entry % 251]) * size
        body = struct.pack(">qqqq", ledger, entry, entry - 1, (entry + 1) * size) + bytes(4) + payload
        self.socket.sendall(struct.pack(">II", 24 + len(body), 2 << 24 | 1 << 16 | flags) + KEY + body)
        return self.answer()[0]

    def read(self, ledger, entry, flags=0):
        body = struct.pack(">Iqq", 2 << 24 | 2 << 16 | flags, ledger, entry) + (KEY if flags & 1 else b"")
        self.socket.sendall(struct.pack(">I", len(body)) + body)
        return self.answer()

    def check(self, ledger, entries, size):
        for entry in entries:
            status, body = self.read(ledger, entry)
            assert status == OK, f"entry {entry}: {status}"
            assert body[36:] == bytes([entry % 251]) * size, entry


def small_bookie(folder, data, **conf):
    return Bookie(BUILD, folder, "small", "rocksdb:" + os.path.join(folder, "metadata"), **{
        "journalDirectories": os.path.join(data, "journal"),
        "ledgerDirectories": os.path.join(data, "ledgers"), "journalMaxSizeMB": 1,
        "nettyMaxFrameSizeBytes": 131072, "journalBufferedWritesThreshold": 65536,
        "logSizeLimit": MIB, "dbStorage_writeCacheMaxSizeMb": 2, "flushInterval": 100,
        "dbStorage_maxThrottleTimeMs": 200, "diskCheckInterval": 50, "diskUsageLwmThreshold": 0.8,
        "minUsableSizeForHighPriorityWrites": 6 * MIB, "autoRecoveryDaemonEnabled": "false", **conf})


def init(folder):
    subprocess.run([os.path.join(BUILD, "lgm"), "init", "--cluster", "c1", "--metadata",
                    "rocksdb:" + os.path.join(folder, "metadata")], check=True, capture_output=True)


def is_refused(status):
    return status in (READ_ONLY, TOO_MANY)


def used(small):
    fs = os.statvfs(small.path)
    return 1 - fs.f_bavail / fs.f_blocks


def fill(peer, ledger, size, flags=0, most=5000, until=lambda: False):
    """Until it is refused for good, or as it is told; gives the entries that were acknowledged."""
    acked, refused = [], 0
    for entry in range(most):
        if until():
            return acked
        status = peer.add(ledger, entry, size, flags)
        assert status == OK or is_refused(status), status
        if status == OK:
            acked.append(entry)
        refused = 0 if status == OK else refused + 1
        if refused > 50:
            return acked
    raise AssertionError("it is never full")


def goes_on_when_there_is_room(bookie, small, acked, size):
    """acked: by ledger."""
    peer = Peer(bookie)
    for ledger, entries in acked.items():
        peer.check(ledger, entries, size)
    small.empty()
    wait_until(lambda: peer.add(9, 0, size) == OK, 30, f"it takes adds again\n{bookie.output()[-3000:]}")
    for entry in range(1, 50):
        wait_until(lambda e=entry: peer.add(9, e, size) == OK, 30, "and goes on")
    acked[9] = list(range(50))
    bookie.kill()
    bookie.start()
    peer = Peer(bookie)
    for ledger, entries in acked.items():
        peer.check(ledger, entries, size)
    bookie.stop()


# ---- what must be so --------------------------------------------------------------------------------

def read_only_before_it_is_full(folder):
    """By the threshold: recovery goes on in the reserve, and is refused when that is used up."""
    size = 50000
    with Small(os.path.join(folder, "fs"), 96, 40) as small:
        if small.reason:
            raise Skip(f"no file system can be mounted: {small.reason}")
        init(folder)
        bookie = small_bookie(folder, small.path, diskUsageThreshold=0.85)
        bookie.start()
        peer = Peer(bookie)
        acked = {1: fill(peer, 1, size, until=lambda: used(small) > 0.86)}
        bookie.wait_for_event("bookie.became_readonly")
        wait_until(lambda: '"readOnly":true' in bookie.http("/api/v1/bookie/state")[1].replace(" ", ""), 10,
                   "it says so")
        assert peer.add(2, 0, size) == READ_ONLY
        acked[3] = fill(peer, 3, size, RECOVERY)
        assert len(acked[3]) > 20, len(acked[3])
        assert peer.read(1, -1, 1)[0] == OK, "it still fences"
        assert peer.read(1, 10 ** 6)[0] == NO_ENTRY
        goes_on_when_there_is_room(bookie, small, acked, size)


def full_to_the_brim(folder):
    """No threshold: writes find no space, of the journal, of entry logs, of the index."""
    size = 50000
    with Small(os.path.join(folder, "fs"), 64, 30) as small:
        if small.reason:
            raise Skip(f"no file system can be mounted: {small.reason}")
        init(folder)
        bookie = small_bookie(folder, small.path, diskUsageThreshold=1, diskUsageLwmThreshold=1,
                              minUsableSizeForHighPriorityWrites=0)
        bookie.start()
        acked = {1: fill(Peer(bookie), 1, size, RECOVERY)}
        assert len(acked[1]) > 100, len(acked[1])
        assert bookie.is_running, bookie.output()[-3000:]
        goes_on_when_there_is_room(bookie, small, acked, size)


def brim(small):
    """Not a byte is left."""
    with open(os.path.join(small.path, "more"), "wb", buffering=0) as f:
        for size in (MIB, 4096, 1):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass


def stops_and_starts_with_not_a_byte_left(folder):
    """An error, and never an abort: RocksDB writes no log of its own, whose lines would not fit either."""
    size = 50000
    with Small(os.path.join(folder, "fs"), 64, 20) as small:
        if small.reason:
            raise Skip(f"no file system can be mounted: {small.reason}")
        init(folder)
        bookie = small_bookie(folder, small.path, diskUsageThreshold=1, diskUsageLwmThreshold=1,
                              minUsableSizeForHighPriorityWrites=0)
        bookie.start()
        acked = {1: fill(Peer(bookie), 1, size, RECOVERY, until=lambda: used(small) > 0.8)}
        for name in glob.glob(os.path.join(small.path, "ledgers", "current", "index", "LOG*")):
            assert os.path.getsize(name) == 0, name
        brim(small)
        bookie.stop()
        bookie.launch()
        wait_until(lambda: not bookie.is_running or bookie.is_ready(), 30, "it starts, or does not")
        if bookie.is_running:
            bookie.stop()
        else:
            assert bookie.process.wait() > 0, bookie.output()[-3000:]
        os.remove(os.path.join(small.path, "more"))
        bookie.start()
        goes_on_when_there_is_room(bookie, small, acked, size)


CASES = [read_only_before_it_is_full, full_to_the_brim, stops_and_starts_with_not_a_byte_left]

Cases().run_all(CASES, ONLY)
