#!/usr/bin/python3
"""What a collector spends on its peers: memory, connections, descriptors, lines of its log.

usage: budget_test.py VCPULSE FAULTS [unittest arguments]
"""

import concurrent.futures
import contextlib
import os
import resource
import socket
import time
import unittest
import urllib.error
import urllib.request

import peer
from collector_test import CollectorTest, main

MIB = 1 << 10  # in KiB
IDLE_MIB = 32  # of a collector that has nobody


class MemoryTest(CollectorTest):
    def setUp(self):
        super().setUp()
        self.collector = self.start("tcp:127.0.0.1:0", "--memory", "64MiB")
        self.honest = self.connect(self.collector.address)
        self.honest.hello("honest", self.stream)
        self.sent = 0

    def send_one(self):
        self.sent += 1
        self.send(self.honest, self.sent, self.sent)

    def peak_mib(self):
        return self.collector.peak_rss_kib() / MIB

    def test_followers_share_what_they_are_sent(self):
        for number in range(60):
            self.connect(self.collector.address).follow(own_id=f"follower-{number}")
        big = peer.SameContent(os.urandom(500_000))
        sender = self.connect(self.collector.address)
        stream = os.urandom(16)
        sender.hello("sender", stream)
        for record in range(1, 101):  # 50 MB to each, which none of them reads
            sender.send(big.chunk_frame(stream, record, record))
            sender.acknowledged(record)
        self.send_one()
        self.assertIn("takes too little", self.collector.said("refused"))
        self.assertLess(self.peak_mib(), 64 + IDLE_MIB)

    def test_unfinished_frames_cost_those_who_send_them(self):
        half = peer.frame(peer.CHUNK, bytes(1 << 20), crc=0)[:-1]
        for agent in range(8):
            for number in range(50):
                connection = self.connect(self.collector.address)
                connection.socket.settimeout(5)
                with contextlib.suppress(OSError, peer.Closed):
                    connection.hello(f"hoarder-{agent}", bytes([agent + 1, number] * 8))
                    connection.send(half)
            self.send_one()
        self.assertLess(self.peak_mib(), 64 + IDLE_MIB)
        self.assertIn("is used up", self.collector.said("memory (--memory)"))
        self.send_one()


class SmallChunksTest(CollectorTest):
    def test_chunks_of_a_byte_count_with_all_that_they_take(self):
        tiny = peer.SameContent(b"x")
        stream = os.urandom(16)
        frames = b"".join(tiny.chunk_frame(stream, record, record) for record in range(1, 20_001))
        collector = self.start(f"unix:{self.folder}/socket", "--memory", "64MiB")
        senders = []
        for number in range(10):
            sender = self.connect(collector.address)
            sender.hello(f"sender-{number}", stream, 1, 20_001)
            self.connect(collector.address).follow(own_id=f"follower-{number}")
            senders.append(sender)
        self.set_faults("fdatasync hang\n")
        left = {sender: frames for sender in senders}
        end = time.monotonic() + 3  # then the collector has long stopped reading
        for sender in senders:
            sender.socket.setblocking(False)
        while time.monotonic() < end:
            for sender in senders:
                with contextlib.suppress(BlockingIOError):
                    left[sender] = left[sender][sender.socket.send(left[sender][:100_000]):]
            time.sleep(0.001)
        self.assertGreater(sum(map(len, left.values())), 0, "all of it was taken")
        self.set_faults("")

        def finish(sender):
            sender.socket.settimeout(60)
            sender.socket.sendall(left[sender])
            return sender.acknowledged(20_000)

        with concurrent.futures.ThreadPoolExecutor(len(senders)) as threads:
            self.assertEqual(list(threads.map(finish, senders)), [20_000] * len(senders))
        self.assertLess(collector.peak_rss_kib() / MIB, 40)


class FollowersTest(CollectorTest):
    def test_followers_that_are_each_a_little_behind_hold_no_more_together(self):
        collector = self.start(f"unix:{self.folder}/socket", "--memory", "64MiB")  # 7 MiB, one 3.5
        big = peer.SameContent(os.urandom(500_000))
        for number in range(8):
            self.connect(collector.address).follow(f"agent-{number}", own_id=f"follower-{number}")
            sender = self.connect(collector.address)
            stream = os.urandom(16)
            sender.hello(f"agent-{number}", stream)
            for record in range(1, 5):
                sender.send(big.chunk_frame(stream, record, record))
            sender.acknowledged(4)
        self.assertIn("takes too little", collector.said("refused"))
        sender.send(big.chunk_frame(stream, 5, 5))
        sender.acknowledged(5)


class ConnectionsTest(CollectorTest):
    def test_an_agent_id_has_so_many_connections_and_no_more(self):
        collector = self.start()
        for number in range(64):
            self.connect(collector.address).hello("web1", bytes([number + 1] * 16))
        with self.assertRaises(peer.Refused) as refused:
            self.connect(collector.address).hello("web1", self.stream)
        self.assertEqual(refused.exception.code, peer.CODES.Value("CODE_BUSY"))
        self.connect(collector.address).hello("web2", self.stream)

    def test_there_are_so_many_followers_and_no_more(self):
        collector = self.start()
        for number in range(256):
            self.connect(collector.address).follow(own_id=f"follower-{number}")
        with self.assertRaises(peer.Refused) as refused:
            self.connect(collector.address).follow(own_id="one-more")
        self.assertEqual(refused.exception.code, peer.CODES.Value("CODE_BUSY"))

    def test_of_connections_that_have_not_said_hello_the_oldest_goes(self):
        collector = self.start()
        agent = self.connect(collector.address)
        agent.hello("web1", self.stream)
        silent = [self.connect(collector.address) for _ in range(256)]
        self.connect(collector.address).hello("web2", self.stream)
        self.assertEqual(silent[0].refused().code, peer.CODES.Value("CODE_BUSY"))
        self.send(agent, 1, 10)

    def test_silent_connections_do_not_take_the_descriptors_of_files(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600))

        collector = peer.Collector(peer.sys.argv[1], "tcp:127.0.0.1:0", self.folder + "/collected",
                                   preexec_fn=few_descriptors)
        self.addCleanup(collector.end, peer.signal.SIGKILL)
        self.assertIn("open files", collector.said("connections: "))
        agent = self.connect(collector.address)
        agent.hello("web1", self.stream)
        silent = []
        for _ in range(700):
            with contextlib.suppress(OSError):
                silent.append(self.connect(collector.address))
        self.send(agent, 1, 10)  # its first file
        self.assertLess(collector.descriptors(), 600)

    def test_the_log_of_those_who_are_not_let_in_is_short(self):
        collector = self.start("tcp:127.0.0.1:0")
        end = time.monotonic() + 3
        tries = 0
        while time.monotonic() < end:
            with contextlib.suppress(OSError, peer.Closed), peer.Peer(collector.address) as stranger:
                tries += 1
                stranger.send(peer.frame(peer.CHUNK, os.urandom(100)))
                stranger.refused()
        self.assertGreater(tries, 100)
        self.assertLess(sum(map(len, collector.lines)), 5_000)


class StatusTest(CollectorTest):
    def setUp(self):
        super().setUp()
        self.collector = self.start("tcp:127.0.0.1:0", "--status", "tcp:127.0.0.1:0")
        self.port = int(self.collector.said("status at tcp:127.0.0.1:"))

    def get(self, **headers):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/healthz", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_answers_to_its_own_name_alone(self):
        self.assertEqual(self.get(), 200)
        self.assertEqual(self.get(Host="evil.example"), 421)

    def test_idle_connections_do_not_keep_others_out(self):
        for _ in range(100):
            idle = socket.create_connection(("127.0.0.1", self.port), 5)
            self.addCleanup(idle.close)
        self.assertEqual(self.get(), 200)


if __name__ == "__main__":
    main()
