"""lgm_cluster.py - etcd, bookies and brokers as processes of their own, each started, killed, frozen.

    with Cluster(build, folder, bookies=3, brokers=2) as c:
        c.run("produce", "t", "-m", "hello")
        c.bookies[0].kill()
        c.bookies[0].start()

A process keeps its ports, folder and configuration file through all its lives; a configuration
file is written at every start from its `conf`, so a test may change that in between.
Whatever is still running when the test ends is killed.
"""
import atexit
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request

from lgm import SLOW, stable_port, wait_until

ETCD = "/usr/bin/etcd"
_running = set()


def http(url, method="GET", body=None, timeout=5):
    """(status, text); (0, reason) when nobody answers."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data=data, method=method)
    if data:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(errors="replace")
    except OSError as e:
        return 0, str(e)


@atexit.register
def _kill_what_is_left():
    for p in list(_running):
        p.kill()


class Process:
    """One program through any number of lives; each life has a log of its own."""

    def __init__(self, folder, name):
        self.folder, self.name = os.path.join(folder, name), name
        os.makedirs(self.folder, exist_ok=True)
        self.process, self.lives = None, 0
        self.inside = []  # words before its command: what it is to run in

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        raise NotImplementedError

    @property
    def log(self):
        return os.path.join(self.folder, f"log-{self.lives}")

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def output(self):
        if not os.path.exists(self.log):
            return ""
        with open(self.log, errors="replace") as f:
            return f.read()

    def launch(self):
        """Starts it and waits for nothing."""
        assert not self.is_running, f"{self.name} is running"
        self.lives += 1
        words = [*self.inside, *self.command()]
        # A program takes LGM_key for a setting: what the tests say to each other is none.
        env = {k: v for k, v in os.environ.items() if not k.startswith("LGM_TEST_")}
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                            cwd=self.folder, env=env)
        _running.add(self)
        return self

    def wait_ready(self, seconds=30):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n"
                                     f"{self.output()[-5000:]}")
            return self.is_ready()
        try:
            wait_until(ready, seconds, f"{self.name} is ready")
        except AssertionError as e:
            raise AssertionError(f"{e}\n{self.output()[-5000:]}") from None
        return self

    def start(self, seconds=30):
        return self.launch().wait_ready(seconds)

    def kill(self):
        """kill -9, also of what is frozen."""
        if self.process:
            self.process.kill()
            self.process.wait()
        _running.discard(self)

    def stop(self, how=signal.SIGTERM, seconds=30):
        self.process.send_signal(how)
        code = self.process.wait(seconds * SLOW)
        _running.discard(self)
        assert code == 0, f"{self.name} ended with {code}:\n{self.output()[-5000:]}"

    def freeze(self):
        """When it returns every thread stands still: until one has taken the signal the others go on."""
        self.process.send_signal(signal.SIGSTOP)
        tasks = f"/proc/{self.process.pid}/task"
        wait_until(lambda: all(self.stands(f"{tasks}/{task}/stat") for task in os.listdir(tasks)),
                   10, f"{self.name} stands still")

    @staticmethod
    def stands(stat):
        try:
            with open(stat) as f:
                return f.read().rpartition(")")[2].split()[0] in "TtZX"
        except (FileNotFoundError, ProcessLookupError):
            return True  # a thread that has ended

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def wait_for_event(self, event, seconds=30):
        """A line of this life's log that has the text; gives the line."""
        def found():
            return next((line for line in self.output().splitlines() if event in line), None)
        return wait_until(found, seconds, f"{self.name} says {event}:\n{self.output()[-3000:]}")


class EtcdNode(Process):
    def __init__(self, folder, name, host, heartbeat_ms, election_ms, args):
        super().__init__(folder, name)
        self.client, self.peer = stable_port(), stable_port()
        self.url = f"http://{host}:{self.client}"
        self.peer_url = f"http://{host}:{self.peer}"
        self.heartbeat_ms, self.election_ms, self.args = heartbeat_ms, election_ms, list(args)
        self.members = ""

    def command(self):
        return [ETCD, "--name", self.name, "--data-dir", os.path.join(self.folder, "data"),
                "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", self.members, "--initial-cluster-state", "new",
                "--heartbeat-interval", str(self.heartbeat_ms),
                "--election-timeout", str(self.election_ms), "--pre-vote",
                "--grpc-keepalive-min-time", "100ms", "--log-level", "warn", *self.args]

    def is_ready(self):
        status, text = http(self.url + "/health", timeout=1)
        return status == 200 and json.loads(text).get("health") == "true"


class Etcd:
    """A metadata cluster of 1 or 3 nodes, by Debian's etcd."""

    def __init__(self, folder, nodes=1, heartbeat_ms=50, election_ms=500, args=(), host="127.0.0.1"):
        self.nodes = [EtcdNode(folder, f"etcd-{i}", host, heartbeat_ms * SLOW, election_ms * SLOW, args)
                      for i in range(nodes)]
        for node in self.nodes:
            node.members = ",".join(f"{n.name}={n.peer_url}" for n in self.nodes)
        self.url = "etcd:" + ",".join(n.url for n in self.nodes)

    def start(self, seconds=30):
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_ready(seconds)
        return self

    def kill(self):
        for node in self.nodes:
            node.kill()

    def stop(self):
        self.kill()  # what it has acknowledged it has synced

    def freeze(self):
        for node in self.nodes:
            node.freeze()

    def thaw(self):
        for node in self.nodes:
            node.thaw()

    def leader(self):
        """The node that leads, or None."""
        for node in self.nodes:
            status, text = http(node.url + "/v3/maintenance/status", "POST", {}, timeout=1)
            if status == 200:
                answer = json.loads(text)
                if answer.get("leader") == answer["header"]["member_id"]:
                    return node
        return None


class Lgm(Process):
    """A program of ours with a configuration file and an HTTP port."""

    program, ready_path = "", ""

    def __init__(self, build, folder, name, conf):
        super().__init__(folder, name)
        self.program_path = os.path.join(os.path.abspath(build), self.program)
        self.conf_file = os.path.join(self.folder, self.program + ".conf")
        self.host, self.web_port = "127.0.0.1", stable_port()
        self.conf, self.args = dict(conf), []

    def write_conf(self):
        with open(self.conf_file, "w") as f:
            f.writelines(f"{key}={value}\n" for key, value in self.conf.items())

    def command(self):
        self.write_conf()
        return [self.program_path, "--conf", self.conf_file, *self.args]

    def http(self, path, method="GET", body=None, timeout=5):
        return http(f"http://{self.host}:{self.web_port}{path}", method, body, timeout)

    def is_ready(self):
        return self.http(self.ready_path, timeout=1)[0] == 200

    def refuses_to_start(self, *texts, seconds=30):
        """It must end by itself, not by a signal, and have said all the texts."""
        self.launch()
        code = self.process.wait(seconds * SLOW)
        _running.discard(self)
        assert code > 0, f"{self.name} ended with {code}:\n{self.output()}"
        for text in texts:
            assert text in self.output(), f"{text!r} is not in:\n{self.output()}"


class Bookie(Lgm):
    program, ready_path = "lgm-bookie", "/api/v1/bookie/is_ready"

    def __init__(self, build, folder, name, metadata_url, **conf):
        super().__init__(build, folder, name, conf)
        self.port = stable_port()
        data = os.path.join(self.folder, "data")
        self.conf = {
            "bookieId": name, "bookiePort": self.port, "listenAddress": "127.0.0.1",
            "advertisedAddress": "127.0.0.1", "httpServerPort": self.web_port,
            "httpServerHost": "127.0.0.1",
            "journalDirectories": os.path.join(data, "journal"),
            "ledgerDirectories": os.path.join(data, "ledgers"), "journalMaxSizeMB": 16,
            "metadataServiceUri": "metadata-store:" + metadata_url, **conf}

    def live_at(self, host):
        """Before it starts."""
        self.host = host
        self.conf.update(bookieId=f"{host}:{self.port}", listenAddress=host, advertisedAddress=host,
                         httpServerHost=host)


class Broker(Lgm):
    program, ready_path = "lgm-broker", "/admin/v2/brokers/ready"

    def __init__(self, build, folder, name, metadata_url, cluster="c1", **conf):
        super().__init__(build, folder, name, conf)
        self.port = stable_port()
        self.url = f"pulsar://127.0.0.1:{self.port}"
        self.conf = {
            "clusterName": cluster, "brokerServicePort": self.port, "webServicePort": self.web_port,
            "bindAddress": "127.0.0.1", "advertisedAddress": "127.0.0.1",
            "metadataStoreUrl": metadata_url, **conf}

    def live_at(self, host):
        """Before it starts."""
        self.host, self.url = host, f"pulsar://{host}:{self.port}"
        self.conf.update(bindAddress=host, advertisedAddress=host)


class Cluster:
    """etcd, bookies and brokers, initialized and started; E=3 Qw=3 Qa=2 when there are 3 bookies."""

    def __init__(self, build, folder, bookies=3, brokers=1, etcd_nodes=1, bookie_conf=None,
                 broker_conf=None, etcd_host="127.0.0.1"):
        self.build, self.folder, self.name = os.path.abspath(build), folder, "c1"
        self.lgm = os.path.join(self.build, "lgm")
        self.etcd = Etcd(folder, etcd_nodes, host=etcd_host)
        self.bookies = [Bookie(build, folder, f"bookie-{i}", self.etcd.url, **(bookie_conf or {}))
                        for i in range(bookies)]
        quorum = {"managedLedgerDefaultEnsembleSize": min(bookies, 3),
                  "managedLedgerDefaultWriteQuorum": min(bookies, 3),
                  "managedLedgerDefaultAckQuorum": min(bookies, 2)}
        self.brokers = [Broker(build, folder, f"broker-{i}", self.etcd.url, self.name,
                               **{**quorum, **(broker_conf or {})}) for i in range(brokers)]

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, error, trace):
        for p in [*self.brokers, *self.bookies]:
            p.kill()
        self.etcd.kill()

    def init(self):
        words = [self.lgm, "init", "--cluster", self.name, "--metadata", self.etcd.url]
        if self.brokers:
            words += ["--web-service-url", f"http://{self.brokers[0].host}:{self.brokers[0].web_port}",
                      "--broker-service-url", self.brokers[0].url]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60 * SLOW)
        assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done

    def start(self, seconds=60):
        self.etcd.start()
        self.init()
        for p in self.bookies:
            p.launch()
        for p in self.bookies:
            p.wait_ready(seconds)
        for p in self.brokers:
            p.launch()
        for p in self.brokers:
            p.wait_ready(seconds)
        return self

    def run(self, *words, broker=0, check=True, seconds=120, **kwargs):
        """An `lgm` subcommand against a broker; gives the CompletedProcess."""
        words = [self.lgm, *words, "--url", self.brokers[broker].url]
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds * SLOW, **kwargs)
        if check and done.returncode != 0:
            raise AssertionError(f"{words} gave {done.returncode}\n{done.stdout[-2000:]}\n"
                                 f"{done.stderr[-2000:]}")
        return done

    def spawn(self, *words, broker=0, **kwargs):
        return subprocess.Popen([self.lgm, *words, "--url", self.brokers[broker].url],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
