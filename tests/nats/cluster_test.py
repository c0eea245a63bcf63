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

from commands import Command, make_timeline, merged, run, stream_folders
from nats_servers import Servers, wait_for

parser = argparse.ArgumentParser(add_help=False)
parser.add_argument("--rounds", type=int, default=4)
parser.add_argument("--agents", type=int, default=6)
parser.add_argument("--seed", type=int, default=1)
OPTIONS, REST = parser.parse_known_args(sys.argv[3:])


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

    def stored(self, agent):
        """The bytes of all collectors' chunks of an agent's one stream, joined, and how many bytes their files have."""
        folders = [folder for name in self.collectors if os.path.isdir(self.path(name))
                   for folder in stream_folders(self.path(name)).get(agent) or []]
        if not folders:
            return b"", 0
        size = sum(os.path.getsize(os.path.join(folder, file)) for folder in folders for file in os.listdir(folder))
        target = self.path("joined.vpt")
        result = run("merge", *folders, "-o", target)
        if result.returncode != 0:
            return b"", size
        with open(target, "rb") as file:
            return file.read(), size

    def wait_until_stored(self, agents, wanted):
        for agent in agents:
            wait_for(f"all of {agent} to be stored", lambda agent=agent: self.stored(agent)[0] == wanted, 120)

    def test_whatever_dies(self):
        """Agents replay while servers, collectors and the network fail, drawn from a seed."""
        draw = random.Random(OPTIONS.seed)
        file = make_timeline(self.path("made.vpt"), 4 * OPTIONS.rounds + 20)
        with open(file, "rb") as opened:
            wanted = opened.read()
        for name in ("a", "b", "c"):
            self.collect(name)
        agents = [f"host-{number}" for number in range(OPTIONS.agents)]
        commands = {agent: self.replay(file, agent, "1") for agent in agents}
        done = {}
        for _ in range(OPTIONS.rounds):
            what = draw.choice(["leader", "follower", "collector", "pause"])
            done[what] = done.get(what, 0) + 1
            leader = self.servers.leader() or self.servers.servers[0]
            others = [server for server in self.servers.servers if server is not leader]
            if what == "collector":
                name = draw.choice(sorted(self.collectors))
                self.collectors[name].end(signal.SIGKILL)
                time.sleep(draw.uniform(0.1, 1))
                self.collect(name)
            elif what == "pause":
                server = draw.choice(self.servers.servers)
                server.pause()
                time.sleep(draw.uniform(0.5, 3))
                server.resume()
            else:
                server = leader if what == "leader" else draw.choice(others)
                server.kill()
                time.sleep(draw.uniform(0.1, 2))
                server.start()
                wait_for(f"{server.name} to be back", server.is_up)
            time.sleep(draw.uniform(0.5, 1.5))
        print(f"seed {OPTIONS.seed}, {OPTIONS.rounds} rounds: {done}", flush=True)
        for agent, command in commands.items():
            code = command.process.wait(180)
            last = command.said[-1]
            # Its last word is true: it says that all was acknowledged, and all is stored below.
            self.assertEqual(code, 0, command.said)
            sent = int(last.split(" chunks ")[0].split()[-1])
            self.assertIn(f"{sent} acknowledged", last, command.said)
        self.wait_until_stored(agents, wanted)
        for agent in agents:
            whole, size = self.stored(agent)
            self.assertEqual(whole, wanted)
            print(f"{agent}: {len(whole)} bytes, {size - len(whole)} of them with a second collector as well")

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
        self.wait_until_stored(["host-1"], wanted)
        print(f"{acknowledged} messages had been acknowledged when power went, {before} of them were on disk "
              f"({left} when the servers were back), all {len(wanted)} bytes are stored")

    def messages(self):
        leader = self.servers.leader()
        stream = self.servers.stream().get(leader.name) if leader else None
        return ((stream or {}).get("state") or {}).get("messages", 0)

    def test_collectors_share(self):
        """One dies, one hangs with chunks under way, one is added: the others go on."""
        file = make_timeline(self.path("made.vpt"), 40)
        with open(file, "rb") as opened:
            wanted = opened.read()
        for name in ("a", "b", "c"):
            self.collect(name)
            self.collectors[name].wait_for_line("taking chunks from")
        agents = [f"host-{number}" for number in range(OPTIONS.agents)]
        commands = [self.replay(file, agent, "8") for agent in agents]
        wait_for("all of them to take part", lambda: all(os.path.isdir(self.path(name)) and
                                                         stream_folders(self.path(name)) for name in "abc"))
        self.collectors["a"].end(signal.SIGKILL)
        self.collectors["b"].process.send_signal(signal.SIGSTOP)
        hung = time.monotonic()
        self.collect("d")
        for command in commands:
            self.assertEqual(command.process.wait(120), 0, command.said)
        wait_for("what hung to be taken by others", lambda: self.servers.not_acknowledged() == 0, 120)
        seconds = time.monotonic() - hung
        self.collectors["b"].process.send_signal(signal.SIGCONT)
        self.wait_until_stored(agents, wanted)
        parts = {name: sum(len(os.listdir(folder)) > 0 for folders in stream_folders(self.path(name)).values()
                           for folder in folders) for name in self.collectors}
        self.assertTrue(parts["c"] and parts["d"], parts)
        for agent in agents:
            self.assertEqual(self.stored(agent)[0], wanted)
        print(f"what hung was with others {seconds:.1f} s after it hung; streams per folder: {parts}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + REST)
