#!/usr/bin/python3
"""record, replay, collect and tail through one nats-server: what arrives, and what is said where it cannot.

usage: one_server_test.py VCPULSE MAKE_TIMELINE [unittest arguments]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from commands import Command, make_timeline, merged, run, stream_folders
from nats_servers import Servers, wait_for

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
        self.assertEqual(waits.end(), 0)

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
        self.refused(self.replay(*host, agent="web-02"), 'Permissions Violation for Publish to "vcpulse.v1.web-02.')
        self.collect("out", *collector)
        self.assertEqual(self.replay(*host, agent="web-01").returncode, 0)
        self.assertEqual(merged(self.has_all(agent="web-01"), self.path("joined.vpt"))[0], self.bytes)

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
        ca = ["--ca", self.path("ca.pem")]
        self.assertEqual(run("collect", "--from", self.url, "--make-stream", *ca).returncode, 0)
        self.collect("out", *ca)
        self.assertEqual(self.replay(*ca).returncode, 0)
        self.has_all()

    def test_what_cannot_be_meant(self):
        for arguments, words in (
                (["replay", self.file, "--to", "nats://u:p@127.0.0.1"], "holds no user and no password"),
                (["replay", self.file, "--to", "nats://"], "is not an address of NATS"),
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
