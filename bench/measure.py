"""measure.py - one load on one system, and what it cost: rates, times, CPU, memory, faults, system calls.

A load is a producer and a consumer of `lgm perf` that run beside each other; what processes cost is
read from /proc between the end of the warm-up and the end of the load, so that a rate of messages
turns it into a cost a message.  Everything that a measurement starts ends with it.
"""
import contextlib
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402

TICK, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
MIB = 2**20


class Unavailable(Exception):
    """A row that cannot be measured here, and why."""


def many_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@contextlib.contextmanager
def folder(root):
    """A directory on the disk that is measured (never one of memory), gone afterwards."""
    path = tempfile.mkdtemp(prefix="lgm-bench-", dir=root)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# ---- processes ---------------------------------------------------------------------------------

def stat(pid):
    """CPU seconds and minor page faults of a process so far."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return {"cpu": (int(fields[11]) + int(fields[12])) / TICK, "faults": int(fields[7])}


def rss(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * PAGE


def machine_busy():
    """CPU seconds that all of the machine has worked."""
    with open("/proc/stat") as f:
        numbers = list(map(int, f.readline().split()[1:9]))
    return (sum(numbers) - numbers[3] - numbers[4]) / TICK


class Syscalls:
    """System calls of each process in the next so many seconds, by perf(1) where it may count them."""

    def __init__(self, pids, seconds):
        self.seconds, self.watchers = seconds, {}
        if shutil.which("perf"):
            self.watchers = {name: subprocess.Popen(
                ["perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", str(pid), "--", "sleep",
                 str(seconds)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
                for name, pid in pids.items()}

    def a_second(self):
        """By process; empty where it cannot tell."""
        out = {}
        for name, watcher in self.watchers.items():
            text = watcher.communicate(timeout=self.seconds + 60)[1]
            numbers = [line.split(",")[0] for line in text.splitlines() if "sys_enter" in line]
            if numbers and numbers[0].isdigit():
                out[name] = int(numbers[0]) / self.seconds
        return out if len(out) == len(self.watchers) else {}


class Watch:
    """What processes cost between begin() and end()."""

    def __init__(self, pids):
        self.pids = pids

    def begin(self):
        self.at, self.busy = time.monotonic(), machine_busy()
        self.before = {name: stat(pid) for name, pid in self.pids.items()}

    def end(self):
        seconds = time.monotonic() - self.at
        busy = machine_busy() - self.busy
        out, own = {}, 0
        for name, pid in self.pids.items():
            now = stat(pid)
            cost = {key: (now[key] - self.before[name][key]) / seconds for key in now}
            out[name] = {**cost, "rss": rss(pid)}
            own += cost["cpu"] * seconds
        self.others = max(0.0, (busy - own) / seconds / os.cpu_count())
        return out


def perf(build, url, command, topic, *words):
    """`lgm perf`, which any server that speaks Pulsar's protocol understands."""
    return subprocess.Popen([os.path.join(build, "lgm"), "perf", command, topic, "-u", url,
                             *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# ---- the system --------------------------------------------------------------------------------

class System(lgm_cluster.Cluster):
    """A broker, three bookies and etcd, a process each, with the settings that they come with."""

    def __init__(self, build, root, write_quorum=2, ack_quorum=2, broker_conf=None, bookie_conf=None):
        super().__init__(build, root, bookies=3, brokers=1,
                         bookie_conf={"journalMaxSizeMB": 512, **(bookie_conf or {})},
                         broker_conf={"managedLedgerDefaultEnsembleSize": 3,
                                      "managedLedgerDefaultWriteQuorum": write_quorum,
                                      "managedLedgerDefaultAckQuorum": ack_quorum,
                                      **(broker_conf or {})})

    @property
    def url(self):
        return self.brokers[0].url

    def pids(self):
        return {**{b.name: b.process.pid for b in self.brokers},
                **{b.name: b.process.pid for b in self.bookies},
                "etcd": self.etcd.nodes[0].process.pid}

    def perf(self, command, topic, *words, url=None):
        return perf(self.build, url or self.url, command, topic, *words)


class Alone(lgm.Standalone):
    """`lgm standalone`: a broker and a bookie in one process."""

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def pids(self):
        return {"standalone": self.process.pid}

    def perf(self, command, topic, *words, url=None):
        return perf(os.path.dirname(self.lgm), url or self.url, command, topic, *words)


def wait_line(process, what, seconds):
    """A process's line that has `what` in it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line = process.stdout.readline()
        if what in line:
            return line
        if not line:
            break
    process.kill()
    raise AssertionError(f"no line with {what!r}: {process.stderr.read()[-2000:]}")


def summary(process, seconds, how=None):
    """The JSON that a process ends with, when it is told to (how) or by itself."""
    if how:
        process.send_signal(how)
    try:
        out, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"{process.args} does not end")
    assert process.returncode == 0, f"{process.args} gave {process.returncode}\n{error[-2000:]}"
    return json.loads(out.splitlines()[-1])


_topics = 0


def new_topic(name):
    global _topics
    _topics += 1
    return f"bench-{name}-{_topics}"


@contextlib.contextmanager
def ended(*processes):
    try:
        yield
    finally:
        for p in processes:
            if p.poll() is None:
                p.kill()
                p.wait()


def load(system, o, produce, consume=(), topic=None, open_s=60, during=None, url=None):
    """A producer and a tailing consumer; gives what was measured of both and of all processes."""
    topic = topic or new_topic("load")
    consumer = system.perf("consume", topic, "-sp", "Earliest", *consume, url=url)
    with ended(consumer):
        wait_line(consumer, "ready", open_s)
        producer = system.perf("produce", topic, "-w", o.warmup, "-time", o.seconds, *produce, url=url)
        with ended(producer):
            wait_line(producer, "ready", open_s)
            watch = Watch({**system.pids(), "producer": producer.pid, "consumer": consumer.pid})
            time.sleep(o.warmup)
            watch.begin()
            if during:
                during()
            calls = Syscalls(watch.pids, o.seconds * 0.5)
            time.sleep(o.seconds * 0.8)
            assert producer.poll() is None, "the producer ended before its time"
            costs = watch.end()
            calls = calls.a_second()
            sent = summary(producer, o.seconds + 60)
            time.sleep(0.2)
            got = summary(consumer, 60, signal.SIGINT)
    assert sent["failed"] == 0 and sent["unanswered"] == 0, sent
    return result(sent, got, costs, watch.others, calls)


def result(sent, got, costs, others, calls):
    rate = sent["messagesPerSecond"]
    assert rate > 0, "nothing was published"
    out = {"rate": rate, "MB/s": sent["megabytesPerSecond"], "p50": sent["latencyMs"]["50"],
           "p99": sent["latencyMs"]["99"], "p99.9": sent["latencyMs"]["99.9"],
           "e2e p50": got["latencyMs"]["50"], "e2e p99": got["latencyMs"]["99"],
           "received": got["messagesEver"] / max(1, sent["messagesEver"]), "others": others}
    out["cpu"] = sum(c["cpu"] for name, c in costs.items()) / rate * 1e6
    out["faults"] = sum(c["faults"] for c in costs.values()) / rate
    for name, c in costs.items():
        out[f"cpu {name}"] = c["cpu"] / rate * 1e6
        out[f"faults {name}"] = c["faults"] / rate
        out[f"rss {name}"] = c["rss"] / MIB
    if calls:
        out["syscalls"] = sum(calls.values()) / rate
        for name, n in calls.items():
            out[f"syscalls {name}"] = n / rate
    return out


def ceiling(o, root, *words):
    """A run of the bare pipeline of the same shape."""
    words = [os.path.join(o.build, "ceiling"), "-d", root, "-t", str(o.seconds), "-W", str(o.warmup),
             *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=o.seconds + o.warmup + 120)
    assert done.returncode == 0, f"{words}: {done.stderr[-2000:]}"
    told = json.loads(done.stdout.splitlines()[-1])
    return {"rate": told["messagesPerSecond"], "MB/s": told["megabytesPerSecond"],
            "cpu": told["cpuUsPerMessage"], "p50": told["latencyMs"]["50"],
            "p99": told["latencyMs"]["99"], "p99.9": told["latencyMs"]["99.9"],
            "e2e p50": told["endToEndMs"]["50"], "e2e p99": told["endToEndMs"]["99"]}


def median(runs):
    keys = [k for k in runs[0] if all(k in r for r in runs)]
    return {k: statistics.median(r[k] for r in runs) for k in keys}


def alternate(o, **systems):
    """Runs each in turn, o.runs times, so that a noisy minute hits all of them; gives the medians."""
    runs = {name: [] for name in systems}
    for i in range(o.runs):
        for name, run in systems.items():
            runs[name].append(run())
            r = runs[name][-1]
            print(f"    run {i + 1} {name}: " + ", ".join(
                f"{k} {r[k]:,.3f}" for k in ("rate", "cpu", "p50", "p99", "others") if k in r),
                flush=True)
    return {name: median(all_runs) for name, all_runs in runs.items()}
