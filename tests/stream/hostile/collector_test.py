"""What the tests of a collector's peers share: a collector that runs below a folder of the test's own."""

import os
import sys
import tempfile
import time
import unittest

import peer

VCPULSE, FAULTS = sys.argv[1:3]


def main():
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], verbosity=2, warnings="ignore")


class CollectorTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.folder = folder.name
        self.stream = os.urandom(16)

    def start(self, listen="tcp:127.0.0.1:0", *more):
        """With the faults that set_faults says."""
        environment = dict(os.environ, LD_PRELOAD=FAULTS, VCPULSE_FAULTS=self.folder + "/faults")
        collector = peer.Collector(VCPULSE, listen, self.folder + "/collected", *more, env=environment)
        self.addCleanup(collector.end, peer.signal.SIGKILL)
        return collector

    def set_faults(self, text):
        """As faults.cc reads them."""
        with open(self.folder + "/faults.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.folder + "/faults.new", self.folder + "/faults")
        time.sleep(0.05)  # the library looks every 10 ms

    def eventually(self, condition, patience_s=peer.PATIENCE_S):
        end = time.monotonic() + patience_s
        while not condition():
            self.assertLess(time.monotonic(), end, "it did not come about")
            time.sleep(0.05)

    def connect(self, address):
        connection = peer.Peer(address)
        self.addCleanup(connection.close)
        return connection

    def chunk_of(self, first, last, content=b"these are not records"):
        return peer.chunk(self.stream, first, last, content)

    def send(self, agent, first, last, content=b"these are not records"):
        """A chunk that is then acknowledged; its bytes."""
        data = self.chunk_of(first, last, content)
        agent.send(peer.frame(peer.CHUNK, data))
        self.assertEqual(agent.acknowledged(last), last)
        return data
