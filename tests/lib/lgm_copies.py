"""lgm_copies.py - a cluster whose bookies come and go, and what must be there afterwards: every replica
of every entry where the metadata says."""
import os
import shutil
import subprocess

from lgm import SLOW, verdict, wait_until
from lgm_cluster import Cluster
from lgm_ledgers import lacking, ledgers, marks, named_in, registered

TOPIC = "persistent://public/default/"
CONF = {"zkTimeout": 2000, "rwRereplicateBackoffMs": 300, "openLedgerRereplicationGracePeriod": 500,
        "auditorPeriodicCheckInterval": 0}
ROLL = {"managedLedgerMinLedgerRolloverTimeMinutes": 0, "managedLedgerMaxEntriesPerLedger": 400}


def wait_whole(cluster, gone, seconds=90):
    """No mark, no ledger that names one that is gone, and every replica where it should be."""
    def names_none():
        return not named_in(ledgers(cluster)).keys() & set(gone) and not marks(cluster)
    try:
        wait_until(names_none, seconds, f"no ledger names {gone}")
    except AssertionError as e:
        tail = "\n".join(b.output()[-3000:] for b in cluster.bookies if b.is_running)
        raise AssertionError(f"{e}\n{ledgers(cluster)}\n{marks(cluster)}\n{tail}") from None
    wrong, checked = lacking(cluster)
    assert not wrong, wrong[:10]
    assert checked > 0
    return checked


def hosts(build, folder, bookies=5, conf=None, broker_conf=None):
    c = Cluster(build, folder, bookies=bookies, brokers=1, bookie_conf={**CONF, **(conf or {})},
                broker_conf={**ROLL, "managedLedgerDefaultEnsembleSize": 3,
                             "managedLedgerDefaultWriteQuorum": 3, "managedLedgerDefaultAckQuorum": 2,
                             **(broker_conf or {})})
    for i, b in enumerate(c.bookies):
        b.live_at(f"127.0.0.{i + 1}")
    return c


def name(bookie):
    return bookie.conf["bookieId"]


def produce(cluster, folder, topic, count=2000):
    """Slowly: few records are in one entry."""
    log = os.path.join(folder, f"{topic}.log")
    cluster.run("verify", "produce", TOPIC + topic, "--count", str(count), "--rate", "1000", "--log", log)
    return log


def consume(cluster, topic, log):
    v = verdict(cluster.run("verify", "consume", TOPIC + topic, "--log", log).stdout)
    assert v["lost"] == v["duplicated"] == v["reordered"] == 0 and v["checked"] > 0, v


def lgm(cluster, *words, check=True, seconds=120):
    words = [cluster.lgm, *words, "--metadata", cluster.etcd.url]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds * SLOW)
    assert not check or done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
    return done


def lose(bookie):
    """For good, with its disks."""
    bookie.kill()
    shutil.rmtree(os.path.join(bookie.folder, "data"))


def wait_forgotten(cluster, names):
    wait_until(lambda: not registered(cluster) & set(names), 30, "their sessions are over")


def most_used(cluster):
    named = named_in(ledgers(cluster))
    return max((b for b in cluster.bookies if b.is_running), key=lambda b: named[name(b)])
