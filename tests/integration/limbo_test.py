#!/usr/bin/env python3
"""limbo_test.py - a bookie that has forgotten denies nothing, and gets back what it had.

Three bookies, E=3 Qw=3 Qa=2 unless it is said otherwise.  What the metadata says is checked against the
bookies themselves: each replica of each entry is read from the bookie that is said to have it.
"""
import base64
import os
import shutil
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
from lgm import SLOW, Cases, verdict, wait_until, arguments  # noqa: E402
from lgm_cluster import Cluster, http  # noqa: E402
from lgm_copies import TOPIC, consume, produce  # noqa: E402
from lgm_ledgers import OPEN, CLOSED, Readers, lacking, ledgers  # noqa: E402

BUILD, ONLY = arguments()
CONF = {"rwRereplicateBackoffMs": 300, "autoRecoveryDaemonEnabled": "false"}
MAY_LOSE = {"dataIntegrityChecking": "true", "dataIntegrityStampMissingCookies": "true"}
ROLL = {"managedLedgerMinLedgerRolloverTimeMinutes": 0, "managedLedgerMaxEntriesPerLedger": 300}


def cluster(folder, bookies=3, **broker_conf):
    return Cluster(BUILD, folder, bookies=bookies, bookie_conf=CONF, broker_conf={**ROLL, **broker_conf})


def wipe(bookie):
    bookie.kill()
    shutil.rmtree(os.path.join(bookie.folder, "data"))


def forget_cookie(c, bookie):
    key = "/ledgers/cookies/" + bookie.conf["bookieId"]
    status, text = http(c.etcd.nodes[0].url + "/v3/kv/deleterange", "POST",
                        {"key": base64.b64encode(key.encode()).decode()})
    assert status == 200 and '"deleted":"1"' in text, text


def number(metrics, name):
    return next(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(name + " "))


# ---- what must be so --------------------------------------------------------------------------------

def wiped_and_started_again(folder):
    """While a topic is written; all of it is read from the wiped one alone in the end."""
    with cluster(folder) as c:
        before = produce(c, folder, "before")
        log = os.path.join(folder, "live.log")
        writer = c.spawn("verify", "produce", TOPIC + "live", "--count", "5000", "--rate", "1000",
                         "--log", log)
        written = len(ledgers(c))
        wait_until(lambda: len(ledgers(c)) > written + 1, 30, "it is being written")
        lost = c.bookies[1]
        wipe(lost)
        lost.refuses_to_start("bookie.cookie_refused")
        lost.conf.update(MAY_LOSE)
        lost.start(60)
        order = [line for line in lost.output().splitlines()
                 if "integrity.scanned" in line or "bookie.started" in line]
        assert "integrity.scanned" in order[0] and "bookie.started" in order[1], order
        lost.wait_for_event("integrity.restored", 90)
        out, err = writer.communicate(timeout=120 * SLOW)
        assert writer.returncode == 0, f"{out}\n{err}"
        wrong, checked = lacking(c)
        assert not wrong and checked > 0, wrong[:10]
        metrics = lost.http("/metrics")[1]
        assert number(metrics, "lgm_integrity_need") == 0, metrics
        assert number(metrics, "lgm_limbo_ledgers_checked") > 0, metrics
        consume(c, "before", before)
        consume(c, "live", log)
        lost.stop()
        lost.start(60)
        assert "integrity." not in lost.output(), lost.output()


def decommissioned_and_new_under_its_name(folder):
    """Qw = Qa = 2: one "no" of one that has forgotten would decide the end of the ledger.  The other
    bookie is away while it is recovered: nobody may guess; when it is back all is there."""
    with cluster(folder, bookies=2, managedLedgerDefaultEnsembleSize=2, managedLedgerDefaultWriteQuorum=2,
                 managedLedgerDefaultAckQuorum=2, managedLedgerMaxEntriesPerLedger=50000,
                 bookkeeperClientTimeoutInSeconds=2) as c:
        log = produce(c, folder, "t")
        c.brokers[0].kill()
        opened = [ledger for ledger in ledgers(c) if ledger.state == OPEN]
        assert opened
        new, other = c.bookies
        wipe(new)
        forget_cookie(c, new)
        other.freeze()
        new.start(60)
        new.wait_for_event("integrity.scanned")
        with Readers(c) as readers:
            answers = readers.of(new.conf["bookieId"]).read(opened[0].id, [0, 1, 2])
        assert set(answers.values()) == {"status 101"}, answers
        c.brokers[0].start(60)
        waiting = c.spawn("verify", "consume", TOPIC + "t", "--log", log)
        c.brokers[0].wait_for_event("ledger.recovery_", 60)
        assert all(ledger.state != CLOSED for ledger in ledgers(c) if ledger.id == opened[0].id)
        other.thaw()
        out, err = waiting.communicate(timeout=120 * SLOW)
        assert waiting.returncode == 0, f"{out}\n{err}"
        v = verdict(out)
        assert v["lost"] == v["duplicated"] == v["reordered"] == 0 and v["checked"] > 0, v
        new.wait_for_event("integrity.restored", 60)
        wrong, checked = lacking(c)
        assert not wrong and checked > 0, wrong[:10]


CASES = [wiped_and_started_again, decommissioned_and_new_under_its_name]

Cases().run_all(CASES, ONLY)
