#!/usr/bin/env python3
"""autorecovery_test.py - copies that were lost with a bookie are made again, by themselves.

Five bookies on 127.0.0.1 to .5, E=3 Qw=3 Qa=2.  What the metadata says is checked against the bookies
themselves: each replica of each entry is read from the bookie that is said to have it.
"""
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
import lgm_copies  # noqa: E402
from lgm import SLOW, Cases, Standalone, verdict, wait_until, arguments  # noqa: E402
from lgm_copies import TOPIC, consume, lgm, lose, most_used, name, produce, wait_forgotten, wait_whole  # noqa: E402
from lgm_ledgers import lacking, ledgers, marks, named_in  # noqa: E402

BUILD, ONLY = arguments()


def hosts(folder, **how):
    return lgm_copies.hosts(BUILD, folder, **how)


# ---- what must be so --------------------------------------------------------------------------------

def lost_bookies(folder):
    with hosts(folder) as c:
        log = produce(c, folder, "lost")
        first = most_used(c)
        lose(first)
        wait_whole(c, [name(first)])
        second = most_used(c)
        lose(second)
        consume(c, "lost", log)
        wait_whole(c, [name(first), name(second)])
        log = produce(c, folder, "afterwards")
        consume(c, "afterwards", log)


def lost_while_written(folder):
    with hosts(folder) as c:
        log = os.path.join(folder, "live.log")
        writer = c.spawn("verify", "produce", TOPIC + "live", "--count", "6000", "--rate", "1000",
                         "--log", log)
        wait_until(lambda: len(ledgers(c)) > 2, 30, "it is being written")
        gone = most_used(c)
        lose(gone)
        out, err = writer.communicate(timeout=120 * SLOW)
        assert writer.returncode == 0, f"{out}\n{err}"
        wait_whole(c, [name(gone)])
        consume(c, "live", log)


def decommission_of_one_that_runs(folder):
    with hosts(folder, bookies=4) as c:
        log = produce(c, folder, "leaving")
        leaving = most_used(c)
        done = lgm(c, "bookie", "decommission", name(leaving))
        assert "is decommissioned" in done.stdout, done.stdout
        assert leaving.is_running
        wait_whole(c, [name(leaving)])
        leaving.kill()
        leaving.refuses_to_start("bookie.cookie_refused")
        consume(c, "leaving", log)
        again = lgm(c, "bookie", "decommission", name(leaving), check=False)
        assert again.returncode == 1 and "has no cookie" in again.stderr, again


def pause_and_resume(folder):
    with hosts(folder, bookies=4) as c:
        log = produce(c, folder, "paused", 500)
        assert "is paused" in lgm(c, "bookie", "autorecovery", "pause").stdout
        gone = most_used(c)
        lose(gone)
        wait_forgotten(c, [name(gone)])
        named = [ledger.id for ledger in ledgers(c)
                 if any(name(gone) in members for _, members in ledger.fragments)]
        assert named
        assert "0 ledgers" in lgm(c, "bookie", "under-replicated").stdout
        assert "is on" in lgm(c, "bookie", "autorecovery", "resume").stdout
        wait_whole(c, [name(gone)])
        consume(c, "paused", log)


def marks_that_wait(folder):
    """With nobody to copy to, ledgers stay marked; a new bookie gets the copies."""
    with hosts(folder, bookies=4) as c:
        spare = c.bookies[3]
        spare.stop()
        log = produce(c, folder, "waiting", 500)
        gone = most_used(c)
        lose(gone)
        wait_until(lambda: marks(c), 60, "they are marked")
        text = lgm(c, "bookie", "under-replicated").stdout
        assert f"lacks {name(gone)}" in text, text
        spare.start()
        wait_whole(c, [name(gone)])
        consume(c, "waiting", log)


def kept_in_its_groups(folder):
    """A namespace's ledgers are where its groups are, also what is made again of them."""
    with hosts(folder, bookies=5) as c:
        gold = [name(b) for b in c.bookies[:2]]
        groups = {"gold": gold, "silver": [name(c.bookies[2])], "other": [name(c.bookies[3])]}

        def admin(method, path, body=None):
            status, text = c.brokers[0].http("/admin/v2/" + path, method, body)
            assert status in (200, 204), (path, status, text)

        def place(bookie, group):
            admin("POST", f"bookies/racks-info/{bookie}?group={group}", {"rack": f"/r/{bookie}"})

        def named():
            return set(named_in(ledgers(c)))
        for group, them in groups.items():
            for bookie in them:
                place(bookie, group)
        admin("PUT", "namespaces/public/bound", {})
        admin("POST", "namespaces/public/bound/persistence/bookieAffinity",
              {"bookkeeperAffinityGroupPrimary": "gold", "bookkeeperAffinityGroupSecondary": "silver"})
        log = os.path.join(folder, "bound.log")
        topic = "persistent://public/bound/t"
        c.run("verify", "produce", topic, "--count", "1500", "--rate", "1000", "--log", log)
        assert named() == {*gold, name(c.bookies[2])}, ledgers(c)
        lose(c.bookies[0])
        wait_until(lambda: marks(c), 60, "they are marked")
        # Two are there, and the group has no other.
        assert not named() & {name(b) for b in c.bookies[3:]}, ledgers(c)
        place(name(c.bookies[4]), "gold")
        wait_whole(c, [gold[0]])
        assert named() == {gold[1], name(c.bookies[2]), name(c.bookies[4])}, ledgers(c)
        v = verdict(c.run("verify", "consume", topic, "--log", log).stdout)
        assert v["lost"] == v["duplicated"] == v["reordered"] == 0 and v["checked"] > 0, v


def scrub(folder):
    """A bookie that stood while others wrote on lacks entries: nobody but a comparison can tell."""
    with hosts(folder, bookies=3, conf={"auditorPeriodicCheckInterval": 1, "zkTimeout": 60000}) as c:
        lgm(c, "bookie", "autorecovery", "pause")
        log = produce(c, folder, "before", 300)
        c.bookies[2].freeze()
        log2 = produce(c, folder, "meanwhile", 900)
        c.bookies[2].kill()
        c.bookies[2].start(60)
        c.brokers[0].stop()
        wrong, checked = lacking(c)
        assert wrong and checked, "it lacks nothing"
        lgm(c, "bookie", "autorecovery", "resume")
        wait_until(lambda: not lacking(c)[0], 60, "all replicas are there")
        c.brokers[0].start()
        consume(c, "before", log)
        consume(c, "meanwhile", log2)


def salvage(folder):
    """Two bookies of three are gone for good, with Qw=2: a third of the entries is nowhere."""
    with hosts(folder, bookies=3, conf={"autoRecoveryDaemonEnabled": "false"},
               broker_conf={"managedLedgerDefaultWriteQuorum": 2,
                            "managedLedgerMaxEntriesPerLedger": 50}) as c:
        log = produce(c, folder, "gone", 2000)
        c.brokers[0].kill()
        assert any(ledger.state == 3 for ledger in ledgers(c))
        opened = [ledger for ledger in ledgers(c) if ledger.state == 1]
        assert opened
        gone = [name(b) for b in c.bookies[:2]]
        for bookie in c.bookies[:2]:
            lose(bookie)
        wait_forgotten(c, gone)
        for ledger in opened:
            assert "is open" in lgm(c, "ledger", "inspect", str(ledger.id)).stdout
            assert lgm(c, "ledger", "recover", str(ledger.id), check=False).returncode == 1
            asked = lgm(c, "ledger", "force-close", str(ledger.id), check=False)
            assert asked.returncode == 1 and "would be closed" in asked.stdout, asked
            assert f"{gone[0]} does not answer" in asked.stdout, asked
            done = lgm(c, "ledger", "force-close", str(ledger.id), "--yes")
            assert f"ledger {ledger.id} is closed at" in done.stdout, done
        assert all(ledger.state == 3 for ledger in ledgers(c))
        for i, bookie in enumerate(c.bookies[:2]):
            bookie.live_at(f"127.0.0.{i + 7}")
            bookie.start()
        skipped = 0
        for ledger in ledgers(c):
            words = ["skip", str(ledger.id)]
            asked = lgm(c, "ledger", *words, check=False)
            if "nothing to skip" in asked.stdout:
                continue
            assert asked.returncode == 1 and "given up:" in asked.stdout, asked
            assert "may have some of them" in asked.stdout, asked
            text = lgm(c, "ledger", *words, "--yes").stdout
            skipped += int(text.rsplit(" entries of ledger", 1)[0].rsplit("\n", 1)[1])
            assert "0 entries cannot be read" in lgm(c, "ledger", "inspect", str(ledger.id)).stdout
        assert skipped > 10, skipped
        c.brokers[0].start()
        done = c.run("verify", "consume", TOPIC + "gone", "--log", log, "--idle", "3", check=False)
        v = verdict(done.stdout)
        assert v["lost"] > 0 and v["checked"] > 0 and v["duplicated"] == v["reordered"] == 0, v


def embedded_metadata(folder):
    """The same over RocksDB: one bookie of a standalone leaves.  The store is read while nothing runs."""
    args = [w for pair in ("autoRecoveryDaemonEnabled=true", "openLedgerRereplicationGracePeriod=200",
                           "rwRereplicateBackoffMs=200") for w in ("--bookie-set", pair)]
    s = Standalone(BUILD, folder, bookies=4, args=[*args, "--log", "info"])
    words = [s.lgm, "bookie", "decommission", "bookie-1", "--no-wait", "--metadata",
             "rocksdb:" + os.path.join(s.data, "metadata")]
    # Each topic's ledgers are on three of the four bookies: one of many is on bookie-1.
    logs = {f"t{i}": os.path.join(folder, f"log-{i}") for i in range(8)}

    def decommission():
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60 * SLOW).stdout
    s.start()
    for topic, log in logs.items():
        s.run("verify", "produce", topic, "--count", "200", "--log", log)
    s.stop()
    text = decommission()
    named = int(text.split(" ledgers name")[0].rsplit("\n", 1)[-1])
    assert named > 0, text
    s.start()
    wait_until(lambda: s.output().count("ledger.repaired") >= named, 60, "it is empty")
    for topic, log in logs.items():
        v = verdict(s.run("verify", "consume", topic, "--log", log).stdout)
        assert v["lost"] == v["duplicated"] == v["reordered"] == 0, v
    s.stop()
    text = decommission()
    assert "bookie-1 is decommissioned" in text, text


CASES = [lost_bookies, lost_while_written, decommission_of_one_that_runs, pause_and_resume,
         marks_that_wait, kept_in_its_groups, scrub, salvage, embedded_metadata]

Cases().run_all(CASES, ONLY)
