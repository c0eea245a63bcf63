#!/usr/bin/python3
"""A collector on a disk that fails, hangs, fills, goes away or flips bits.

usage: disk_test.py VCPULSE FAULTS [unittest arguments]
"""

import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

import peer
from collector_test import CollectorTest, main


class DiskTest(CollectorTest):
    def setUp(self):
        super().setUp()
        self.collector = self.start("tcp:127.0.0.1:0", "--status", "tcp:127.0.0.1:0")

    def agent(self, agent_id="web1", **more):
        connection = self.connect(self.collector.address)
        connection.welcome = connection.hello(agent_id, self.stream, **more)
        return connection

    def health(self):
        """(status, text) of /healthz."""
        port = self.collector.said("status at tcp:127.0.0.1:")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def restart(self):
        self.collector.end(signal.SIGKILL)
        self.collector = self.start("tcp:127.0.0.1:0", "--status", "tcp:127.0.0.1:0")

    def files(self):
        return sorted(glob.glob(f"{self.folder}/collected/web1/*/*.vpt"))


class FlippedBitTest(DiskTest):
    def test_costs_exactly_the_damaged_chunk(self):
        agent = self.agent()
        sent = [self.send(agent, first, first + 9, os.urandom(300)) for first in range(1, 401, 10)]
        self.collector.end(signal.SIGKILL)
        with open(self.files()[0], "r+b") as file:
            file.seek(len(sent[0]) + 150)
            byte = file.read(1)[0]
            file.seek(len(sent[0]) + 150)
            file.write(bytes([byte ^ 4]))
        self.restart()
        # The agent has nothing left of what was acknowledged.
        agent = self.agent(first=401, next_sequence=401)
        self.assertEqual(agent.welcome.durable_sequence, 400)
        self.assertIn("damaged", self.collector.said("380 bytes"))
        sent.append(self.send(agent, 401, 410))
        stored = self.collector.stored("web1", self.stream)
        self.assertEqual(stored[:len(sent[0])], sent[0])
        self.assertTrue(stored.endswith(b"".join(sent[2:])))
        self.assertEqual(len(stored), sum(map(len, sent)))
        self.assertEqual(glob.glob(f"{self.folder}/collected/web1/*/*.damaged"), [])

    def test_is_a_gap_in_what_readers_see(self):
        whole = os.path.join(peer.ROOT, "tests/data/timeline-v1.vpt")
        with open(whole, "rb") as file:
            data = file.read()
        chunks = peer.chunks_of(data)
        self.assertGreater(len(chunks), 2)
        folder = f"{self.folder}/one"
        os.mkdir(folder)
        damaged = bytearray(data)
        damaged[len(chunks[0][2]) + 100] ^= 1
        with open(f"{folder}/00000000000000000001.vpt", "wb") as file:
            file.write(damaged)
        report = subprocess.run([sys.argv[1], "report", "--json", folder], capture_output=True, text=True,
                                check=True)
        damage = json.loads(report.stdout)["damage"]
        self.assertEqual(damage["damaged_chunks"], 1)
        self.assertEqual(damage["lost_records"], chunks[1][1] - chunks[1][0] + 1)
        self.assertEqual(damage["chunks"], len(chunks) - 1)


class RenamedStreamTest(unittest.TestCase):
    def test_reads_the_same_under_another_id(self):
        """An agent that goes on under a new stream id changes the heads of its chunks alone."""
        whole = os.path.join(peer.ROOT, "tests/data/timeline-v1.vpt")
        renamed = b""
        with open(whole, "rb") as file:
            for _, _, data in peer.chunks_of(file.read()):
                head = bytearray(data[:76])
                head[24:40] = bytes([7] * 16)
                renamed += bytes(head) + peer.crc32c(bytes(head)).to_bytes(4, "little") + data[80:]
        for command in (["report", "--json", "-"], ["export", "--format", "jsonl", "-"],
                        ["replay", "--speed", "max", "-"]):
            with open(whole, "rb") as file:
                before = subprocess.run([sys.argv[1], *command], stdin=file, capture_output=True, check=True)
            after = subprocess.run([sys.argv[1], *command], input=renamed, capture_output=True, check=True)
            self.assertTrue(before.stdout)
            self.assertEqual(before.stdout, after.stdout)


class HealthTest(DiskTest):
    def test_a_folder_that_cannot_be_written(self):
        self.assertEqual(self.health()[0], 200)
        with open(f"{self.folder}/collected/web1", "w", encoding="utf-8"):
            pass  # where the agent's folder would be
        other = self.agent("other")
        self.send(other, 1, 10)
        with self.assertRaises(peer.Refused) as refused:
            agent = self.agent()
            self.send(agent, 1, 10)
        self.assertEqual(refused.exception.code, peer.CODES.Value("CODE_STORAGE"))
        self.send(other, 11, 20)
        self.assertEqual(self.health()[0], 503)
        self.assertIn("web1", self.health()[1])
        os.remove(f"{self.folder}/collected/web1")
        self.send(self.agent(), 1, 10)
        self.eventually(lambda: self.health()[0] == 200)

    def test_a_sync_that_hangs(self):
        agent = self.agent()
        self.send(agent, 1, 10)
        self.set_faults("fdatasync hang\n")
        agent.send(peer.frame(peer.CHUNK, self.chunk_of(11, 20)))
        self.eventually(lambda: self.health()[0] == 503)
        self.assertIn("the disk has not answered", self.health()[1])
        self.set_faults("")
        self.assertEqual(agent.acknowledged(20), 20)
        self.eventually(lambda: self.health()[0] == 200)

    def test_a_directory_that_was_moved(self):
        agent = self.agent()
        first = self.send(agent, 1, 10)
        os.rename(f"{self.folder}/collected", f"{self.folder}/elsewhere")
        self.collector.said("was moved, replaced or removed", patience_s=60)
        self.assertEqual(self.health()[0], 503)
        agent.send(peer.frame(peer.CHUNK, self.chunk_of(11, 20)))
        self.assertEqual(agent.refused().code, peer.CODES.Value("CODE_STORAGE"))
        os.rename(f"{self.folder}/elsewhere", f"{self.folder}/collected")
        self.collector.said("collected is back", patience_s=60)
        agent = self.agent(first=11, next_sequence=21)
        self.assertEqual(agent.welcome.durable_sequence, 10)
        second = self.send(agent, 11, 20)
        self.assertEqual(self.collector.stored("web1", self.stream), first + second)
        self.assertEqual(self.health()[0], 200)


class EndTest(DiskTest):
    def test_a_sync_that_hangs_for_good_does_not_keep_the_collector(self):
        agent = self.agent()
        self.send(agent, 1, 10)
        self.set_faults("fdatasync hang\n")
        agent.send(peer.frame(peer.CHUNK, self.chunk_of(11, 20)))
        time.sleep(0.3)  # it has come
        begin = time.monotonic()
        self.assertEqual(self.collector.end(signal.SIGTERM, patience_s=60), 2)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertIn("was not acknowledged", self.collector.said("not all that was received"))


class ManyStreamsTest(DiskTest):
    def test_a_hello_does_not_wait_for_a_folder_of_many_streams(self):
        for number in range(9_999):
            os.makedirs(f"{self.folder}/collected/web1/20260101T000000Z-{number:032x}")
        self.send(self.agent(), 1, 10)
        with self.assertRaises(peer.Refused) as refused:
            self.connect(self.collector.address).hello("web1", os.urandom(16))
        self.assertIn("the most that one agent may have", refused.exception.reason)
        self.stream = os.urandom(16)
        self.send(self.agent("other"), 1, 10)
        self.assertEqual(self.health()[0], 200, "the disk is well")


if __name__ == "__main__":
    main()
