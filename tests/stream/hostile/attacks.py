"""Peers that mean harm, or are merely broken. Each attack is bounded in time; it says in `broken`
what the collector should not have let it do.

Most need no right but to connect. `Attacker.others` names agents that it may not be; without any, the
attacks on those are left out.
"""

import contextlib
import os
import random
import socket
import struct
import threading
import time

import peer

# What a collector that defends itself answers with, whatever was sent.
TURNED_AWAY = (OSError, peer.Closed, peer.Refused)


class Attacker(threading.Thread):
    """Attacks as `own_id` until stopped. `others`: {agent id: function that gives a stream's id}."""

    def __init__(self, address, seed, own_id, others, status=None, tls=None, only=None):
        super().__init__(daemon=True)
        self.address = address
        self.rng = random.Random(seed)
        self.own_id = own_id
        self.others = others
        self.status = status  # (host, port) of --status
        self.tls = tls
        self.only = only  # of names()
        self.broken = []
        self.counts = {}
        self.ends = threading.Event()

    def run(self):
        attacks = [vars(Attacker)[f"attack_{name.replace('-', '_')}"]
                   for name in ([self.only] if self.only else names())]
        if not self.others:
            attacks = [attack for attack in attacks if attack not in Attacker.ON_OTHERS]
        while not self.ends.is_set():
            attack = self.rng.choice(attacks)
            self.counts[attack.__name__] = self.counts.get(attack.__name__, 0) + 1
            with contextlib.suppress(*TURNED_AWAY), contextlib.ExitStack() as stack:
                attack(self, stack)
            self.ends.wait(self.rng.uniform(0, 0.5))

    def connect(self, stack):
        return stack.enter_context(peer.Peer(self.address, self.tls, timeout_s=5))

    def hold(self, longest_s=3):
        self.ends.wait(self.rng.uniform(0, longest_s))

    def victim(self):
        return self.rng.choice(sorted(self.others))

    def attack_as_another(self, stack):
        """Takes the place of another agent in the middle of its stream."""
        agent_id = self.victim()
        stream_id = self.others[agent_id]()
        connection = self.connect(stack)
        welcome = connection.hello(agent_id, stream_id, 1, 1 << 40)
        self.broken.append(f"{self.own_id} was welcomed as {agent_id} at record {welcome.durable_sequence}")

    def attack_with_anothers_stream(self, stack):
        """Its own id, and the stream id of another: that must stay a stream of its own."""
        stream_id = self.others[self.victim()]()
        connection = self.connect(stack)
        at = connection.hello(self.own_id, stream_id, 1, 1 << 40).durable_sequence
        for _ in range(20):
            connection.send(peer.frame(peer.CHUNK, peer.chunk(stream_id, at + 1, at + 5, b"forged")))
            at += 5
        connection.acknowledged(at)

    def attack_by_following(self, stack):
        """Watches another agent, or all."""
        whom = self.rng.choice(["", self.victim()])
        connection = self.connect(stack)
        connection.follow(whom, self.own_id)
        info = peer.stream_pb2.StreamInfo()
        info.ParseFromString(connection.expect(peer.STREAM_INFO))
        if info.agent_id != self.own_id:
            self.broken.append(f"{self.own_id} follows {info.agent_id}")

    def attack_as_deaf_followers(self, stack):
        """Many that follow their own agent, which sends a lot, and read nothing."""
        for _ in range(self.rng.randrange(1, 40)):
            self.connect(stack).send_hello(self.own_id, role=peer.stream_pb2.Hello.ROLE_FOLLOWER,
                                           follow_agent_id=self.own_id)
        connection = self.connect(stack)
        stream_id = os.urandom(16)
        at = connection.hello(self.own_id, stream_id, 1, 1 << 40).durable_sequence
        big = peer.SameContent(self.rng.randbytes(200_000))
        for _ in range(20):
            connection.send(big.chunk_frame(stream_id, at + 1, at + 1))
            at += 1
        connection.acknowledged(at)

    def attack_with_unfinished_frames(self, stack):
        """Welcomed connections that each hold the largest frame but its last byte."""
        half = peer.frame(peer.CHUNK, bytes(1 << 20), crc=0)[:-1]
        for number in range(self.rng.randrange(1, 60)):
            connection = self.connect(stack)
            connection.hello(self.own_id, struct.pack("<QQ", number, self.rng.getrandbits(60)))
            connection.socket.settimeout(0.5)
            connection.send(half)
        self.hold()

    def attack_with_silent_connections(self, stack):
        for _ in range(self.rng.randrange(1, 300)):
            self.connect(stack)
        self.hold()

    def attack_byte_by_byte(self, stack):
        connection = self.connect(stack)
        for byte in peer.frame(peer.HELLO, bytes(200)):
            connection.send(bytes([byte]))
            if self.ends.wait(0.02):
                return

    def attack_with_rubbish(self, stack):
        connection = self.connect(stack)
        choice = self.rng.randrange(5)
        if choice == 0:
            connection.send(self.rng.randbytes(2000))
        elif choice == 1:
            connection.send(peer.frame(peer.HELLO, b"", length=0xFFFFFFFF))
        elif choice == 2:
            connection.send(peer.frame(peer.CHUNK, bytes(100)))
        elif choice == 3:
            connection.send(peer.frame(77, bytes(10), flags=1))
        else:
            connection.hello(self.own_id, os.urandom(16))
            connection.send(peer.frame(peer.CHUNK, self.rng.randbytes(500)))
        connection.expect(0)

    def attack_with_long_names(self, stack):
        connection = self.connect(stack)
        connection.hello(self.own_id, os.urandom(16), host_name="h" * 60_000)

    def attack_with_many_streams(self, stack):
        for _ in range(self.rng.randrange(1, 40)):
            connection = self.connect(stack)
            stream_id = os.urandom(16)
            connection.hello(self.own_id, stream_id)
            connection.send(peer.frame(peer.CHUNK, peer.chunk(stream_id, 1, 1, b"small")))
            connection.acknowledged(1)

    def attack_takes_no_acks(self, stack):
        """Sends chunks and reads no answer."""
        connection = self.connect(stack)
        stream_id = os.urandom(16)
        connection.hello(self.own_id, stream_id, 1, 1 << 40)
        connection.socket.settimeout(2)
        end = time.monotonic() + 2
        at = 0
        while time.monotonic() < end and not self.ends.is_set():
            at += 1
            connection.send(peer.frame(peer.CHUNK, peer.chunk(stream_id, at, at, b"x")))

    def attack_status(self, stack):
        if self.status is None:
            return
        for _ in range(self.rng.randrange(1, 100)):
            connection = stack.enter_context(socket.create_connection(self.status, 5))
            if self.rng.random() < 0.3:
                connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        self.hold(1)

    ON_OTHERS = (attack_as_another, attack_with_anothers_stream, attack_by_following)


def names():
    """Of all attacks, without the "attack_"."""
    return [name.removeprefix("attack_").replace("_", "-")
            for name in sorted(vars(Attacker)) if name.startswith("attack_")]
