"""bookie.py - one bookie alone, under a load in its own protocol, beside fio on the same disk.

A row is as in rows.py, where run.py finds these too.  `bench/run.py --only bookie-adds --quick` shows in
a minute that a row can be measured; its figures mean nothing.
"""
import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

from measure import MIB, Unavailable, Watch, ended, lgm_cluster, rss, summary, wait_line
from rows import at_least, at_most, note, told

KIB, GIB = 1024, 2**30
SIZES = {100: 4000, KIB: 2000, 10 * KIB: 500, 100 * KIB: 100}  # bytes: requests in flight
LEDGERS = (1, 100, 10000)


class Bookie(lgm_cluster.Bookie):
    """With a metadata store of its own, so that nothing else runs; or with an etcd that can be told of ledgers.
    Its ledgers are in no metadata unless they are told: garbage is collected when it is asked for."""

    def __init__(self, o, root, etcd=None, **conf):
        self.o, self.etcd = o, etcd
        self.store = "metadata-store:" + etcd.url if etcd else "rocksdb:" + os.path.join(root, "metadata")
        super().__init__(o.build, root, "bookie", "", **{"journalMaxSizeMB": 512, "gcWaitTime": 86400000, **conf})
        self.conf["metadataServiceUri"] = self.store
        words = [os.path.join(o.build, "lgm"), "init", "--cluster", "bench", "--metadata", self.store]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr[-2000:]

    def __enter__(self):
        return self.start(60)

    def __exit__(self, *_):
        self.kill()

    def tell_of(self, ledgers):
        """The metadata, that they have their only copy here."""
        value = ("BookieMetadataFormatVersion\t2\nquorumSize: 1\nensembleSize: 1\nlength: 0\nstate: OPEN\n"
                 f'segment {{\n  ensembleMember: "{self.name}"\n  firstEntryId: 0\n}}\n')
        for ledger in ledgers:
            d = f"{ledger:010}"
            key = f"/ledgers/{d[:2]}/{d[2:6]}/L{d[6:]}"
            body = {k: base64.b64encode(v.encode()).decode() for k, v in (("key", key), ("value", value))}
            status, text = lgm_cluster.http(self.etcd.nodes[0].url + "/v3/kv/put", "POST", body)
            assert status == 200, text

    def metric(self, name):
        page = self.http("/metrics")[1]
        return sum(float(x) for x in re.findall(rf"^{name}(?:{{.*}})? ([0-9.e+]+)$", page, re.M))

    def collect(self, **flags):
        status, text = self.http("/api/v1/bookie/gc", "PUT", flags)
        assert status == 200, text

    def delete_untold(self, least):
        """Who is in no metadata goes, after two rounds."""
        end = time.monotonic() + 120
        while self.metric("bookie_DELETED_LEDGER_COUNT") < least:
            assert time.monotonic() < end, "ledgers are not deleted"
            self.collect(forceMajor=False, forceMinor=False)
            time.sleep(0.5)

    def load(self, what, *words):
        """A load that has begun."""
        words = [os.path.join(self.o.build, "bookie-load"), "-p", self.port, *words, what]
        p = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_line(p, "ready", 60)
        return p

    def measure(self, what, *words, seconds=None):
        """It, and what it cost.  With `seconds`: until it has done what it was to do, or they are over."""
        o, pid = self.o, self.process.pid
        warmup, seconds = 0 if seconds else o.warmup, seconds or o.seconds
        load = self.load(what, "-t", int(seconds), "-W", int(warmup), *words)
        with ended(load):
            watch = Watch({"bookie": pid, "load": load.pid})
            time.sleep(warmup)
            watch.begin()
            with contextlib.suppress(subprocess.TimeoutExpired):
                load.wait(seconds * 0.9)
            costs = watch.end() if load.poll() is None else None
            got = summary(load, seconds + 90)
        assert got["rate"] > 0, f"nothing was done: {got}"
        got["rss"] = rss(pid) / MIB
        if costs:
            got.update(cpu=costs["bookie"]["cpu"] / got["rate"] * 1e6,
                       faults=costs["bookie"]["faults"] / got["rate"], others=watch.others)
        return got

    def fill(self, ledgers, entries, size, *words):
        """Writes them, and waits until they are in the logs: by a restart, so that no cache has them."""
        with ended(load := self.load("add", "-l", ledgers, "-n", entries, "-s", size, "-t", 3600, *words)):
            got = summary(load, 3600)
        assert got["refused"] == 0, got
        self.stop(seconds=300)
        subprocess.run(["sync"], check=True)
        with contextlib.suppress(OSError), open("/proc/sys/vm/drop_caches", "w") as f:
            f.write("3")  # where it may: else what is read may be in memory
        self.start(300)


# ---- fio ---------------------------------------------------------------------------------------

def fio(o, root, *jobs):
    """Bytes a second and syncs a second of jobs that run at once, each a dict of options."""
    if not shutil.which("fio"):
        raise Unavailable("fio is not installed: apt-get install fio")
    words = ["fio", "--output-format=json", f"--directory={root}", "--time_based", "--group_reporting=0",
             f"--runtime={max(2, int(o.seconds))}", "--ioengine=psync", "--size=1g" if not o.quick else "--size=64m"]
    for i, job in enumerate(jobs):
        words += [f"--name=job{i}", *(f"--{k}={v}" for k, v in job.items())]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    for i in range(len(jobs)):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(root, f"job{i}.0.0"))
    if done.returncode != 0:
        raise Unavailable(f"fio: {done.stderr[-300:]}")
    told = json.loads(done.stdout[done.stdout.index("{"):])["jobs"]
    return [{"write": j["write"]["bw_bytes"], "read": j["read"]["bw_bytes"],
             "p99": j.get("sync", {}).get("lat_ns", {}).get("percentile", {}).get("99.000000", 0) / 1e6}
            for j in told]


# What a journal is: whole blocks, past the page cache, over what was written before, each synced.
JOURNAL = {"rw": "write", "direct": 1, "bs": "1m", "overwrite": 1, "fdatasync": 1}
LOG = {"rw": "write", "direct": 1, "bs": "1m"}
READ = {"rw": "read", "direct": 1, "bs": "1m"}


def fio_journal(o, root):
    return fio(o, root, JOURNAL)[0]["write"]


def fio_mixed(o, root):
    return sum(j["write"] for j in fio(o, root, JOURNAL, LOG))


def fio_read(o, root):
    return fio(o, root, READ)[0]["read"]


# ---- rows --------------------------------------------------------------------------------------

def name_of(size):
    return f"{size // KIB} KiB" if size >= KIB else f"{size} B"


def sizes(o):
    return dict(list(SIZES.items())[1:3]) if o.quick else SIZES


def ledger_counts(o):
    return (1, 100) if o.quick else LEDGERS


def window(size, ledgers):
    return max(SIZES[size], min(ledgers, 10000) if size <= KIB else 0)


def line(got):
    us = got["us"]
    cost = f", CPU {got['cpu']:.2f} us, faults {got['faults']:.4f}" if "cpu" in got else ""
    return (f"{got['rate']:,.0f}/s {got['MB/s']:,.1f} MB/s{cost}, ms p50 {us['50'] / 1e3:.2f} p99 "
            f"{us['99'] / 1e3:.2f} p99.9 {us['99.9'] / 1e3:.2f}, RSS {got['rss']:.0f} MiB"
            + (f", {got['refused']} refused" if got["refused"] else ""))


def adds_of(o, root, size, ledgers, *words, **conf):
    with Bookie(o, root, **conf) as b:
        got = b.measure("add", "-s", size, "-l", ledgers, "-w", window(size, ledgers), *words)
    shutil.rmtree(os.path.join(root, "bookie"))
    shutil.rmtree(os.path.join(root, "metadata"))
    print(f"    {name_of(size)}, {ledgers} ledgers: {line(got)}", flush=True)
    return got


def adds(o, root):
    """one bookie: adds of 100 B to 100 KiB to 1, 100, 10,000 ledgers, with striping gaps, beside fio"""
    mixed = fio_mixed(o, root)
    journal = fio_journal(o, root)
    note("bookie-adds", fio={"mixed": mixed, "journal": journal})
    for size in sizes(o):
        for ledgers in ledger_counts(o):
            got = adds_of(o, root, size, ledgers, "-g")
            note("bookie-adds", **{f"{size} B, {ledgers} ledgers": got})
            yield told(f"{name_of(size)}, {ledgers} ledgers", line(got))
            if size == KIB and ledgers == 100 and "cpu" in got:
                yield at_least("  adds/s, of 300,000", got["rate"], 300000, 1)
                yield at_most("  CPU us an entry, of 2", got["cpu"], 2, 1, " us")
            if size >= 10 * KIB:
                yield at_least("  journal + log, beside fio's two jobs", 2 * got["MB/s"], mixed / 1e6, 0.70,
                               " MB/s")


@contextlib.contextmanager
def in_memory():
    """A folder that is no disk; none where there is not enough of that."""
    shm = "/dev/shm"
    if not os.path.isdir(shm) or shutil.disk_usage(shm).free < 8 << 30:
        raise Unavailable(f"not enough room in {shm}")
    with tempfile.TemporaryDirectory(prefix="lgm-bench-", dir=shm) as folder:
        yield folder


def journal_alone(o, root):
    """one bookie: 10 and 100 KiB adds, the journal alone on the disk, beside fio; then that in memory too"""
    beside = fio_journal(o, root)
    for size in (10 * KIB, 100 * KIB):
        with in_memory() as folder:
            got = adds_of(o, root, size, 100, ledgerDirectories=os.path.join(folder, "ledgers"))
        with in_memory() as folder:
            memory = adds_of(o, root, size, 100, ledgerDirectories=os.path.join(folder, "ledgers"),
                             journalDirectories=os.path.join(folder, "journal"))
        note("bookie-journal", **{"fio": beside, f"{size} B": got, f"{size} B in memory": memory})
        yield told(f"{name_of(size)}, 100 ledgers", line(got))
        yield told("  what the processor allows: nothing on a disk", line(memory))
        yield at_least("  the journal, beside fio", got["MB/s"], beside / 1e6, 0.85, " MB/s")


def times(o, root):
    """one bookie: times at 10, 50 and 90 % of the most, 100 ledgers"""
    for size in sizes(o):
        most = adds_of(o, root, size, 100)["rate"]
        for part in (0.1, 0.5, 0.9):
            got = adds_of(o, root, size, 100, "-r", max(1, int(most * part)))
            note("bookie-times", **{f"{size} B at {part:.0%}": got})
            yield told(f"{name_of(size)} at {part:.0%}", line(got))


# Half of all ledgers go at once, and what is left moves as fast as it can.
COMPACTION = {"lgmGcTrashSeconds": 0, "lgmGcVanishedShare": 1, "compactionRateByEntries": -1,
              "compactionRateByBytes": -1, "majorCompactionThreshold": 0.9}


class Closer:
    def __init__(self, etcd):
        self.close = etcd.kill


def busy(o, root):
    """one bookie: times at half the most, alone, then while old ledgers are read, then while logs are compacted"""
    size, ledgers = KIB, 100
    most = adds_of(o, root, size, ledgers)["rate"]
    rate = ["-r", max(1, int(most / 2))]
    entries = (64 * MIB if o.quick else 4 * GIB) // size // ledgers
    etcd = lgm_cluster.Etcd(root).start()
    with contextlib.closing(Closer(etcd)), Bookie(o, root, etcd, **COMPACTION) as b:
        b.tell_of([*range(1, ledgers + 1, 2), *(n + i for n in (1001, 2001, 3001) for i in range(ledgers))])
        b.fill(ledgers, entries, size)
        words = ("-s", size, "-l", ledgers, "-f", 1001, "-w", window(size, ledgers), *rate)
        alone = b.measure("add", *words)
        catching = b.load("read", "-l", ledgers, "-n", entries, "-w", 256, "-x", "-t", 3600)
        with ended(catching):
            reads = b.measure("add", *words[:4], "-f", 2001, *words[6:])
        note("bookie-busy", alone=alone, reads=reads)
        yield told("alone", line(alone))
        yield told("beside reads of the disk", line(reads))
        yield at_most("p99 of adds with reads", reads["us"]["99"] / 1e3, alone["us"]["99"] / 1e3, 1.5)
        b.delete_untold(ledgers // 2)
        b.collect(forceMajor=True, forceMinor=True)
        got = b.measure("add", *words[:4], "-f", 3001, *words[6:])
        moved = b.metric("bookie_gc_COMPACTED_BYTES")
        note("bookie-busy", compaction=got, moved=moved)
        yield told("beside compaction", f"{line(got)}, {moved / MIB:,.0f} MiB moved")
        yield at_most("p99 of adds with compaction", got["us"]["99"] / 1e3, alone["us"]["99"] / 1e3, 1.5)


def reads(o, root):
    """one bookie: reads of what is in no cache, in order and in any, and of what was just written"""
    size, ledgers = KIB, 100
    entries = (64 * MIB if o.quick else 8 * GIB) // size // ledgers
    disk = fio_read(o, root)
    with Bookie(o, root) as b:
        b.fill(ledgers, entries, size)
        common = ("-l", ledgers, "-n", entries)
        orderly = b.measure("read", *common, "-w", 2000, seconds=600)
        anyhow = b.measure("read", *common, "-w", 256, "-x")
        tail = b.measure("tail", "-s", size, "-l", ledgers, "-f", 5001, "-w", 1000)
    note("bookie-reads", fio=disk, catch_up=orderly, random=anyhow, tail=tail)
    yield told("catch-up", line(orderly))
    yield at_least("  beside fio's reads", orderly["MB/s"], disk / 1e6, 0.5, " MB/s")
    yield told("random", line(anyhow))
    t = tail["tailUs"]
    yield told("tail", f"{tail['rate']:,.0f}/s adds and reads, ms p50 {t['50'] / 1e3:.2f} p99 {t['99'] / 1e3:.2f}")


def restart(o, root):
    """one bookie: killed with 2 GiB in its journal, until it serves again"""
    size, ledgers = 10 * KIB, 100
    total = 64 * MIB if o.quick else 2 * GIB
    conf = {"flushInterval": 3600000, "dbStorage_writeCacheMaxSizeMb": 4 * total // MIB}
    with Bookie(o, root, **conf) as b:
        with ended(load := b.load("add", "-l", ledgers, "-n", total // size // ledgers, "-s", size, "-t", 3600)):
            summary(load, 3600)
        b.kill()
        held = sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(b.conf["journalDirectories"])
                   for f in names)
        b.conf["dbStorage_writeCacheMaxSizeMb"] = 64
        began = time.monotonic()
        b.start(600)
        took = time.monotonic() - began
        note("bookie-restart", seconds=took, journal_bytes=held, rss=rss(b.process.pid))
    yield told(f"with {held / MIB:,.0f} MiB of journal files", f"{took:.2f} s, {total / took / 1e6:,.0f} MB/s")


ROWS = {"bookie-adds": adds, "bookie-journal": journal_alone, "bookie-times": times, "bookie-busy": busy,
        "bookie-reads": reads, "bookie-restart": restart}
