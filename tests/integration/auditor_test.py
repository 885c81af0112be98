#!/usr/bin/env python3
"""auditor_test.py - who looks for copies that were lost, when, and what he does with bookies that are to
leave: the auditor's shell, `lgm bookie decommission`, and the same over HTTP."""
import json
import os
import signal
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "lib"))
import lgm_copies  # noqa: E402
from lgm import SLOW, Cases, wait_until, arguments  # noqa: E402
from lgm_copies import consume, lgm, lose, most_used, name, produce, wait_forgotten, wait_whole  # noqa: E402
from lgm_ledgers import etcd_range, ledgers, mark_key, marks, named_in, put, registered, remove  # noqa: E402

BUILD, ONLY = arguments()
API = "/api/v1/autorecovery/"


def hosts(folder, **how):
    return lgm_copies.hosts(BUILD, folder, **how)


def call(bookie, path, method="GET", body=None, status=200):
    got, text = bookie.http(API + path, method, body, timeout=20)
    assert got == status, f"{method} {path}: {got} {text}"
    return text


def asked(cluster):
    """One that runs."""
    return next(b for b in cluster.bookies if b.is_running and b.is_ready())


def auditor(cluster, besides=()):
    """The bookie that audits, as soon as there is one."""
    def found():
        status, text = asked(cluster).http(API + "who_is_auditor")
        who = [b for b in cluster.bookies if text == "Auditor: " + name(b)] if status == 200 else []
        return who[0] if who and name(who[0]) not in besides else None
    return wait_until(found, 60, "there is an auditor")


def elected(bookie):
    status, text = bookie.http("/metrics")
    return status == 200 and "\nauditor_elected 1\n" in text


def audits(bookie):
    return bookie.output().count("auditor.audited")


def wait_audited(bookie):
    """From now on, a whole one."""
    before = audits(bookie)
    wait_until(lambda: audits(bookie) > before, 60, "it has audited")


def cookies(cluster):
    return {key.rsplit("/", 1)[1] for key, _ in etcd_range(cluster.etcd, "/ledgers/cookies/")}


def leaving(cluster):
    return [key for key, _ in etcd_range(cluster.etcd, "/lgm/leaving/")]


# ---- who audits -------------------------------------------------------------------------------------

def another_takes_over(folder):
    """The auditor itself is lost: the next one sees to its copies."""
    with hosts(folder) as c:
        log = produce(c, folder, "t", 800)
        first = auditor(c)
        wait_until(lambda: elected(first), 30, "it says so")
        named = named_in(ledgers(c))
        lose(first)
        second = auditor(c, besides=[name(first)])
        second.wait_for_event("auditor.elected")  # the metadata names it before it hears of that
        wait_until(lambda: [b for b in c.bookies if b.is_running and elected(b)] == [second], 30, "one audits")
        if named[name(first)]:
            wait_whole(c, [name(first)])
        consume(c, "t", log)


def one_that_stood_is_deposed(folder):
    with hosts(folder, bookies=4) as c:
        first = auditor(c)
        first.freeze()
        wait_forgotten(c, [name(first)])
        second = auditor(c, besides=[name(first)])
        first.thaw()
        first.wait_for_event("auditor.deposed", 60)
        wait_until(lambda: elected(second) and not elected(first), 30, "one audits")
        log = produce(c, folder, "t", 500)
        named = named_in(ledgers(c))  # three of four: one of these two at least
        gone = max((b for b in c.bookies if b not in (first, second)), key=lambda b: named[name(b)])
        assert named[name(gone)]
        lose(gone)
        wait_whole(c, [name(gone)])
        assert "ledger.marked" not in first.output()
        consume(c, "t", log)


# ---- when -------------------------------------------------------------------------------------------

def it_waits_and_does_not_when_it_is_asked(folder):
    with hosts(folder, bookies=4, conf={"lostBookieRecoveryDelay": 3600}) as c:
        log = produce(c, folder, "t", 800)
        gone = most_used(c)
        first = auditor(c)
        assert call(asked(c), "lost_bookie_recovery_delay") == "lostBookieRecoveryDelay value: 3600"
        gone.kill()
        wait_forgotten(c, [name(gone)])
        first = auditor(c, besides=[name(gone)])
        wait_until(lambda: "auditor_lost_bookies 1" in first.http("/metrics")[1], 30, "it knows")
        assert not marks(c) and named_in(ledgers(c))[name(gone)]
        call(first, "status?enabled=false", "PUT")
        assert "giving up" in call(first, "trigger_audit", "PUT", status=404)
        assert json.loads(call(first, "status?enabled=true", "PUT")) == {"enabled": True}
        assert call(first, "trigger_audit", "PUT") == "Success trigger audit."
        wait_whole(c, [name(gone)])
        consume(c, "t", log)


def a_delay_that_is_written_holds_at_once(folder):
    """As BookKeeper's shell writes it; and the same value again asks for an audit, as its triggeraudit does."""
    with hosts(folder, bookies=4, conf={"lostBookieRecoveryDelay": 0}) as c:
        produce(c, folder, "t", 500)
        first = auditor(c)
        put(c.etcd, "/ledgers/underreplication/lostBookieRecoveryDelay", b"3600")
        wait_audited(first)
        gone = next(b for b in c.bookies if b is not first and named_in(ledgers(c))[name(b)])
        gone.kill()
        wait_forgotten(c, [name(gone)])
        wait_until(lambda: "auditor_lost_bookies 1" in first.http("/metrics")[1], 30, "it knows")
        assert not marks(c) and named_in(ledgers(c))[name(gone)]
        put(c.etcd, "/ledgers/underreplication/lostBookieRecoveryDelay", b"3600")
        wait_whole(c, [name(gone)])


# ---- what cannot be read ----------------------------------------------------------------------------

def a_mark_that_nobody_can_read_is_written_anew(folder):
    with hosts(folder, bookies=3) as c:  # nobody to copy to
        produce(c, folder, "t", 500)
        gone = next(b for b in c.bookies if b is not auditor(c))
        ledger = next(l.id for l in ledgers(c) if any(name(gone) in who for _, who in l.fragments))
        put(c.etcd, mark_key(ledger), b"\xff\xfe no mark")
        lose(gone)
        first = auditor(c, besides=[name(gone)])
        first.wait_for_event(f"auditor.mark_unreadable ledger={ledger}", 60)

        def written():
            values = [v for k, v in etcd_range(c.etcd, mark_key(ledger)) if k == mark_key(ledger)]
            return values and name(gone).encode() in values[0]
        wait_until(written, 30, "it says who lacks")
        listed = json.loads(call(asked(c), f"list_under_replicated_ledger?missingreplica={name(gone)}"))
        assert ledger in listed, listed
        call(asked(c), f"list_under_replicated_ledger?excludingmissingreplica={name(gone)}", status=404)
        call(asked(c), "list_under_replicated_ledger?missingreplica=nobody", status=404)
        shown = json.loads(call(asked(c), "list_under_replicated_ledger?printmissingreplica=true"))
        assert shown[str(ledger)] == [name(gone)], shown


def spoil(cluster):
    """Metadata of a ledger that nobody can read: its key and what it was."""
    for key, value in etcd_range(cluster.etcd, "/ledgers/00"):
        put(cluster.etcd, key, b"BookieMetadataFormatVersion\t3\n\x05\xff\xff\xff\xff\xff")
        return key, value
    raise AssertionError("no ledger")


def nobody_leaves_while_a_ledger_cannot_be_read(folder):
    with hosts(folder, bookies=4) as c:
        log = produce(c, folder, "t", 500)
        goes = most_used(c)
        c.brokers[0].stop()
        key, value = spoil(c)
        call(asked(c), "decommission", "PUT", {"bookie_src": name(goes), "delete_cookie": "true"})
        goes.wait_for_event("bookie.set_readonly")
        first = auditor(c)
        first.wait_for_event("auditor.ledger_unreadable", 60)
        for _ in range(3):
            wait_audited(first)
        assert name(goes) in cookies(c) and leaving(c)
        done = lgm(c, "bookie", "decommission", name(goes), "--no-wait")
        assert "1 cannot be read" in done.stdout and "is decommissioned" not in done.stdout, done
        # That wish has no cookie in it: it is the command's.
        call(asked(c), "decommission", "PUT", {"bookie_src": name(goes), "delete_cookie": "true"})
        put(c.etcd, key, value)
        wait_until(lambda: name(goes) not in cookies(c), 60, "its cookie has gone")
        assert not leaving(c)
        c.brokers[0].start()
        wait_whole(c, [name(goes)])
        consume(c, "t", log)


# ---- one that is to leave ---------------------------------------------------------------------------

def over_http(folder):
    with hosts(folder, bookies=4) as c:
        log = produce(c, folder, "t", 800)
        goes = most_used(c)
        for body in (None, {}, [], {"bookie_src": 1}, {"bookie_src": ""}, {"bookie_src": "a/b"}):
            call(asked(c), "decommission", "PUT", body, 400)
        call(asked(c), "decommission", "PUT", {"bookie_src": "nobody"}, 404)
        assert call(asked(c), "decommission", "PUT", {"bookie_src": name(goes), "delete_cookie": "true"}) == \
            f"Success send decommission Bookie command {name(goes)}"
        wait_until(lambda: name(goes) not in cookies(c), 90, "its cookie has gone")
        auditor(c).wait_for_event(f"auditor.cookie_removed bookie={name(goes)}")
        assert goes.is_running and not leaving(c)
        wait_whole(c, [name(goes)])
        goes.kill()
        goes.refuses_to_start("bookie.cookie_refused")
        consume(c, "t", log)


def recovery_of_lost_ones_over_http(folder):
    """Without its cookie being removed it may come back, empty as it is."""
    with hosts(folder, bookies=5, conf={"lostBookieRecoveryDelay": 3600}) as c:
        log = produce(c, folder, "t", 800)
        gone = next(b for b in c.bookies if named_in(ledgers(c))[name(b)])
        gone.kill()
        wait_forgotten(c, [name(gone)])
        for body in ({"bookie_src": []}, {"bookie_src": [1]}, {"bookie_src": name(gone)}, {}):
            call(asked(c), "bookie", "PUT", body, 400)
        call(asked(c), "bookie", "PUT", {"bookie_src": [name(gone), "nobody"]}, 404)
        assert call(asked(c), "bookie", "PUT", {"bookie_src": [name(gone)]}) == \
            "Success send recovery request command."
        wait_whole(c, [name(gone)])
        assert name(gone) in cookies(c)
        consume(c, "t", log)


def of_one_that_is_gone(folder):
    with hosts(folder, bookies=4, conf={"lostBookieRecoveryDelay": 3600}) as c:
        log = produce(c, folder, "t", 800)
        gone = most_used(c)
        lose(gone)
        wait_forgotten(c, [name(gone)])
        done = lgm(c, "bookie", "decommission", name(gone))
        assert "is decommissioned" in done.stdout and f"name {name(gone)}" in done.stdout, done
        assert name(gone) not in cookies(c) and not leaving(c)
        wait_whole(c, [name(gone)])
        consume(c, "t", log)


def it_may_stay_after_all(folder):
    """--no-wait, then --cancel: nothing is copied that was not, and its next start is as ever."""
    with hosts(folder, bookies=4) as c:
        log = produce(c, folder, "t", 800)
        lgm(c, "bookie", "autorecovery", "pause")
        goes = most_used(c)
        named = named_in(ledgers(c))[name(goes)]
        done = lgm(c, "bookie", "decommission", name(goes), "--no-wait")
        assert "autorecovery is paused" in done.stdout, done
        goes.wait_for_event("bookie.set_readonly")
        wait_until(lambda: f"{name(goes)}" in registered(c), 30, "it is read-only, and there")
        again = lgm(c, "bookie", "decommission", name(goes), "--no-wait")
        assert f" ledgers name {name(goes)}" in again.stdout and "is decommissioned" not in again.stdout
        assert "stays" in lgm(c, "bookie", "decommission", name(goes), "--cancel").stdout
        assert not leaving(c) and name(goes) in cookies(c)
        lgm(c, "bookie", "autorecovery", "resume")
        before = audits(auditor(c))
        call(asked(c), "trigger_audit", "PUT")
        wait_until(lambda: audits(auditor(c)) > before, 60, "it has audited")
        assert not marks(c) and named_in(ledgers(c))[name(goes)] >= named
        goes.stop()
        goes.start()
        assert json.loads(goes.http("/api/v1/bookie/state/readonly")[1]) == {"readOnly": False}
        consume(c, "t", log)


def it_waits_until_there_is_somebody_to_copy_to(folder):
    """Stopped with Ctrl-C and run again, it goes on where it was."""
    with hosts(folder, bookies=4) as c:
        spare = c.bookies[3]
        spare.stop()
        log = produce(c, folder, "t", 500)
        c.brokers[0].stop()  # what is open stays so, or is closed by the repair
        goes = c.bookies[0]
        words = [c.lgm, "bookie", "decommission", name(goes), "--metadata", c.etcd.url]
        waiting = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        goes.wait_for_event("bookie.set_readonly")
        wait_until(lambda: marks(c), 60, "they are marked")
        waiting.send_signal(signal.SIGINT)
        told, _ = waiting.communicate(timeout=30 * SLOW)
        assert f" ledgers name {name(goes)}" in told and "is decommissioned" not in told, told
        assert name(goes) in cookies(c)
        spare.start()
        done = lgm(c, "bookie", "decommission", name(goes))
        assert "is decommissioned" in done.stdout, done
        assert name(goes) not in cookies(c)
        c.brokers[0].start()
        wait_whole(c, [name(goes)])
        consume(c, "t", log)


def it_says_what_is_wrong(folder):
    with hosts(folder, bookies=1) as c:
        for words, code, text in ((["nobody"], 1, "has no cookie"), (["a/b"], 2, "cannot be a bookie's id"),
                                  ([], 2, "is not known"), (["x", "y"], 2, "is not known")):
            done = lgm(c, "bookie", "decommission", *words, check=False)
            assert done.returncode == code and text in done.stderr, (words, done)
        # A cookie that was taken away by hand leaves nothing to do.
        one = c.bookies[0]
        remove(c.etcd, "/ledgers/cookies/" + name(one))
        assert lgm(c, "bookie", "decommission", name(one), check=False).returncode == 1


CASES = [another_takes_over, one_that_stood_is_deposed, it_waits_and_does_not_when_it_is_asked,
         a_delay_that_is_written_holds_at_once, a_mark_that_nobody_can_read_is_written_anew,
         nobody_leaves_while_a_ledger_cannot_be_read, over_http, recovery_of_lost_ones_over_http,
         of_one_that_is_gone, it_may_stay_after_all, it_waits_until_there_is_somebody_to_copy_to,
         it_says_what_is_wrong]

Cases().run_all(CASES, ONLY)
