#!/usr/bin/env python3
"""ops_test.py - what an operator does: init, start, stop, ask over HTTP, get things wrong."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster as cluster  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = os.path.abspath(parser.parse_args().build)
STOCK = os.path.join(HERE, "stock")


def run(program, *words, cwd=None):
    return subprocess.run([os.path.join(BUILD, program), *words], capture_output=True, text=True,
                          timeout=60 * lgm.SLOW, cwd=cwd)


def init(url, *more, name="c1", **kwargs):
    return run("lgm", "init", "--cluster", name, "--metadata", url, *more, **kwargs)


def bookie_on_rocksdb(folder, **conf):
    """A bookie over a store of its own, which is initialized."""
    url = "rocksdb:" + os.path.join(folder, "metadata")
    done = init(url)
    assert done.returncode == 0, done
    return cluster.Bookie(BUILD, folder, "b1", url, diskCheckInterval=50, **conf)


def key_lines(name, commented=False):
    """(key, value) of a stock file, with those that it leaves commented out if asked for."""
    pattern = re.compile(r"^#? ?([A-Za-z][\w.]*) ?= ?(.*)$" if commented else r"^([A-Za-z][\w.]*) ?= ?(.*)$")
    with open(os.path.join(STOCK, name)) as f:
        return [m.groups() for m in map(pattern.match, f.read().splitlines()) if m]


# ---- lgm init --------------------------------------------------------------------------------------


def init_says_what_it_did(folder):
    url = "rocksdb:" + os.path.join(folder, "deep", "metadata")
    first = init(url, "--web-service-url", "http://c1:8080", "--broker-service-url", "pulsar://c1:6650")
    assert first.returncode == 0 and "is initialized" in first.stdout, first
    instance = re.search(r"instance ([0-9a-f-]{36})", first.stdout).group(1)
    again = init("metadata-store:" + url)
    assert again.returncode == 0 and "nothing was changed" in again.stdout and instance in again.stdout
    other = init(url, name="c2")
    assert other.returncode == 1 and "c1" in other.stderr and "own" in other.stderr, other


def init_is_told_how_it_is_used(folder):
    shown = run("lgm", "init", "--help")
    assert shown.returncode == 0 and "Example: lgm init --cluster" in shown.stdout
    url = "rocksdb:" + os.path.join(folder, "m")
    for words, text in ((["--cluster", "c1"], "--metadata"), (["--metadata", url], "--cluster"),
                        (["--cluster", "", "--metadata", url], "--cluster"),
                        (["--cluster", "a/b", "--metadata", url], "a/b"),
                        (["--cluster", "c1", "--metadata", "zk:h:2181"], "zk:h:2181"),
                        (["--nonsense"], "--nonsense"), (["extra"], "extra")):
        done = run("lgm", "init", *words)
        assert done.returncode == 2 and text in done.stderr, (words, done)
    assert not os.path.exists(url.removeprefix("rocksdb:"))
    failed = init("rocksdb:/proc/nowhere")
    assert failed.returncode == 1 and "/proc/nowhere" in failed.stderr, failed


def without_init_nothing_starts(folder):
    url = "rocksdb:" + os.path.join(folder, "metadata")
    bookie = cluster.Bookie(BUILD, folder, "b1", url)
    bookie.refuses_to_start("cluster.not_initialized", "lgm init --cluster", url)
    broker = cluster.Broker(BUILD, folder, "k1", url)
    broker.refuses_to_start("cluster.not_initialized", "lgm init --cluster c1")
    assert init(url).returncode == 0
    bookie.start()
    bookie.stop()


# ---- a bookie's life -------------------------------------------------------------------------------


def starts_stops_and_starts_again(folder):
    bookie = bookie_on_rocksdb(folder)
    bookie.start()
    assert "bookie.cookie_created" in bookie.output()
    bookie.stop(signal.SIGTERM)
    text = bookie.output()
    assert text.index("bookie.stopping") < text.index("bookie.unregistered") < text.index("bookie.ended")
    bookie.start()
    assert "bookie.cookie_created" not in bookie.output()
    bookie.stop(signal.SIGINT)


def comes_back_after_kill(folder):
    bookie = bookie_on_rocksdb(folder)
    for _ in range(3):
        bookie.start()
        bookie.kill()
    bookie.start()
    bookie.wait_for_event("journal.replayed")
    bookie.stop()


def second_process_on_the_same_directories(folder):
    first = bookie_on_rocksdb(folder)
    first.start()
    second = bookie_on_rocksdb(os.path.join(folder, "second"))
    for key in ("journalDirectories", "ledgerDirectories"):
        second.conf[key] = first.conf[key]
    second.refuses_to_start("bookie.directory_refused", "another process uses it",
                            first.conf["ledgerDirectories"])
    first.stop()


def ports_in_use(folder):
    first = bookie_on_rocksdb(folder)
    first.start()
    second = bookie_on_rocksdb(os.path.join(folder, "second"), bookiePort=first.port)
    second.refuses_to_start("listener.failed", f"port={first.port}", "EADDRINUSE")
    second.conf.update(bookiePort=second.port, httpServerPort=first.web_port)
    second.refuses_to_start("listener.failed", f"port={first.web_port}", "EADDRINUSE")
    second.conf.update(httpServerPort=second.web_port)
    second.start()
    second.stop()
    first.stop()


def wrong_directories_are_refused(folder):
    bookie = bookie_on_rocksdb(folder)
    bookie.start()
    bookie.stop()
    bookie.conf["bookieId"] = "b2"
    bookie.refuses_to_start("bookie.cookie_refused", "bookie id")
    bookie.conf["bookieId"] = "b1"
    shutil.rmtree(bookie.conf["journalDirectories"])
    bookie.refuses_to_start("bookie.cookie_refused", "journal")
    bookie.conf["journalDirectories"] = "/proc/nowhere"
    bookie.refuses_to_start("bookie.directory_refused", "/proc/nowhere")
    bookie.conf["journalDirectories"] = "/a, /a"
    bookie.refuses_to_start("bookie.config_refused", "journalDirectories", "it names a directory twice")


def several_on_one_host(folder):
    bookies = []
    for i in range(3):
        bookies.append(bookie_on_rocksdb(os.path.join(folder, str(i))))
    for b in bookies:
        b.launch()
    for b in bookies:
        b.wait_ready()
    for b in bookies:
        b.stop()


# ---- HTTP ------------------------------------------------------------------------------------------


def get(bookie, path):
    status, text = bookie.http(path)
    assert status == 200, (path, status, text)
    return text


def http_tells_the_state(folder):
    bookie = bookie_on_rocksdb(folder)
    bookie.start()
    assert get(bookie, "/status") == get(bookie, "/heartbeat") == "OK\n"
    metrics = get(bookie, "/metrics")
    assert "bookie_SERVER_STATUS 1" in metrics and "bookie_journal_JOURNAL_SYNC" in metrics
    assert json.loads(get(bookie, "/api/v1/bookie/state")) == {
        "running": True, "readOnly": False, "shuttingDown": False, "availableForHighPriorityWrites": True}
    info = json.loads(get(bookie, "/api/v1/bookie/info"))
    space = os.statvfs(folder)
    assert info["totalSpace"] == space.f_blocks * space.f_frsize and 0 < info["freeSpace"] < info["totalSpace"]
    listed = "/api/v1/bookie/list_bookies?print_hostnames=true&type="
    assert json.loads(get(bookie, listed + "rw")) == {"b1": "127.0.0.1"}
    assert json.loads(get(bookie, listed + "ro")) == {}
    assert bookie.http("/nothing")[0] == 404
    assert bookie.http("/api/v1/bookie/state", "POST", {})[0] == 405
    bookie.stop()


def set_read_only(bookie, yes):
    status, text = bookie.http("/api/v1/bookie/state/readonly", "PUT", {"readOnly": yes})
    assert status == 200 and json.loads(text) == {"readOnly": yes}, (status, text)


def read_only_by_hand(folder):
    bookie = bookie_on_rocksdb(folder)
    bookie.start()
    for body in ({}, {"readOnly": 1}, {"readOnly": "true"}, [], "x"):
        assert bookie.http("/api/v1/bookie/state/readonly", "PUT", body)[0] == 400, body
    listed = "/api/v1/bookie/list_bookies?type="
    set_read_only(bookie, True)
    assert "bookie_SERVER_STATUS 0" in get(bookie, "/metrics")
    lgm.wait_until(lambda: json.loads(get(bookie, listed + "rw")) == {}, 10, "it is not among the writable")
    assert json.loads(get(bookie, listed + "ro")) == {"b1": None}
    assert bookie.is_ready() and json.loads(get(bookie, "/api/v1/bookie/state"))["readOnly"]
    set_read_only(bookie, True)
    assert bookie.output().count("bookie.set_readonly") == 1
    set_read_only(bookie, False)
    lgm.wait_until(lambda: json.loads(get(bookie, listed + "rw")) == {"b1": None}, 10, "it is writable")
    bookie.stop()
    bookie.conf["forceReadOnlyBookie"] = "true"
    bookie.start()
    assert json.loads(get(bookie, listed + "ro")) == {"b1": None}
    assert json.loads(get(bookie, "/api/v1/bookie/state/readonly")) == {"readOnly": True}
    bookie.stop()


def a_full_disk_makes_it_read_only(folder):
    bookie = bookie_on_rocksdb(folder, diskUsageThreshold="0.0001")
    bookie.start()
    bookie.wait_for_event("bookie.became_readonly")
    bookie.wait_for_event("as=readonly")
    set_read_only(bookie, True)
    status, text = bookie.http("/api/v1/bookie/state/readonly", "PUT", {"readOnly": False})
    assert status == 200 and json.loads(text) == {"readOnly": True}  # the disk is as full as before
    bookie.stop()


def without_the_http_server(folder):
    bookie = bookie_on_rocksdb(folder, httpServerEnabled="false")
    bookie.conf["prometheusStatsHttpPort"] = bookie.web_port
    bookie.start()
    assert "bookie_SERVER_STATUS 1" in get(bookie, "/metrics")
    assert bookie.http("/api/v1/bookie/state/readonly", "PUT", {"readOnly": True})[0] == 403
    bookie.stop()
    bookie.conf["prometheusStatsHttpEnable"] = "false"
    bookie.launch()
    bookie.wait_for_event("bookie.started")
    assert bookie.http("/metrics")[0] == 0
    bookie.stop()


# ---- over etcd -------------------------------------------------------------------------------------


def listed(bookie, kind="rw"):
    return set(json.loads(get(bookie, "/api/v1/bookie/list_bookies?type=" + kind)))


def three_bookies_over_etcd(folder):
    with cluster.Cluster(BUILD, folder, bookies=3, brokers=0) as c:
        assert "nothing was changed" in c.init().stdout
        first, second, third = c.bookies
        everyone = {b.name for b in c.bookies}
        assert listed(first) == listed(third) == everyone
        third.stop()
        assert listed(first) == everyone - {third.name}
        third.start()
        assert listed(first) == everyone
        set_read_only(second, True)
        lgm.wait_until(lambda: listed(first, "ro") == {second.name}, 10, "it is listed as read-only")
        # It is in both lists for a moment, never in none.
        lgm.wait_until(lambda: listed(first) == everyone - {second.name}, 10, "and not as writable")


def a_killed_bookie_is_back_before_its_lease_ends(folder):
    with cluster.Cluster(BUILD, folder, bookies=1, brokers=0, bookie_conf={"zkTimeout": 600000}) as c:
        bookie = c.bookies[0]
        bookie.kill()
        bookie.start(10)
        bookie.wait_for_event("bookie.evicted_itself")
        # The same name with another address is somebody else, as long as its key lives.
        bookie.kill()
        bookie.conf["bookiePort"] = cluster.stable_port()
        bookie.launch().wait_for_event("bookie.registration_failed")
        assert bookie.http("/api/v1/bookie/is_ready")[0] == 503
        assert bookie.http("/status")[0] == 200
        bookie.kill()


def etcd_is_not_there(folder):
    etcd = cluster.Etcd(folder)
    failed = init(etcd.url)
    assert failed.returncode == 1 and etcd.url in failed.stderr, failed
    etcd.start()
    assert init(etcd.url).returncode == 0
    etcd.kill()
    bookie = cluster.Bookie(BUILD, folder, "b1", etcd.url)
    bookie.launch()
    lgm.wait_until(lambda: bookie.http("/status")[0] == 200, 10, "it is alive")
    status, text = bookie.http("/api/v1/bookie/is_ready")
    assert status == 503 and "starting" in text
    etcd.start()
    bookie.wait_ready()
    etcd.kill()
    assert bookie.http("/status")[0] == 200 and bookie.is_running
    etcd.start()
    lgm.wait_until(lambda: bookie.http("/api/v1/bookie/list_bookies?type=rw", timeout=40)[0] == 200, 40, "etcd is back")
    assert listed(bookie) == {"b1"}
    bookie.stop()
    etcd.stop()


# ---- configuration ---------------------------------------------------------------------------------


def bad_lines_are_all_told(folder):
    path = os.path.join(folder, "bad.conf")
    with open(path, "w") as f:
        f.write("# a bookie\nbookiePort=99999\njournalSyncData=false\n\nnonsense\ndiskUsageThreshold=much\n"
                "bookiPort=1\nhttpServerTlsEnable=true\n")
    done = run("lgm-bookie", "--conf", path)
    assert done.returncode == 1
    for text in (f"where={path}:2 key=bookiePort value=99999", f"where={path}:3 key=journalSyncData",
                 f"where={path}:5 value=nonsense", f"where={path}:6 key=diskUsageThreshold",
                 f"where={path}:7 key=bookiPort nearest=bookiePort", f"where={path}:8 key=httpServerTlsEnable"):
        assert text in done.stderr, f"{text!r} is not in {done.stderr}"
    done = run("lgm-bookie", "--set", "metadataServiceUri=zk+hierarchical://localhost/ledgers")
    assert done.returncode == 1 and "zk+hierarchical" in done.stderr
    assert run("lgm-bookie", "--conf", path + "x").returncode == 1
    assert run("lgm-bookie", "--nonsense").returncode == run("lgm-bookie", "extra").returncode == 2
    assert "example:" in run("lgm-bookie", "--help").stdout


def promises_that_are_not_given_stop_the_start(folder):
    del folder
    for program, pairs in (
            ("lgm-bookie", ("journalSyncData=false", "journalWriteData=false", "httpServerTlsEnable=true",
                            "bookieAuthProviderFactoryClass=x", "enforceMinNumRacksPerWriteQuorum=true")),
            ("lgm-broker", ("bookkeeperTLSClientAuthentication=true", "encryptionRequireOnProducer=true",
                            "managedLedgerDigestType=DUMMY"))):
        for pair in pairs:
            done = run(program, "--set", pair)
            assert done.returncode == 1 and "config.refused" in done.stderr, (program, pair, done)
            assert pair.split("=")[0] in done.stderr and "reason=" in done.stderr, done.stderr


def says_nothing_wrong(process):
    wrong = [line for line in process.output().splitlines() if "config.unknown" in line or " ERROR " in line]
    assert not wrong, "\n".join(wrong)


def stock_files_start_as_they_are(folder):
    assert init("rocksdb:data/metadata", cwd=folder).returncode == 0
    for name, more in (("bookkeeper.conf", []), ("bk_server.conf", [
            "--set", "metadataServiceUri=rocksdb:data/metadata", "--set", "journalDirectories=other/journal",
            "--set", "ledgerDirectories=other/ledgers"])):
        bookie = cluster.Bookie(BUILD, folder, name, "rocksdb:data/metadata")
        bookie.folder, bookie.conf_file = folder, os.path.join(STOCK, name)
        bookie.write_conf = lambda: None
        bookie.args = [*more, "--set", f"bookiePort={bookie.port}", "--set", f"bookieId={name}", "--set",
                       f"prometheusStatsHttpPort={bookie.web_port}", "--set", "journalMaxSizeMB=16"]
        bookie.start()
        says_nothing_wrong(bookie)
        bookie.stop()


def stock_broker_conf_starts_as_it_is(folder):
    # Over RocksDB it has the store for itself: enough to see that it starts.
    assert init("rocksdb:data/metadata", name="standalone", cwd=folder).returncode == 0
    broker = cluster.Broker(BUILD, folder, "k1", "rocksdb:data/metadata")
    broker.folder, broker.conf_file = folder, os.path.join(STOCK, "broker.conf")
    broker.write_conf = lambda: None
    broker.args = ["--set", "metadataStoreUrl=rocksdb:data/metadata", "--set", f"brokerServicePort={broker.port}",
                   "--set", f"webServicePort={broker.web_port}"]
    broker.start()
    says_nothing_wrong(broker)
    broker.stop()


def every_key_of_upstream_is_known(folder):
    del folder
    for program, name, commented in (("lgm-bookie", "bookkeeper.conf", False), ("lgm-bookie", "bk_server.conf", True),
                                     ("lgm-broker", "broker.conf", False)):
        described = run(program, "--describe-config").stdout
        known = set(re.findall(r"^(?:#   )?([A-Za-z][\w.]*)=", described, re.M)) | {"journalDirectory"}
        missing = {key for key, _ in key_lines(name, commented)} - known
        assert not missing, f"{program} does not know {sorted(missing)}"
        keys = re.findall(r"^(?:#   )?([A-Za-z][\w.]*)=", described, re.M)
        twice = {k for k in keys if keys.count(k) > 1}
        assert not twice, f"{program} knows twice: {sorted(twice)}: a key in config.def leaves upstream.def"


def pages_say_what_the_tables_say(folder):
    del folder
    done = subprocess.run([sys.executable, os.path.join(HERE, "..", "..", "docs", "generate.py"), "--check",
                           "--build", BUILD], capture_output=True, text=True, timeout=60 * lgm.SLOW)
    assert done.returncode == 0, done.stdout + done.stderr


cases = lgm.Cases()
if not os.path.exists(cluster.ETCD):
    sys.exit(f"{cluster.ETCD} is not there: make deps-test")
for case in (init_says_what_it_did, init_is_told_how_it_is_used, without_init_nothing_starts,
             starts_stops_and_starts_again, comes_back_after_kill, second_process_on_the_same_directories,
             ports_in_use, wrong_directories_are_refused, several_on_one_host, http_tells_the_state,
             three_bookies_over_etcd, a_killed_bookie_is_back_before_its_lease_ends, etcd_is_not_there,
             read_only_by_hand, a_full_disk_makes_it_read_only, without_the_http_server,
             bad_lines_are_all_told, promises_that_are_not_given_stop_the_start, stock_files_start_as_they_are,
             stock_broker_conf_starts_as_it_is, every_key_of_upstream_is_known, pages_say_what_the_tables_say):
    cases.run(case.__name__, case)
cases.end()
