#!/usr/bin/python3
"""Who may be which agent, and what a peer that is let in can do to others' streams.

usage: identity_test.py VCPULSE FAULTS [unittest arguments]
"""

import os
import unittest

import peer
from collector_test import CollectorTest, main

MALLORY = 65534  # a user; the agent id that it may use is its name


class PeersOfOneTrustDomainTest(CollectorTest):
    def test_stores_and_acknowledges_what_an_independent_agent_sends(self):
        collector = self.start("tcp:127.0.0.1:0")
        agent = self.connect(collector.address)
        self.assertEqual(agent.hello("web1", self.stream, next_sequence=31).durable_sequence, 0)
        sent = [self.send(agent, first, first + 9, b"x" * (9 + first)) for first in (1, 11, 21)]
        self.assertEqual(collector.stored("web1", self.stream), b"".join(sent))
        self.assertEqual(collector.end(), 0)

    def test_says_that_tcp_carries_no_identity(self):
        self.assertIn("any agent id", self.start("tcp:127.0.0.1:0").said("has no authentication"))

    def test_another_agent_with_the_same_stream_id_has_a_stream_of_its_own(self):
        collector = self.start("tcp:127.0.0.1:0")
        web1 = self.connect(collector.address)
        web1.hello("web1", self.stream)
        first = self.send(web1, 1, 10)
        web2 = self.connect(collector.address)
        self.assertEqual(web2.hello("web2", self.stream).durable_sequence, 0)
        forged = self.send(web2, 1, 6, b"forged")
        second = self.send(web1, 11, 20)
        self.assertEqual(collector.stored("web1", self.stream), first + second)
        self.assertEqual(collector.stored("web2", self.stream), forged)


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class UsersTest(CollectorTest):
    def setUp(self):
        super().setUp()
        self.collector = self.start(f"unix:{self.folder}/socket", "--allow-uid", f"{MALLORY}=mallory,mallory2")
        self.agent = self.connect(self.collector.address)
        self.agent.hello("web1", self.stream)
        self.first = self.send(self.agent, 1, 10)

    def as_mallory(self, attack):
        """What the attack comes to: "refused CODE", or what it returns."""
        def run():
            try:
                with peer.Peer(self.collector.address) as connection:
                    return attack(connection)
            except peer.Refused as refusal:
                return "refused " + peer.CODES.Name(refusal.code)

        return peer.as_user(MALLORY, run)

    def test_a_user_cannot_take_over_anothers_stream(self):
        def take_over(connection):
            connection.hello("web1", self.stream)
            connection.send(peer.frame(peer.CHUNK, self.chunk_of(11, 20, b"forged")))
            return connection.acknowledged(20)

        self.assertEqual(self.as_mallory(take_over), "refused CODE_NOT_PERMITTED")
        second = self.send(self.agent, 11, 20)
        self.assertEqual(self.collector.stored("web1", self.stream), self.first + second)

    def test_a_user_may_send_under_each_of_its_agent_ids(self):
        for agent_id in ("mallory", "mallory2"):
            self.assertEqual(self.as_mallory(
                lambda connection, name=agent_id: connection.hello(name, self.stream).durable_sequence), 0)

    def test_a_user_follows_its_own_agents_alone(self):
        self.assertEqual(self.as_mallory(lambda connection: connection.follow("web1", "mallory")),
                         "refused CODE_NOT_PERMITTED")
        self.assertEqual(self.as_mallory(lambda connection: connection.follow("", "web1")),
                         "refused CODE_NOT_PERMITTED")

        def follow_all(connection):
            connection.follow("", "mallory")
            with peer.Peer(self.collector.address) as own:
                own.hello("mallory", os.urandom(16))
                own.send(peer.frame(peer.PING))
                stream = os.urandom(16)
            with peer.Peer(self.collector.address) as own:
                own.hello("mallory", stream)
                own.send(peer.frame(peer.CHUNK, peer.chunk(stream, 1, 1, b"own")))
                own.acknowledged(1)
            return peer.stream_pb2.StreamInfo.FromString(connection.expect(peer.STREAM_INFO)).agent_id

        self.send(self.agent, 11, 20)
        self.assertEqual(self.as_mallory(follow_all), "mallory")

    def test_root_follows_everything(self):
        follower = self.connect(self.collector.address)
        follower.follow()
        data = self.send(self.agent, 11, 20)
        self.assertEqual(follower.expect(peer.CHUNK), data)


if __name__ == "__main__":
    main()
