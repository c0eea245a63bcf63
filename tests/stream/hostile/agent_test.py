#!/usr/bin/python3
"""Agents (record, replay) and a follower (tail) against a collector that means harm or is broken.

usage: agent_test.py VCPULSE FAULTS [unittest arguments]
"""

import glob
import os
import socket
import subprocess
import sys
import threading
import time
import unittest

import peer
from collector_test import VCPULSE, CollectorTest, main

TIMELINE = os.path.join(peer.ROOT, "tests/data/timeline-v1.vpt")
with open(TIMELINE, "rb") as timeline:
    CHUNKS = peer.chunks_of(timeline.read())
STREAM = CHUNKS[0][2][24:40]
LAST = CHUNKS[-1][1]


class HostileCollector:
    """Listens on loopback; `serve(connection)` is called with a peer.Peer for each that comes."""

    def __init__(self, serve):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.address = f"tcp:127.0.0.1:{self.port}"
        self.serve = serve
        self.hellos = []
        self.acknowledged = []
        self.open = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                accepted, _ = self.listening.accept()
            except OSError:
                return
            accepted.settimeout(peer.PATIENCE_S)
            connection = peer.Peer.__new__(peer.Peer)
            connection.socket, connection.buffer = accepted, b""
            self.open.append(connection)
            threading.Thread(target=self.run_one, args=(connection,), daemon=True).start()

    def run_one(self, connection):
        try:
            self.serve(connection)
        except (OSError, peer.Closed, peer.Refused):
            pass
        connection.close()

    def welcome(self, connection, durable=0):
        """Takes the Hello and welcomes whoever it is."""
        hello = peer.stream_pb2.Hello.FromString(connection.expect(peer.HELLO))
        self.hellos.append(hello)
        welcome = peer.stream_pb2.Welcome(major=1, durable_sequence=durable, credit_bytes=1 << 20,
                                          max_frame_bytes=1 << 20, idle_ms=60_000)
        connection.send(peer.frame(peer.WELCOME, welcome.SerializeToString()))
        return hello

    def acknowledge(self, connection, sequence):
        connection.send(peer.frame(peer.ACK, peer.stream_pb2.Ack(
            durable_sequence=sequence).SerializeToString()))

    def close(self):
        self.listening.close()
        for connection in self.open:
            connection.close()


class AgentTest(CollectorTest):
    def setUp(self):
        super().setUp()
        self.spool = self.folder + "/spool"
        os.mkdir(self.spool, 0o700)

    def collector(self, serve):
        collector = HostileCollector(serve)
        self.addCleanup(collector.close)
        return collector

    def fill_spool(self, chunks=CHUNKS, mark=None):
        """As an earlier recording of this boot, that was killed, has left it."""
        folder = f"{self.spool}/0000000001-{STREAM.hex()}"
        os.mkdir(folder)
        with open(f"{folder}/{chunks[0][0]:020}.vpt", "wb") as file:
            file.write(b"".join(data for _, _, data in chunks))
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
        with open(f"{self.spool}/.written", "w", encoding="ascii") as file:
            file.write(boot_id if mark is None else mark)

    def held(self):
        """Bytes in the spool's segments."""
        return sum(os.path.getsize(path) for path in glob.glob(f"{self.spool}/*/*.vpt"))

    def run_agent(self, *arguments, **more):
        agent = subprocess.Popen([VCPULSE, *arguments, "--agent-id", "web1"], text=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, **more)
        self.addCleanup(agent.stderr.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        return agent

    def record(self, *addresses, wait="40s"):
        """A recording that waits for its VM, while it sends what its spool holds."""
        to = [word for address in addresses for word in ("--to", address)]
        return self.run_agent("record", "--vm", "no-such-vm", "--wait=" + wait, "-o",
                              self.folder + "/none.vpt", *to, "--spool-dir", self.spool)

    def line_of(self, agent, words):
        """The first line with these words; they must come."""
        lines = []
        for line in agent.stderr:
            lines.append(line)
            if words in line:
                return line
        self.fail(f"never said {words!r}: {lines}")


class ClaimTest(AgentTest):
    def test_a_welcome_that_claims_more_than_was_ever_written_costs_no_spool(self):
        collector = self.collector(lambda connection: (collector.welcome(connection, LAST + 1),
                                                       connection.expect(0)))
        self.fill_spool()
        before = self.held()
        agent = self.record(collector.address)
        line = self.line_of(agent, "cannot stream to")
        self.assertIn("another agent sends under the same stream id", line)
        self.eventually(lambda: len(collector.hellos) >= 2)
        self.assertEqual(self.held(), before)

    def test_an_ack_beyond_what_was_sent_costs_no_spool(self):
        def serve(connection):
            collector.welcome(connection)
            connection.expect(peer.CHUNK)
            collector.acknowledge(connection, 1 << 40)
            connection.expect(0)

        collector = self.collector(serve)
        self.fill_spool()
        before = self.held()
        agent = self.record(collector.address)
        self.assertIn("the collector acknowledges record", self.line_of(agent, "was lost"))
        self.eventually(lambda: len(collector.hellos) >= 2)
        self.assertEqual(self.held(), before)

    def test_a_welcome_may_claim_more_after_a_crash_of_the_machine(self):
        collector = self.collector(lambda connection: (collector.welcome(connection, LAST + 1),
                                                       connection.expect(0)))
        self.fill_spool(mark="another boot")
        self.record(collector.address)
        self.eventually(lambda: self.held() == 0)


class StuckTest(AgentTest):
    def test_an_agent_leaves_a_collector_that_acknowledges_nothing(self):
        def talk(connection):
            stuck.welcome(connection)
            connection.expect(peer.CHUNK)
            while True:
                stuck.acknowledge(connection, 0)
                time.sleep(1)

        stuck = self.collector(talk)
        good = self.start()
        self.fill_spool()
        self.record(stuck.address, good.address)
        self.eventually(lambda: self.held() == 0, 39)
        self.assertEqual(len(stuck.hellos), 1)


class SpoolTest(AgentTest):
    def test_records_of_a_damaged_spool_are_in_the_summary(self):
        self.assertGreater(len(CHUNKS), 2)
        first, last, data = CHUNKS[1]
        damaged = bytearray(data)
        damaged[3] ^= 1
        self.fill_spool([CHUNKS[0], (first, last, bytes(damaged)), *CHUNKS[2:]])
        collector = self.start()
        agent = self.record(collector.address, wait="2s")
        self.assertIn(f" 1 lost ({last - first + 1} record", self.line_of(agent, "acknowledged, "))

    def test_a_spool_that_others_may_write_is_refused(self):
        self.fill_spool()
        os.chmod(self.spool, 0o777)
        agent = self.record("tcp:127.0.0.1:1")
        self.assertEqual(agent.wait(timeout=peer.PATIENCE_S), 2)
        self.assertIn("can be written by other users: `chmod go-w", agent.stderr.read())


class WrongPeerTest(AgentTest):
    """What needs somebody to change something is an error at once."""

    def certificates(self, name):
        """--cert, --key and --ca; the certificate is of DNS:`name`, by its own authority."""
        at = f"{self.folder}/{name}"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=lab",
                        "-addext", f"subjectAltName=DNS:{name}", "-keyout", at + ".key", "-out",
                        at + ".pem"], check=True, capture_output=True)
        return ["--cert", at + ".pem", "--key", at + ".key", "--ca", at + ".pem"]

    def ends_at_once(self, words, command, address, *more):
        begin = time.monotonic()
        agent = self.run_agent(*command, address, *more)
        self.assertEqual(agent.wait(timeout=9), 2)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertIn(words, agent.stderr.read())

    COMMANDS = (("replay", TIMELINE, "--speed", "max", "--to"), ("tail",),
                ("record", "--vm", "no-such-vm", "--wait=20s", "--require-collector", "--to"))

    def commands(self):
        for command in self.COMMANDS:
            spool = ("--spool-dir", self.spool) if command[0] == "record" else ()
            with self.subTest(command[0]):
                yield command, spool

    def test_a_certificate_of_another_host(self):
        tls = self.certificates("elsewhere")
        address = self.start("tls:127.0.0.1:0", *tls).address
        for command, spool in self.commands():
            self.ends_at_once("it does not name 127.0.0.1", command, address, *tls, *spool)

    def test_a_plain_collector_at_a_tls_address(self):
        tls = self.certificates("elsewhere")
        address = self.start().address.replace("tcp:", "tls:")
        for command, spool in self.commands():
            self.ends_at_once("TLS: ", command, address, *tls, *spool)

    def test_a_peer_that_speaks_something_else(self):
        other = self.collector(lambda connection: connection.send(b"SSH-2.0-OpenSSH_9.6\r\n" * 9))
        for command, spool in self.commands():
            self.ends_at_once("127.0.0.1", command, other.address, *spool)

    def test_a_recording_says_it_and_goes_on(self):
        tls = self.certificates("elsewhere")
        address = self.start("tls:127.0.0.1:0", *tls).address
        self.fill_spool()
        agent = self.run_agent("record", "--vm", "no-such-vm", "--wait=40s", "--to", address,
                               "--spool-dir", self.spool, *tls)
        self.assertIn("it does not name 127.0.0.1", self.line_of(agent, "cannot stream"))
        self.assertIsNone(agent.poll())


if __name__ == "__main__":
    main()
