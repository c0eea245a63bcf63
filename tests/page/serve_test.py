#!/usr/bin/python3
"""`vcpulse report --serve` and the page that it serves, in headless Chromium.

usage: serve_test.py VCPULSE MAKE_TIMELINE [unittest arguments]
"""

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from browser import Page, open_browser

VCPULSE, MAKE_TIMELINE = sys.argv[1:3]


class Served:
    def __init__(self, timeline, address="tcp:127.0.0.1:0"):
        self.process = subprocess.Popen([VCPULSE, "report", timeline, "--serve", address],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port = parts.hostname, parts.port

    def get(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.timeline = os.path.join(cls.folder.name, "long.vpt")
        # 64 x 20,000 ticks: more than the page holds at full detail.
        subprocess.run([MAKE_TIMELINE, cls.timeline, "--vcpus", "64", "--ticks", "20000", "--interval-ms", "10"],
                       check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def setUp(self):
        self.served = Served(self.timeline)
        self.addCleanup(self.stop)

    def stop(self):
        if self.served.process.poll() is None:
            self.served.end(signal.SIGKILL)

    def test_finer_bins_come_when_zoomed_in(self):
        browser = open_browser()
        self.addCleanup(browser.quit)
        page = Page(browser, self.served.url)
        self.assertIn("Drawn now in bins of 80 ms; zoom in for finer ones, down to 2.5 ms.", page.text("bins-note"))
        page.script("document.getElementById('map').focus()")
        # A band lasts about 200 ticks, 2 s: where one ends is told to 80 ms, then to a tick.
        for _ in range(7):
            page.keys("+")
        page.wait_for("return document.getElementById('bins-note').textContent.includes('bins of 2.5 ms')",
                      "finer bins")
        page.settle()
        shown = page.map()
        middle = (shown["from"] + shown["to"]) / 2e9
        page.mouse(*page.place("1/0", middle)).perform()
        page.settle()
        words = page.text("status").split(" · ")[0].split(", ")[-1].split(" to ")
        length = [float(one.split(":")[-1]) + 60 * float(one.split(":")[0]) for one in words]
        self.assertLess(length[1] - length[0], 0.003, page.text("status"))
        # The last rows are below the first screen.
        page.script("document.getElementById('scroll').scrollTop = 1e6")
        page.settle()
        page.mouse(*page.place("1/63", middle)).perform()
        page.settle()
        self.assertIn("vCPU 63 of VM 1", page.text("status"))
        self.assertEqual(page.console(), [])

    def test_it_answers_as_it_should(self):
        answer, body = self.served.get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn(b"connect-src 'self'", body)
        self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
        self.assertEqual(answer.getheader("Cache-Control"), "no-store")
        answer, head = self.served.get("/", method="HEAD")
        self.assertEqual((answer.status, head), (200, b""))
        self.assertEqual(int(answer.getheader("Content-Length")), len(body))
        self.assertEqual(self.served.get("/summary")[0].getheader("Content-Type"), "application/json")
        self.assertEqual(self.served.get("/bins?from=0&to=1000000000&bins=10")[0].status, 200)
        self.assertEqual(self.served.get("/bins?from=0")[0].status, 400)
        self.assertEqual(self.served.get("/../etc/passwd")[0].status, 404)
        self.assertEqual(self.served.get("/", method="DELETE")[0].status, 405)
        self.assertEqual(self.served.get("/", Host="evil.example")[0].status, 421)

    def test_rubbish_costs_its_own_connection_only(self):
        for rubbish in (b"\x00\xff" * 100, b"GET / HTTP/1.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
                        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"a" * 10_000):
            with socket.create_connection((self.served.host, self.served.port), timeout=20) as client:
                try:
                    client.sendall(rubbish)
                    while client.recv(65536):
                        pass
                except ConnectionError:
                    pass
        held = [socket.create_connection((self.served.host, self.served.port)) for _ in range(31)]
        self.assertEqual(self.served.get("/summary")[0].status, 200, "31 idle clients leave room")
        # Whether the client before has been seen to go or not: one of these is one too many.
        held += [socket.create_connection((self.served.host, self.served.port)) for _ in range(3)]
        held[0].settimeout(20)
        self.assertEqual(held[0].recv(1), b"", "the one that was idle the longest makes room")
        self.assertEqual(self.served.get("/summary")[0].status, 200)
        for one in held:
            one.close()
        self.assertEqual(self.served.get("/summary")[0].status, 200)

    def test_it_listens_on_this_machine_alone(self):
        with open(f"/proc/{self.served.process.pid}/net/tcp", encoding="ascii") as table:
            listening = [line.split()[1] for line in table if line.split()[3] == "0A"]
        self.assertIn("0100007F:%04X" % self.served.port, listening)
        for address in ("tcp:0.0.0.0:0", "tcp:10.1.2.3:80", "8080", "unix:/tmp/x"):
            refused = subprocess.run([VCPULSE, "report", self.timeline, "--serve", address],
                                     capture_output=True, text=True, check=False)
            self.assertEqual((refused.returncode, refused.stdout), (2, ""), address)
            self.assertEqual(refused.stderr.count("\n"), 1)

    def test_a_port_in_use_is_told(self):
        refused = subprocess.run([VCPULSE, "report", self.timeline, "--serve", f"tcp:localhost:{self.served.port}"],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("Address already in use", refused.stderr)

    def test_interrupts_end_it_well(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            served = Served(self.timeline)
            self.assertEqual(served.end(how), (0, "", ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
