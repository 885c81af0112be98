"""peers.py - other systems beside us: started, loaded by their own clients, ended.

NATS comes from Debian (nats-server), its client is built from bench/peers/nats with go; Kafka and its
client come from Maven Central.  What is missing makes the row unavailable, with a sentence.
"""
import json
import os
import re
import shutil
import subprocess
import time

from measure import HERE, MIB, Unavailable, Watch, ended, perf, stat, wait_line
from lgm import stable_port, wait_until


def cpu(pid):
    return stat(pid)["cpu"]


def must_have(program, why):
    path = shutil.which(program) or next(
        (p for p in (f"/usr/sbin/{program}", f"/usr/local/go/bin/{program}") if os.access(p, os.X_OK)), None)
    if not path:
        raise Unavailable(f"{program} is not installed: {why}")
    return path


def result(told, watch, costs):
    rate = told["messagesPerSecond"]
    assert rate > 0, told
    out = {"rate": rate, "MB/s": told["megabytesPerSecond"], "p50": told["latencyMs"]["50"],
           "p99": told["latencyMs"]["99"], "cpu": sum(c["cpu"] for c in costs.values()) / rate * 1e6,
           "others": watch.others}
    out.update({f"rss {name}": c["rss"] / MIB for name, c in costs.items()})
    return out


class Server:
    """A peer's server process, with a log and a port of its own."""

    def __init__(self, build, root):
        self.build, self.port = os.path.abspath(build), stable_port()
        self.folder = os.path.join(root, type(self).__name__.lower())
        os.makedirs(self.folder)
        self.process = None

    def start(self, words, ready, seconds, **kwargs):
        log = os.path.join(self.folder, "log")
        with open(log, "w") as out:
            self.process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                            cwd=self.folder, **kwargs)

        def says():
            with open(log, errors="replace") as f:
                text = f.read()
            assert self.process.poll() is None, text[-2000:]
            return ready in text
        wait_until(says, seconds, f"{words[0]} says {ready}")

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Nats(Server):
    def __enter__(self):
        server = must_have("nats-server", "apt-get install nats-server")
        go = must_have("go", "the client is built with it")
        self.client = os.path.join(self.build, "nats-bench")
        built = subprocess.run([go, "build", "-o", self.client, "."], text=True, capture_output=True,
                               cwd=os.path.join(HERE, "peers", "nats"), timeout=600)
        if built.returncode != 0:
            raise Unavailable(f"the NATS client does not build: {built.stderr[-300:]}")
        try:
            self.start([server, "-js", "-sd", os.path.join(self.folder, "data"), "-a", "127.0.0.1", "-p",
                        str(self.port)], "Server is ready", 30)
        except BaseException:
            self.__exit__()
            raise
        return self

    def load(self, o, *words):
        client = subprocess.Popen(
            [self.client, "-u", f"nats://127.0.0.1:{self.port}", "-time", str(o.seconds), "-w",
             str(o.warmup), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with ended(client):
            wait_line(client, "ready", 30)
            watch = Watch({"nats-server": self.process.pid, "client": client.pid})
            time.sleep(o.warmup)
            watch.begin()
            time.sleep(o.seconds * 0.9)
            costs = watch.end()
            out, error = client.communicate(timeout=o.seconds + 60)
            assert client.returncode == 0, error
        return result(json.loads(out.splitlines()[-1]), watch, costs)


POM = """<project><modelVersion>4.0.0</modelVersion><groupId>lgm</groupId><artifactId>peer</artifactId>
<version>1</version><dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"


def jars(build, name, *wanted):
    """A folder with what Maven Central has of these, and of what they need; fetched once."""
    folder, pom = os.path.join(build, name), os.path.join(build, f"{name}-pom.xml")
    if os.path.isdir(folder):
        return folder
    mvn = must_have("mvn", f"it fetches {name} from Maven Central")
    with open(pom, "w") as f:
        f.write(POM.format("".join(DEPENDENCY.format(*w) for w in wanted)))
    done = subprocess.run([mvn, "-q", "-f", pom, "dependency:copy-dependencies",
                           f"-DoutputDirectory={folder}.part"], capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise Unavailable(f"{name} cannot be fetched: {done.stdout[-300:]}")
    os.rename(folder + ".part", folder)
    return folder


KAFKA, PULSAR = "4.0.0", "4.0.1"
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
log.flush.interval.messages=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
LAST = re.compile(r"(\d+) records sent, ([\d.]+) records/sec \(([\d.]+) MB/sec\), ([\d.]+) ms avg latency, "
                  r"([\d.]+) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th")


class Kafka(Server):
    """One node in KRaft mode; a produce request is flushed before it is answered."""

    def __enter__(self):
        self.java = must_have("java", "apt-get install default-jre-headless")
        folder = jars(self.build, "kafka", ("org.apache.kafka", "kafka_2.13", KAFKA),
                      ("org.apache.kafka", "kafka-tools", KAFKA))
        self.env = {**os.environ, "CLASSPATH": os.path.join(folder, "*")}
        conf, data = os.path.join(self.folder, "conf"), os.path.join(self.folder, "data")
        with open(conf, "w") as f:
            f.write(PROPERTIES.format(port=self.port, control=stable_port(), data=data))
        subprocess.run([self.java, "kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c",
                        conf], env=self.env, check=True, capture_output=True, timeout=120)
        try:
            self.start([self.java, "-Xmx1g", "kafka.Kafka", conf], "", 5, env=self.env)
            self.make_topic()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make_topic(self):
        """Waits for the server by asking it for what the benchmark needs."""
        words = [self.java, "org.apache.kafka.tools.TopicCommand", "--bootstrap-server",
                 f"127.0.0.1:{self.port}", "--create", "--if-not-exists", "--topic", "bench",
                 "--partitions", "1"]
        wait_until(lambda: subprocess.run(words, env=self.env, capture_output=True, timeout=90)
                   .returncode == 0, 120, "Kafka makes a topic")

    def produce(self, records, rate, seconds):
        words = [self.java, "org.apache.kafka.tools.ProducerPerformance", "--topic", "bench",
                 "--num-records", str(int(records)), "--record-size", "1024", "--throughput",
                 str(int(rate)), "--producer-props", f"bootstrap.servers=127.0.0.1:{self.port}", "acks=all", "batch.size=106496", "linger.ms=1",
                 "max.in.flight.requests.per.connection=5", "buffer.memory=67108864"]
        client = subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
        with ended(client):
            watch = Watch({"kafka": self.process.pid, "client": client.pid})
            watch.begin()
            time.sleep(min(2, seconds))
            costs = watch.end()
            out = client.communicate(timeout=seconds + 120)[0]
        found = LAST.search(out.splitlines()[-1] if out else "")
        assert client.returncode == 0 and found, out[-1000:]
        n, per_s, mb, mean, largest, p50, _, p99 = map(float, found.groups())
        return result({"messagesPerSecond": per_s, "megabytesPerSecond": mb * 1.048576,
                       "latencyMs": {"50": p50, "99": p99}}, watch, costs)

    def load(self, o, rate):
        """Its client ends by count: a short run says how many fill the time."""
        if rate <= 0:
            rate_seen = self.produce(20000, -1, 60)["rate"]
            return self.produce(max(20000, rate_seen * o.seconds), -1, o.seconds * 5)
        return self.produce(rate * (o.seconds + o.warmup), rate, (o.seconds + o.warmup) * 5)


PULSAR_CONF = """brokerServicePort={port}
webServicePort={web}
bindAddress=127.0.0.1
advertisedAddress=127.0.0.1
clusterName=standalone
journalSyncData=true
managedLedgerDefaultEnsembleSize=1
managedLedgerDefaultWriteQuorum=1
managedLedgerDefaultAckQuorum=1
allowAutoTopicCreation=true
webSocketServiceEnabled=false
"""
OPENS = ("java.base/java.lang", "java.base/java.nio", "java.base/java.util.zip", "java.base/sun.net",
         "java.base/jdk.internal.misc", "java.base/jdk.internal.platform", "java.management/sun.management")


class Pulsar(Server):
    """Apache Pulsar standalone, one bookie that syncs; `lgm perf` is the client of both."""

    def __enter__(self):
        java = must_have("java", "apt-get install default-jre-headless")
        folder = jars(self.build, "pulsar", ("org.apache.pulsar", "pulsar-broker", PULSAR))
        conf, self.web = os.path.join(self.folder, "conf"), stable_port()
        self.url = f"pulsar://127.0.0.1:{self.port}"
        with open(conf, "w") as f:
            f.write(PULSAR_CONF.format(port=self.port, web=self.web))
        words = [java, "-Xmx2g", "-XX:MaxDirectMemorySize=2g", "-Dio.netty.tryReflectionSetAccessible=true"]
        for name in OPENS:
            words += ["--add-opens", f"{name}=ALL-UNNAMED"]
        words += ["org.apache.pulsar.PulsarStandaloneStarter", "-c", conf, "-nss", "-nfw"]
        try:
            self.start(words, "", 5, env={**os.environ, "CLASSPATH": os.path.join(folder, "*")})
            wait_until(self.takes_messages, 180, "Pulsar takes messages")
        except BaseException:
            self.__exit__()
            raise
        return self

    def takes_messages(self):
        assert self.process.poll() is None, "Pulsar has ended"
        client = self.perf("produce", "ready", "-m", "1")
        with ended(client):
            client.communicate(timeout=120)
        return client.returncode == 0

    def pids(self):
        return {"pulsar": self.process.pid}

    def perf(self, command, topic, *words, url=None):
        return perf(self.build, url or self.url, command, topic, *words)
