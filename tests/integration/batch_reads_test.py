#!/usr/bin/env python3
"""batch_reads_test.py - a backlog is read with a few questions for many entries, or one by one where a
bookie knows no such questions.

Between the broker and each bookie stands a proxy that counts what is asked, and may close the
connection over a batch read, as BookKeeper before 4.17 does.
"""
import collections
import os
import socket
import sys
import threading

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from lgm import Cases, arguments, verdict  # noqa: E402
from lgm_cluster import Cluster  # noqa: E402

BUILD, ONLY = arguments()
TOPIC = "persistent://public/default/backlog"
COUNT = 4000
READ, BATCH_READ = 2, 7
THERE = "127.0.0.77"  # where the proxies are; the bookies have the same ports elsewhere


class Elder:
    """In front of a bookie: whoever sends a batch read to one that knows none is cut off."""

    def __init__(self, bookie, knows=True):
        self.port, self.knows, self.asked = bookie.port, knows, collections.Counter()
        self.listener = socket.create_server((THERE, self.port))
        bookie.conf["advertisedAddress"] = THERE
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                bookie = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self.forth, args=(client, bookie), daemon=True).start()
            threading.Thread(target=self.back, args=(bookie, client), daemon=True).start()

    def count(self, frame):
        """Gives the operation of a plain read of version 2: not of the last entry, nor a recovery's."""
        version, op, flags, entry = frame[4], frame[5], frame[6:8], frame[16:24]
        if version != 2 or op not in (READ, BATCH_READ) or any(flags) or entry[0] > 127:
            return None
        self.asked[op] += 1
        return op

    @staticmethod
    def end(*sockets):
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def back(self, bookie, client):
        try:
            while data := bookie.recv(1 << 18):
                client.sendall(data)
        except OSError:
            pass
        self.end(bookie, client)

    def forth(self, client, bookie):
        """Frame by frame: length, then version and operation."""
        waiting = b""
        try:
            while data := client.recv(1 << 18):
                waiting += data
                whole = 0
                while len(waiting) - whole >= 6:
                    size = 4 + int.from_bytes(waiting[whole:whole + 4])
                    if len(waiting) - whole < size:
                        break
                    op = self.count(waiting[whole:whole + size])
                    if op == BATCH_READ and not self.knows:
                        raise OSError
                    whole += size
                bookie.sendall(waiting[:whole])
                waiting = waiting[whole:]
        except OSError:
            pass
        self.end(bookie, client)


def cluster(folder, knowing, **broker_conf):
    """Three bookies, of which so many know batch reads."""
    c = Cluster(BUILD, folder, bookies=3, broker_conf=broker_conf)
    return c, [Elder(b, i < knowing) for i, b in enumerate(c.bookies)]


def asked(elders, op):
    return sum(e.asked[op] for e in elders)


def fill(c, folder):
    log = os.path.join(folder, "log")
    c.run("verify", "produce", TOPIC, "--count", str(COUNT), "--no-batching", "--log", log)
    c.brokers[0].kill()
    c.brokers[0].start()  # and it has nothing in memory
    return log


def drain(c, log):
    v = verdict(c.run("verify", "consume", TOPIC, "--log", log).stdout)
    assert v["lost"] == v["duplicated"] == v["reordered"] == 0 and v["checked"] >= COUNT, v


def rewind(c):
    path = f"/admin/v2/{TOPIC.replace('://', '/')}/subscription/verify/resetcursor/0"
    status, text = c.brokers[0].http(path, "POST")
    assert status == 204, (status, text)


def read_back(folder, knowing, **broker_conf):
    """(reads, batch reads) of the backlog."""
    c, elders = cluster(folder, knowing, **broker_conf)
    with c:
        log = fill(c, folder)
        reads, batches = asked(elders, READ), asked(elders, BATCH_READ)
        drain(c, log)
        return asked(elders, READ) - reads, asked(elders, BATCH_READ) - batches


def many_at_once(folder):
    reads, batches = read_back(folder, 3)
    print(f"      {COUNT} entries: {reads} reads, {batches} batch reads")
    assert 0 < batches < COUNT / 10 and reads < COUNT / 10, (reads, batches)


def of_elder_bookies_one_by_one(folder):
    """Each is asked once for many, by each loop of the broker, and then not again."""
    reads, batches = read_back(folder, 0)
    print(f"      {COUNT} entries: {reads} reads, {batches} batch reads")
    assert reads >= COUNT and batches <= 3 * 16, (reads, batches)


def one_that_knows_is_enough(folder):
    read_back(folder, 1)


def one_by_one_if_so_configured(folder):
    reads, batches = read_back(folder, 3, managedLedgerBatchReadEnabled="false")
    assert reads >= COUNT and batches == 0, (reads, batches)


def a_frozen_bookie_delays_nobody(folder):
    """What it was asked for comes from another, long before it has failed."""
    c, elders = cluster(folder, 3, bookkeeperClientSpeculativeReadTimeoutInMillis=100,
                        bookkeeperClientTimeoutInSeconds=3600)
    with c:
        log = fill(c, folder)
        for bookie in c.bookies:
            bookie.freeze()
            drain(c, log)
            bookie.thaw()
            rewind(c)
        assert asked(elders, BATCH_READ) > 0


CASES = [many_at_once, of_elder_bookies_one_by_one, one_that_knows_is_enough,
         one_by_one_if_so_configured, a_frozen_bookie_delays_nobody]

Cases().run_all(CASES, ONLY)
