"""rows.py - what is measured: a function a row, which gives lines for the table.

A row's function gets the options and a fresh folder on the disk; it gives (what, ours, beside it, ratio,
goal) for each figure.  The goal is a text and a test of the ratio or of our figure.
"""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import peers
from measure import (MIB, Alone, System, Unavailable, alternate, ceiling, ended, load, many_files,
                     new_topic, rss, summary, wait_line)

BATCH, KIB = 100, 1024
BATCHED = ["-r", "0", "-s", KIB, "-bm", BATCH, "-b", "10", "-o", 64 * BATCH]
DETAILS = {}  # row: everything that was measured, for --json


class Figure:
    """A line of the table."""

    def __init__(self, what, ours, beside, ratio, goal="", met=None):
        self.what, self.ours, self.beside, self.ratio = what, ours, beside, ratio
        self.goal, self.met = goal, met


def at_least(what, ours, beside, goal, unit="/s"):
    ratio = ours / beside if beside else 0
    return Figure(what, f"{ours:,.0f}{unit}", f"{beside:,.0f}{unit}", ratio, f">= {goal:.2f} x",
                  ratio >= goal)


def at_most(what, ours, beside, goal, unit=" ms"):
    ratio = ours / beside if beside else 0
    return Figure(what, f"{ours:,.3f}{unit}", f"{beside:,.3f}{unit}", ratio, f"<= {goal:.2f} x",
                  ratio <= goal)


def told(what, text, goal="", met=None):
    return Figure(what, text, "", None, goal, met)


def note(row, **what):
    DETAILS.setdefault(row, {}).update(what)


def costs(r):
    """Where the CPU goes, and what else a message costs."""
    def by_process(key, digits):
        return " ".join(f"{k.split(' ')[1]} {v:.{digits}f}" for k, v in r.items() if k.startswith(key + " "))
    yield told("  CPU us a message", f"{r['cpu']:.2f}: " + by_process("cpu", 2))
    yield told("  MiB resident", by_process("rss", 0))
    yield told("  page faults a message", f"{r['faults']:.3f}: " + by_process("faults", 3))
    if "syscalls" in r:
        yield told("  system calls a message", f"{r['syscalls']:.3f}: " + by_process("syscalls", 3))
    yield told("  CPU of others, of all there is", f"{r['others'] * 100:.0f} %")


def beside_ceiling(row, o, root, quorum, produce, bare, goal, consume=(), conf=None):
    with System(o.build, root, quorum, broker_conf=conf) as system:
        got = alternate(o, lgm=lambda: load(system, o, produce, consume),
                        ceiling=lambda: ceiling(o, root, "-q", quorum, *bare))
    note(row, **got)
    ours, bare = got["lgm"], got["ceiling"]
    yield at_least("messages", ours["rate"], bare["rate"], goal)
    yield at_most("CPU us a message", ours["cpu"], bare["cpu"], 2.0, " us")
    yield at_most("p99 at that rate", ours["p99"], bare["p99"], 1.5)
    yield from costs(ours)


def batched_2(o, root):
    """100 x 1 KiB an entry, E=3 Qw=2 Qa=2, a producer and a tailing consumer"""
    yield from beside_ceiling("batched-2", o, root, 2, BATCHED, ["-b", BATCH, "-w", 64], 0.6)


def batched_3(o, root):
    """the same with Qw=3 Qa=2"""
    yield from beside_ceiling("batched-3", o, root, 3, BATCHED, ["-b", BATCH, "-w", 64], 0.6)


# A broker has so many entries of a producer with the bookies at a time.  Its default, upstream's 1,000, is
# made for batches: of single messages it allows 1,000 a round trip, whatever the machine can do.
MANY_IN_FLIGHT = {"maxPendingPublishRequestsPerConnection": 20000}


def small(o, root):
    """entries of one message of 100 B, pipelined, 20,000 in flight"""
    words = ["-r", "0", "-s", 100, "-bd", "-o", 20000]
    lines = list(beside_ceiling("small", o, root, 2, words, ["-b", 1, "-s", 100, "-w", 20000], 0.25,
                                ["-q", 20000], MANY_IN_FLIGHT))
    rate = float(lines[0].ours.split("/")[0].replace(",", ""))
    lines.insert(1, told("messages, in all", f"{rate:,.0f}/s", ">= 300,000/s", rate >= 300000))
    yield from lines


def single(o, root):
    """entries of one message of 1 KiB, pipelined, 20,000 in flight"""
    words = ["-r", "0", "-s", KIB, "-bd", "-o", 20000]
    yield from beside_ceiling("single", o, root, 2, words, ["-b", 1, "-w", 20000], 0.6,
                              ["-q", 20000], MANY_IN_FLIGHT)


def lone(o, root):
    """one durable publish of 1 KiB in flight"""
    words = ["-r", "0", "-s", KIB, "-bd", "-o", 1]
    with System(o.build, root) as system:
        got = alternate(o, lgm=lambda: load(system, o, words),
                        ceiling=lambda: ceiling(o, root, "-b", 1, "-w", 1))
    note("lone", **got)
    ours, bare = got["lgm"], got["ceiling"]
    yield at_most("p50", ours["p50"], bare["p50"], 1.3)
    yield at_most("p99", ours["p99"], bare["p99"], 1.5)
    yield at_most("end to end p50", ours["e2e p50"], bare["e2e p50"], 1.5)
    yield from costs(ours)


def fixed(o, root):
    """80 MB/s, whatever it can do at most: 1 KiB messages in batches of 100"""
    rate = 80e6 / KIB
    words = ["-r", rate, "-s", KIB, "-bm", BATCH, "-b", "2", "-o", 20000]
    with System(o.build, root) as system:
        got = alternate(o, lgm=lambda: load(system, o, words),
                        ceiling=lambda: ceiling(o, root, "-b", BATCH, "-w", 1000, "-r", rate / BATCH))
    note("fixed", **got)
    ours, bare = got["lgm"], got["ceiling"]
    yield at_least("messages, of those due", ours["rate"], rate, 0.99)
    yield at_most("p50", ours["p50"], bare["p50"], 1.5)
    yield at_most("p99", ours["p99"], bare["p99"], 1.5)
    yield told("p99, in all", f"{ours['p99']:.1f} ms", "<= 15 ms", ours["p99"] <= 15)
    yield from costs(ours)


# ---- TLS ---------------------------------------------------------------------------------------

def certificate(root):
    key, cert = os.path.join(root, "key.pem"), os.path.join(root, "cert.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return key, cert


def tls(o, root):
    """batched-2 over TLS between clients and broker"""
    key, cert = certificate(root)
    port = peers.stable_port()
    conf = {"brokerServicePortTls": port, "tlsCertificateFilePath": cert, "tlsKeyFilePath": key,
            "tlsTrustCertsFilePath": cert}
    words = ["--trust-cert-file", cert]
    try:
        system = System(o.build, root, broker_conf=conf).start()
    except AssertionError as e:
        if "config.refused" in str(e):
            raise Unavailable("the broker has no TLS listener") from None
        raise
    with contextlib.ExitStack() as stack:
        stack.push(system.__exit__)
        got = alternate(
            o, plain=lambda: load(system, o, BATCHED),
            tls=lambda: load(system, o, BATCHED + words, words, url=f"pulsar+ssl://127.0.0.1:{port}"))
    note("tls", **got)
    yield at_least("messages, of those without", got["tls"]["rate"], got["plain"]["rate"], 0.6)
    yield from costs(got["tls"])


# ---- a bookie that is slow or gone -------------------------------------------------------------

def beside_trouble(row, o, root, name, begin, end, prepare=lambda system: None):
    """p99 at 20 MB/s with Qw=3 Qa=2, and what the broker holds meanwhile."""
    words = ["-r", 20e6 / KIB, "-s", KIB, "-bm", BATCH, "-b", "5", "-o", 20000]
    system = System(o.build, root, 3)
    prepare(system)

    def troubled():
        begin(system)
        try:
            return load(system, o, words)
        finally:
            end(system)
            time.sleep(2)  # the next run is not to pay for what is made up for
    with system:
        got = alternate(o, healthy=lambda: load(system, o, words), troubled=troubled)
    note(row, **got)
    ill, well = got["troubled"], got["healthy"]
    yield at_least(f"messages with {name}, of those due", ill["rate"], 20e6 / KIB, 0.99)
    yield at_most("p50", ill["p50"], well["p50"], 2.0)
    yield at_most("p99", ill["p99"], well["p99"], 2.0)
    more = ill["rss broker-0"] - well["rss broker-0"]
    yield told("the broker holds more", f"{more:.0f} MiB", "<= 256 MiB", more <= 256)
    yield from costs(ill)


def frozen(o, root):
    """one of three bookies is stopped (SIGSTOP) while messages come in"""
    yield from beside_trouble("frozen", o, root, "a frozen bookie", lambda s: s.bookies[2].freeze(),
                              lambda s: s.bookies[2].thaw())


def slow_sync(o, root):
    """one of three bookies has syncs of 500 ms"""
    switch = os.path.join(root, "slow")
    shim = os.path.abspath(os.path.join(o.build, "slow_sync.so"))

    def slowly(system):
        bookie, usual = system.bookies[2], system.bookies[2].command
        bookie.command = lambda: ["env", f"LD_PRELOAD={shim}", f"LGM_SLOW_SYNC={switch}", *usual()]

    def begin(_):
        with open(switch, "w") as f:
            f.write("500")
    yield from beside_trouble("slow-sync", o, root, "syncs of 500 ms", begin,
                              lambda s: os.remove(switch), slowly)


# ---- many --------------------------------------------------------------------------------------

def touch(system, o, topic):
    """A message into each topic: from then on it has a ledger."""
    producer = system.perf("produce", topic, "-t", o.topics, "-m", o.topics, "-r", "0", "-p", 64)
    with ended(producer):
        wait_line(producer, "ready", 600)
        assert summary(producer, 600)["messages"] == o.topics


def topics(o, root):
    """10,000 topics, each with a producer and a consumer, in entries of 100 x 1 KiB"""
    many_files()
    words = [*BATCHED[:-2], "-p", 64 * BATCH, "-bu", BATCH]
    many = ["-t", o.topics]
    with System(o.build, root) as system:
        made = new_topic("many")
        touch(system, o, made)
        got = alternate(
            o, one=lambda: load(system, o, [*words, "-o", 64 * BATCH]),
            many=lambda: load(system, o, [*words, *many, "-o", BATCH], [*many, "-q", BATCH],
                              topic=made, open_s=600))
    note("topics", **got)
    yield at_least(f"messages of {o.topics} topics, of those of one", got["many"]["rate"],
                   got["one"]["rate"], 0.8)
    yield from costs(got["many"])


def subscriptions(o, root):
    """100 subscriptions on a topic, each with a consumer that follows; 1 MB/s comes in"""
    rate = 1e6 / KIB
    words = ["-r", rate, "-s", KIB, "-bm", BATCH, "-b", "10", "-o", 20000]
    with System(o.build, root) as system:
        got = alternate(o, one=lambda: load(system, o, words),
                        hundred=lambda: load(system, o, words, ["-ns", 100]))
    note("subscriptions", **got)
    ours, one = got["hundred"], got["one"]
    yield at_least("messages, of those due", ours["rate"], rate, 0.99)
    yield at_least("delivered, of 100 each", ours["received"], 100, 0.99, "")
    yield at_most("end to end p99", ours["e2e p99"], one["e2e p99"], 1.5)
    yield from costs(ours)


def backlog_bytes(o, root):
    """Two copies, each in a journal and an entry log, and never more than half of what is free."""
    free = shutil.disk_usage(root).free
    return int(min(o.backlog_gib * 2**30, free / 8))


def backlog(o, root):
    """a backlog is drained beside a tail of 20 MB/s on another topic"""
    size = backlog_bytes(o, root)
    tail = ["-r", 20e6 / KIB, "-s", KIB, "-bm", BATCH, "-b", "5", "-o", 20000]
    drained = []

    def drain(system, topic):
        """Reads all of it while the tail is measured: from a subscription of its own each time."""
        reader = system.perf("consume", topic, "-ss", new_topic("drain"), "-sp", "Earliest", "-m",
                             size // KIB, "-q", 5000)
        with ended(reader):
            wait_line(reader, "ready", 60)
            run = load(system, o, tail)
            reader.send_signal(signal.SIGINT)
            drained.append(summary(reader, 120)["megabytesPerSecond"])
            return run
    with System(o.build, root) as system:
        topic = new_topic("backlog")
        keep = system.perf("consume", topic, "-ss", "keep", "-r", "1")  # so that nothing is deleted
        wait_line(keep, "ready", 60)
        summary(keep, 60, signal.SIGINT)
        filler = system.perf("produce", topic, *BATCHED, "-m", size // KIB)
        with ended(filler):
            filled = summary(filler, max(120, size / 5e6))
        got = alternate(o, alone=lambda: load(system, o, tail), beside=lambda: drain(system, topic))
    note("backlog", gib=size / 2**30, drained=drained, filled=filled, **got)
    yield told("backlog", f"{size / 2**30:.2f} GiB", f"{o.backlog_gib:g} GiB",
               size >= o.backlog_gib * 2**30)
    yield at_least("drained, of what came in at most", sorted(drained)[len(drained) // 2],
                   filled["megabytesPerSecond"], 0.8, " MB/s")
    yield at_most("p99 of the tail, published", got["beside"]["p99"], got["alone"]["p99"], 1.5)
    yield at_most("p99 of the tail, end to end", got["beside"]["e2e p99"], got["alone"]["e2e p99"], 1.5)
    yield from costs(got["beside"])


# ---- peers and rest ----------------------------------------------------------------------------

def nats(o, root):
    """NATS JetStream R1, which does not sync: 1 KiB messages as fast as they are taken"""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(peers.Nats(o.build, root))
        system = stack.enter_context(System(o.build, root))
        words = ["-r", "0", "-s", KIB, "-o", 20000]
        got = alternate(o, lgm=lambda: load(system, o, words, ["-q", 20000]),
                        nats=lambda: server.load(o, "-s", KIB, "-o", 4000),
                        lgm_alone=lambda: load(system, o, ["-r", "0", "-s", KIB, "-bd", "-o", 1]),
                        nats_alone=lambda: server.load(o, "-s", KIB, "-o", 1))
    note("nats", **got)
    yield at_least("messages", got["lgm"]["rate"], got["nats"]["rate"], 1.5)
    yield at_most("one in flight p50 (NATS: not synced)", got["lgm_alone"]["p50"],
                  got["nats_alone"]["p50"], 3.0)
    yield at_most("CPU us a message, servers and clients", got["lgm"]["cpu"], got["nats"]["cpu"], 1.0,
                  " us")


def kafka(o, root):
    """Kafka 4, one node, one copy, flushed on every batch: 1 KiB messages, with its own client"""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(peers.Kafka(o.build, root))
        system = stack.enter_context(System(o.build, root))
        fast, slow = ["-r", "0", "-s", KIB, "-bm", BATCH, "-b", "1", "-o", 20000], 10e6 / KIB
        steady = ["-r", slow, "-s", KIB, "-bm", BATCH, "-b", "1", "-o", 20000]
        got = alternate(o, lgm=lambda: load(system, o, fast), kafka=lambda: server.load(o, -1),
                        lgm_10=lambda: load(system, o, steady), kafka_10=lambda: server.load(o, slow))
    note("kafka", **got)
    yield at_least("messages", got["lgm"]["rate"], got["kafka"]["rate"], 1.0)
    yield at_most("p99 at 10 MB/s", got["lgm_10"]["p99"], got["kafka_10"]["p99"], 1.0)


def pulsar(o, root):
    """Apache Pulsar standalone, a bookie that syncs, beside `lgm standalone`; the client is `lgm perf`"""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(peers.Pulsar(o.build, root))
        system = stack.enter_context(Alone(o.build, root))
        steady = ["-r", 10e6 / KIB, "-s", KIB, "-bm", BATCH, "-b", "2", "-o", 20000]
        alone = ["-r", "0", "-s", KIB, "-bd", "-o", 1]
        got = alternate(
            o, lgm=lambda: load(system, o, BATCHED), pulsar=lambda: load(server, o, BATCHED),
            lgm_10=lambda: load(system, o, steady), pulsar_10=lambda: load(server, o, steady),
            lgm_alone=lambda: load(system, o, alone), pulsar_alone=lambda: load(server, o, alone))
    note("pulsar", **got)
    ours, theirs = got["lgm"], got["pulsar"]
    yield at_least("messages", ours["rate"], theirs["rate"], 1.0)
    yield at_most("CPU us a message, server and clients", ours["cpu"], theirs["cpu"], 1.0, " us")
    yield at_most("p99 at 10 MB/s", got["lgm_10"]["p99"], got["pulsar_10"]["p99"], 1.0)
    yield at_most("one in flight p50", got["lgm_alone"]["p50"], got["pulsar_alone"]["p50"], 1.0)
    yield at_most("MiB resident, server", ours["rss standalone"], theirs["rss pulsar"], 1.0, " MiB")


def idle(o, root):
    """memory of processes that have nothing to do, and of topics that nobody uses"""
    with System(o.build, root) as system:
        time.sleep(2)
        broker, bookie = system.pids()["broker-0"], system.pids()["bookie-0"]
        empty, bookie_empty = rss(broker), rss(bookie)
        many_files()
        made = new_topic("idle")
        consumer = system.perf("consume", made, "-t", o.topics, "-time", "1")
        with ended(consumer):
            wait_line(consumer, "ready", 600)
            attached = rss(broker)
            summary(consumer, 120)
        time.sleep(3)
        left, bookie_left = rss(broker), rss(bookie)
        watch_from, at = peers.cpu(broker), time.monotonic()
        time.sleep(5)
        used = (peers.cpu(broker) - watch_from) / (time.monotonic() - at)
        touch(system, o, made)
        time.sleep(3)
        written, bookie_written = rss(broker), rss(bookie)
    a_topic = (left - empty) / o.topics / 1024
    note("idle", broker=empty / MIB, bookie=bookie_empty / MIB, topic_kib=a_topic)
    yield told("broker", f"{empty / MIB:.1f} MiB", "<= 20 MiB", empty <= 20 * MIB)
    yield told("bookie", f"{bookie_empty / MIB:.1f} MiB", "<= 40 MiB + caches",
               bookie_empty <= 40 * MIB)
    yield told(f"a topic with a subscription ({o.topics} of them)", f"{a_topic:.1f} KiB", "<= 4 KiB",
               a_topic <= 4)
    yield told("the same with a consumer", f"{(attached - empty) / o.topics / 1024:.1f} KiB")
    yield told("the same, once it has a message", f"{(written - empty) / o.topics / 1024:.1f} KiB")
    yield told("a bookie holds for it", f"{(bookie_left - bookie_empty) / o.topics / 1024:.1f} KiB, once it "
               f"has a message {(bookie_written - bookie_empty) / o.topics / 1024:.1f} KiB")
    yield told("the broker works meanwhile", f"{used * 100:.1f} % of a core")


def first_light(o, root):
    """`lgm standalone` under `lgm verify`, which checks what it measures"""
    yield from script(o, root, "first_light.py", "--rounds", o.runs)


def acks(o, root):
    """acknowledgements in random order that leave holes, and the holes after kill -9"""
    yield from script(o, root, "acks.py", "--acks", o.acks, "--holes", o.acks * 3 // 10)


def script(o, root, name, *words):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    done = subprocess.run(["python3", path, "--build", o.build, *map(str, words)], text=True,
                          env={**os.environ, "TMPDIR": root}, capture_output=True, timeout=3600)
    assert done.returncode == 0, f"{name}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    for line in done.stdout.splitlines():
        yield told(line, "")


ROWS = {"batched-2": batched_2, "batched-3": batched_3, "tls": tls, "small": small, "single": single,
        "lone": lone, "fixed": fixed, "frozen": frozen, "slow-sync": slow_sync, "topics": topics,
        "subscriptions": subscriptions, "backlog": backlog, "nats": nats, "kafka": kafka,
        "pulsar": pulsar, "idle": idle, "first-light": first_light, "acks": acks}
