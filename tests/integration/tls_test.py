#!/usr/bin/env python3
"""tls_test.py - both protocols over TLS: every command, certificates of clients, renewed files,
what is refused, two brokers that offer nothing else."""
import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import certs  # noqa: E402
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build
# CONNECT of a client called "t", protocol version 21.
CONNECT = bytes.fromhex("0000000d" "00000009" "0802" "1205" "0a0174" "2015")


class Secure(lgm.Standalone):
    """A standalone with its TLS ports open, too, and certificates signed by `ca`."""

    def __init__(self, folder, args=(), own="server"):
        super().__init__(BUILD, folder, args=args)
        self.ca = certs.Authority(folder)
        self.cert, self.key = self.ca.issue(own)
        self.tls_port, self.tls_web_port = lgm.stable_port(), lgm.stable_port()
        self.plain_url, self.url = self.url, f"pulsar+ssl://localhost:{self.tls_port}"
        self.web_url = f"https://localhost:{self.tls_web_port}"
        self.args += ["--tls-port", str(self.tls_port), "--tls-web-port", str(self.tls_web_port),
                      "--tls-cert", self.cert, "--tls-key", self.key, "--advertise", "localhost"]

    def shown(self, port=None, **how):
        """The serial number of the certificate that is shown."""
        with self.dial(port, **how) as s:
            text = certs.openssl("x509", "-noout", "-serial", "-in", self.pem(s))
            return int(text.strip().partition("=")[2], 16)

    def pem(self, s):
        path = os.path.join(self.folder, "shown.pem")
        with open(path, "w") as f:
            f.write(ssl.DER_cert_to_PEM_cert(s.getpeercert(binary_form=True)))
        return path

    def context(self, mine=None, most=None, ciphers=None):
        c = ssl.create_default_context(cafile=self.ca.cert)
        if mine:
            c.load_cert_chain(*mine)
        if most:
            c.maximum_version = most
        if ciphers:
            c.set_ciphers(ciphers)
        return c

    def dial(self, port=None, **how):
        plain = socket.create_connection(("127.0.0.1", port or self.tls_port), timeout=20 * lgm.SLOW)
        try:
            return self.context(**how).wrap_socket(plain, server_hostname="localhost")
        except Exception:
            plain.close()
            raise

    def greeted(self, **how):
        """What is answered to CONNECT; a client's certificate is only judged after the handshake."""
        with self.dial(**how) as s:
            s.sendall(CONNECT)
            return s.recv(1000)

    def get(self, path, **how):
        with urllib.request.urlopen(self.web_url + path, context=self.context(**how),
                                    timeout=20 * lgm.SLOW) as answer:
            return json.load(answer)

    def admin(self, *words, url=None):
        done = subprocess.run([self.lgm, "admin", *words, "--admin-url", url or self.web_url, "--tls-trust",
                               self.ca.cert], capture_output=True, text=True, timeout=60 * lgm.SLOW)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    @property
    def trust(self):
        return ["--tls-trust", self.ca.cert]


def with_server(**made):
    def wrap(case):
        def run(folder):
            server = Secure(folder, **made).start()
            try:
                case(server)
                server.stop()
            finally:
                if server.process.poll() is None:
                    server.kill()
        run.__name__ = case.__name__
        return run
    return wrap


def refused(function, *args, **how):
    """The connection comes to nothing, whoever says so first."""
    try:
        got = function(*args, **how)
    except (ssl.SSLError, ConnectionError, urllib.error.URLError):
        return
    assert got == b"", f"it was let in: {got!r}"


@with_server()
def every_command_over_tls(server):
    server.run("produce", "t", "-m", "hello", "-n", "10", *server.trust)
    got = server.run("consume", "t", "-s", "s", "-p", "Earliest", "-n", "10", "--idle", "30", *server.trust)
    assert got.stdout.splitlines() == ["hello"] * 10, got.stdout
    done = server.run("verify", "v", "-n", "20000", *server.trust)
    said = lgm.verdict(done.stdout + done.stderr)
    assert said["lost"] == said["duplicated"] == said["reordered"] == 0 and said["checked"] == 20000, said
    large = os.path.join(server.folder, "large")
    with open(large, "wb") as f:
        f.write(os.urandom(3000) * 4000)
    server.run("produce", "large", "-f", large, *server.trust)
    got = subprocess.run([server.lgm, "consume", "large", "-s", "s", "-p", "Earliest", "-n", "1", "--format",
                          "raw", "--url", server.url, *server.trust], capture_output=True, timeout=120 * lgm.SLOW)
    with open(large, "rb") as f:
        assert got.stdout == f.read(), (len(got.stdout), got.stderr)
    done = server.run("perf", "produce", "p", "-m", "5000", "-r", "0", "--trust-cert-file", server.ca.cert)
    assert json.loads(done.stdout.splitlines()[-1])["messages"] == 5000
    server.run("produce", "t", "-m", "any", "--tls-insecure")
    done = server.run("produce", "t", "-m", "x", "--tls-trust", "/no/such.pem", check=False)
    assert done.returncode == 2 and "/no/such.pem" in done.stderr, done.stderr
    found = server.get("/lookup/v2/topic/persistent/public/default/t")
    assert found["brokerUrlTls"] == server.url and found["httpUrlTls"] == server.web_url, found
    assert found["brokerUrl"] == server.plain_url.replace("127.0.0.1", "localhost"), found


@with_server()
def admin_by_https(server):
    server.admin("tenants", "create", "acme", "-c", "standalone")
    server.admin("namespaces", "create", "acme/orders")
    assert "acme/orders" in server.admin("namespaces", "list", "acme")
    assert "acme" in server.get("/admin/v2/tenants")
    done = subprocess.run([server.lgm, "admin", "tenants", "list", "--admin-url", server.web_url],
                          capture_output=True, text=True)
    assert done.returncode == 1 and "certificate" in done.stderr, done.stderr
    with urllib.request.urlopen(server.web_url + "/metrics", context=server.context()) as answer:
        assert b"pulsar_" in answer.read()


@with_server()
def who_speaks_otherwise_is_let_go(server):
    """Plain words to a TLS port and the other way round: the connection ends, the server does not."""
    for port, words in ((server.tls_port, CONNECT), (server.tls_web_port, b"GET / HTTP/1.0\r\n\r\n"),
                        (server.tls_port, b"\x16\x03\x01"), (server.tls_port, os.urandom(1000))):
        with socket.create_connection(("127.0.0.1", port), timeout=20 * lgm.SLOW) as s:
            with contextlib.suppress(OSError):  # it may have ended it by now
                s.sendall(words)
                s.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while s.recv(4096):
                    pass
    refused(server.dial, server.port)
    refused(server.dial, server.web_port)
    server.run("produce", "t", "-m", "still there", *server.trust)
    server.url = server.plain_url
    server.run("consume", "t", "-s", "s", "-p", "Earliest", "-n", "1", "--idle", "30")


def clients_must_show_a_certificate(folder):
    server = Secure(folder)
    server.args += ["--set", "tlsRequireTrustedClientCertOnConnect=true", "--set",
                    f"tlsTrustCertsFilePath={server.ca.cert}"]
    server.start()
    mine = server.ca.issue("client")
    stranger = certs.Authority(folder, "stranger").issue("stranger-client")
    assert server.greeted(mine=mine)
    refused(server.greeted)
    refused(server.greeted, mine=stranger)
    assert "standalone" in server.get("/admin/v2/clusters", mine=mine)
    refused(server.get, "/admin/v2/clusters")
    refused(server.get, "/admin/v2/clusters", mine=stranger)
    server.run("produce", "t", "-m", "me", *server.trust, "--tls-cert", mine[0], "--tls-key", mine[1])
    assert "standalone" in server.admin("clusters", "list", "--tls-cert", mine[0], "--tls-key", mine[1])
    server.stop()


def a_certificate_is_looked_at_where_it_is_not_asked_for(folder):
    server = Secure(folder)
    server.args += ["--set", f"tlsTrustCertsFilePath={server.ca.cert}"]
    server.start()
    stranger = certs.Authority(folder, "stranger").issue("stranger-client")
    assert server.greeted() and server.greeted(mine=server.ca.issue("client"))
    refused(server.greeted, mine=stranger)
    server.kill()
    server.args += ["--set", "tlsAllowInsecureConnection=true"]
    server.start()
    assert server.greeted(mine=stranger)
    server.stop()


def protocols_and_ciphers_are_chosen(folder):
    server = Secure(folder)
    server.args += ["--set", "tlsProtocols=TLSv1.3", "--set", "webServiceTlsCiphers="
                    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,ECDHE-ECDSA-AES256-GCM-SHA384"]
    server.start()
    older = {"most": ssl.TLSVersion.TLSv1_2}
    with server.dial() as s:
        assert s.version() == "TLSv1.3"
    refused(server.dial, **older)
    with server.dial(server.tls_web_port) as s:
        assert s.version() == "TLSv1.2", s.version()
    with server.dial(server.tls_web_port, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256", **older) as s:
        assert s.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
    refused(server.dial, server.tls_web_port, ciphers="ECDHE-ECDSA-CHACHA20-POLY1305", **older)
    server.stop()


def has_consumer(server):
    try:
        found = server.get("/admin/v2/persistent/public/default/t/stats")
    except urllib.error.HTTPError:
        return False
    return found["subscriptions"].get("s", {}).get("consumers")


@with_server(args=["--set", "tlsCertRefreshCheckDurationSec=1", "--log", "info"])
def renewed_files_are_used(server):
    first = server.shown()
    assert server.shown(server.tls_web_port) == first
    consumer = server.spawn("consume", "t", "-s", "s", "-n", "2", "--idle", "60", *server.trust)
    lgm.wait_until(lambda: has_consumer(server), 30, "the consumer is there")
    server.run("produce", "t", "-m", "before", *server.trust)
    server.ca.issue("server")
    for port in (server.tls_port, server.tls_web_port):
        lgm.wait_until(lambda: server.shown(port) == first + 1, 20, f"{port} shows the new certificate")
    server.run("produce", "t", "-m", "after", *server.trust)
    out, error = consumer.communicate(timeout=60 * lgm.SLOW)
    assert out.splitlines() == ["before", "after"], error
    # A file that is none leaves what there was in use, and says so.
    shutil.copy(server.cert, server.cert + ".kept")
    with open(server.cert, "w") as f:
        f.write("no certificate")
    lgm.wait_until(lambda: "broker.certificate_kept" in server.output(), 20, "the file is refused")
    assert server.cert in re.search(r"tls.refused.*", server.output()).group()
    assert server.shown() == first + 1
    os.replace(server.cert + ".kept", server.cert)
    server.ca.issue("server")
    lgm.wait_until(lambda: server.shown() == first + 2, 20, "the next one is used")
    lgm.wait_until(lambda: server.output().count("broker.certificate_renewed") >= 4, 20, "both ports, twice")


def what_cannot_be_used_stops_the_start(folder):
    server = Secure(folder)
    other = server.ca.issue("other")
    expired = server.ca.issue("expired", days=-1)
    locked = os.path.join(folder, "locked.key")
    certs.openssl("ec", "-in", server.key, "-aes256", "-passout", "pass:secret", "-out", locked)
    garbage = os.path.join(folder, "garbage.pem")
    with open(garbage, "w") as f:
        f.write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

    def start(*words, without=()):
        command = server.command()
        for option in without:
            at = command.index(option)
            del command[at:at + 2]
        sets = [word for pair in words for word in ("--set", pair)]
        done = subprocess.run([*command, *sets], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=60 * lgm.SLOW)
        assert done.returncode == 1, f"{words}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stderr

    for texts, words in (
            (["/no/such.pem", "No such file"], ["tlsCertificateFilePath=/no/such.pem"]),
            (["/no/such.key", "No such file"], ["tlsKeyFilePath=/no/such.key"]),
            (["key values mismatch", other[1]], [f"tlsKeyFilePath={other[1]}"]),
            (["it has expired", expired[0]],
             [f"tlsCertificateFilePath={expired[0]}", f"tlsKeyFilePath={expired[1]}"]),
            (["what=key", locked], [f"tlsKeyFilePath={locked}"]),
            (["what=certificate", garbage], [f"tlsCertificateFilePath={garbage}"]),
            (["what=\"trusted certificates\"", garbage], [f"tlsTrustCertsFilePath={garbage}"]),
            (["tlsTrustCertsFilePath must say"], ["tlsRequireTrustedClientCertOnConnect=true"]),
            (["none is checked"], ["tlsRequireTrustedClientCertOnConnect=true", "tlsAllowInsecureConnection=true",
                                   f"tlsTrustCertsFilePath={server.ca.cert}"]),
            (["value=TLSv1.1"], ["tlsProtocols=TLSv1.2,TLSv1.1"]),
            (["value=TLS_FOO_WITH_BAR"], ["tlsCiphers=TLS_AES_128_GCM_SHA256,TLS_FOO_WITH_BAR"]),
            (["none of them is of the protocols"], ["tlsProtocols=TLSv1.2", "tlsCiphers=TLS_AES_128_GCM_SHA256"]),
            (["brokerServicePort "], ["brokerServicePort=", "brokerServicePortTls="]),
            (["webServicePort "], ["webServicePort=", "webServicePortTls="])):
        said = start(*words)
        for text in texts:
            assert text in said, f"{words}: no {text!r} in {said}"
    assert "key=tlsKeyFilePath" in start(without=["--tls-key"])
    assert "key=tlsCertificateFilePath" in start(without=["--tls-cert"])
    ports = ["--tls-port", "--tls-web-port"]
    assert "key=tlsEnabled" in start("tlsEnabled=true", without=ports)
    assert "there is no TLS port" in start("tlsRequireTrustedClientCertOnConnect=true", without=ports)


class OnlyTls(lgm_cluster.Broker):
    """A broker without a plain port; its clients show the certificate that it wants to see."""

    def __init__(self, folder, name, etcd, ca, **conf):
        super().__init__(BUILD, folder, name, etcd.url)
        self.mine = ca.issue(name)
        self.url = f"pulsar+ssl://localhost:{self.port}"
        self.words = ["--tls-trust", ca.cert, "--tls-cert", self.mine[0], "--tls-key", self.mine[1]]
        self.context = ssl.create_default_context(cafile=ca.cert)
        self.context.load_cert_chain(*self.mine)
        self.conf.update({
            "brokerServicePort": "", "brokerServicePortTls": self.port, "webServicePort": "",
            "webServicePortTls": self.web_port, "advertisedAddress": "localhost",
            "tlsCertificateFilePath": self.mine[0], "tlsKeyFilePath": self.mine[1],
            "tlsTrustCertsFilePath": ca.cert, "tlsRequireTrustedClientCertOnConnect": "true",
            "brokerClientTrustCertsFilePath": ca.cert, "brokerClientCertificateFilePath": self.mine[0],
            "brokerClientKeyFilePath": self.mine[1], "tlsHostnameVerificationEnabled": "true",
            "managedLedgerDefaultEnsembleSize": 1, "managedLedgerDefaultWriteQuorum": 1,
            "managedLedgerDefaultAckQuorum": 1, **conf})

    def http(self, path, method="GET", body=None, timeout=5):
        request = urllib.request.Request(f"https://localhost:{self.web_port}{path}", method=method,
                                         data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=timeout) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode(errors="replace")
        except OSError as e:
            return 0, str(e)


def two_brokers_and_no_plain_port(folder):
    ca = certs.Authority(folder)
    with lgm_cluster.Cluster(BUILD, folder, bookies=1, brokers=0) as c:
        c.brokers = [OnlyTls(folder, f"broker-{i}", c.etcd, ca) for i in range(2)]
        for b in c.brokers:
            b.start()
        one, two = c.brokers
        made = one.http("/admin/v2/persistent/public/default/many/partitions", "PUT", 16)
        assert made[0] in (200, 204), made
        for i in range(16):  # who is asked first has the bundle
            (one if i % 2 else two).http(f"/lookup/v2/topic/persistent/public/default/many-partition-{i}", timeout=30)
        for i in range(16):  # by the other one than the owner, now and then
            c.run("produce", f"many-partition-{i}", "-m", "x", "-n", "100", *one.words)
            got = c.run("consume", f"many-partition-{i}", "-s", "s", "-p", "Earliest", "-n", "100", "--idle", "60",
                        *two.words, broker=1)
            assert got.stdout == "x\n" * 100, got
        owners = set()
        for i in range(16):
            status, text = one.http(f"/lookup/v2/topic/persistent/public/default/many-partition-{i}")
            found = json.loads(text)
            assert status == 200 and not found["brokerUrl"] and not found["httpUrl"], found
            assert found["brokerUrlTls"].startswith("pulsar+ssl://localhost:"), found
            owners.add(found["httpUrlTls"])
        assert len(owners) == 2, "each has some, and asks the other for its share of the figures"
        for b in c.brokers:
            status, text = b.http("/admin/v2/persistent/public/default/many/partitioned-stats", timeout=30)
            assert status == 200 and json.loads(text)["msgInCounter"] == 1600, text
            for i in range(16):
                status, text = b.http(f"/admin/v2/persistent/public/default/many-partition-{i}/stats", timeout=30)
                assert status == 200, text
        status, text = two.http("/admin/v2/brokers/c1")
        assert sorted(json.loads(text)) == sorted(f"localhost:{b.web_port}" for b in c.brokers), text
        # The bundles of one that goes are found by who comes by TLS.
        one.stop()
        for i in range(16):
            c.run("produce", f"many-partition-{i}", "-m", "more", *two.words, broker=1)


def tls_clients_are_not_sent_to_a_plain_port(folder):
    ca = certs.Authority(folder)
    with lgm_cluster.Cluster(BUILD, folder, bookies=1, brokers=0) as c:
        both = OnlyTls(folder, "both", c.etcd, ca, brokerClientTlsEnabled="false")
        plain = lgm_cluster.Broker(BUILD, folder, "plain", c.etcd.url, managedLedgerDefaultEnsembleSize=1,
                                   managedLedgerDefaultWriteQuorum=1, managedLedgerDefaultAckQuorum=1)
        c.brokers = [both, plain]
        for b in c.brokers:
            b.start()
        c.run("produce", "t", "-m", "x", broker=1)
        status, text = both.http("/admin/v2/persistent/public/default/t/stats", timeout=30)
        assert status == 503 and "webServicePortTls" in text, (status, text)


cases = lgm.Cases()
for case in (every_command_over_tls, admin_by_https, who_speaks_otherwise_is_let_go,
             clients_must_show_a_certificate, a_certificate_is_looked_at_where_it_is_not_asked_for,
             protocols_and_ciphers_are_chosen, renewed_files_are_used, what_cannot_be_used_stops_the_start,
             two_brokers_and_no_plain_port, tls_clients_are_not_sent_to_a_plain_port):
    cases.run(case.__name__, case)
cases.end()
