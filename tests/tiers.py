#!/usr/bin/env python3
"""tiers.py - brokers, bookies and etcd as processes of their own, each killed, frozen or taken away
under `lgm verify`.

    tests/tiers.py --build build crash --rounds 30
    tests/tiers.py --build build two-owners --rounds 200
    tests/tiers.py --build build etcd-away --seconds 60
    tests/tiers.py --build build frozen-bookie one-tier-alone
    tests/tiers.py --build build stall-by-kill --rounds 100
    tests/tiers.py --build build stall-by-freeze --rounds 10
    tests/tiers.py --build build takeover-with-frozen

Everything must end in lost=0 duplicated=0 reordered=0.
"""
import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))
import lgm  # noqa: E402
from lgm_cluster import ETCD, Cluster  # noqa: E402


class Load:
    """A verifying producer and consumer on one topic, through all brokers."""

    def __init__(self, cluster, folder, topic="verify-me", rate=5000, more=(), consume=(), idle=90,
                 late=False):
        """late: consumed in the end, when all of it comes from the bookies."""
        self.cluster, self.topic = cluster, topic
        self.log = os.path.join(folder, topic.replace("/", "-") + ".log")
        self.url = "pulsar://" + ",".join(f"{b.host}:{b.port}" for b in cluster.brokers)
        self.producer = self.spawn("verify", "produce", topic, "--count", "1000000000", "--log",
                                   self.log, "--rate", str(rate), *more)
        lgm.wait_until(lambda: os.path.exists(self.log) and self.lines() > 10, 30,
                       "first acknowledgements")
        self.consume = ["verify", "consume", topic, "--log", self.log, "--idle", str(idle), *consume]
        self.is_ordered = not consume
        self.consumer = None if late else self.spawn(*self.consume)
        if not late:
            lgm.wait_until(self.is_consumed, 30, "the consumer is in")

    def is_consumed(self):
        pages = [b.http("/metrics")[1] for b in self.cluster.brokers]
        return any(re.search(r"^pulsar_broker_consumers_count{.*} [1-9]", page, re.M) for page in pages)

    def spawn(self, *words):
        return subprocess.Popen([self.cluster.lgm, *words, "--url", self.url], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def lines(self):
        with open(self.log, "rb") as f:
            return f.read().count(b"\n")

    def wait_for_progress(self, seconds, what, records=100):
        before, began = self.lines(), time.monotonic()

        def more():
            assert self.producer.poll() is None, f"the producer ended: {self.producer.communicate()}"
            return self.lines() > before + records
        lgm.wait_until(more, seconds, what)
        return time.monotonic() - began

    def end(self, all_there=True):
        self.producer.send_signal(signal.SIGINT)
        out, err = self.producer.communicate(timeout=60 * lgm.SLOW)
        assert self.producer.returncode == 0, f"producer: {self.producer.returncode} {out} {err}"
        print(f"      {out.strip()}")
        self.consumer = self.consumer or self.spawn(*self.consume)
        out, err = self.consumer.communicate(timeout=300 * lgm.SLOW)
        print(f"      {out.strip()} {err.strip()}", flush=True)
        verdict = lgm.verdict(out)
        assert self.consumer.returncode == 0 or not all_there, f"consumer: {self.consumer.returncode} {out} {err}"
        assert verdict["lost"] == 0 or not all_there
        assert verdict["duplicated"] == 0
        assert verdict["reordered"] == 0 or not self.is_ordered
        assert verdict["checked"] > 0
        return verdict


def crash(args, folder):
    """kill -9 of each process in turn and of all at once, each back after 1 to 5 s."""
    rng = random.Random(args.seed)
    with Cluster(args.build, folder) as c:
        load = Load(c, folder)
        turns = [[p] for p in [*c.brokers, *c.bookies, *c.etcd.nodes]]
        turns.append([*c.brokers, *c.bookies, *c.etcd.nodes])
        slowest = 0
        for round_ in range(args.rounds):
            victims = turns[round_ % len(turns)]
            time.sleep(rng.uniform(0.2, 1.5))
            for p in victims:
                p.kill()
            time.sleep(rng.uniform(1, 5))
            for p in victims:
                p.launch()
            for p in victims:
                p.wait_ready(30)
            took = load.wait_for_progress(5, "publishing goes on within 5 s of the return")
            slowest = max(slowest, took)
            print(f"      round {round_ + 1}: {' '.join(p.name for p in victims)}: publishing {took:.2f} s "
                  "after the return", flush=True)
        load.end()
        print(f"      publishing at most {slowest:.2f} s after a return")


def shared(args, folder):
    """Eight consumers of a Shared subscription that come and go, others killed with what they hold,
    brokers killed: every record at least once."""
    rng = random.Random(args.seed)
    with Cluster(args.build, folder, brokers=2) as c:
        load = Load(c, folder, consume=["-t", "Shared", "--consumers", "8", "--churn", "200"])
        takers = [lgm.Taker(load.topic, [b.port for b in c.brokers]) for _ in range(2)]
        for round_ in range(args.rounds):
            time.sleep(rng.uniform(0.2, 1.5))
            for taker in takers:
                taker.kill()
            victim = rng.choice([*c.brokers, *c.bookies])
            victim.kill()
            time.sleep(rng.uniform(0, 1))
            victim.start()
            took = load.wait_for_progress(15, "publishing goes on")
            print(f"      round {round_ + 1}: {victim.name}: publishing {took:.2f} s after the return",
                  flush=True)
        for taker in takers:
            taker.end()
        load.end()  # what the takers held, and nobody else had seen, came to the others: nothing is lost


def bundle_of(topic):
    """Of the four equal ranges of a namespace."""
    quarter = zlib.crc32(f"persistent://public/default/{topic}".encode()) >> 30
    return f"0x{quarter << 30:08x}_0x{(quarter + 1) << 30 if quarter < 3 else 0xffffffff:08x}"


def owner_of(cluster, topic):
    """The broker that serves it, as any broker that answers says."""
    for b in cluster.brokers:
        status, text = b.http(f"/lookup/v2/topic/persistent/public/default/{topic}", timeout=2)
        if status == 200:
            url = json.loads(text)["brokerUrl"]
            return next(b for b in cluster.brokers if b.url == url)
    return None


def two_owners(args, folder):
    """The owner is frozen, another takes its topic, the old one wakes up and goes on publishing."""
    rng = random.Random(args.seed)
    with Cluster(args.build, folder, brokers=2) as c:
        load = Load(c, folder, rate=2000)
        refused = 0
        for round_ in range(args.rounds):
            old = lgm.wait_until(lambda: owner_of(c, load.topic), 30, "somebody owns the topic")
            new = next(b for b in c.brokers if b is not old)
            bundle = bundle_of(load.topic)
            time.sleep(rng.uniform(0, 0.2))
            old.freeze()
            try:
                status, text = new.http(f"/admin/v2/namespaces/public/default/{bundle}/unload"
                                        f"?destinationBroker=127.0.0.1:{new.web_port}", "PUT",
                                        timeout=20)
                assert status == 204, (status, text)
                c.run("produce", load.topic, "-m", "taken", broker=c.brokers.index(new))
                time.sleep(rng.uniform(0, 0.2))
            finally:
                old.thaw()
            load.wait_for_progress(20, "publishing goes on through the new owner")
            refused += "fenced" in old.output().lower()
            if (round_ + 1) % 20 == 0:
                print(f"      round {round_ + 1}", flush=True)
        assert refused > 0, "no old owner was ever refused: nothing was tested"
        load.end()


def etcd_away(args, folder):
    """Open ledgers are written and read on while the metadata store is away; then all is as before."""
    with Cluster(args.build, folder) as c:
        load = Load(c, folder)
        for how in ("frozen", "dead"):
            c.etcd.freeze() if how == "frozen" else c.etcd.kill()
            end = time.monotonic() + args.seconds
            while time.monotonic() < end:
                load.wait_for_progress(5, f"publishing goes on while etcd is {how}")
            c.etcd.thaw() if how == "frozen" else c.etcd.start()
            lgm.wait_until(lambda: c.run("produce", f"new-{how}", "-m", "x", check=False,
                                         seconds=60).returncode == 0, 30, "a new topic can be made")
            for b in c.bookies:
                lgm.wait_until(b.is_ready, 30, "the bookie is ready")
            load.wait_for_progress(5, "publishing goes on")
        load.end()


def frozen_bookie(args, folder):
    """E=3 Qw=3 Qa=2: one frozen, then one dead bookie costs no acknowledged entry; it rejoins."""
    with Cluster(args.build, folder) as c:
        load = Load(c, folder)
        c.bookies[1].freeze()
        load.wait_for_progress(5, "publishing goes on with one bookie frozen")
        c.bookies[1].thaw()
        load.wait_for_progress(10, "publishing goes on")
        c.bookies[2].kill()
        c.bookies[2].start()
        load.wait_for_progress(5, "publishing goes on after a bookie came back")
        load.end()


def one_tier_alone(args, folder):
    """Each tier is stopped and started while the other works."""
    with Cluster(args.build, folder) as c:
        load = Load(c, folder)
        c.brokers[0].stop()
        for b in c.bookies:
            assert b.is_ready()
        c.brokers[0].start()
        load.wait_for_progress(5, "publishing goes on after the broker's restart")
        for b in c.bookies:
            b.stop()
        assert c.brokers[0].http("/status.html")[0] == 200
        for b in c.bookies:
            b.start()
        load.wait_for_progress(5, "publishing goes on after the bookies' restart")
        for b in c.bookies:  # one by one, as an upgrade does it
            b.stop()
            b.start()
            load.wait_for_progress(5, "publishing goes on in the middle of a rolling restart")
        load.end()


class Stalls(threading.Thread):
    """The longest time without a further acknowledgement, by the growth of the producer's log."""

    def __init__(self, log):
        super().__init__(daemon=True)
        self.log, self.over = log, False
        self.grown_at, self.longest = time.monotonic(), 0
        self.start()

    def run(self):
        size = 0
        while not self.over:
            now, seen = time.monotonic(), os.stat(self.log).st_size
            self.longest = max(self.longest, now - self.grown_at)
            if seen != size:
                size, self.grown_at = seen, now
            time.sleep(0.0005)

    def of(self, seconds):
        """The longest one from now on, for so many seconds; a longer one is waited for."""
        self.longest = 0
        time.sleep(seconds)
        lgm.wait_until(lambda: time.monotonic() - self.grown_at < 1, 60, "acknowledgements go on")
        return self.longest


def five_hosts(args, folder):
    """E=3 Qw=3 Qa=2 on five bookies with an address each."""
    c = Cluster(args.build, folder, bookies=5)
    for i, b in enumerate(c.bookies):
        b.live_at(f"127.0.0.{i + 1}")
    return c


def say_stalls(what, stalls, quiet):
    """Gives the longest, in ms."""
    ms = sorted(round(1000 * s) for s in stalls)
    p99 = ms[min(len(ms) - 1, len(ms) * 99 // 100)]
    print(f"      {what}: {len(ms)} times, stall median {ms[len(ms) // 2]} ms, p99 {p99} ms, most {ms[-1]} ms; "
          f"without it the longest pause is {round(1000 * quiet)} ms", flush=True)
    return ms[-1]


def tell_stalls(what, stalls, quiet):
    assert stalls, f"no {what} bookie was one of the ledger's"
    most = say_stalls(what, stalls, quiet)
    assert most < 5000 * lgm.SLOW, f"publishing stood for {most} ms"


def stall_by_kill(args, folder):
    """How long publishing stands when a bookie of the ledger is killed: goal p99 < 200 ms."""
    rng = random.Random(args.seed)
    with five_hosts(args, folder) as c:
        load = Load(c, folder, rate=2000)
        stalls = Stalls(load.log)
        quiet, seen = stalls.of(5), []
        for round_ in range(3 * args.rounds):
            if len(seen) == args.rounds:
                break
            victim = c.bookies[round_ % len(c.bookies)]
            before = c.brokers[0].output().count("ledger.ensemble_changed")
            time.sleep(rng.uniform(0, 0.5))
            victim.kill()
            stall = stalls.of(2)
            if c.brokers[0].output().count("ledger.ensemble_changed") > before:
                seen.append(stall)
            victim.start()
        stalls.over = True
        tell_stalls("killed", seen, quiet)
        load.end()


def stall_by_freeze(args, folder):
    """How long publishing stands when a bookie is frozen for 10 s: goal none, Qa others answer."""
    with five_hosts(args, folder) as c:
        load = Load(c, folder, rate=2000)
        stalls = Stalls(load.log)
        quiet, seen = stalls.of(5), []
        for round_ in range(args.rounds):
            victim = c.bookies[round_ % len(c.bookies)]
            victim.freeze()
            seen.append(stalls.of(10))
            victim.thaw()
            lgm.wait_until(victim.is_ready, 30, "the bookie is ready again")
        stalls.over = True
        tell_stalls("frozen", seen, quiet)
        load.end()


def takeover_with_frozen(args, folder):
    """A topic is closed and opened again while one of its bookies stands still: that one is not waited for."""
    with five_hosts(args, folder) as c:
        load = Load(c, folder, rate=2000)
        stalls = Stalls(load.log)
        quiet, seen = stalls.of(3), []
        for victim in c.bookies:
            victim.freeze()
            stalls.longest = 0
            status, _ = c.brokers[0].http("/admin/v2/namespaces/public/default/unload", "PUT", timeout=60)
            assert status == 204, status
            seen.append(stalls.of(2))
            victim.thaw()
            lgm.wait_until(victim.is_ready, 30, "the bookie is ready again")
        stalls.over = True
        tell_stalls("unloaded beside a frozen", seen, quiet)
        load.end()


CASES = {"crash": crash, "two-owners": two_owners, "etcd-away": etcd_away,
         "frozen-bookie": frozen_bookie, "one-tier-alone": one_tier_alone, "shared": shared,
         "stall-by-kill": stall_by_kill, "stall-by-freeze": stall_by_freeze,
         "takeover-with-frozen": takeover_with_frozen}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("cases", nargs="+", choices=CASES)
    args = parser.parse_args()
    print(f"seed {args.seed}")
    cases = lgm.Cases()
    for name in args.cases:
        def one(folder, name=name):
            if not os.path.exists(ETCD):
                raise lgm.Skip(f"there is no {ETCD} (Debian package etcd-server)")
            CASES[name](args, folder)
        cases.run(name, one)
    cases.end()


if __name__ == "__main__":
    main()
