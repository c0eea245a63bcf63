#!/usr/bin/python3
"""Who may be which agent, and what an allowed peer can do to others' streams.

usage: identity_test.py VCPULSE [unittest arguments]
"""

import os
import sys
import tempfile
import unittest

import peer

VCPULSE = sys.argv[1]


class StreamsOfAgentsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_stores_and_acknowledges_what_an_independent_agent_sends(self):
        stream = os.urandom(16)
        chunks = [peer.chunk(stream, first, first + 9, b"not a record" * first) for first in (1, 11, 21)]
        with peer.Collector(VCPULSE, "tcp:127.0.0.1:0", self.folder.name) as collector:
            with peer.Peer(collector.address) as agent:
                self.assertEqual(agent.hello("web1", stream, next_sequence=31).durable_sequence, 0)
                for data in chunks:
                    agent.send(peer.frame(peer.CHUNK, data))
                self.assertEqual(agent.acknowledged(30), 30)
            self.assertEqual(collector.stored("web1", stream), b"".join(chunks))
            self.assertEqual(collector.end(), 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
