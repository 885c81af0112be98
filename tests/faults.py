#!/usr/bin/env python3
"""faults.py - a cluster under `lgm verify` while a seeded schedule of faults happens to it.

    tests/faults.py --build build --minutes 30
    tests/faults.py --build build --minutes 5 --seed 1234          the same schedule again
    tests/faults.py --build build --minutes 5 --only kill cut      some kinds of faults
    tests/faults.py --build build --restore                        metadata that goes back

etcd, two brokers, five bookies with an address each, E=3 Qw=3 Qa=2.  Faults come one, two or three at a
time; then the cluster must go on by itself.  In the end nothing is lost, doubled or out of order, and
every replica of every entry is where the metadata says, without an operator.
A program that ends by itself is started again, as a supervisor does it; one that dies by a signal which
nobody has sent fails the run.
"""
import argparse
import contextlib
import heapq
import os
import random
import re
import shutil
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
sys.path.insert(0, os.path.join(here, "lib"))
import lgm  # noqa: E402
from lgm_cluster import ETCD, Cluster, stable_port  # noqa: E402
from lgm_ledgers import (CLOSED, etcd_range, lacking, ledgers, marks, named_in,  # noqa: E402
                         number, owned, registered, remove)
from lgm_net import Net, NotPermitted  # noqa: E402
from tiers import Load, Stalls, say_stalls  # noqa: E402

BOOKIE = {"zkTimeout": 4000, "rwRereplicateBackoffMs": 500, "openLedgerRereplicationGracePeriod": 2000,
          "auditorPeriodicCheckInterval": 15, "lgmScrubRateByBytes": -1, "flushInterval": 2000,
          "logSizeLimit": 16 << 20, "dbStorage_writeCacheMaxSizeMb": 16, "diskCheckInterval": 500,
          "diskUsageLwmThreshold": 0.9, "dataIntegrityChecking": "true",
          "dataIntegrityStampMissingCookies": "true", "gcWaitTime": 3000, "lgmGcTrashSeconds": 5,
          "gcOverreplicatedLedgerWaitTime": 10000, "minorCompactionInterval": 10,
          "majorCompactionInterval": 20, "compactionRateByEntries": -1}
BROKER = {"managedLedgerDefaultEnsembleSize": 3, "managedLedgerDefaultWriteQuorum": 3,
          "managedLedgerDefaultAckQuorum": 2, "managedLedgerMinLedgerRolloverTimeMinutes": 0,
          "managedLedgerMaxEntriesPerLedger": 3000, "bookkeeperClientTimeoutInSeconds": 5}
# With records a second: what is kept is consumed in the end, the fast one has several entries on their way.
TOPICS = {"public/default/gone-1": 150, "public/default/gone-2": 150, "public/kept/kept-1": 600,
          "public/kept/kept-2": 150}
DISK_MB = 512
GOES_ON_S = 60  # after the faults are over
WHOLE_S = 240
LIVES_MAX = 40  # of a program that ends by itself


# ---- the cluster ----------------------------------------------------------------------------------

class Disk:
    """A bookie's own device, as small as can be filled."""

    def __init__(self, bookie):
        self.path = os.path.join(bookie.folder, "data")
        os.makedirs(self.path, exist_ok=True)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "none", self.path],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise NotPermitted(f"mount: {done.stderr.strip()}")

    def close(self):
        subprocess.run(["umount", "-l", self.path], capture_output=True)

    def fill(self, leave):
        """Up to so many bytes, or as far as it goes."""
        at = os.statvfs(self.path)
        size = at.f_bavail * at.f_frsize - leave
        f = os.open(os.path.join(self.path, "filler"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with contextlib.suppress(OSError):
            os.posix_fallocate(f, 0, max(size, 1))
        with contextlib.suppress(OSError):
            while leave == 0 and os.write(f, bytes(4096)) > 0:
                pass
        os.close(f)

    def empty(self):
        os.unlink(os.path.join(self.path, "filler"))


class World:
    """The cluster, what may be done to it, and who is down on purpose."""

    def __init__(self, args, folder, net, stack, **broker):
        self.net, self.began, self.disks, self.without = net, time.monotonic(), {}, {}
        c = Cluster(args.build, folder, bookies=5, brokers=2, bookie_conf=BOOKIE,
                    broker_conf={**BROKER, **broker},
                    etcd_host=f"{net.prefix}.2" if net else "127.0.0.1")
        self.cluster, self.etcd = c, c.etcd.nodes[0]
        for i, p in enumerate([self.etcd, *c.brokers, *c.bookies]):
            host = net.place(p) if net else f"127.0.0.{max(i - 2, 1)}"
            if p is not self.etcd:
                p.live_at(host)
        for b in c.bookies:
            try:
                self.disks[b] = disk = Disk(b)
                stack.callback(disk.close)
            except NotPermitted as e:
                self.without["fill"] = str(e)
        stack.enter_context(c)
        self.folder, self.loads, self.down, self.whole_ones = folder, [], set(), set()
        self.started_again, self.pauses = 0, None
        self.stalls = {"killed": [], "frozen": []}  # seconds, of rounds with nothing else

    @property
    def all(self):
        return [self.etcd, *self.cluster.brokers, *self.cluster.bookies]

    def say(self, text):
        print(f"      {time.monotonic() - self.began:7.1f} s  {text}", flush=True)

    def lgm(self, *words, seconds=240):
        words = [self.cluster.lgm, *words, "--metadata", self.cluster.etcd.url]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds * lgm.SLOW)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout

    def admin(self, path, method, body=None):
        """By any broker that answers."""
        for b in self.cluster.brokers:
            status, text = b.http("/admin/v2/" + path, method, body, timeout=30)
            if status in (200, 204):
                return True
        return False

    def load(self, idle=240):
        assert self.admin("namespaces/public/kept", "PUT", {})
        assert self.admin("namespaces/public/kept/retention", "POST",
                          {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
        self.loads = [Load(self.cluster, self.folder, "persistent://" + t, rate=rate, idle=idle,
                           more=["--no-batching"] if t.endswith("1") else [], late="/kept/" in t)
                      for t, rate in TOPICS.items()]

    def kill(self, *them):
        for p in them:
            self.down.add(p)
        for p in them:
            p.kill()

    def launch(self, *them):
        for p in them:
            self.down.discard(p)
            if not p.is_running:
                p.launch()

    def watch(self):
        """What a supervisor does, and what none should have to."""
        for p in self.all:
            if p in self.down or p.is_running:
                continue
            code, tail = p.process.returncode, p.output()[-3000:]
            assert code >= 0 and "Sanitizer" not in tail, f"{p.name} died with {code}:\n{tail}"
            self.say(f"{p.name} has ended with {code} and is started again: "
                     f"{tail.strip().rsplit(chr(10), 1)[-1]}")
            self.started_again += 1
            assert self.started_again < LIVES_MAX, f"{p.name} ends again and again:\n{tail}"
            p.launch()

    def rest(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.watch()
            time.sleep(min(left, 0.1))

    def wait(self, condition, seconds, what):
        def looked():
            self.watch()
            return condition()
        return lgm.wait_until(looked, seconds, what)

    # ---- whole again ----

    def is_ready(self):
        return all(p.is_running and p.is_ready() for p in self.all)

    def goes_on(self):
        """All are up and each topic is written and read; gives the longest time that one took."""
        began = time.monotonic()
        self.wait(self.is_ready, GOES_ON_S, "everybody is ready: " +
                  " ".join(p.name for p in self.all if not p.is_running))
        before = [load.lines() for load in self.loads]

        def further():
            for load in self.loads:
                assert load.producer.poll() is None, f"{load.topic}: {load.producer.communicate()}"
                assert not load.consumer or load.consumer.poll() is None, (load.topic,
                                                                           load.consumer.communicate())
            return all(load.lines() > n + 20 for load, n in zip(self.loads, before))
        self.wait(further, GOES_ON_S, f"publishing goes on: {[t.lines() for t in self.loads]} "
                                      f"after {before}")
        return time.monotonic() - began

    def unload(self):
        """So that the ledgers that are open now get their end."""
        self.admin("namespaces/public/default/unload", "PUT")
        self.admin("namespaces/public/kept/unload", "PUT")

    def wrong_now(self, opened):
        """What is not whole yet, in short; None: nothing."""
        found, there = ledgers(self.cluster), registered(self.cluster)
        if marked := marks(self.cluster):
            return f"{len(marked)} ledgers are marked: {marked[:5]}"
        if missing := set(named_in(found)) - there:
            return f"ledgers name {missing}"
        if still := owned(self.cluster, [ledger for ledger in found
                                         if ledger.id in opened and ledger.state != CLOSED]):
            return f"open: {still[:5]}"
        fresh = [ledger for ledger in found if ledger.state == CLOSED and ledger not in self.whole_ones]
        for ledger in fresh:
            wrong, _ = lacking(self.cluster, found=[ledger])
            if not wrong:
                self.whole_ones.add(ledger)
            elif ledger in ledgers(self.cluster):  # else it went meanwhile
                return f"{len(wrong)} entries, as {wrong[:5]}"
        return None

    def whole(self):
        """Every ledger that is there now has all its copies: waits for that, nobody helps."""
        began, last = time.monotonic(), "?"

        def is_whole():
            nonlocal last
            last = self.wrong_now(opened)
            return last is None
        opened = {ledger.id for ledger in ledgers(self.cluster) if ledger.state != CLOSED}
        self.unload()
        end = began + WHOLE_S * lgm.SLOW
        while not is_whole():
            assert time.monotonic() < end, f"not whole after {WHOLE_S * lgm.SLOW} s: {last}"
            self.rest(0.5)
        return time.monotonic() - began


# ---- faults: each draws what it does when it is chosen, then does it bit by bit -----------------------

def kill(w, rng, free):
    p, seconds = free(w.all), rng.uniform(0, 5)
    if not p:
        return
    yield f"kill -9 {p.name}, back after {seconds:.1f} s"
    w.kill(p)
    yield seconds
    w.launch(p)


def kill_many(w, rng, free):
    them = rng.choice([w.cluster.bookies, w.cluster.brokers, w.all, rng.sample(w.cluster.bookies, 3)])
    them, seconds = [p for p in them if free([p])], rng.uniform(0, 3)
    yield f"kill -9 {' '.join(p.name for p in them)} at once, back after {seconds:.1f} s"
    w.kill(*them)
    yield seconds
    w.launch(*them)


def stop(w, rng, free):
    p, seconds = free(w.all), rng.choice([1, 3, 10])
    if not p:
        return
    yield f"SIGSTOP {p.name} for {seconds} s"
    if p.is_running:
        p.freeze()
    yield seconds
    if p.is_running:
        p.thaw()


def cut(w, rng, free):
    a, b = rng.sample(w.all, 2)
    both, seconds = rng.random() < 0.4, rng.choice([2, 5, 12])
    yield f"cut {a.name} {'<->' if both else '-->'} {b.name} for {seconds} s"
    links = [(a, b), (b, a)] if both else [(a, b)]
    for x, y in links:
        w.net.cut(x, y)
    yield seconds
    for x, y in links:
        w.net.mend(x, y)


def alone(w, rng, free):
    p, seconds = free(w.all), rng.choice([2, 5, 12])
    if not p:
        return
    way = rng.choice(["hears nobody", "is heard by nobody", "is alone"])
    yield f"{p.name} {way} for {seconds} s"
    links = []
    for other in w.all:
        if other is not p:
            links += [(other, p)] if way != "is heard by nobody" else []
            links += [(p, other)] if way != "hears nobody" else []
    for x, y in links:
        w.net.cut(x, y)
    yield seconds
    for x, y in links:
        w.net.mend(x, y)


def fill(w, rng, free):
    b, seconds = free(w.cluster.bookies), rng.uniform(3, 12)
    if not b:
        return
    leave = rng.choice([0, 0, DISK_MB * 1024 * 1024 // 50, 64 * 1024])
    yield f"fill the disk of {b.name} up to {leave} bytes for {seconds:.1f} s"
    w.disks[b].fill(leave)
    yield seconds
    w.disks[b].empty()


class News:
    """What processes say from now on."""

    def __init__(self, them):
        self.at = {p: os.stat(p.log).st_size for p in them}

    def first_to_say(self, text, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for p, at in self.at.items():
                with open(p.log, "rb") as f:
                    f.seek(at)
                    said = f.read()
                if text in said:
                    return p
            time.sleep(0.0005)
        return None


def change(w, rng, free):
    """A broker dies while it puts another bookie in a failed one's place."""
    how, seconds = rng.choice(["at its start", "before its end", "after its end"]), rng.uniform(0, 2)
    yield f"kill -9 the broker inside an ensemble change, {how}"
    brokers = [b for b in w.cluster.brokers if b.is_running]
    bookies = [b for b in w.cluster.bookies if b.is_running and free([b])]
    if not brokers or not bookies or not free([w.etcd]):
        return
    named = named_in([ledger for ledger in ledgers(w.cluster) if ledger.state != CLOSED])
    victim = max(bookies, key=lambda b: named[b.conf["bookieId"]])
    if how == "before its end":
        w.etcd.freeze()
    news = News(brokers)
    w.kill(victim)
    broker = news.first_to_say(b"ledger.ensemble_changed" if how == "after its end" else
                               b"ledger.bookie_failed", 3)
    if broker:
        w.kill(broker)
    if how == "before its end":
        w.etcd.thaw()
    w.say(f"{victim.name} was killed, then {broker.name if broker else 'nobody'}")
    yield seconds
    w.launch(victim, *([broker] if broker else []))


def behind(w, rng, free):
    """A bookie lacks what the two others acknowledged, and answers first when its ledgers are recovered."""
    broker, bookie = free(w.cluster.brokers), free(w.cluster.bookies)
    seconds, thaws = rng.uniform(0.2, 2), rng.choice([0, 0, 0.01, 0.05])
    if not broker or not bookie:
        return
    yield f"SIGSTOP {bookie.name}, kill -9 {broker.name} after {seconds:.1f} s, then it goes on"
    if bookie.is_running:
        bookie.freeze()
    yield seconds
    w.kill(broker)
    yield thaws
    if bookie.is_running:
        bookie.thaw()
    w.launch(broker)


def wipe(w, rng, free):
    """Its disks are empty; it comes back as somebody else."""
    b = free(w.cluster.bookies)
    yield f"wipe {b.name}, which comes back under another name"
    old = b.conf["bookieId"]
    w.kill(b)
    clear(w, b)
    b.port = b.conf["bookiePort"] = stable_port()
    b.live_at(b.host)
    w.launch(b)
    yield from until_unnamed(w, old)


def retire(w, rng, free):
    """Its disks are empty; the old one is decommissioned, then it comes back under its name."""
    b = free(w.cluster.bookies)
    yield f"wipe {b.name}, which comes back after its decommission"
    w.kill(b)
    clear(w, b)
    command = subprocess.Popen([w.cluster.lgm, "bookie", "decommission", b.conf["bookieId"], "--metadata",
                                w.cluster.etcd.url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True)
    end = time.monotonic() + WHOLE_S * lgm.SLOW
    while command.poll() is None:
        assert time.monotonic() < end, f"{b.name} is not decommissioned after {WHOLE_S * lgm.SLOW} s"
        yield 0.2
    assert command.returncode == 0, command.stdout.read()
    w.launch(b)


def forget(w, rng, free):
    """Its disks are empty, and it comes back at once under its name: in limbo."""
    b = free(w.cluster.bookies)
    how = rng.choice(["", " and its cookie too"])
    yield f"wipe {b.name}{how}, which comes back at once under its name"
    w.kill(b)
    clear(w, b)
    if how:
        remove(w.cluster.etcd, "/ledgers/cookies/" + b.conf["bookieId"])
    w.launch(b)


def clear(w, b):
    for name in os.listdir(os.path.join(b.folder, "data")):
        shutil.rmtree(os.path.join(b.folder, "data", name))


def until_unnamed(w, old):
    end = time.monotonic() + WHOLE_S * lgm.SLOW
    while old in named_in(ledgers(w.cluster)):
        assert time.monotonic() < end, f"{old} is still named after {WHOLE_S * lgm.SLOW} s"
        yield 0.5


# How often, of 100 or so; and whether what was lost before must be made up for first: a quorum of Qa=2
# allows for one loss of a disk at a time.
FAULTS = {"kill": (kill, 25), "kill-many": (kill_many, 8), "stop": (stop, 20), "cut": (cut, 20),
          "alone": (alone, 10), "fill": (fill, 12), "change": (change, 12), "behind": (behind, 10), "wipe": (wipe, 5),
          "retire": (retire, 4), "forget": (forget, 5)}
LOSSES = ("wipe", "retire", "forget")
NEED_NET = ("cut", "alone")


# ---- the schedule -----------------------------------------------------------------------------------

class Free:
    """Who has no fault yet in this round."""

    def __init__(self, rng):
        self.rng, self.taken = rng, set()

    def __call__(self, them):
        left = [p for p in them if p.name not in self.taken]
        if not left:
            return None
        p = self.rng.choice(left)
        self.taken.add(p.name)
        return p


def play(w, faults):
    """(begin, generator): each goes on when it has waited long enough."""
    now = time.monotonic()
    due = [(now + begin, n, fault) for n, (begin, fault) in enumerate(faults)]
    heapq.heapify(due)
    while due:
        at, n, fault = heapq.heappop(due)
        w.rest(at - time.monotonic())
        seconds = next(fault, None)
        if seconds is not None:
            heapq.heappush(due, (time.monotonic() + seconds, n, fault))


def one_round(w, rng, kinds):
    weights = [FAULTS[kind][1] for kind in kinds]
    first = rng.choices(kinds, weights)[0]
    names = [first]
    if first not in LOSSES:
        others = [k for k in kinds if k not in LOSSES]
        names += rng.choices(others, k=rng.choice([0, 0, 1, 2]))
    else:
        w.say(f"whole after {w.whole():.1f} s")
    free, faults = Free(rng), []
    for name in names:
        fault = FAULTS[name][0](w, rng, free)
        begin = rng.uniform(0, 3) if faults else 0
        what = next(fault, "nobody is left for another")
        w.say(what + (f", {begin:.1f} s later" if faults else ""))
        faults.append((begin, fault))
    w.pauses.longest = 0
    play(w, faults)
    w.say(f"all go on after {w.goes_on():.1f} s")
    if len(names) == 1 and first in ("kill", "stop") and " bookie-" in what:
        w.stalls["killed" if first == "kill" else "frozen"].append(w.pauses.longest)


def all_faults(args, folder):
    rng = random.Random(args.seed)
    with contextlib.ExitStack() as stack:
        try:
            net = stack.enter_context(Net())
        except NotPermitted as e:
            print(f"skip  {' '.join(NEED_NET)}: {e}")
            net = None
        w = World(args, folder, net, stack)
        for kind, why in w.without.items():
            print(f"skip  {kind}: {why}")
        kinds = [k for k in args.only or FAULTS
                 if k not in w.without and (net or k not in NEED_NET)]
        w.load()
        w.pauses = Stalls(next(load.log for load in w.loads if load.topic.endswith("kept-1")))
        w.say(f"all go on after {w.goes_on():.1f} s")
        end = time.monotonic() + args.minutes * 60
        rounds = 0
        while time.monotonic() < end:
            one_round(w, rng, kinds)
            rounds += 1
            w.rest(rng.uniform(0, 2))
        w.say(f"{rounds} rounds; {w.started_again} programs had ended by themselves")
        quiet = w.pauses.of(5)
        w.pauses.over = True
        for what, stalls in w.stalls.items():
            if stalls:
                say_stalls(f"one bookie {what} and nothing else", stalls, quiet)
        for load in w.loads:
            load.end()
        w.say(f"whole after {w.whole():.1f} s")
        assert "0 ledgers are" in w.lgm("bookie", "under-replicated")
        wrong, checked = lacking(w.cluster)
        assert not wrong and checked > 0, wrong[:10]
        w.say(f"{checked} replicas are where they should be")


# ---- metadata that goes back ------------------------------------------------------------------------

def snapshot(w):
    w.kill(w.etcd)
    shutil.copytree(os.path.join(w.etcd.folder, "data"), os.path.join(w.folder, "snapshot"))
    w.launch(w.etcd)


def restore(w):
    w.kill(w.etcd)
    shutil.rmtree(os.path.join(w.etcd.folder, "data"))
    shutil.move(os.path.join(w.folder, "snapshot"), os.path.join(w.etcd.folder, "data"))
    w.launch(w.etcd)


def await_halts(w):
    """What a restored store does not know any more is deleted nowhere."""
    for b in w.cluster.bookies:
        b.wait_for_event("gc.halted", 60)


def is_all_ours(w):
    """Nobody got another's entries."""
    for p in w.cluster.brokers:
        assert "entry.unreadable" not in p.output(), f"{p.name}: another's entries were read"


def restored(args, folder):
    """Metadata goes back by some seconds, in which no ledger was made: nothing is lost."""
    with contextlib.ExitStack() as stack:
        w = World(args, folder, None, stack, managedLedgerMaxEntriesPerLedger=10000000,
                  managedLedgerMinLedgerRolloverTimeMinutes=10)
        w.load()
        w.say(f"all go on after {w.goes_on():.1f} s")
        for _ in range(3):
            snapshot(w)
            w.say(f"snapshot; all go on after {w.goes_on():.1f} s")
            w.rest(5)
            restore(w)
            w.say(f"restored; all go on after {w.goes_on():.1f} s")
        await_halts(w)
        for load in w.loads:
            load.end()
        is_all_ours(w)
        w.wait(lambda: w.wrong_now(()) is None, WHOLE_S, "every ledger that is closed is whole")


def times_created(w, ledger):
    return sum(len(re.findall(rf" ledger\.created ledger={ledger}\b", b.output())) for b in w.cluster.brokers)


def restored_without_ledgers(args, folder, moves=False):
    """Ledgers were made meanwhile, and positions moved: the brokers, who live on, write back what the store
    has forgotten.  Nobody else gets a ledger's id, and whoever opens the topics next finds all of it.
    moves: other brokers serve the topics than the store says afterwards."""
    with contextlib.ExitStack() as stack:
        w = World(args, folder, None, stack, managedLedgerMaxEntriesPerLedger=300,
                  managedLedgerCursorMaxEntriesPerLedger=20)
        w.load()
        w.say(f"all go on after {w.goes_on():.1f} s")
        forgotten = set()
        for _ in range(3):
            snapshot(w)
            w.say(f"snapshot; all go on after {w.goes_on():.1f} s")
            known = {ledger.id for ledger in ledgers(w.cluster)}
            if moves:
                w.unload()
                w.say(f"moved; all go on after {w.goes_on():.1f} s")
            w.rest(6)
            made = {ledger.id for ledger in ledgers(w.cluster)
                    if ledger.id not in known and ledger.state == CLOSED}
            twice = [k for k in forgotten & made if times_created(w, k) > 1]  # others were written back late
            assert not twice, f"ids were given out twice: {twice}"
            restore(w)
            forgotten |= made
            w.say(f"restored, without {len(made)} ledgers; all go on after {w.goes_on():.1f} s")
        assert forgotten
        await_halts(w)
        again = sum(load.end()["redelivered"] for load in w.loads if load.consumer)
        assert moves or again == 0, "positions have gone back"
        w.loads = [load for load in w.loads if load.consumer is None]
        w.unload()
        w.say(f"unloaded; all go on after {w.goes_on():.1f} s")
        for load in w.loads:
            load.end()
        is_all_ours(w)
        written_back(w, forgotten)


def written_back(w, forgotten):
    """What the topics name is there, and whole."""
    lived = sum(b.output().count(" managed_ledger.written_back ") for b in w.cluster.brokers)
    moved = sum(b.output().count(" cursor.written_back ") for b in w.cluster.brokers)
    assert lived and moved, (lived, moved)
    there = {ledger.id for ledger in ledgers(w.cluster)}
    nodes = [value for _, value in etcd_range(w.cluster.etcd, "/managed-ledgers/")]
    named = {k for k in forgotten if any(number(k) in value for value in nodes)}
    assert named and named <= there, named - there
    w.wait(lambda: w.wrong_now(()) is None, WHOLE_S, "every ledger that is closed is whole")
    w.say(f"{lived} topics and {moved} positions were written back; of {len(forgotten)} forgotten ledgers "
          f"{len(named)} are in their topics, and the others were trimmed")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", nargs="+", choices=FAULTS)
    parser.add_argument("--restore", action="store_true", help="metadata that goes back, in place of the schedule")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    cases = lgm.Cases()

    def case(folder):
        if not os.path.exists(ETCD):
            raise lgm.Skip(f"there is no {ETCD} (Debian package etcd-server)")
        all_faults(args, folder)
    if args.restore:
        cases.run("metadata goes back", lambda folder: restored(args, folder))
        cases.run("metadata goes back without ledgers", lambda folder: restored_without_ledgers(args, folder))
        cases.run("metadata goes back past a move",
                  lambda folder: restored_without_ledgers(args, folder, moves=True))
    else:
        cases.run("faults", case)
    cases.end()


if __name__ == "__main__":
    main()
