#!/usr/bin/python3
"""`vcpulse record --metrics` and `vcpulse collect --status`, as promtool and a real Prometheus server
see them.

usage: record_metrics_test.py VCPULSE [unittest arguments]
"""

import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from endpoint import Endpoint
from prometheus import PATIENCE_S, Prometheus, promtool

VCPULSE = sys.argv[1]
GUEST = 'guest "a"'  # its name has to be escaped


class RecordMetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vcpulse-metrics-")
        cls.guest = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "kvm", "-m", "16", "-smp", "2", "-nodefaults", "-no-user-config",
             "-display", "none", "-name", f"guest={GUEST},debug-threads=on"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.guest.kill()
        cls.guest.wait()
        cls.folder.cleanup()

    def output(self):
        return os.path.join(self.folder.name, self.id() + ".vpt")

    def record(self, *more):
        endpoint = Endpoint([VCPULSE, "record", "--pid", str(self.guest.pid), "--wait", "30s", "-i", "20ms",
                             "-o", self.output(), "--metrics", "tcp:127.0.0.1:0", *more])
        self.addCleanup(endpoint.end, signal.SIGKILL)
        return endpoint

    def test_prometheus_scrapes_it(self):
        endpoint = self.record()
        prometheus = Prometheus({"agent": endpoint.place})
        self.addCleanup(prometheus.stop)
        series = prometheus.wait_for("vcpulse_vcpu_band_seconds_total > 0")
        for labels, _ in series:
            self.assertEqual((labels["vm"], labels["pid"], labels["job"]), (GUEST, str(self.guest.pid), "agent"))
            self.assertIn(labels["band"], ("halted", "spinning", "productive", "unknown"))
        both = prometheus.wait_for("count(sum by (vm, vcpu) (vcpulse_vcpu_band_seconds_total) > 0) == 2")
        self.assertEqual(both, [({}, 2.0)])
        rates = prometheus.wait_for("count(sum by (vcpu) (rate(vcpulse_vcpu_band_seconds_total[5s])) > 0) == 2")
        self.assertEqual(rates, [({}, 2.0)])
        self.assertEqual(prometheus.wait_for("vcpulse_vms")[0][1], 1)
        prometheus.wait_for('up{job="agent"} == 1')
        self.assertEqual(prometheus.ask("metadata", metric="vcpulse_tick_lateness_seconds")
                         ["vcpulse_tick_lateness_seconds"][0]["type"], "histogram")
        self.assertEqual(endpoint.end(), 0)

    def test_prometheus_scrapes_an_agent_and_its_collector(self):
        listen = "unix:" + os.path.join(self.folder.name, "socket")
        collector = Endpoint([VCPULSE, "collect", "--listen", listen, "--dir", self.output() + ".d",
                              "--status", "tcp:127.0.0.1:0"])
        self.addCleanup(collector.end, signal.SIGKILL)
        agent = self.record("--to", listen, "--spool-dir", self.output() + ".spool", "--agent-id", "host-a")
        prometheus = Prometheus({"agent": agent.place, "collector": collector.place})
        self.addCleanup(prometheus.stop)
        prometheus.wait_for("vcpulse_stream_acknowledged_chunks_total > 0")
        chunks = prometheus.wait_for("vcpulse_collector_agent_chunks_total > 0")
        self.assertEqual([(labels["agent"], labels["job"]) for labels, _ in chunks], [("host-a", "collector")])
        prometheus.wait_for("vcpulse_collector_agent_lag_seconds")
        self.assertEqual(prometheus.wait_for("count(up == 1) == 2"), [({}, 2.0)])
        self.assertNotIn("_vcpu_", collector.text())
        for endpoint in (agent, collector):
            self.assertEqual(promtool(endpoint.text()), (0, ""))
        self.assertEqual((agent.end(signal.SIGTERM), collector.end(signal.SIGTERM)), (0, 0))

    def test_promtool_has_nothing_to_say(self):
        endpoint = self.record()
        text = endpoint.text()
        self.assertIn("# TYPE vcpulse_vcpu_band_seconds_total counter", text)
        self.assertEqual(promtool(text), (0, ""))
        self.assertEqual(endpoint.end(), 0)

    def test_it_answers_on_this_machine_alone(self):
        endpoint = self.record()
        for host, path, status in (("", "/", 200), ("", "/other", 404), ("evil.example", "/metrics", 421)):
            connection = http.client.HTTPConnection(endpoint.place, timeout=PATIENCE_S)
            connection.request("GET", path, headers={"Host": host} if host else {})
            self.assertEqual(connection.getresponse().status, status, (host, path))
            connection.close()
        port = int(endpoint.place.split(":")[-1])
        with open(f"/proc/{endpoint.process.pid}/net/tcp", encoding="ascii") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
        self.assertIn("0100007F:%04X" % port, listening)
        self.assertEqual(endpoint.end(signal.SIGTERM), 0)

    def test_an_address_that_will_not_do_is_told_before_anything_is_written(self):
        endpoint = self.record()
        output = self.output() + ".other"
        for address, words in (("tcp:0.0.0.0:0", "only this machine"), ("9464", "is not an address"),
                               ("tcp:" + endpoint.place, "Address already in use")):
            refused = subprocess.run([VCPULSE, "record", "--pid", str(self.guest.pid), "-o", output,
                                      "--metrics", address], capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), address)
            self.assertIn("--metrics: ", refused.stderr)
            self.assertIn(words, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)
            self.assertFalse(os.path.exists(output))

    def test_a_level_leaves_out_what_is_finer(self):
        endpoint = self.record("--metrics-level", "host")
        text = endpoint.text()
        self.assertIn("vcpulse_host_band_seconds_total{band=", text)
        self.assertNotIn("vm=", text)
        self.assertEqual(promtool(text), (0, ""))
        self.assertEqual(endpoint.end(), 0)

    def test_what_does_not_fit_is_refused_in_a_line(self):
        metrics = ["--metrics", "tcp:127.0.0.1:0"]
        for arguments, words in ((["record", *metrics, "--metrics-level", "VM"], "--metrics-level: 'VM' is not a level"),
                                 (["record", "--metrics-level", "vm"], "--metrics-level needs --metrics"),
                                 (["replay", "x.vpt", *metrics, "--to", "unix:/x"], "--metrics and --to cannot be used"),
                                 (["replay", "x.vpt", "--metrics", "9464"], "--metrics: "),
                                 (["replay", self.output(), *metrics], "No such file")):
            refused = subprocess.run([VCPULSE, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), arguments)
            self.assertIn(words, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)

    def test_a_command_beside_it_does_not_get_the_socket(self):
        done = subprocess.run([VCPULSE, "record", "-o", self.output(), "--metrics", "tcp:127.0.0.1:0", "--",
                               "ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" 0 -> ", done.stdout)
        self.assertNotIn("socket:", done.stdout)


def why_not():
    for program in ("prometheus", "promtool", "qemu-system-x86_64"):
        if shutil.which(program) is None:
            return f"{program} is not there"
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as error:
        return f"/dev/kvm cannot be opened: {error.strerror}"
    return None


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
