#!/usr/bin/env python3
"""devices_test.py - a bookie with three journals and two ledger directories: killed under load, grown,
and asked what it has."""
import json
import os
import shutil
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from lgm import SLOW, Cases, verdict, wait_until, arguments  # noqa: E402
from lgm_cluster import Cluster  # noqa: E402

BUILD, ONLY = arguments()
TOPIC = "persistent://public/default/"
TOPICS = ["one", "two", "three", "four"]
# Ledgers are many, and flushes, so that all directories have something at every moment.
CONF = {"flushInterval": 200, "autoRecoveryDaemonEnabled": "false", "journalMaxSizeMB": 8,
        "dbStorage_writeCacheMaxSizeMb": 4, "logSizeLimit": 4 << 20}
ROLL = {"managedLedgerMinLedgerRolloverTimeMinutes": 0, "managedLedgerMaxEntriesPerLedger": 200}


def directories(bookie, journals, ledgers, indexes=None):
    def some(name, n):
        return [os.path.join(bookie.folder, f"{name}-{i}") for i in range(n)]
    bookie.conf.update(journalDirectories=",".join(some("journal", journals)),
                       ledgerDirectories=",".join(some("ledgers", ledgers)))
    if indexes:
        bookie.conf["indexDirectories"] = ",".join(some("index", indexes))
    return some("journal", journals), some("ledgers", ledgers)


def cluster(folder, journals=3, ledgers=2, indexes=None):
    c = Cluster(BUILD, folder, bookies=1, bookie_conf=CONF, broker_conf=ROLL)
    return c, c.bookies[0], *directories(c.bookies[0], journals, ledgers, indexes)


def write(c, folder, count, rate):
    logs = {t: os.path.join(folder, f"{t}.log") for t in TOPICS}
    return logs, [c.spawn("verify", "produce", TOPIC + t, "--count", str(count), "--rate", str(rate),
                          "--log", log) for t, log in logs.items()]


def end(writers):
    for w in writers:
        out, err = w.communicate(timeout=180 * SLOW)
        assert w.returncode == 0, f"{out}\n{err}"


def consume(c, logs):
    for t, log in logs.items():
        v = verdict(c.run("verify", "consume", TOPIC + t, "--log", log).stdout)
        assert v["lost"] == v["reordered"] == 0 and v["checked"] > 0, (t, v)


def series(metrics, name):
    return [line for line in metrics.splitlines() if line.startswith(name)]


def value(line):
    return float(line.split()[-1])


# ---- what must be so --------------------------------------------------------------------------------

def killed_under_load(folder):
    c, bookie, journals, ledgers = cluster(folder)
    with c:
        logs, writers = write(c, folder, 3000, 300)
        for _ in range(4):
            before = sum(value(s) for s in series(bookie.http("/metrics")[1],
                                                  "bookie_journal_JOURNAL_ADD_ENTRY_count"))
            wait_until(lambda: sum(value(s) for s in series(  # noqa: B023
                bookie.http("/metrics")[1], "bookie_journal_JOURNAL_ADD_ENTRY_count")) > before + 300,
                60, "more is written")
            bookie.kill()
            bookie.start(60)
            bookie.wait_for_event("journal.replayed")
        end(writers)
        for d in journals:
            assert os.listdir(os.path.join(d, "current")), d
        for d in ledgers:
            assert any(n.endswith(".log") for n in os.listdir(os.path.join(d, "current"))), d
        bookie.kill()
        bookie.start(60)
        consume(c, logs)
        bookie.stop()
        bookie.start(60)
        text = bookie.output()
        replayed = [line for line in text.splitlines() if "journal.replayed" in line]
        assert len(replayed) == 3 and all("records=0" in line for line in replayed), replayed


def grows(folder):
    c, bookie, _, _ = cluster(folder, journals=1, ledgers=1)
    with c:
        logs, writers = write(c, folder, 400, 400)
        end(writers)
        bookie.kill()
        _, ledgers = directories(bookie, 3, 2)
        bookie.refuses_to_start("bookie.cookie_refused", "Directories")
        bookie.conf["allowStorageExpansion"] = "true"
        bookie.start(60)
        bookie.wait_for_event("bookie.storage_expanded")
        del bookie.conf["allowStorageExpansion"]
        consume(c, logs)
        more = os.path.join(folder, "more")
        os.mkdir(more)
        logs2, writers = write(c, more, 1200, 400)
        end(writers)
        bookie.kill()
        bookie.start(60)
        consume(c, logs2)
        assert any(n.endswith(".log") for n in os.listdir(os.path.join(ledgers[1], "current")))
        bookie.stop()
        directories(bookie, 3, 1)
        bookie.refuses_to_start("bookie.cookie_refused", "ledgerDirectories")
        directories(bookie, 2, 2)
        bookie.refuses_to_start("bookie.cookie_refused", "journalDirectories")
        directories(bookie, 3, 2)
        shutil.rmtree(ledgers[1])
        bookie.refuses_to_start("bookie.cookie_refused", ledgers[1])


def indexes_elsewhere(folder):
    c, bookie, _, ledgers = cluster(folder, journals=1, ledgers=2, indexes=2)
    with c:
        logs, writers = write(c, folder, 400, 400)
        end(writers)
        bookie.kill()
        bookie.start(60)
        consume(c, logs)
        for i, d in enumerate(ledgers):
            assert "index" not in os.listdir(os.path.join(d, "current"))
            index = os.path.join(bookie.folder, f"index-{i}", "current")
            assert {"VERSION", "index"} <= set(os.listdir(index)), os.listdir(index)
        bookie.stop()
        a, b = bookie.conf["indexDirectories"].split(",")
        bookie.conf["indexDirectories"] = f"{b},{a}"
        bookie.refuses_to_start("bookie.cookie_refused", "indexDirectories")


def tells_of_each(folder):
    c, bookie, _, ledgers = cluster(folder)
    with c:
        _, writers = write(c, folder, 200, 400)
        end(writers)
        metrics = bookie.http("/metrics")[1]
        for i in range(3):
            assert len(series(metrics, f'bookie_journal_JOURNAL_WRITE_BYTES{{journalIndex="{i}"}}')) == 1, metrics
            assert series(metrics, f'bookie_journal_JOURNAL_SYNC{{journalIndex="{i}",success="true"'), metrics
        for d in ledgers:
            assert len(series(metrics, f'bookie_flush_entries{{ledgerDir="{d}/current"}}')) == 1, metrics
            name = f"bookie_ledger_dir_{d.replace('/', '_').replace('-', '_')}_usage"
            usage = [line for line in series(metrics, "bookie_ledger_dir_") if line.startswith(name)]
            assert len(usage) == 1 and 0 < value(usage[0]) <= 100, (name, metrics)
        info = json.loads(bookie.http("/api/v1/bookie/info")[1])
        disk = shutil.disk_usage(folder)
        assert info["totalSpace"] == disk.total, info  # one device, counted once


CASES = [killed_under_load, grows, indexes_elsewhere, tells_of_each]

Cases().run_all(CASES, ONLY)
