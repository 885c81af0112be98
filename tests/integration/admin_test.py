#!/usr/bin/env python3
"""admin_test.py - the admin REST API over plain HTTP, and `lgm admin`: statuses, bodies, effects."""
import argparse
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import lgm  # noqa: E402
import lgm_cluster  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("--build", default="build")
BUILD = parser.parse_args().build


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Http:
    def __init__(self, server):
        self.base = f"http://127.0.0.1:{server.web_port}"
        self.open = urllib.request.build_opener(NoRedirect).open

    def raw(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with self.open(request, timeout=60 * lgm.SLOW) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()

    def expect(self, status, method, path, body=None, reason=None):
        """The body: parsed when it is JSON; a refusal must say its reason."""
        got, text = self.raw(method, "/admin/v2" + path if path[0:4] != "/lgm" else path, body)
        assert got == status, f"{method} {path}: {got} {text}, not {status}"
        if status == 204:
            assert text == ""
            return None
        if status >= 400:
            said = json.loads(text)["reason"]
            assert said and (reason is None or reason in said), said
            return said
        return json.loads(text) if text[:1] in '{["' or text.isdigit() else text


def started(folder, args=()):
    server = lgm.Standalone(BUILD, folder, args=args).start()
    return server, Http(server)


def produce(server, topic, *messages, check=True):
    words = [w for m in messages for w in ("-m", m)]
    return server.run("produce", topic, "--no-batching", *words, check=check)


def admin(server, *words, code=0, program=None):
    done = subprocess.run([program or server.lgm, "admin", *words, "--admin-url",
                           f"http://127.0.0.1:{server.web_port}"],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (words, done)
    return done.stdout if code == 0 else done.stderr


def clusters_and_tenants(folder):
    server, http = started(folder)
    assert http.expect(200, "GET", "/clusters") == ["standalone"]
    assert "brokerServiceUrl" in http.expect(200, "GET", "/clusters/standalone")
    http.expect(404, "GET", "/clusters/other")
    http.expect(204, "PUT", "/clusters/other", {"serviceUrl": "http://x", "extra": 2 ** 60})
    http.expect(409, "PUT", "/clusters/other", {})
    http.expect(204, "POST", "/clusters/other", {"serviceUrl": "http://y"})
    assert http.expect(200, "GET", "/clusters/other") == {"serviceUrl": "http://y", "extra": 2 ** 60}
    http.expect(412, "PUT", "/clusters/a%20b", {})
    http.expect(412, "DELETE", "/clusters/standalone", reason="not empty")
    http.expect(412, "PUT", "/tenants/t", {"allowedClusters": []}, reason="Clusters can not be empty")
    http.expect(412, "PUT", "/tenants/t", {"allowedClusters": ["none"]}, reason="do not exist")
    http.expect(400, "PUT", "/clusters/third", [1])
    http.expect(204, "PUT", "/tenants/t", {"adminRoles": ["r"], "allowedClusters": ["other"], "x": 1})
    http.expect(409, "PUT", "/tenants/t", {"allowedClusters": ["other"]})
    http.expect(412, "DELETE", "/clusters/other")
    http.expect(204, "POST", "/tenants/t", {"allowedClusters": ["standalone"]})
    assert http.expect(200, "GET", "/tenants/t") == {"adminRoles": [], "x": 1,
                                                     "allowedClusters": ["standalone"]}
    assert http.expect(200, "GET", "/tenants") == ["public", "pulsar", "t"]
    http.expect(204, "DELETE", "/clusters/other")
    http.expect(204, "PUT", "/namespaces/t/n")
    http.expect(409, "DELETE", "/tenants/t")
    http.expect(405, "DELETE", "/tenants/t?force=true")
    http.expect(204, "DELETE", "/namespaces/t/n")
    http.expect(204, "DELETE", "/tenants/t")
    http.expect(404, "DELETE", "/tenants/t")
    http.expect(404, "GET", "/tenants/t")
    server.stop()


def namespaces_and_policies(folder):
    server, http = started(folder)
    http.expect(404, "PUT", "/namespaces/nobody/n")
    http.expect(412, "PUT", "/namespaces/public/a%20b")
    http.expect(204, "PUT", "/namespaces/public/n", {"bundles": {"numBundles": 8}, "future": {"a": [1]}})
    http.expect(409, "PUT", "/namespaces/public/n")
    http.expect(501, "PUT", "/namespaces/public/m", {"message_ttl_in_seconds": 5})
    http.expect(404, "GET", "/namespaces/public/m")
    assert http.expect(200, "GET", "/namespaces/public") == ["public/default", "public/n"]
    assert len(http.expect(200, "GET", "/namespaces/public/n/bundles")["boundaries"]) == 9
    http.expect(204, "GET", "/namespaces/public/n/retention")
    for bad in ({"retentionTimeInMinutes": 0, "retentionSizeInMB": 5}, {"retentionTimeInMinutes": 1},
                {"retentionTimeInMinutes": -2, "retentionSizeInMB": 5}, [1], "x"):
        http.expect(412, "POST", "/namespaces/public/n/retention", bad)
    kept = {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}
    http.expect(204, "POST", "/namespaces/public/n/retention", kept)
    assert http.expect(200, "GET", "/namespaces/public/n/retention") == kept
    policies = http.expect(200, "GET", "/namespaces/public/n")
    assert policies["future"] == {"a": [1]} and policies["retention_policies"] == kept
    assert policies["replication_clusters"] == ["standalone"]
    http.expect(204, "DELETE", "/namespaces/public/n/retention")
    http.expect(204, "GET", "/namespaces/public/n/retention")
    http.expect(412, "POST", "/namespaces/public/n/persistence",
                {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 2, "bookkeeperAckQuorum": 1})
    http.expect(501, "POST", "/namespaces/public/n/messageTTL", 5, reason="not supported")
    http.expect(501, "DELETE", "/namespaces/public/n/deduplication")
    http.expect(404, "POST", "/namespaces/public/n/noSuchPolicy", 5)
    http.expect(412, "POST", "/namespaces/public/n/replication", ["standalone", "other"])
    http.expect(204, "POST", "/namespaces/public/n/replication", ["standalone"])
    http.expect(204, "PUT", "/namespaces/public/n/property/a/b%20c")
    assert http.expect(200, "GET", "/namespaces/public/n/properties") == {"a": "b c"}
    assert http.raw("GET", "/admin/v2/namespaces/public/n/property/a") == (200, "b c")
    http.expect(204, "PUT", "/persistent/public/n/t")
    http.expect(409, "DELETE", "/namespaces/public/n", reason="non empty")
    assert http.expect(200, "GET", "/namespaces/public/n/topics?mode=ALL") == ["persistent://public/n/t"]
    assert http.expect(200, "GET", "/namespaces/public/n/topics?mode=NON_PERSISTENT") == []
    http.expect(204, "DELETE", "/persistent/public/n/t")
    http.expect(204, "PUT", "/namespaces/public/n/unload")
    http.expect(204, "DELETE", "/namespaces/public/n")
    http.expect(404, "DELETE", "/namespaces/public/n")
    server.stop()


def topics_are_made_and_deleted(folder):
    server, http = started(folder)
    t = "/persistent/public/default/t"
    http.expect(404, "GET", t + "/stats", reason="Topic not found")
    http.expect(404, "DELETE", t)
    http.expect(404, "PUT", "/persistent/public/nowhere/t", reason="Namespace not found")
    http.expect(412, "PUT", "/persistent/public/default/a%2Fb")
    http.expect(204, "PUT", t, {"owner": "me"})
    http.expect(409, "PUT", t)
    assert http.expect(200, "GET", t + "/properties") == {"owner": "me"}
    http.expect(204, "PUT", t + "/properties", {"b": "2"})
    http.expect(204, "DELETE", t + "/properties?key=owner")
    assert http.expect(200, "GET", t + "/properties") == {"b": "2"}
    http.expect(400, "PUT", t + "/properties", {"lgm.owner": "x"})
    produce(server, "t", "one", "two")
    consumer = server.spawn("consume", "t", "-s", "s", "-p", "Earliest", "-n", "3")
    assert consumer.stdout.readline() == "one\n" and consumer.stdout.readline() == "two\n"
    http.expect(412, "DELETE", t, reason="active")
    stats = http.expect(200, "GET", t + "/stats")
    assert stats["subscriptions"]["s"]["type"] == "Exclusive" and stats["storageSize"] > 0
    assert len(stats["subscriptions"]["s"]["consumers"]) == 1
    assert stats["msgInCounter"] == stats["msgOutCounter"] == stats["subscriptions"]["s"]["msgOutCounter"] == 2
    http.expect(412, "DELETE", t + "/subscription/s", reason="connected consumers")
    consumer.kill()
    consumer.communicate()
    lgm.wait_until(lambda: not http.expect(200, "GET", t + "/stats")["subscriptions"]["s"]["consumers"],
                   30, "the consumer is gone")
    inside = http.expect(200, "GET", t + "/internalStats")
    assert inside["numberOfEntries"] == 2 and "s" in inside["cursors"]
    assert inside["lastConfirmedEntry"].endswith(":1") and inside["state"] == "LedgerOpened"
    last = http.expect(200, "GET", t + "/lastMessageId")
    assert f'{last["ledgerId"]}:{last["entryId"]}' == inside["lastConfirmedEntry"]
    http.expect(204, "PUT", t + "/unload")
    http.expect(204, "DELETE", t)
    http.expect(404, "GET", t + "/stats")
    produce(server, "t", "new")  # and it is a new one
    assert server.run("consume", "t", "-s", "s", "-p", "Earliest", "-n", "1").stdout == "new\n"
    http.expect(405, "GET", t + "/retention")
    http.expect(405, "GET", "/non-persistent/public/default/t/retention")
    server.stop()


def subscriptions_are_moved(folder):
    server, http = started(folder)
    t = "/persistent/public/default/t"
    produce(server, "t", *[f"m{i}" for i in range(10)])
    http.expect(204, "PUT", t + "/subscription/s", "earliest")
    http.expect(409, "PUT", t + "/subscription/s", "earliest")
    http.expect(400, "PUT", t + "/subscription/r", "somewhere")
    http.expect(204, "PUT", t + "/subscription/r")
    assert sorted(http.expect(200, "GET", t + "/subscriptions")) == ["r", "s"]

    def backlog(name):
        return http.expect(200, "GET", t + "/stats")["subscriptions"][name]["msgBacklog"]
    assert (backlog("s"), backlog("r")) == (10, 0)
    http.expect(204, "POST", t + "/subscription/s/skip/3")
    assert backlog("s") == 7
    assert server.run("consume", "t", "-s", "s", "-n", "1").stdout == "m3\n"
    http.expect(204, "POST", t + "/subscription/s/skip/1000000")
    assert backlog("s") == 0
    ledger = http.expect(200, "GET", t + "/internalStats")["ledgers"][0]["ledgerId"]
    http.expect(204, "POST", t + "/subscription/s/resetcursor", {"ledgerId": ledger, "entryId": 5})
    assert backlog("s") == 5
    assert server.run("consume", "t", "-s", "s", "-n", "1").stdout == "m5\n"
    http.expect(204, "POST", t + "/subscription/s/skip_all")
    assert backlog("s") == 0
    http.expect(404, "POST", t + "/subscription/none/skip_all", reason="Subscription not found")
    http.expect(412, "POST", t + "/subscription/s/resetcursor", {"a": 1})
    http.expect(204, "DELETE", t + "/subscription/r")
    http.expect(404, "DELETE", t + "/subscription/r")
    said = http.expect(200, "GET", "/lgm/v1/persistent/public/default/t/subscription/s/explain")
    assert said["reason"] == "no-backlog" and said["sentence"]
    produce(server, "t", "more")
    said = http.expect(200, "GET", "/lgm/v1/persistent/public/default/t/explain")
    assert said["subscriptions"]["s"]["reason"] == "no-consumer", said
    server.stop()
    server.start()
    assert Http(server).expect(200, "GET", t + "/subscriptions") == ["s"]
    server.stop()


def positions_by_time(folder):
    server, http = started(folder)
    t = "/persistent/public/default/t"
    sub = t + "/subscription/s"
    http.expect(204, "PUT", sub, "earliest")
    http.expect(204, "PUT", t + "/subscription/other", "earliest")
    produce(server, "t", *[f"m{i}" for i in range(5)])
    began = int(time.time() * 1000) + 5
    lgm.wait_until(lambda: time.time() * 1000 > began, 10, "a later time")
    produce(server, "t", *[f"m{i}" for i in range(5, 10)])

    def backlog(name="s"):
        return http.expect(200, "GET", t + "/stats")["subscriptions"][name]["msgBacklog"]
    http.expect(204, "POST", f"{sub}/resetcursor/{began}")
    assert backlog() == 5
    assert server.run("consume", "t", "-s", "s", "-n", "1").stdout == "m5\n"
    http.expect(204, "POST", f"{sub}/resetcursor/0")
    assert backlog() == 10
    http.expect(204, "POST", f"{sub}/resetcursor/{began + 10**9}")
    assert backlog() == 0
    found = http.expect(200, "GET", f"{t}/messageid/{began}")
    assert found["entryId"] == 5 and found["partitionIndex"] == -1
    http.expect(204, "POST", sub + "/resetcursor", found)
    assert backlog() == 5
    http.expect(204, "POST", sub + "/resetcursor", {**found, "isExcluded": True})
    assert backlog() == 4
    http.expect(204, "POST", sub + "/resetcursor", {**found, "batchIndex": 0, "isExcluded": True})
    assert backlog() == 4
    http.expect(204, "POST", sub + "/resetcursor", {"ledgerId": found["ledgerId"], "entryId": 10**9})
    assert backlog() == 0
    http.expect(204, "POST", f"{sub}/resetcursor/0")
    http.expect(204, "POST", sub + "/expireMessages/100000")
    assert backlog() == 10
    http.expect(204, "POST", sub + "/expireMessages", {**found, "entryId": 2})
    assert backlog() == 7
    http.expect(204, "POST", sub + "/expireMessages", {**found, "isExcluded": True})
    assert backlog() == 5
    lgm.wait_until(lambda: http.expect(204, "POST", sub + "/expireMessages/1") or backlog() == 0, 30, "all expired")
    assert backlog("other") == 10
    lgm.wait_until(lambda: http.expect(204, "POST", t + "/all_subscription/expireMessages/1") or
                   backlog("other") == 0, 30, "all expired for all")
    for path in ("/resetcursor/soon", "/resetcursor/-1", "/expireMessages/soon", "/expireMessages/-1"):
        http.expect(400, "POST", sub + path)
    http.expect(400, "GET", t + "/messageid/soon")
    http.expect(412, "POST", sub + "/expireMessages", {})
    http.expect(404, "POST", t + "/subscription/none/resetcursor/1")
    http.expect(404, "POST", t + "/subscription/none/resetcursor", found)
    http.expect(404, "POST", t + "/subscription/none/expireMessages/1")
    http.expect(404, "POST", "/persistent/public/default/none/all_subscription/expireMessages/1")
    http.expect(204, "PUT", "/persistent/public/default/p/partitions", 2)
    p = "/persistent/public/default/p"
    http.expect(204, "PUT", p + "/subscription/s", "earliest")
    http.expect(405, "POST", p + "/subscription/s/resetcursor", found)
    http.expect(405, "POST", p + "/subscription/s/expireMessages", found)
    http.expect(405, "GET", p + "/messageid/1")
    http.expect(204, "POST", p + "/subscription/s/resetcursor/1")
    http.expect(204, "POST", p + "/subscription/s/expireMessages/1")
    http.expect(204, "POST", p + "/all_subscription/expireMessages/1")
    admin(server, "topics", "reset-cursor", "t", "-s", "s", "-t", "1h")
    assert backlog() == 10
    admin(server, "topics", "reset-cursor", "t", "-s", "s", "-m", f"{found['ledgerId']}:5")
    assert backlog() == 5
    admin(server, "topics", "expire-messages", "t", "-s", "s", "-t", "1d")
    assert backlog() == 5
    admin(server, "topics", "expire-messages", "t", "-s", "s", "-p", f"{found['ledgerId']}:8")
    assert backlog() == 1
    admin(server, "topics", "expire-messages-all-subscriptions", "t", "-t", "0")
    assert backlog() == 0
    assert "entryId" in admin(server, "topics", "get-message-id", "t", "-d", "2020-01-31T12:30:00+01:00")
    for words in (["reset-cursor", "t", "-s", "s"], ["reset-cursor", "t", "-s", "s", "-t", "soon"],
                  ["reset-cursor", "t", "-s", "s", "-x", "1"], ["get-message-id", "t", "-d", "yesterday"]):
        admin(server, "topics", *words, code=2)
    server.stop()


def one_message(folder):
    server, http = started(folder)
    t = "/persistent/public/default/t"
    http.expect(204, "PUT", t + "/subscription/s", "earliest")
    produce(server, "t", *[f"m{i}" for i in range(4)])

    def got(path):
        with urllib.request.urlopen(http.base + "/admin/v2" + t + path, timeout=30) as answer:
            return answer.read().decode(), answer.headers
    ledger = http.expect(200, "GET", t + "/internalStats")["ledgers"][0]["ledgerId"]
    text, headers = got(f"/ledger/{ledger}/entry/2")
    assert text == "m2" and headers["X-Pulsar-Message-ID"] == f"{ledger}:2"
    assert headers["X-Pulsar-PROPERTY"] == "{}" and headers["X-Pulsar-producer-name"]
    assert headers["X-Pulsar-publish-time"].endswith("Z") and headers["X-Pulsar-sequence-id"] == "2"
    assert headers["X-Pulsar-Broker-Entry-METADATA-index"] == "2"
    assert [got(f"/subscription/s/position/{n}")[0] for n in (1, 4)] == ["m0", "m3"]
    http.expect(204, "POST", t + "/subscription/s/skip/2")
    assert got("/subscription/s/position/1")[0] == "m2"
    assert got("/examinemessage")[0] == "m3"
    assert got("/examinemessage?initialPosition=latest&messagePosition=2")[0] == "m2"
    assert got("/examinemessage?initialPosition=earliest&messagePosition=2")[0] == "m1"
    assert got("/examinemessage?initialPosition=earliest&messagePosition=99")[0] == "m3"
    for path in (f"/ledger/{ledger}/entry/4", f"/ledger/{ledger + 9}/entry/0", "/subscription/s/position/3",
                 "/subscription/none/position/1"):
        http.expect(404, "GET", t + path)
    http.expect(400, "GET", t + "/ledger/x/entry/0")
    http.expect(400, "GET", t + "/subscription/s/position/0")
    http.expect(412, "GET", t + "/examinemessage?initialPosition=middle")
    http.expect(204, "PUT", "/persistent/public/default/empty")
    http.expect(412, "GET", "/persistent/public/default/empty/examinemessage", reason="total message is zero")
    assert admin(server, "topics", "get-message-by-id", "t", "-l", str(ledger), "-e", "1") == "m1\n"
    assert admin(server, "topics", "examine-messages", "t", "-i", "earliest", "-m", "3") == "m2\n"
    assert admin(server, "topics", "examine-messages", "t") == "m3\n"
    server.stop()


def messages_are_peeked_at(folder):
    server, http = started(folder)
    http.expect(204, "PUT", "/persistent/public/default/t")
    http.expect(204, "PUT", "/persistent/public/default/t/subscription/s", "earliest")
    produce(server, "t", "first")
    server.run("produce", "t", "-m", "second", "-m", "third", "-k", "k", "-p", "a=b")  # a batch
    peek = ["topics", "peek-messages", "t", "-s", "s"]
    lines = admin(server, *peek).splitlines()
    assert len(lines) == 1 and lines[0].endswith("first"), lines
    got = [json.loads(line) for line in admin(server, *peek, "-n", "5", "--json").splitlines()]
    assert [m["payload"] for m in got] == ["first", "second", "third"], got
    assert [m.get("key") for m in got] == [None, "k", "k"]
    assert got[1]["properties"] == {"a": "b"} and got[1]["id"] != got[2]["id"]
    assert len(admin(server, *peek, "-n", "5").splitlines()) == 3
    server.run("consume", "t", "-s", "s", "-n", "3")
    assert admin(server, *peek) == ""
    admin(server, "topics", "peek-messages", "t", "-s", "none", code=1)
    admin(server, "topics", "peek-messages", "t", "-s", "s", "-n", "0", code=2)
    server.stop()


def a_terminated_topic_stays_readable(folder):
    server, http = started(folder)
    t = "/persistent/public/default/t"
    produce(server, "t", "one", "two")
    last = http.expect(200, "POST", t + "/terminate")
    assert last["entryId"] == 1 and http.expect(200, "POST", t + "/terminate") == last
    for life in range(2):
        refused = produce(server, "t", "three", check=False)
        assert refused.returncode == 1 and "terminated" in refused.stderr, refused
        got = server.run("consume", "t", "-s", f"s{life}", "-p", "Earliest", "-n", "2").stdout
        assert got == "one\ntwo\n"
        assert http.expect(200, "GET", t + "/internalStats")["state"] == "Terminated"
        server.stop()
        server.start()
    http.expect(204, "DELETE", t)
    produce(server, "t", "anew")
    server.stop()


def partitioned_topics(folder):
    server, http = started(folder, ["--set", "maxNumPartitionsPerPartitionedTopic=8"])
    p = "/persistent/public/default/p"
    for bad in (0, -1, "x", 9):
        http.expect(406, "PUT", p + "/partitions", bad)
    http.expect(204, "PUT", p + "/partitions", 3)
    http.expect(409, "PUT", p + "/partitions", 3)
    http.expect(409, "PUT", p)
    assert http.expect(200, "GET", p + "/partitions") == {"partitions": 3, "deleted": False}
    names = [f"persistent://public/default/p-partition-{i}" for i in range(3)]
    assert http.expect(200, "GET", "/persistent/public/default") == names
    assert http.expect(200, "GET", "/persistent/public/default/partitioned") == \
        ["persistent://public/default/p"]
    http.expect(422, "POST", p + "/partitions", 3)
    http.expect(422, "POST", p + "/partitions", 2)
    http.expect(404, "POST", "/persistent/public/default/q/partitions", 4)
    http.expect(204, "POST", p + "/partitions", 5)
    assert http.expect(200, "GET", p + "/partitions")["partitions"] == 5
    http.expect(204, "DELETE", p + "-partition-1")
    assert len(http.expect(200, "GET", "/persistent/public/default")) == 4
    http.expect(204, "POST", p + "/createMissedPartitions")
    assert len(http.expect(200, "GET", "/persistent/public/default")) == 5
    for i in range(5):
        produce(server, f"p-partition-{i}", f"m{i}")
    http.expect(204, "PUT", p + "/subscription/s", "earliest")
    assert http.expect(200, "GET", p + "/subscriptions") == ["s"]
    stats = http.expect(200, "GET", p + "/partitioned-stats?perPartition=true")
    assert stats["metadata"]["partitions"] == 5 and len(stats["partitions"]) == 5
    assert stats["subscriptions"]["s"]["msgBacklog"] == 5
    assert http.expect(200, "GET", p + "/partitioned-stats?perPartition=false")["partitions"] == {}
    assert len(http.expect(200, "GET", p + "/partitioned-internalStats")["partitions"]) == 5
    http.expect(204, "PUT", p + "/unload")
    http.expect(404, "PUT", "/persistent/public/default/q/unload")
    for path in ("/stats", "/internalStats"):
        http.expect(405, "GET", p + path)
    http.expect(405, "POST", p + "/terminate")
    http.expect(405, "DELETE", p)
    http.expect(405, "POST", p + "/subscription/s/skip/1")
    http.expect(204, "POST", p + "/subscription/s/skip_all")
    ids = http.expect(200, "POST", p + "/terminate/partitions")
    assert sorted(ids) == ["0", "1", "2", "3", "4"] and ids["4"]["partitionIndex"] == 4
    refused = produce(server, "p-partition-5", "x", check=False)
    assert refused.returncode == 1
    http.expect(404, "DELETE", "/persistent/public/default/q/partitions")
    http.expect(204, "DELETE", p + "/partitions")
    assert http.expect(200, "GET", "/persistent/public/default") == []
    http.expect(204, "PUT", p + "/partitions", 2)  # empty again: clients.md 17
    produce(server, "p-partition-0", "new")
    got = server.run("consume", "p-partition-0", "-s", "s", "-p", "Earliest", "-n", "1").stdout
    assert got == "new\n"
    server.stop()


def partitions_are_one_topic_to_produce_and_consume(folder):
    server, http = started(folder)
    http.expect(204, "PUT", "/persistent/public/default/p/partitions", 3)
    http.expect(204, "PUT", "/persistent/public/default/p/subscription/s", "earliest")
    sent = [f"m{i}" for i in range(90)]
    server.run("produce", "p", "--lines", "-", input="\n".join(sent) + "\n")
    for i in range(3):  # in turn
        stats = http.expect(200, "GET", f"/persistent/public/default/p-partition-{i}/stats")
        assert stats["msgInCounter"] == 30, stats
    got = server.run("consume", "p", "-s", "s", "-n", "90").stdout.split()
    assert sorted(got) == sorted(sent)
    server.run("produce", "p", "-m", "x", "-n", "20", "-k", "a key")
    got = server.run("consume", "p", "-s", "s", "-n", "20", "--format", "json").stdout.splitlines()
    assert len({json.loads(line)["topic"] for line in got}) == 1
    assert server.run("consume", "p", "-s", "s", "-n", "1", "--idle", "0.5", check=False).returncode == 1
    server.stop()


def what_is_made_on_first_use(folder):
    server, http = started(folder, ["--set", "allowAutoTopicCreation=false"])
    refused = produce(server, "t", "x", check=False)
    assert refused.returncode == 1, refused
    http.expect(404, "GET", "/persistent/public/default/t/partitions?checkAllowAutoCreation=true")
    policy = "/namespaces/public/default/autoTopicCreation"
    http.expect(412, "POST", policy, {"allowAutoTopicCreation": True, "topicType": "partitioned"})
    http.expect(204, "POST", policy, {"allowAutoTopicCreation": True, "topicType": "non-partitioned"})
    produce(server, "t", "x")
    http.expect(204, "POST", policy, {"allowAutoTopicCreation": True, "topicType": "partitioned",
                                      "defaultNumPartitions": 3})
    path = "/persistent/public/default/p/partitions"
    http.expect(404, "GET", path)
    assert http.expect(200, "GET", path + "?checkAllowAutoCreation=true")["partitions"] == 3
    assert http.expect(200, "GET", path)["partitions"] == 3
    http.expect(204, "DELETE", policy)
    assert produce(server, "u", "x", check=False).returncode == 1
    produce(server, "t", "y")  # what is there stays
    server.stop()
    wrong = lgm.Standalone(BUILD, folder, args=["--set", "allowAutoTopicCreationType=some"])
    done = subprocess.run(wrong.command(), capture_output=True, text=True, timeout=60 * lgm.SLOW)
    assert done.returncode != 0 and "allowAutoTopicCreationType" in done.stdout + done.stderr


def retention_has_its_effect(folder):
    server, http = started(folder, ["--set", "managedLedgerMaxEntriesPerLedger=10",
                                    "--set", "managedLedgerMinLedgerRolloverTimeMinutes=0"])
    t = "/persistent/public/default/t"

    def ledgers():
        return len(http.expect(200, "GET", t + "/internalStats")["ledgers"])
    http.expect(204, "POST", "/namespaces/public/default/retention",
                {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1})
    for _ in range(4):
        produce(server, "t", *[f"m{i}" for i in range(15)])
    produce(server, "t", "last")
    assert ledgers() >= 2
    before = ledgers()
    http.expect(204, "PUT", t + "/unload")
    assert ledgers() >= before  # nobody has a subscription: only retention keeps them
    http.expect(204, "DELETE", "/namespaces/public/default/retention")
    lgm.wait_until(lambda: ledgers() <= 1, 30, "what nobody needs is trimmed")
    server.stop()


def properties_of_subscriptions(folder):
    server, http = started(folder)
    p = "/persistent/public/default/t"
    http.expect(204, "PUT", p)
    http.expect(204, "PUT", p + "/subscription/a%2Fb",
                {"ledgerId": -1, "entryId": -1, "partitionIndex": -1, "properties": {"team": "red"}})
    words = p + "/subscription/a%2Fb/properties"
    assert http.expect(200, "GET", words) == {"team": "red"}
    stats = http.expect(200, "GET", p + "/stats")["subscriptions"]["a/b"]
    assert stats["subscriptionProperties"] == {"team": "red"}
    server.kill()
    server.start()
    assert http.expect(200, "GET", words) == {"team": "red"}
    http.expect(204, "PUT", words, {"team": "blue", "n": "1"})
    produce(server, "t", "x")
    http.expect(204, "POST", p + "/subscription/a%2Fb/skip_all")
    http.expect(204, "PUT", words, {"team": "green"})
    server.kill()
    server.start()
    assert http.expect(200, "GET", words) == {"team": "green"}
    assert http.expect(200, "GET", p + "/stats")["subscriptions"]["a/b"]["msgBacklog"] == 0
    for wrong in ({"team": 1}, ["team"], {"#pulsar.internal.x": "1"}, {"k": "x" * 65536}):
        http.expect(400, "PUT", words, wrong)
    http.expect(404, "GET", p + "/subscription/none/properties")
    http.expect(404, "PUT", p + "/subscription/none/properties", {})
    admin(server, "topics", "update-subscription-properties", "t", "-s", "a/b", "-p", "k=v", "-p", "l=m=n")
    assert http.expect(200, "GET", words) == {"k": "v", "l": "m=n"}
    shown = admin(server, "topics", "get-subscription-properties", "t", "-s", "a/b", "--json")
    assert json.loads(shown) == {"k": "v", "l": "m=n"}
    admin(server, "topics", "update-subscription-properties", "t", "-s", "a/b", code=2)
    admin(server, "topics", "update-subscription-properties", "t", "-s", "a/b", "-p", "k", code=2)
    admin(server, "topics", "update-subscription-properties", "t", "-s", "a/b", "-c")
    assert http.expect(200, "GET", words) == {}

    whole = "/persistent/public/default/parts"
    http.expect(204, "PUT", whole + "/partitions", 2)
    http.expect(204, "PUT", whole + "/subscription/s", "earliest")
    http.expect(204, "PUT", whole + "/subscription/s/properties", {"a": "b"})
    for name in ("parts", "parts-partition-0", "parts-partition-1"):
        assert http.expect(200, "GET", f"/persistent/public/default/{name}/subscription/s/properties") == {"a": "b"}
    http.expect(404, "GET", whole + "/subscription/none/properties")
    server.stop()


def the_systems_own_properties(folder):
    server, http = started(folder)
    p = "/persistent/public/default/t"
    for wrong in ({"pulsar.topic.epoch": "9"}, {"index": "0"}, {"lgm.x": "y"}, {"a": None}, {"a": 1}, []):
        http.expect(400, "PUT", p, wrong)
        http.expect(400, "PUT", p + "/partitions", {"partitions": 1, "properties": wrong})
    http.expect(204, "PUT", p, {"mine": "yes"})
    http.expect(400, "PUT", p + "/properties", {"pulsar.topic.epoch": "9"})
    http.expect(412, "DELETE", p + "/properties?key=pulsar.topic.epoch")
    assert http.expect(200, "GET", p + "/properties") == {"mine": "yes"}
    assert http.expect(200, "GET", p + "/internalStats")["properties"] == {"mine": "yes"}
    server.stop()


LIMITS = {"maxProducersPerTopic": "max_producers_per_topic", "maxConsumersPerTopic": "max_consumers_per_topic",
          "maxConsumersPerSubscription": "max_consumers_per_subscription",
          "maxSubscriptionsPerTopic": "max_subscriptions_per_topic",
          "maxUnackedMessagesPerConsumer": "max_unacked_messages_per_consumer",
          "maxUnackedMessagesPerSubscription": "max_unacked_messages_per_subscription"}


def limits_of_a_namespace(folder):
    server, http = started(folder)
    ns = "/namespaces/public/default"
    for name, field in LIMITS.items():
        path = f"{ns}/{name}"
        http.expect(204, "GET", path)
        http.expect(204, "POST", path, 7)
        assert http.expect(200, "GET", path) == 7 and http.expect(200, "GET", ns)[field] == 7
        for wrong in (-1, "x", [1], {"a": 1}, 1.5, True):
            http.expect(412, "POST", path, wrong)
        http.expect(204, "DELETE", path)
        http.expect(204, "GET", path)
    types = ns + "/subscriptionTypesEnabled"
    assert http.expect(200, "GET", types) == []
    http.expect(412, "POST", types, ["Sometimes"])
    http.expect(204, "POST", types, ["Exclusive", "Key_Shared"])
    assert http.expect(200, "GET", types) == ["Exclusive", "Key_Shared"]
    http.expect(204, "DELETE", types)

    p = "/persistent/public/default/t"
    http.expect(204, "PUT", p + "/subscription/s", "earliest")
    admin(server, "namespaces", "set-max-subscriptions-per-topic", "public/default", "-m", "1")
    http.expect(412, "PUT", p + "/subscription/another", "earliest", reason="maximum")
    http.expect(409, "PUT", p + "/subscription/s", "earliest")
    admin(server, "namespaces", "remove-max-subscriptions-per-topic", "public/default")
    http.expect(204, "PUT", p + "/subscription/another", "earliest")

    def consume(*words):
        return subprocess.Popen([server.lgm, "consume", "t", *words, "-n", "1", "--url", server.url],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def inside(n):
        lgm.wait_until(lambda: n == sum(len(s["consumers"]) for s in http.expect(
            200, "GET", p + "/stats")["subscriptions"].values()), 30, f"{n} consumers")
    first = consume("-s", "s")
    inside(1)
    admin(server, "namespaces", "set-max-consumers-per-topic", "public/default", "-c", "1")
    lgm.wait_until(lambda: consume("-s", "another").wait(60) != 0, 60, "one is too many")
    admin(server, "namespaces", "remove-max-consumers-per-topic", "public/default")
    admin(server, "namespaces", "set-subscription-types-enabled", "public/default", "-t", "Shared,Failover")
    assert admin(server, "namespaces", "get-subscription-types-enabled", "public/default").split() == \
        ["Shared", "Failover"]
    assert "not enabled" in consume("-s", "another").communicate(timeout=60)[1]
    admin(server, "namespaces", "remove-subscription-types-enabled", "public/default")
    admin(server, "namespaces", "set-auto-subscription-creation", "public/default", "-e", "false")
    assert consume("-s", "third").wait(60) != 0
    assert sorted(http.expect(200, "GET", p + "/subscriptions")) == ["another", "s"]
    admin(server, "namespaces", "remove-auto-subscription-creation", "public/default")
    second = consume("-s", "another")
    inside(2)
    entry = http.expect(200, "GET", p + "/stats")["subscriptions"]["s"]["consumers"][0]
    assert entry["address"].startswith("/127.0.0.1:") and entry["connectedSince"].endswith("Z")
    assert entry["clientVersion"] and entry["availablePermits"] > 0 and entry["metadata"] == {}
    assert entry["lastConsumedFlowTimestamp"] > 0 and entry["lastAckedTimestamp"] == 0
    produce(server, "t", "x")
    assert first.wait(60) == 0 and second.wait(60) == 0
    server.stop()


def brokers_and_bookies(folder):
    server, http = started(folder)
    me = f"127.0.0.1:{server.web_port}"
    assert http.expect(200, "GET", "/brokers") == http.expect(200, "GET", "/brokers/standalone") == [me]
    http.expect(404, "GET", "/brokers/elsewhere")
    assert http.expect(200, "GET", "/brokers/leaderBroker")["brokerId"] == me
    for _ in range(5):
        assert http.raw("GET", "/admin/v2/brokers/health") == (200, "ok")
    assert http.raw("GET", "/admin/v2/brokers/ready") == (200, "ok")
    settings = http.expect(200, "GET", "/brokers/configuration/runtime")
    assert settings["clusterName"] == "standalone" and settings["webServicePort"] == str(server.web_port)
    assert http.expect(200, "GET", "/brokers/configuration/values") == {}
    assert len(http.expect(200, "GET", "/bookies/all")["bookies"]) == 1
    assert http.expect(200, "GET", "/bookies/racks-info") == {}
    http.expect(404, "GET", "/bookies/racks-info/b")
    http.expect(412, "POST", "/bookies/racks-info/b", {"rack": "/r"})  # no group
    admin(server, "bookies", "set-bookie-rack", "-b", "b:3181", "-r", "/r", "-g", "default", "--hostname", "h")
    assert http.expect(200, "GET", "/bookies/racks-info/b:3181") == {"rack": "/r", "hostname": "h"}
    assert "/r" in admin(server, "bookies", "racks-placement")
    admin(server, "bookies", "delete-bookie-rack", "-b", "b:3181")
    http.expect(404, "GET", "/bookies/racks-info/b:3181")
    http.expect(501, "GET", "/schemas/public/default/t/schema")
    status, text = http.raw("GET", "/lookup/v2/topic/persistent/public/default/t/bundle")
    assert status == 200 and len(text) == 21
    http.expect(405, "POST", "/clusters")
    http.expect(404, "GET", "/nothing")
    server.stop()


def the_command_line(folder):
    server, http = started(folder)
    assert admin(server, "clusters", "list") == "standalone\n"
    admin(server, "tenants", "create", "t", "-r", "a,b", "--allowed-clusters", "standalone")
    assert json.loads(admin(server, "tenants", "get", "t", "--json")) == \
        {"adminRoles": ["a", "b"], "allowedClusters": ["standalone"]}
    admin(server, "namespaces", "create", "t/n")
    assert admin(server, "namespaces", "list", "t") == "t/n\n"
    admin(server, "namespaces", "set-retention", "t/n", "-t", "3h", "-s", "2G")
    assert http.expect(200, "GET", "/namespaces/t/n/retention") == \
        {"retentionTimeInMinutes": 180, "retentionSizeInMB": 2048}
    assert admin(server, "namespaces", "get-retention", "t/n").split() == \
        ["retentionTimeInMinutes", "180", "retentionSizeInMB", "2048"]
    admin(server, "namespaces", "set-retention", "t/n", "-t", "-1", "-s", "-1")
    admin(server, "namespaces", "set-auto-topic-creation", "t/n", "-t", "partitioned", "-n", "3")
    admin(server, "namespaces", "set-persistence", "t/n", "-e", "1", "-w", "1", "-a", "1")
    admin(server, "namespaces", "set-property", "t/n", "-k", "a b", "-v", "c/d?")
    assert admin(server, "namespaces", "get-property", "t/n", "-k", "a b") == "c/d?\n"
    admin(server, "topics", "create-partitioned-topic", "t/n/p", "-p", "2")
    admin(server, "topics", "update-partitioned-topic", "t/n/p", "-p", "4")
    assert len(admin(server, "topics", "list", "t/n").splitlines()) == 4
    admin(server, "topics", "create", "persistent://t/n/caf\u00e9 & %")
    assert "persistent://t/n/caf\u00e9 & %" in admin(server, "topics", "list", "t/n").splitlines()
    admin(server, "topics", "create-subscription", "t/n/p", "-s", "s/1", "-m", "earliest")
    assert admin(server, "subscriptions", "list", "t/n/p") == "s/1\n"
    assert "no-backlog" in admin(server, "subscriptions", "explain", "t/n/p-partition-0", "s/1")
    assert "moving" in admin(server, "topics", "explain", "t/n/p-partition-0")
    assert "msgRateIn" in admin(server, "topics", "stats", "t/n/p-partition-0")
    admin(server, "topics", "clear-backlog", "t/n/p", "-s", "s/1")
    admin(server, "topics", "unsubscribe", "t/n/p", "-s", "s/1")
    assert "brokerUrl" in admin(server, "topics", "lookup", "t/n/p-partition-0")
    admin(server, "topics", "delete-partitioned-topic", "t/n/p", "-f")
    assert "not found" in admin(server, "topics", "stats", "t/n/p", code=1).lower()
    assert admin(server, "brokers", "healthcheck") == "ok\n"
    assert "bookieId" in admin(server, "bookies", "list-bookies")
    for words in (["topics"], ["topics", "no-such-verb"], ["topics", "stats"], ["topics", "stats", "a", "b"],
                  ["topics", "stats", "a", "--nothing"], ["topics", "skip", "t", "-s", "s"],
                  ["namespaces", "topics", "noslash"], ["topics", "stats", "a/b"],
                  ["namespaces", "set-retention", "t/n", "-t", "3x", "-s", "1G"]):
        admin(server, *words, code=2)
    assert "set-retention" in admin(server, "namespaces", "--help")
    server.stop()
    admin(server, "clusters", "list", code=1)


def each_broker_answers_for_all(folder):
    with lgm_cluster.Cluster(BUILD, folder, bookies=1, brokers=2) as cluster:
        one, two = (Http(b) for b in cluster.brokers)
        p = "/persistent/public/default/p"
        one.expect(204, "PUT", p + "/partitions", 8)

        def owner(http, i):
            return json.loads(http.raw("GET", f"/lookup/v2/topic{p}-partition-{i}")[1])["httpUrl"]
        for i in range(8):  # whoever is asked first claims it
            owner((one, two)[i % 2], i)
        owners = [owner(one, i) for i in range(8)]
        assert set(owners) == {one.base, two.base}, owners
        elsewhere = owners.index(two.base)
        assert one.raw("GET", f"/admin/v2{p}-partition-{elsewhere}/stats")[0] == 307
        two.expect(200, "GET", f"{p}-partition-{elsewhere}/stats")
        one.expect(204, "PUT", p + "/subscription/a%2Fb", "earliest")
        two.expect(409, "PUT", p + "/subscription/a%2Fb", "earliest")
        assert one.expect(200, "GET", p + "/subscriptions") == ["a/b"]
        for i in range(8):
            cluster.run("produce", f"p-partition-{i}", "-m", "x")
        for http in (one, two):
            stats = http.expect(200, "GET", p + "/partitioned-stats?perPartition=true")
            assert len(stats["partitions"]) == 8
            assert stats["subscriptions"]["a/b"]["msgBacklog"] == 8
        listed = admin(cluster.brokers[0], "topics", "stats", f"p-partition-{elsewhere}", program=cluster.lgm)
        assert "msgBacklog" in listed  # the command goes where it is sent
        one.expect(204, "POST", p + "/subscription/a%2Fb/skip_all")
        assert len(two.expect(200, "POST", p + "/terminate/partitions")) == 8
        names = one.expect(200, "GET", "/brokers")
        assert len(names) == 2 and names == two.expect(200, "GET", "/brokers")
        leaders = [http.expect(200, "GET", "/brokers/leaderBroker") for http in (one, two)]
        assert leaders[0] == leaders[1] and leaders[0]["brokerId"] in names
        assert leaders[0]["serviceUrl"] in (one.base, two.base)
        assert len({http.raw("GET", "/admin/v2/brokers/version") for http in (one, two)}) == 1
        two.expect(204, "DELETE", p + "/partitions")
        assert one.expect(200, "GET", "/persistent/public/default") == []
        for http in (one, two):
            assert http.raw("GET", "/admin/v2/brokers/health") == (200, "ok")


cases = lgm.Cases()
for case in (clusters_and_tenants, namespaces_and_policies, topics_are_made_and_deleted, subscriptions_are_moved, positions_by_time, one_message,
             a_terminated_topic_stays_readable, partitioned_topics,
             partitions_are_one_topic_to_produce_and_consume, messages_are_peeked_at, what_is_made_on_first_use,
             retention_has_its_effect, properties_of_subscriptions, the_systems_own_properties, limits_of_a_namespace,
             brokers_and_bookies, the_command_line, each_broker_answers_for_all):
    cases.run(case.__name__, case)
cases.end()
