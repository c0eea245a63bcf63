#!/usr/bin/python3
"""record, replay, collect and tail through one nats-server: what arrives, and what is said where it cannot.

usage: one_server_test.py VCPULSE MAKE_TIMELINE [unittest arguments]
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from commands import Command, chunks_of, make_timeline, markers_chunk, merged, run, stream_folders
from nats_servers import Servers, wait_for
from nkeys import ACCOUNT, OPERATOR, USER, Key, account_of, credentials, user_of

SECONDS = 30


class OneServerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vcpulse-nats-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = make_timeline(self.path("made.vpt"), SECONDS)
        with open(self.file, "rb") as file:
            self.bytes = file.read()

    def path(self, name):
        return os.path.join(self.folder, name)

    def serve(self, more="", make_stream=True):
        servers = Servers(self.folder, more=more)
        self.addCleanup(servers.stop)
        servers.start()
        self.servers = servers
        self.url = servers.urls[0]
        if make_stream:
            self.assertEqual(run("collect", "--from", self.url, "--make-stream").returncode, 0)
        return self.url

    def collect(self, name="out", *more):
        command = Command("collect", "--from", self.url, "--dir", self.path(name), *more)
        self.addCleanup(command.end)
        return command

    def replay(self, *more, agent="web-01.example"):
        return run("replay", self.file, "--to", self.url, "--speed", "max", "--agent-id", agent, *more)

    def refused(self, result, words, code=2):
        """One line of vcpulse's that says it all; another may say that it tries again."""
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(words, result.stderr.splitlines()[-1])

    def has_all(self, name="out", agent="web-01.example"):
        def look():
            if not os.path.isdir(self.path(name)):
                return False
            folders = stream_folders(self.path(name)).get(agent) or []
            if len(folders) != 1:
                return False
            return sum(os.path.getsize(os.path.join(folders[0], file))
                       for file in os.listdir(folders[0])) >= len(self.bytes)
        wait_for("all to be stored", look)
        return stream_folders(self.path(name))[agent]

    def has_acknowledged(self, messages):
        """Whether the collectors have taken so many, and have acknowledged all."""
        consumer = self.servers.consumer()
        return consumer and consumer["ack_floor"]["stream_seq"] == messages and self.servers.not_acknowledged() == 0

    def test_all_arrives_byte_for_byte_and_once(self):
        self.serve()
        collector = self.collect()
        self.assertEqual(self.replay().returncode, 0)
        self.assertEqual(self.replay().returncode, 0)  # which changes nothing
        self.assertEqual(self.replay(agent="web-02").returncode, 0)  # the same stream id is another's stream
        for agent in ("web-01.example", "web-02"):
            folders = self.has_all(agent=agent)
            self.assertEqual(merged(folders, self.path("joined.vpt"))[0], self.bytes)
        self.assertEqual(collector.end(), 0)
        # A collector that comes again goes on, and stores nothing anew.
        again = self.collect()
        again.wait_for_line("taking chunks from")
        self.assertEqual(self.replay(agent="web-03").returncode, 0)
        self.has_all(agent="web-03")
        self.assertEqual(merged(self.has_all(), self.path("joined.vpt"))[0], self.bytes)
        # One whose consumer somebody has removed is handed all of it once more, and knows it.
        self.assertEqual(again.end(), 0)
        self.request("$JS.API.CONSUMER.DELETE.VCPULSE.vcpulse", {})
        again = self.collect()
        wait_for("all to be taken again", lambda: self.has_acknowledged(3 * len(chunks_of(self.file))))
        for agent, folders in stream_folders(self.path("out")).items():
            self.assertEqual(chunks_of(folders[0]), chunks_of(self.file), agent)
        # Another consumer has all of it, also what came before.
        self.collect("other", "--consumer", "late")
        self.assertEqual(merged(self.has_all("other"), self.path("joined.vpt"))[0], self.bytes)

    def test_tail_sees_what_comes(self):
        self.serve()
        tail = Command("tail", self.url, "--agent", "web-01.example", "--format", "jsonl")
        self.addCleanup(tail.end)
        tail.wait_for_line("waiting for data")
        self.assertEqual(self.replay().returncode, 0)
        wait_for("ticks", lambda: len(tail.printed) > 100)
        row = json.loads(tail.printed[5])
        self.assertEqual(row["agent"], "web-01.example")
        # It has left the collectors' consumer alone.
        self.collect()
        self.has_all()

    def ticks_of(self, tail, agent):
        return [row for row in map(json.loads, tail.printed) if row.get("agent") == agent]

    def test_tail_outlives_broker_and_stream(self):
        self.serve()
        tail = Command("tail", self.url, "--format", "jsonl")
        self.addCleanup(tail.end)
        tail.wait_for_line("waiting for data")
        self.assertEqual(self.replay(agent="web-01").returncode, 0)
        wait_for("ticks", lambda: self.ticks_of(tail, "web-01"))
        self.servers.servers[0].kill()
        tail.wait_for_line("the broker was lost: ")
        self.servers.start()
        # What comes before it is back itself is shown too.
        self.assertEqual(self.replay(agent="web-02").returncode, 0)
        tail.wait_for_line("is there again")
        wait_for("ticks after the restart", lambda: self.ticks_of(tail, "web-02"))
        self.request("$JS.API.STREAM.DELETE.VCPULSE", {})
        tail.wait_for_line("makes it; trying again")
        self.assertEqual(run("collect", "--from", self.url, "--make-stream").returncode, 0)
        self.assertEqual(self.replay(agent="web-03").returncode, 0)
        wait_for("ticks of the new stream", lambda: self.ticks_of(tail, "web-03"))
        wait_for("that it is back", lambda: sum("is there again" in line for line in tail.said) == 2)
        self.assertEqual(sum("was lost" in line for line in tail.said), 2, tail.said)
        self.assertFalse([line for line in tail.said if ": ;" in line])
        self.assertEqual(tail.end(), 0)

    def test_a_collector_says_why_the_broker_is_lost(self):
        self.serve()
        collector = self.collect()
        collector.wait_for_line("taking chunks from")
        self.servers.servers[0].kill()
        line = next(line for line in collector.said if collector.wait_for_line("trying again") and "trying again" in line)
        self.assertNotIn(": ;", line)
        self.servers.start()
        self.assertEqual(self.replay().returncode, 0)
        self.has_all()

    def record(self, *more):
        return run("record", "--event-set", "degraded", "--to", self.url, "--agent-id", "web-01", "--spool-dir",
                   self.path("spool"), "--require-collector", *more, "--", "sleep", "1")

    def test_a_broker_is_required(self):
        self.serve(make_stream=False)
        begin = time.monotonic()
        result = self.record()
        self.refused(result, "--require-collector: nats://", 125)
        self.refused(result, "no stream of the broker takes vcpulse's chunks", 125)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(run("collect", "--from", self.url, "--make-stream").returncode, 0)
        result = self.record()
        self.assertEqual(result.returncode, 0, result.stderr)
        # What it asked with is not kept.
        self.assertEqual(self.servers.stream()["n0"]["state"]["messages"], 0)

    def test_the_spool_waits_for_a_broker_that_is_away(self):
        self.serve()
        self.servers.stop()
        late = Command("replay", self.file, "--to", self.url, "--speed", "max", "--agent-id", "web-01.example")
        self.addCleanup(late.end)
        late.wait_for_line("trying again")
        self.servers.start()
        self.assertEqual(late.process.wait(60), 0)
        self.collect()
        self.assertEqual(merged(self.has_all(), self.path("joined.vpt"))[0], self.bytes)

    def test_a_broker_that_is_not_there(self):
        self.url = "nats://127.0.0.1:1"
        self.refused(self.replay(), "nats://127.0.0.1:1: ")
        self.refused(run("collect", "--from", self.url, "--make-stream"), "nats://127.0.0.1:1: ")
        self.refused(run("tail", self.url), "nats://127.0.0.1:1: ")
        waits = self.collect()  # a service starts before its broker may
        waits.wait_for_line("trying again")
        time.sleep(2)
        self.assertEqual(waits.end(), 0)
        self.assertEqual(len(waits.said), 1, waits.said)

    def test_a_name_that_is_unknown(self):
        self.url = "nats://nowhere.invalid:4222"
        words = "nats://nowhere.invalid:4222: the name nowhere.invalid cannot be resolved: "
        self.refused(run("collect", "--from", self.url, "--make-stream"), words)
        self.refused(run("tail", self.url), words)
        self.refused(self.replay(), words)

    def test_replicas_of_one_server(self):
        self.serve()
        result = run("collect", "--from", self.url, "--make-stream", "--replicas", "3")
        self.refused(result, "--replicas 3: this server is in no cluster")
        # As somebody else has asked of it, and as it says.
        js = {"name": "VCPULSE", "subjects": ["vcpulse.v1.>"], "retention": "limits", "storage": "file",
              "num_replicas": 3, "discard": "old", "duplicate_window": 300_000_000_000, "max_msgs": -1, "max_bytes": -1}
        self.request("$JS.API.STREAM.UPDATE.VCPULSE", js)
        result = run("collect", "--from", self.url, "--make-stream")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("3 replicas (only 1 of them there, as this server is in no cluster)", result.stderr)
        result = run("collect", "--from", self.url, "--make-stream", "--replicas", "1")
        self.assertIn(": 1 replica, ", result.stderr)

    def test_a_stream_that_is_missing(self):
        self.serve(make_stream=False)
        for result in (self.replay(), run("collect", "--from", self.url, "--dir", self.path("out")),
                       run("tail", self.url)):
            self.refused(result, "--make-stream`")

    def test_a_server_without_jetstream(self):
        servers = Servers(self.folder)
        server = servers.servers[0]
        with open(server.configuration, encoding="utf-8") as file:
            text = "".join(line for line in file if not line.startswith("jetstream"))
        with open(server.configuration, "w", encoding="utf-8") as file:
            file.write(text)
        self.addCleanup(servers.stop)
        servers.start()
        self.refused(run("collect", "--from", servers.urls[0], "--make-stream"), "JetStream")

    def test_a_stream_of_wrong_limits(self):
        self.serve(make_stream=False)
        # As another program would make it.
        js = {"name": "VCPULSE", "subjects": ["vcpulse.v1.>"], "retention": "limits", "storage": "memory",
              "max_msg_size": 1000, "num_replicas": 1, "discard": "old"}
        self.request("$JS.API.STREAM.CREATE.VCPULSE", js)
        result = run("collect", "--from", self.url, "--dir", self.path("out"))
        self.refused(result, "in memory alone")
        self.refused(result, "largest message is 1000 bytes")
        self.refused(result, "--make-stream`")
        self.refused(self.replay(), "message size exceeds maximum allowed")

    def request(self, subject, value):
        """Asks the server, in NATS's own protocol."""
        import socket
        payload = json.dumps(value).encode()
        with socket.create_connection(("127.0.0.1", self.servers.servers[0].port), timeout=10) as peer:
            peer.sendall(b'CONNECT {"verbose":false}\r\nSUB _INBOX.t 1\r\nPUB ' + subject.encode() +
                         b" _INBOX.t %d\r\n%s\r\nPING\r\n" % (len(payload), payload))
            said = b""
            while b"MSG _INBOX.t" not in said or not said.endswith(b"\r\n"):
                said += peer.recv(65536)
        self.assertNotIn(b'"error"', said)

    def test_a_message_that_is_too_large(self):
        self.serve(more="max_payload: 1024")
        result = self.replay()
        self.assertIn("more than the broker takes (max_payload: 1024)", result.stderr)
        self.collect()
        folder = wait_for("the loss", lambda: os.path.isdir(self.path("out")) and
                          stream_folders(self.path("out")).get("web-01.example"))
        wait_for("what is lost to be told", lambda: "lost" in run("report", *folder).stderr + run("report", *folder).stdout)

    def test_chunks_of_any_size_arrive(self):
        """max_payload of a server counts the headers of a message too: what does not fit under 1 MiB with them goes in pieces."""
        self.serve()
        self.collect()
        whole, mib = (1 << 20) - 1024, 1 << 20
        sizes = [whole - 1, whole, whole + 1, mib - 512, mib - 511, mib - 1, mib, mib + 1, 3 * mib]
        sent = [markers_chunk(1 + 100 * number, 100, size) for number, size in enumerate(sizes)]
        with open(self.file, "wb") as file:
            file.write(b"".join(sent))
        # The longest agent id that there may be, each of its bytes three of the subject.
        for agent in ("web-01", "a" + 252 * ":"):
            result = self.replay(agent=agent)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertNotIn("lost", result.stderr)
        # At least: the last one is two or more.
        wait_for("all to be acknowledged", lambda: self.servers.not_acknowledged() == 0 and
                 self.servers.consumer()["ack_floor"]["stream_seq"] >= 2 * len(sizes) + 2)
        found = stream_folders(self.path("out"))
        self.assertEqual(len(found), 2)
        for folders in found.values():
            self.assertEqual(len(folders), 1)
            self.assertEqual([number for first, last in sorted(chunks_of(folders[0])) for number in range(first, last + 1)],
                             list(range(1, 100 * len(sizes) + 1)))
            stored = b""
            for name in sorted(os.listdir(folders[0])):
                with open(os.path.join(folders[0], name), "rb") as file:
                    stored += file.read()
            self.assertEqual([chunk in stored for chunk in sent], [len(chunk) <= whole for chunk in sent])

    def test_a_full_disk(self):
        """A collector that cannot store asks for nothing, so that others have it, and goes on when there is room."""
        size = len(self.bytes)
        folder = self.path("small")
        os.mkdir(folder)
        mount = (f"mount -t tmpfs -o size={4 << 20} none {folder} && "
                 f"head -c {(4 << 20) - 8192} /dev/zero > {folder}/filler && exec \"$@\"")
        enter = ["unshare", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"]) + ["sh", "-c", mount, "sh"]
        if subprocess.run([*enter, "true"], capture_output=True, timeout=30).returncode != 0:
            self.skipTest("cannot mount a small file system")
        self.assertGreater(size, 4 * 8192)
        self.serve()
        full = Command("collect", "--from", self.url, "--dir", folder, through=enter)
        self.addCleanup(full.end)
        self.assertEqual(self.replay().returncode, 0)
        full.wait_for_line("No space left on device; no more chunks are asked for until that works")
        time.sleep(0.5)
        before = wait_for("the consumer", self.servers.consumer)
        time.sleep(2)
        after = self.servers.consumer()
        self.assertEqual(after["num_waiting"], 0)
        self.assertEqual(after["delivered"]["consumer_seq"], before["delivered"]["consumer_seq"])
        self.assertGreater(self.servers.not_acknowledged(), 0)
        # Another one has it at once.
        other = self.collect("other")
        number = len(chunks_of(self.file))
        wait_for("the other one to have it all", lambda: self.has_acknowledged(number), 8)  # not after 15 s
        self.assertEqual(other.end(), 0)
        self.assertEqual(self.replay(agent="web-02").returncode, 0)
        time.sleep(2)
        self.assertGreater(self.servers.not_acknowledged(), 0)
        seen = f"/proc/{full.process.pid}/root{folder}"
        os.remove(f"{seen}/filler")
        full.wait_for_line("writing works again")
        wait_for("all to be stored", lambda: self.has_acknowledged(2 * number))
        self.assertEqual(sorted(name for name in os.listdir(seen) if name != "web-01.example"), [".lock", "web-02"])
        shutil.copytree(seen, self.path("copy"))
        self.assertEqual(merged(stream_folders(self.path("copy"))["web-02"], self.path("joined.vpt"))[0], self.bytes)
        folders = [folder for name in ("copy", "other")
                   for folder in stream_folders(self.path(name)).get("web-01.example") or []]
        self.assertEqual(merged(folders, self.path("joined.vpt"))[0], self.bytes)
        self.assertEqual(len(full.said), 3, full.said)  # that it takes, that it cannot, that it can

    def has_no_chance(self, words, *credentials):
        """Each command says it in one line, and does not go on."""
        for arguments in (["replay", self.file, "--to", self.url, "--speed", "max", "--agent-id", "web-01"],
                          ["collect", "--from", self.url, "--dir", self.path("nothing")],
                          ["collect", "--from", self.url, "--make-stream"], ["tail", self.url]):
            with self.subTest(words=words, arguments=arguments):
                result = run(*arguments, *credentials)
                self.refused(result, words)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def may_not_be_another(self, host):
        result = self.replay(*host, agent="web-02")
        self.refused(result, "Permissions Violation for ")
        # It may neither hear the answers nor publish: what of that is said first is chance.
        self.assertRegex(result.stderr, '(Publish to "vcpulse.v1.|Subscription to "_INBOX_)web-02[.]')

    def is_let_in(self, host, collector):
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", *collector).returncode, 0)
        self.may_not_be_another(host)
        self.collect("out", *collector)
        result = self.replay(*host, agent="web-01")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(merged(self.has_all(agent="web-01"), self.path("joined.vpt"))[0], self.bytes)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    PUBLISH, SUBSCRIBE = ["vcpulse.v1.web-01.>"], ["_INBOX_web-01.>"]

    def test_nkeys(self):
        host, collector, other = Key(USER), Key(USER), Key(USER)
        self.serve(more=f'authorization {{ users: [ {{ nkey: "{host.public}", permissions: {{ '
                        f'publish: {json.dumps(self.PUBLISH)}, subscribe: {json.dumps(self.SUBSCRIBE)} }} }}, '
                        f'{{ nkey: "{collector.public}" }} ] }}', make_stream=False)

        def option(name, *lines):
            return ["--nats-nkey", self.write(name, "".join(line + "\n" for line in lines))]
        self.is_let_in(option("host", host.seed, host.public), option("collector", collector.seed, collector.public))
        self.has_no_chance("Authorization Violation", *option("other", other.seed, other.public))
        self.has_no_chance("Authorization Violation", *option("stolen", other.seed, collector.public))
        self.has_no_chance("has no seed of a user", *option("public", collector.public))
        self.has_no_chance("has no seed of a user", *option("cut", collector.seed[:-1], collector.public))
        self.has_no_chance("has no public key of a user", *option("seed", collector.seed))
        account = Key(ACCOUNT)
        self.has_no_chance("has no seed of a user", *option("account", account.seed, account.public))

    def test_credentials(self):
        operator, account, system, strange = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT), Key(ACCOUNT)
        token = operator.jwt(operator.public, {"type": "operator", "system_account": system.public})
        self.serve(more=f'operator: "{token}"\nsystem_account: "{system.public}"\nresolver: MEMORY\nresolver_preload {{ '
                        f'{account.public}: "{account_of(operator, account)}", '
                        f'{system.public}: "{account_of(operator, system, jetstream=False)}" }}', make_stream=False)
        host, collector, other = Key(USER), Key(USER), Key(USER)

        def option(name, text):
            return ["--nats-creds", self.write(name, text)]
        of_host = user_of(account, host, self.PUBLISH, self.SUBSCRIBE)
        of_collector = user_of(account, collector)
        self.is_let_in(option("host", credentials(of_host, host.seed)),
                       option("collector", credentials(of_collector, collector.seed)))
        for name, (jwt, seed) in {
                "strange": (user_of(strange, other), other.seed),  # of an account that the server does not know
                "expired": (user_of(account, other, expires_in_s=-10), other.seed),
                "stolen": (of_collector, other.seed)}.items():
            self.has_no_chance("Authorization Violation", *option(name, credentials(jwt, seed)))
        self.has_no_chance("has no JWT", *option("empty", ""))
        self.has_no_chance("has no JWT", *option("no", credentials("hello", collector.seed)))
        self.has_no_chance("has no seed of a user", *option("jwt", of_collector + "\n"))
        self.has_no_chance("has no seed of a user", *option("cut", credentials(of_collector, collector.seed[:-1])))

    USERS = ('authorization {{ users: [\n'
             '  {{ user: "web-01", password: "secret", permissions: {{\n'
             '    publish: ["vcpulse.v1.web-01.>"], subscribe: ["_INBOX_web-01.>"] }} }},\n'
             '  {{ user: "collector", password: "other" }} ] }}\n')

    def test_who_may_publish_what(self):
        self.serve(more=self.USERS.format(), make_stream=False)
        for name, password in (("web-01", "secret"), ("collector", "other"), ("wrong", "wrong")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(password + "\n")
        collector = ["--nats-user", "collector", "--nats-password-file", self.path("collector")]
        host = ["--nats-user", "web-01", "--nats-password-file", self.path("web-01")]
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", *collector).returncode, 0)
        self.refused(self.replay("--nats-user", "web-01", "--nats-password-file", self.path("wrong")),
                     "Authorization Violation")
        self.refused(self.replay(), "Authorization Violation")
        self.refused(run("collect", "--from", self.url, "--dir", self.path("no")), "Authorization Violation")
        self.may_not_be_another(host)
        self.collect("out", *collector)
        self.assertEqual(self.replay(*host, agent="web-01").returncode, 0)
        self.assertEqual(merged(self.has_all(agent="web-01"), self.path("joined.vpt"))[0], self.bytes)

    def test_credentials_that_are_wrong_for_a_while(self):
        """libnats closes a connection for good that was not let in twice."""
        self.serve(more=self.USERS.format(), make_stream=False)
        host = ["--nats-user", "web-01", "--nats-password-file", self.write("host", "secret\n")]
        other = ["--nats-user", "collector", "--nats-password-file", self.write("other", "other\n")]
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", *other).returncode, 0)
        collector = self.collect("out", *other)
        collector.wait_for_line("taking chunks from")
        tail = Command("tail", self.url, "--format", "jsonl", *other)
        self.addCleanup(tail.end)
        tail.wait_for_line("waiting for data")
        server = self.servers.servers[0]
        with open(server.configuration, encoding="utf-8") as file:
            right = file.read()
        for text in (right.replace('"other"', '"changed"'), right):
            server.kill()
            with open(server.configuration, "w", encoding="utf-8") as file:
                file.write(text)
            self.servers.start()
            if text != right:
                collector.wait_for_line("Authorization Violation; trying again")
                tail.wait_for_line("Authorization Violation; trying again")
        self.assertEqual(self.replay(*host, agent="web-01").returncode, 0)
        self.has_all(agent="web-01")
        wait_for("ticks", lambda: self.ticks_of(tail, "web-01"))

    def test_who_may_not_ask_jetstream(self):
        self.serve(more='authorization { users: [ { user: "all", password: "p" }, { user: "none", password: "p", '
                        'permissions: { publish: ["vcpulse.>"] } }, { user: "look", password: "p", '
                        'permissions: { publish: ["$JS.API.STREAM.INFO.VCPULSE"] } }, { user: "hear", password: "p", '
                        'permissions: { subscribe: ["_INBOX_web-01.>"], publish: ["vcpulse.v1.web-02.>"] } } ] }',
                   make_stream=False)
        password = ["--nats-password-file", self.write("password", "p\n")]
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", "--nats-user", "all", *password).returncode, 0)
        for user, words in (("none", 'Permissions Violation for Publish to "$JS.API.STREAM.INFO.VCPULSE"'),
                            ("look", 'Permissions Violation for Publish to "$JS.API.CONSUMER.')):
            for command in (["collect", "--from", self.url, "--dir", self.path(user)], ["tail", self.url]):
                with self.subTest(user=user, command=command):
                    result = run(*command, "--nats-user", user, *password)
                    self.refused(result, words)
                    self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        result = self.record("--nats-user", "hear", *password)
        self.refused(result, "--require-collector: ", 125)
        self.refused(result, 'Permissions Violation for Publish to "vcpulse.v1.web-01.probe"', 125)

    def test_tls(self):
        for arguments in (
                ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", "/CN=our lab", "-keyout", self.path("ca.key"), "-out", self.path("ca.pem")],
                ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=broker",
                 "-keyout", self.path("b.key"), "-out", self.path("b.csr")]):
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)
        with open(self.path("b.ext"), "w", encoding="utf-8") as file:
            file.write("subjectAltName=IP:127.0.0.1\n")
        subprocess.run(["openssl", "x509", "-req", "-in", self.path("b.csr"), "-CA", self.path("ca.pem"), "-CAkey",
                        self.path("ca.key"), "-CAcreateserial", "-days", "2", "-extfile", self.path("b.ext"), "-out",
                        self.path("b.pem")], check=True, capture_output=True, timeout=30)
        self.serve(more=f'tls {{ cert_file: "{self.path("b.pem")}", key_file: "{self.path("b.key")}" }}',
                   make_stream=False)
        self.refused(self.replay(), "127.0.0.1")  # without TLS
        self.url = self.url.replace("nats://", "nats+tls://")
        self.refused(self.replay(), "ertificate")  # the authority is not known
        for option, words in ((["--ca", self.file], f"--ca {self.file} cannot be used: "),
                              (["--ca", self.path("none")], f"--ca {self.path('none')}: No such file"),
                              (["--cert", self.file, "--key", self.path("b.key")], f"--cert {self.file} cannot be used: "),
                              (["--cert", self.path("b.pem"), "--key", self.file], f"--key {self.file} cannot be used: "),
                              (["--cert", self.path("b.pem"), "--key", self.path("ca.key")], "key values mismatch")):
            self.has_no_chance(words, *option)
        ca = ["--ca", self.path("ca.pem")]
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", *ca).returncode, 0)
        self.collect("out", *ca)
        self.assertEqual(self.replay(*ca).returncode, 0)
        self.has_all()
        # A server without TLS: the address is said as it was given.
        self.servers.stop()
        self.folder = self.path("plain")
        self.serve(make_stream=False)
        url = self.url.replace("nats://", "nats+tls://")
        self.refused(run("collect", "--from", url, "--make-stream"), f"{url}: ")

    def test_an_address_may_end_with_a_slash(self):
        self.serve()
        for url in (self.url + "/", self.url.replace("nats", "NATS")):
            result = run("collect", "--from", url, "--make-stream")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_cannot_be_meant(self):
        for arguments, words in (
                (["replay", self.file, "--to", "nats://u:p@127.0.0.1"], "holds no user and no password"),
                (["replay", self.file, "--to", "nats://"], "is not an address of NATS"),
                (["replay", self.file, "--to", "nats://a:1/b"], "is not an address of NATS"),
                (["replay", self.file, "--to", "NATS:a:1"], "is not an address of NATS: write nats://HOST:PORT"),
                (["tail", "nats:127.0.0.1:4222"], "SOURCE: 'nats:127.0.0.1:4222' is not an address of NATS: write nats://"),
                (["collect", "--listen", "nats://a:1", "--dir", self.path("x")], "write --from nats://HOST:PORT"),
                (["replay", self.file, "--to", "nats://a:1", "--to", "tcp:b:2"], "cannot be used together"),
                (["replay", self.file, "--to", "tcp:127.0.0.1:1", "--nats-user", "a"], "--nats-user: it is for"),
                (["replay", self.file, "--to", "nats://a:1", "--nats-user", "a"], "belong together"),
                (["replay", self.file, "--to", "nats://a:1", "--nats-creds", self.path("none")], "cannot read"),
                (["collect", "--dir", self.path("x")], "--from nats://HOST:PORT"),
                (["collect", "--from", "tcp:a:1", "--dir", self.path("x")], "--from: write nats://HOST:PORT"),
                (["collect", "--from", "nats://a:1", "--listen", "tcp:127.0.0.1:0", "--dir", self.path("x")],
                 "one of them"),
                (["collect", "--from", "nats://a:1", "--dir", self.path("x"), "--consumer", "a b"], "--consumer: "),
                (["collect", "--from", "nats://a:1", "--replicas", "3", "--dir", self.path("x")], "--make-stream"),
                (["collect", "--from", "nats://a:1", "--replicas", "2", "--make-stream"], "none of 1, 3 and 5"),
                (["collect", "--listen", "tcp:127.0.0.1:0", "--dir", self.path("x"), "--consumer", "a"],
                 "--consumer: it is for"),
        ):
            with self.subTest(arguments):
                result = run(*arguments)
                self.refused(result, words)
                self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
