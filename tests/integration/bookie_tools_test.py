#!/usr/bin/env python3
"""bookie_tools_test.py - a bookie's directories, looked into and mended: what an operator does when
an index is lost, a log is damaged, or it is not known what is on a disk."""
import argparse
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster as cluster  # noqa: E402
from lgm_ledgers import OPEN, Reader, ledgers  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
parser.add_argument("only", nargs="*")
OPTIONS = parser.parse_args()
BUILD = os.path.abspath(OPTIONS.build)
TOPIC = "persistent://public/default/"
EMPTY_KEY = bytes.fromhex("850bf1071c5e3d8c24235676f8816ae0cbe2f14f")  # of an empty password


def tool(bookie, verb, *words, check=0):
    """`lgm bookie VERB` on the directories of this bookie."""
    bookie.write_conf()
    done = subprocess.run([os.path.join(BUILD, "lgm"), "bookie", verb, "--conf", bookie.conf_file, *words],
                          capture_output=True, text=True, timeout=120 * lgm.SLOW, cwd=bookie.folder)
    assert check is None or done.returncode == check, f"{verb} {words}: {done}"
    return done


def current(bookie, *names):
    return os.path.join(bookie.conf["ledgerDirectories"], "current", *names)


def written(folder, bookies=3, count=2000, **conf):
    """A cluster with a topic that was written, all of it in the entry logs."""
    c = cluster.Cluster(BUILD, folder, bookies=bookies, brokers=1,
                        bookie_conf={"flushInterval": 100, "zkTimeout": 2000, **conf},
                        broker_conf={"managedLedgerMaxEntriesPerLedger": 300,
                                     "managedLedgerMinLedgerRolloverTimeMinutes": 0})
    c.start()
    log = os.path.join(folder, "verify.log")
    c.run("verify", "produce", TOPIC + "t", "--count", str(count), "--no-batching", "--rate", "2000", "--log", log)
    return c, log


def consume(c, log):
    done = c.run("verify", "consume", TOPIC + "t", "--log", log)
    assert lgm.verdict(done.stdout)["lost"] == 0, done.stdout


def all_entries(c, bookie):
    """{ledger: {entry: what the bookie answers}}"""
    reader = Reader(bookie)
    try:
        return {l.id: reader.read(l.id, range(0, 320)) for l in ledgers(c)}
    finally:
        reader.close()


def same_entries(before, after):
    """What was there is there, byte for byte; what was not is not, or is not known."""
    present = 0
    for ledger, entries in before.items():
        for entry, copy in entries.items():
            now = after[ledger][entry]
            if copy is None:
                assert now is None or now == "status 101", (ledger, entry, now)
            else:
                assert now == copy, (ledger, entry, now, copy)
                present += 1
    assert present > 20, present
    return present


class Raw:
    """A client of the bookie protocol that does one thing at a time."""

    def __init__(self, bookie):
        self.reader = Reader(bookie)

    def ask(self, frame):
        self.reader.socket.sendall(struct.pack(">I", len(frame)) + frame)
        size, = struct.unpack(">I", self.reader.stream.read(4))
        return struct.unpack(">i", self.reader.stream.read(size)[4:8])[0]

    def fence(self, ledger):
        return self.ask(struct.pack(">Iqq", 2 << 24 | 2 << 16 | 1, ledger, -1) + EMPTY_KEY)

    def add(self, ledger, entry):
        body = struct.pack(">qqqq", ledger, entry, entry - 1, 10) + b"\0\0\0\0" + b"0123456789"
        return self.ask(struct.pack(">I", 2 << 24 | 1 << 16) + EMPTY_KEY + body)

    def close(self):
        self.reader.close()


# ---- a lost index ------------------------------------------------------------------------------------


def lose_index(bookie, what):
    index = current(bookie, "index")
    if what == "all":
        shutil.rmtree(index)
    else:
        gone = glob.glob(os.path.join(index, what))
        assert gone, os.listdir(index)
        for path in gone:
            os.remove(path)


def heals_itself(folder):
    c, log = written(folder)
    try:
        bookie = c.bookies[0]
        open_ledger = next(l.id for l in ledgers(c) if l.state == OPEN)
        raw = Raw(bookie)
        fresh = max(l.id for l in ledgers(c)) + 1000  # fenced before it had an entry, and unknown
        assert raw.add(fresh, 0) == 0 and raw.fence(fresh) == 0 and raw.add(fresh, 1) == 104
        raw.close()
        before = all_entries(c, bookie)
        for what in ("all", "CURRENT", "MANIFEST*"):
            bookie.kill()
            lose_index(bookie, what)
            bookie.start()
            bookie.wait_for_event("entry_index.rebuilt")
            assert "entry_index.lost" in bookie.output()
            same_entries(before, all_entries(c, bookie))
            raw = Raw(bookie)
            assert raw.add(fresh, 1) == 104, "it was fenced"
            assert raw.add(open_ledger, 10000) == 104, "nobody knows that it was not"
            raw.close()
        bookie.kill()
        bookie.start()
        assert "entry_index.lost" not in bookie.output()
        for b in c.bookies[1:]:
            b.kill()
            lose_index(b, "all")
            b.start()
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


def rebuilt_by_hand(folder):
    c, log = written(folder, lgmRebuildLostIndex="false")
    try:
        bookie = c.bookies[0]
        busy = tool(bookie, "rebuild-index", check=1)
        assert "stop it first" in busy.stderr, busy
        before = all_entries(c, bookie)
        bookie.kill()
        assert "not lost" in tool(bookie, "rebuild-index").stdout
        lose_index(bookie, "all")
        bookie.refuses_to_start("entry_index.lost")
        done = tool(bookie, "rebuild-index")
        assert "entry_index.rebuilt" in done.stderr and "limbo" not in done.stdout, done
        bookie.start()
        same_entries(before, all_entries(c, bookie))
        bookie.kill()
        report = json.loads(tool(bookie, "rebuild-index", "--force", "--json").stdout)
        assert report["damages"] == 0 and report["limbo"] == 0 and report["records"] > 20, report
        bookie.start()
        same_entries(before, all_entries(c, bookie))
        consume(c, log)
    finally:
        c.__exit__(None, None, None)


CASES = [heals_itself, rebuilt_by_hand]

if __name__ == "__main__":
    cases = lgm.Cases()
    for case in CASES:
        if not OPTIONS.only or case.__name__ in OPTIONS.only:
            cases.run(case.__name__.replace("_", " "), case)
    cases.end()
    sys.exit(cases.failed != 0)
