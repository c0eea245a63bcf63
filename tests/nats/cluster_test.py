#!/usr/bin/python3
"""Three nats-servers, replicas 3: what was acknowledged is stored once, whatever dies.

usage: cluster_test.py VCPULSE MAKE_TIMELINE [--rounds N] [--agents N] [--seed N] [unittest arguments]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from commands import Command, chunks_of, make_timeline, run, stream_folders
from nats_servers import Servers, wait_for

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--rounds", type=int, default=4)
parser.add_argument("--agents", type=int, default=6)
parser.add_argument("--seed", type=int, default=1)
OPTIONS, REST = parser.parse_known_args(sys.argv[3:])

DEATHS = ("leader", "follower", "collector", "pause")
SOME_CHUNKS = 10
ACK_WAIT_S = 15  # of the consumer: then what a collector holds goes to another one


class ClusterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vcpulse-nats-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.servers = Servers(self.folder, 3)
        self.addCleanup(self.servers.stop)
        self.servers.start()
        self.to = [word for url in self.servers.urls for word in ("--to", url)]
        self.from_ = [word for url in self.servers.urls for word in ("--from", url)]
        wait_for("the stream to be made", lambda: run("collect", *self.from_, "--make-stream", "--replicas", "3")
                 .returncode == 0)
        self.collectors = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def collect(self, name):
        self.collectors[name] = Command("collect", *self.from_, "--dir", self.path(name))
        self.addCleanup(self.collectors[name].end)

    def replay(self, file, agent, speed="max"):
        command = Command("replay", file, *self.to, "--speed", speed, "--agent-id", agent)
        self.addCleanup(command.end)
        return command

    def folders(self, name, agent):
        return stream_folders(self.path(name)).get(agent) or [] if os.path.isdir(self.path(name)) else []

    def held(self, name, agents):
        """{(agent, first record, last record)} of what lies in a collector's folder."""
        return {(agent, *chunk) for agent in agents for folder in self.folders(name, agent)
                for chunk in chunks_of(folder)}

    def stored(self, agent):
        """The bytes of all collectors' chunks of an agent's one stream, joined."""
        folders = [folder for name in self.collectors for folder in self.folders(name, agent)]
        target = self.path("joined.vpt")
        if not folders or run("merge", *folders, "-o", target).returncode != 0:
            return b""
        with open(target, "rb") as file:
            return file.read()

    def check_once(self, agents, file):
        """Joined the folders are the file that was sent, byte for byte; each of them has a chunk once at most. Gives the
        number of chunks that lie in a second folder as well."""
        with open(file, "rb") as opened:
            wanted = opened.read()
        sent = chunks_of(file)
        self.assertEqual(len(sent), len(set(sent)))
        more = 0
        for agent in agents:
            wait_for(f"all of {agent} to be stored", lambda agent=agent: self.stored(agent) == wanted, 120)
        for agent in agents:
            everywhere = []
            for name in self.collectors:
                folders = self.folders(name, agent)
                self.assertLessEqual(len(folders), 1)
                here = [chunk for folder in folders for chunk in chunks_of(folder)]
                self.assertEqual(sorted(here), sorted(set(here)), f"{name} has chunks of {agent} twice")
                everywhere += here
            self.assertEqual(sorted(set(everywhere)), sorted(sent))
            self.assertEqual(self.stored(agent), wanted)
            more += len(everywhere) - len(sent)
        return more

    def test_whatever_dies(self):
        """Agents replay while servers, collectors and the network fail, drawn from a seed."""
        draw = random.Random(OPTIONS.seed)
        file = make_timeline(self.path("made.vpt"), 5 * OPTIONS.rounds + 20)
        for name in ("a", "b", "c"):
            self.collect(name)
        agents = [f"host-{number}" for number in range(OPTIONS.agents)]
        commands = {agent: self.replay(file, agent, "1") for agent in agents}
        # Each kind at least once, then as it comes.
        plan = draw.sample(DEATHS, len(DEATHS)) + draw.choices(DEATHS, k=max(OPTIONS.rounds - len(DEATHS), 0))
        done = dict.fromkeys(DEATHS, 0)
        for what in plan:
            if what == "collector":
                name = draw.choice(sorted(self.collectors))
                self.assertEqual(self.collectors[name].end(signal.SIGKILL), -signal.SIGKILL)
                time.sleep(draw.uniform(0.1, 1))
                self.collect(name)
            elif what == "pause":
                server = draw.choice(self.servers.servers)
                server.pause()
                time.sleep(draw.uniform(0.5, 3))
                server.resume()
            else:
                leader = wait_for("a leader of the stream", self.servers.leader)
                others = [server for server in self.servers.servers if server is not leader]
                server = leader if what == "leader" else draw.choice(others)
                server.kill()
                time.sleep(draw.uniform(0.1, 2))
                server.start()
                wait_for(f"{server.name} to be back", server.is_up)
            done[what] += 1
            # Nothing of this is worth anything once all was sent.
            self.assertTrue(all(command.process.poll() is None for command in commands.values()), done)
            time.sleep(draw.uniform(0.5, 1.5))
        print(f"seed {OPTIONS.seed}, {len(plan)} rounds: {done}", flush=True)
        self.assertTrue(all(done.values()), done)
        for agent, command in commands.items():
            code = command.process.wait(180)
            last = command.said[-1]
            # Its last word is true: it says that all was acknowledged, and all is stored below.
            self.assertEqual(code, 0, command.said)
            sent = int(last.split(" chunks ")[0].split()[-1])
            self.assertIn(f"{sent} acknowledged", last, command.said)
        more = self.check_once(agents, file)
        print(f"{len(agents)} agents' chunks are all stored byte for byte, {more} of them with a second collector as well")

    @unittest.skipUnless(os.access("/dev/kvm", os.R_OK | os.W_OK), "needs /dev/kvm: a guest is recorded")
    def test_power_goes_at_all_servers_at_once(self):
        """They lose what they had acknowledged; the spool of `record` makes it whole within its margin."""
        guest = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "kvm", "-m", "16", "-smp", "2", "-nodefaults", "-no-user-config",
             "-display", "none", "-name", "guest=a,debug-threads=on"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(guest.wait)
        self.addCleanup(guest.kill)
        record = Command("record", "--pid", str(guest.pid), "--wait", "10s", "-i", "50ms", *self.to, "--agent-id",
                         "host-1", "-o", self.path("own.vpt"), "--spool-dir", self.path("spool"), "--drain", "30s")
        self.addCleanup(record.end)
        record.wait_for_line("streaming to")
        time.sleep(3)
        copies = self.path("copies")
        self.servers.copy_stores(copies)
        before = self.messages()
        time.sleep(4)
        acknowledged = self.messages()
        self.assertGreater(acknowledged, before)
        self.servers.stop()
        self.servers.put_back_stores(copies)
        self.servers.start()
        left = wait_for("messages", self.messages)
        time.sleep(3)
        self.assertEqual(record.end(signal.SIGINT), 0, record.said)
        self.assertNotIn("not acknowledged", record.said[-1])
        self.collect("a")
        with open(self.path("own.vpt"), "rb") as opened:
            wanted = opened.read()
        self.check_once(["host-1"], self.path("own.vpt"))
        print(f"{acknowledged} messages had been acknowledged when power went, {before} of them were on disk "
              f"({left} when the servers were back), all {len(wanted)} bytes are stored")

    def messages(self):
        leader = self.servers.leader()
        stream = self.servers.stream().get(leader.name) if leader else None
        return ((stream or {}).get("state") or {}).get("messages", 0)

    def test_tail_goes_on_at_another_server(self):
        tail = Command("tail", self.servers.urls[0], "--format", "jsonl")
        self.addCleanup(tail.end)
        tail.wait_for_line("waiting for data")
        file = make_timeline(self.path("made.vpt"), 20)
        self.assertEqual(self.replay(file, "host-1").process.wait(60), 0)
        wait_for("ticks", lambda: any('"host-1"' in line for line in tail.printed))
        # Each of them in turn: the tail's own consumer is on one of them.
        for number, server in enumerate(self.servers.servers):
            server.kill()
            agent = f"late-{number}"
            self.assertEqual(self.replay(file, agent).process.wait(60), 0)
            wait_for("ticks", lambda agent=agent: sum(f'"{agent}"' in line for line in tail.printed) >= 200)
            server.start()
            wait_for(f"{server.name} to be back", server.is_up)
            time.sleep(2)

    def test_collectors_share(self):
        """One dies, one hangs with chunks under way, one is added: the others go on."""
        file = make_timeline(self.path("made.vpt"), 1800)
        for name in ("a", "b", "c"):
            self.collect(name)
            self.collectors[name].wait_for_line("taking chunks from")
        agents = [f"host-{number}" for number in range(OPTIONS.agents)]
        commands = [self.replay(file, agent, "60") for agent in agents]
        wait_for("all of them to take part", lambda: all(self.held(name, agents) for name in "abc"))
        self.assertEqual(self.collectors["a"].end(signal.SIGKILL), -signal.SIGKILL)
        hung = self.hang("b", "c")
        handed_out = wait_for("the consumer", self.servers.consumer)["delivered"]["stream_seq"]
        before = {name: len(self.held(name, agents)) for name in "abc"}
        self.collect("d")
        time.sleep(3)
        self.assertTrue(any(command.process.poll() is None for command in commands), "all was sent too soon")
        meanwhile = {name: len(self.held(name, agents)) - before.get(name, 0) for name in "abcd"}
        self.assertEqual((meanwhile["a"], meanwhile["b"]), (0, 0))
        self.assertTrue(meanwhile["c"] and meanwhile["d"], meanwhile)

        def acknowledged_to():
            consumer = self.servers.consumer()
            return consumer["ack_floor"]["stream_seq"] if consumer else 0
        self.assertLess(acknowledged_to(), handed_out)
        wait_for("what hung to be taken by others", lambda: acknowledged_to() >= handed_out, 120)
        seconds = time.monotonic() - hung
        self.assertGreater(seconds, ACK_WAIT_S - 5)  # sooner it was not what hung
        self.assertLess(seconds, 2 * ACK_WAIT_S)
        for command in commands:
            self.assertEqual(command.process.wait(120), 0, command.said)
        wait_for("all to be acknowledged", lambda: self.servers.not_acknowledged() == 0, 120)
        # All of it is with others. "b" stores what it held too (if it had not begun to), as it cannot know.
        self.collectors["b"].resume()

        def twice():
            return self.held("b", agents) & (self.held("c", agents) | self.held("d", agents))
        wait_for("what hung to be stored by it too", lambda: len(twice()) >= SOME_CHUNKS)
        time.sleep(1)  # all of it
        more = self.check_once(agents, file)
        print(f"{len(twice())} chunks that a hung collector held were with others {seconds:.1f} s after it hung; in 3 s of "
              f"those {meanwhile['c']} and {meanwhile['d']} chunks went to two others; {more} chunks are in two folders")

    def hang(self, name, other):
        """Stops a collector in the middle of a round: with chunks that were handed to it, and that it has not acknowledged.
        `other`: all that collects beside it. Gives the instant."""
        this, other = self.collectors[name], self.collectors[other]

        def under_way():
            return wait_for("the consumer", self.servers.consumer)["num_ack_pending"]
        for attempt in range(100):
            other.pause()
            this.pause()
            time.sleep(0.5)  # so that many wait, and go to `this` at once
            before = under_way()
            this.resume()
            time.sleep(0.002 * (1 + attempt % 10))
            this.pause()
            hung = time.monotonic()
            time.sleep(0.3)  # no acknowledgement is under way any more
            held = under_way() - before
            other.resume()
            if held >= SOME_CHUNKS:
                return hung
            this.resume()
            time.sleep(0.2)
        self.fail("nothing was under way to a collector when it was stopped")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + REST)
