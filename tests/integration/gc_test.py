#!/usr/bin/env python3
"""gc_test.py - the space of deleted topics comes back, and nothing else goes.

A bookie whose rounds of garbage collection follow each other quickly, and a metadata store that is put
back to what it was: a copy of etcd's data, which is what a restored snapshot is.
"""
import json
import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from lgm import SLOW, Cases, verdict, wait_until, arguments  # noqa: E402
from lgm_cluster import Cluster  # noqa: E402
from lgm_ledgers import lacking  # noqa: E402

BUILD, ONLY = arguments()
TOPIC = "persistent://public/default/"
CONF = {"gcWaitTime": 300, "lgmGcTrashSeconds": 0, "logSizeLimit": 1048576, "flushInterval": 100,
        "compactionRateByEntries": 5000, "minorCompactionInterval": 1, "majorCompactionInterval": 1,
        "majorCompactionThreshold": 0.9, "lgmGcReserveMB": 1, "autoRecoveryDaemonEnabled": "false"}
ROLL = {"managedLedgerMinLedgerRolloverTimeMinutes": 0, "managedLedgerMaxEntriesPerLedger": 2000,
        "defaultRetentionTimeInMinutes": -1, "defaultRetentionSizeInMB": -1}


def cluster(folder, bookies=1, **conf):
    return Cluster(BUILD, folder, bookies=bookies, bookie_conf={**CONF, **conf}, broker_conf=ROLL)


def produce(c, folder, topic, count=4000):
    log = os.path.join(folder, f"{topic}.log")
    c.run("verify", "produce", TOPIC + topic, "--count", str(count), "--rate", "4000", "--log", log)
    return log


def whole(c):
    """Every entry that the metadata speaks of is read from where it is said to be."""
    wrong, checked = lacking(c)
    assert not wrong and checked > 0, wrong[:10]


def consume(c, topic, log):
    v = verdict(c.run("verify", "consume", TOPIC + topic, "--log", log).stdout)
    assert v["lost"] == v["duplicated"] == v["reordered"] == 0 and v["checked"] > 0, v


def delete(c, topic):
    status, text = c.brokers[0].http(f"/admin/v2/persistent/public/default/{topic}?force=true", "DELETE",
                                     timeout=30 * SLOW)
    assert status in (200, 204), (status, text)


def number(bookie, name):
    status, text = bookie.http("/metrics")
    if status != 200:
        return -1
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(name + " ")), -1)


def gc(c, bookie, *words):
    done = subprocess.run([c.lgm, "bookie", "gc", *words, "--http", f"127.0.0.1:{bookie.web_port}"],
                          capture_output=True, text=True, timeout=30 * SLOW)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rounds(c, bookie, more):
    """So many more rounds have ended well."""
    before = json.loads(gc(c, bookie, "status"))["rounds"]
    wait_until(lambda: json.loads(gc(c, bookie, "status"))["rounds"] >= before + more, 60,
               f"{more} more rounds:\n{bookie.output()[-3000:]}")


# ---- what must be so --------------------------------------------------------------------------------

def a_deleted_topic_gives_its_space_back(folder):
    with cluster(folder) as c:
        bookie = c.bookies[0]
        kept = produce(c, folder, "kept")
        for i in range(3):
            produce(c, folder, f"gone-{i}")
        wait_until(lambda: number(bookie, "bookie_ACTIVE_ENTRY_LOG_COUNT") > 1, 30, "logs are closed")
        for i in range(3):
            delete(c, f"gone-{i}")
        wait_until(lambda: number(bookie, "bookie_DELETED_LEDGER_COUNT") >= 3, 60, "ledgers are deleted")
        wait_until(lambda: number(bookie, "bookie_RECLAIMED_COMPACTION_SPACE_BYTES")
                   + number(bookie, "bookie_RECLAIMED_DELETION_SPACE_BYTES") > 1000000, 60,
                   "space is taken back")
        bookie.kill()
        bookie.start()
        consume(c, "kept", kept)


def kill_while_it_compacts(folder):
    """Under load; each time entries are moved anew it is killed."""
    with cluster(folder, compactionRateByEntries=3000) as c:
        bookie = c.bookies[0]
        kept = produce(c, folder, "kept", 6000)
        log = os.path.join(folder, "live.log")
        writer = c.spawn("verify", "produce", TOPIC + "live", "--count", "20000", "--rate", "800",
                         "--log", log)
        for i in range(4):
            produce(c, folder, f"gone-{i}", 4000)
            delete(c, f"gone-{i}")
            wait_until(lambda: number(bookie, "bookie_gc_COMPACTED_ENTRIES") > 0, 60,
                       f"entries are moved:\n{bookie.output()[-2000:]}")
            bookie.kill()
            bookie.start()
        out, err = writer.communicate(timeout=180 * SLOW)
        assert writer.returncode == 0, f"{out}\n{err}"
        whole(c)
        rounds(c, bookie, 2)
        whole(c)
        consume(c, "kept", kept)
        consume(c, "live", log)


def restored_metadata_deletes_nothing(folder):
    with cluster(folder) as c:
        bookie, node = c.bookies[0], c.etcd.nodes[0]
        data, old = os.path.join(node.folder, "data"), os.path.join(folder, "old")
        produce(c, folder, "before")
        rounds(c, bookie, 1)
        c.etcd.kill()
        shutil.copytree(data, old)
        c.etcd.start()
        produce(c, folder, "after")
        rounds(c, bookie, 2)
        ledgers = number(bookie, "bookie_ACTIVE_LEDGER_COUNT")
        c.brokers[0].kill()
        c.etcd.kill()
        shutil.rmtree(data)
        shutil.copytree(old, data)
        c.etcd.start()
        bookie.wait_for_event("gc.halted", 60)
        bookie.kill()
        bookie.start(60)
        bookie.wait_for_event("gc.halted", 60)
        gc(c, bookie, "run")
        wait_until(lambda: not json.loads(gc(c, bookie, "status"))["running"], 60, "a round has ended")
        state = json.loads(gc(c, bookie, "status"))
        assert state["halted"] and state["reason"] and state["rounds"] == 0, state
        assert number(bookie, "bookie_gc_HALTED") == 1
        assert number(bookie, "bookie_ACTIVE_LEDGER_COUNT") == ledgers
        assert number(bookie, "bookie_DELETED_LEDGER_COUNT") == 0
        gc(c, bookie, "resume")
        wait_until(lambda: number(bookie, "bookie_DELETED_LEDGER_COUNT") > 0, 60, "an operator has said so")
        c.brokers[0].start(60)
        consume(c, "before", os.path.join(folder, "before.log"))


def spoil(bookie):
    """A byte in each 40 KB of its entry logs, which are closed, is another one."""
    folder = os.path.join(bookie.conf["ledgerDirectories"], "current")
    for name in sorted(os.listdir(folder))[:1]:
        assert name.endswith(".log"), name
        with open(os.path.join(folder, name), "r+b") as f:
            for at in range(20000, 900000, 40000):
                f.seek(at)
                byte = f.read(1)
                f.seek(at)
                f.write(bytes([byte[0] ^ 255]))


def what_is_damaged_comes_back_from_others(folder):
    """Compaction meets it, moves the rest, and asks the other bookies."""
    with Cluster(BUILD, folder, bookies=3, bookie_conf={**CONF, "majorCompactionInterval": 0},
                 broker_conf={**ROLL, "managedLedgerMaxEntriesPerLedger": 100}) as c:
        bookie = c.bookies[0]
        for i in range(2):
            produce(c, folder, f"gone-{i}", 3000)
            produce(c, folder, f"kept-{i}", 3000)
        produce(c, folder, "more", 10000)
        wait_until(lambda: number(bookie, "bookie_ACTIVE_ENTRY_LOG_COUNT") > 0, 30, "a log is closed")
        for i in range(2):
            delete(c, f"gone-{i}")
        spoil(bookie)
        rounds(c, bookie, 2)
        gc(c, bookie, "run")
        bookie.wait_for_event("entry_log.quarantined", 60)
        bookie.wait_for_event("ledger.healed", 60)
        assert number(bookie, "bookie_gc_HEALED_ENTRIES") > 0
        wait_until(lambda: not json.loads(gc(c, bookie, "status"))["running"], 60, "the round has ended")
        whole(c)
        rounds(c, bookie, 1)
        gc(c, bookie, "run")
        wait_until(lambda: number(bookie, "bookie_gc_QUARANTINED_LOGS") == 0, 60, "the log is gone")
        whole(c)
        for i in range(2):
            consume(c, f"kept-{i}", os.path.join(folder, f"kept-{i}.log"))


CASES = [what_is_damaged_comes_back_from_others, a_deleted_topic_gives_its_space_back, kill_while_it_compacts, restored_metadata_deletes_nothing]

Cases().run_all(CASES, ONLY)
