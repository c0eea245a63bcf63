"""Agents that keep to the protocol, and a ledger of what the collector has promised each of them."""

import os
import random
import socket
import threading
import time

import peer


class Stream:
    """What one stream has sent. Chunks are kept for the comparison; the agent itself, as a real one,
    sends again only those that were not acknowledged."""

    def __init__(self, agent_id):
        self.agent_id = agent_id
        self.id = os.urandom(16)
        self.chunks = []  # (first record, last record, bytes)
        self.acknowledged = 0
        self.damaged = set()  # first records of chunks that the test itself has damaged on disk

    @property
    def next_record(self):
        return self.chunks[-1][1] + 1 if self.chunks else 1

    def make_chunk(self, rng):
        first = self.next_record
        last = first + rng.randrange(1, 20)
        self.chunks.append((first, last, peer.chunk(self.id, first, last, rng.randbytes(rng.randrange(40, 3000)))))

    def held_from(self, sequence):
        """The chunks behind record `sequence`."""
        return [chunk for chunk in self.chunks if chunk[0] > sequence]

    def compare(self, stored):
        """What is wrong with what the collector has of it: lines; nothing where all is right."""
        wrong = []
        mine = {first: data for first, _, data in self.chunks}
        seen = set()
        expected = 1
        for first, last, data in stored:
            if first != expected:
                wrong.append(f"record {first} follows {expected - 1}")
            expected = last + 1
            if mine.get(first) == data:
                seen.add(first)
            elif not self.is_told_as_lost(first, last):
                wrong.append(f"records {first} to {last} are not what was sent")
        for first, last, _ in self.chunks:
            if last <= self.acknowledged and first not in seen and first not in self.damaged:
                wrong.append(f"records {first} to {last} were acknowledged and are not there")
        return [f"{self.agent_id} {self.id.hex()}: {line}" for line in wrong]

    def is_told_as_lost(self, first, last):
        """Whether all of it is of chunks that the test has damaged."""
        return all(chunk[0] in self.damaged for chunk in self.chunks if chunk[0] <= last and chunk[1] >= first)


class Agent(threading.Thread):
    """Sends streams until it is stopped, connecting anew whatever happens."""

    def __init__(self, agent_id, address, seed, tls=None):
        super().__init__(daemon=True)
        self.agent_id = agent_id
        self.address = address
        self.tls = tls
        self.rng = random.Random(seed)
        self.streams = [Stream(agent_id)]
        self.broken = []  # what the collector did against its promise
        self.waits_s = []  # from sending a batch until it was acknowledged
        self.ends = threading.Event()
        self.drains = threading.Event()  # makes no more chunks; ends once all is acknowledged

    def run(self):
        while not self.ends.is_set():
            try:
                with peer.Peer(self.address, self.tls, timeout_s=15) as connection:
                    self.send_stream(connection, self.streams[-1])
            except (OSError, peer.Closed, peer.Refused):
                self.ends.wait(self.rng.uniform(0.05, 0.3))
            if self.drains.is_set() and self.is_done():
                return

    def is_done(self):
        return self.streams[-1].acknowledged >= self.streams[-1].next_record - 1

    def send_stream(self, connection, stream):
        welcome = connection.hello(self.agent_id, stream.id, stream.acknowledged + 1, stream.next_record)
        at = welcome.durable_sequence
        if at >= stream.next_record:
            self.broken.append(f"{self.agent_id}: welcomed with record {at}, of {stream.next_record - 1}")
        if at < stream.acknowledged:
            at = self.tell_lost(connection, stream, at)
        stream.acknowledged = max(stream.acknowledged, at)
        while not self.ends.is_set():
            if not self.drains.is_set():
                for _ in range(self.rng.randrange(1, 6)):
                    stream.make_chunk(self.rng)
            elif self.is_done():
                return
            if not self.send_batch(connection, stream):
                return
            if self.rng.random() < 0.02 and not self.drains.is_set():
                if self.is_done():
                    self.streams.append(Stream(self.agent_id))
                return
            self.ends.wait(self.rng.uniform(0, 0.2))

    def tell_lost(self, connection, stream, durable):
        """The collector has less than it had acknowledged: right only where its file was damaged."""
        gone = [c for c in stream.chunks if durable < c[1] <= stream.acknowledged]
        for first, last, _ in gone:
            if first not in stream.damaged:
                self.broken.append(f"{self.agent_id}: records {first} to {last} were acknowledged, "
                                   f"welcomed with {durable}")
        lost = peer.timeline_pb2.LostRecords(first_sequence=durable + 1, last_sequence=stream.acknowledged,
                                             reason=peer.timeline_pb2.LostRecords.REASON_NOT_HELD)
        connection.send(peer.frame(peer.GAP, lost.SerializeToString()))
        return stream.acknowledged

    def send_batch(self, connection, stream):
        """False where the agent has cut the connection itself."""
        begin = time.monotonic()
        chunks = stream.held_from(stream.acknowledged)
        for first, _, data in chunks:
            connection.send(peer.frame(peer.CHUNK, data))
            if self.rng.random() < 0.03:
                connection.send(peer.frame(peer.CHUNK, data))  # twice
        if self.rng.random() < 0.05:
            connection.socket.shutdown(socket.SHUT_RDWR)
            return False
        wanted = chunks[-1][1] if chunks else 0
        while stream.acknowledged < wanted:
            at = connection.acknowledged(stream.acknowledged + 1)
            if at > wanted:
                self.broken.append(f"{self.agent_id}: acknowledged record {at}, of {wanted}")
            stream.acknowledged = at
        self.waits_s.append(time.monotonic() - begin)
        return True
