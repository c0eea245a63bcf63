#!/usr/bin/python3
"""Every query of the dashboards and rules, asked of a real Prometheus that scrapes agents at each level and a collector.

usage: dashboards_test.py VCPULSE ROOT [unittest arguments]

`live` is a real agent: it records a KVM guest and streams to a real collector. Its host has no PMU where this test runs
in most cases, so agents that replay a recording with counters stand beside it, one at each --metrics-level.
"""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from endpoint import Endpoint
from prometheus import Prometheus

VCPULSE, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RULES = os.path.join(ROOT, "tools/prometheus")
DASHBOARDS = {}
for path in glob.glob(os.path.join(ROOT, "tools/grafana/*.json")):
    with open(path, encoding="utf-8") as file:
        DASHBOARDS[os.path.basename(path)] = json.load(file)

# What cannot be there on an agent, as the part of a query that shows it.
NO_STREAM = r"vcpulse_stream_"  # it streams to nobody
NO_READINGS = r"_(exits|hypercalls|migrations|preemptions|halt_poll_seconds)_total"  # an imported recording has none
NO_COUNTERS = r"_guest_"  # no PMU
NO_VMS = r"vcpulse_vm_(?!.* or on \(\))"  # of the level host; with `or on ()` the host's sums take their place
MAY_BE_EMPTY = {
    "live": NO_COUNTERS,
    "vcpu": f"{NO_STREAM}|{NO_READINGS}",
    "vm": f"{NO_STREAM}|{NO_READINGS}",
    "host": f"{NO_STREAM}|{NO_READINGS}|{NO_VMS}",
}

# Alerts that have no sample here, though their series are there: why not.
QUIET_ALERTS = {
    "VcpulseStarvedFast": "nobody is starved so much",
    "VcpulseStarvedSlowly": "nobody is starved so much",
    "VcpulseAgentDisconnected": "the collector takes the stream",
    "VcpulseSpoolFilling": "the collector takes the stream",
    "VcpulseRecordsLost": "nothing is lost",
    "VcpulseGaps": "a tick that is late on a busy machine is less than 1 %",
    "VcpulseVcpusNotOpened": "every vCPU is opened",
    "VcpulseWithoutCounters": "the live agent may have a PMU",
    "VcpulseCollectorDown": "it answers",
    "VcpulseCollectorNotStoring": "its disk works",
    "VcpulseCollectorLagging": "it is prompt",
    "VcpulseAgentSilent": "it sends",
}
PATIENCE_S = 40
TICKS = 3000  # of 100 ms: more than this takes


def counters_csv():
    """VM `web`, of four vCPUs: the first works, the second spins, the third works and waits, the last idles."""
    lines = ["vm,vcpu,t_ns,dt_ns,time_enabled_ns,time_running_ns,run_ns,run_delay_ns,state,cycles,instructions,branches,"
             "branch_misses"]
    for tick in range(1, TICKS + 1):
        for vcpu, (run_ms, delay_ms, ipc) in enumerate([(99, 0, 1.5), (99, 0, 0.3), (60, 35, 1.5), (0, 0, 0)]):
            cycles = run_ms * 2_500_000
            instructions = int(cycles * ipc)
            run = f"{run_ms}000000"
            lines.append(f"web,{vcpu},{tick}00000000,100000000,{run},{run},{run},{delay_ms}000000,S,{cycles},{instructions},"
                         f"{instructions // 5},{instructions // 500}")
    return "\n".join(lines) + "\n"


def quick_rules(folder):
    """The rules, evaluated as often as Prometheus is configured to, without the hours of data that alerts need."""
    for name in os.listdir(RULES):
        with open(os.path.join(RULES, name), encoding="utf-8") as file:
            text = re.sub(r"^ +interval: .*\n|^ +and\n +count_over_time\(.*\n", "", file.read(), flags=re.M)
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield path


def queries(dashboard):
    """(panel, query) of each panel, and of each variable."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def filled(text, instance, vm):
    for variable, value in {"$__rate_interval": "10s", "$host": instance, "$vm": vm}.items():
        text = text.replace(variable, value)
    return text


class DashboardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vcpulse-dashboards-")
        cls.addClassCleanup(cls.folder.cleanup)
        here = cls.folder.name
        cls.guest = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "kvm", "-m", "16", "-smp", "2", "-nodefaults", "-no-user-config",
             "-display", "none", "-name", "guest=live,debug-threads=on", "-qmp", f"unix:{here}/qmp,server=on,wait=off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(cls.end_guest)
        listen = f"unix:{here}/socket"
        cls.collector = cls.start("collect", "--listen", listen, "--dir", f"{here}/collected", "--status",
                                  "tcp:127.0.0.1:0")
        cls.agents = {"live": cls.start(
            "record", "--qmp", f"unix:{here}/qmp", "--wait", "30s", "-i", "50ms", "-o", f"{here}/live.vpt", "--to", listen,
            "--spool-dir", f"{here}/spool", "--agent-id", "live", "--label", "rack=12", "--metrics", "tcp:127.0.0.1:0")}
        with open(f"{here}/web.csv", "w", encoding="utf-8") as file:
            file.write(counters_csv())
        subprocess.run([VCPULSE, "import", "csv", "web.csv", "-o", "web.vpt", "--classifier", "ipc-bands"], cwd=here, check=True, capture_output=True)
        for level in ("vcpu", "vm", "host"):
            cls.agents[level] = cls.replay(level)
        gone = cls.replay("host")
        cls.prometheus = Prometheus(
            {"agents": {name: agent.place for name, agent in cls.agents.items()} | {"gone": gone.place},
             "collectors": {"collector": cls.collector.place}}, quick_rules(here))
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus.wait_for('vcpulse_build_info{instance="gone"}')
        gone.end(signal.SIGKILL)

    @classmethod
    def start(cls, *arguments):
        endpoint = Endpoint([VCPULSE, *arguments], stdout=subprocess.DEVNULL)
        cls.addClassCleanup(endpoint.end, signal.SIGKILL)
        return endpoint

    @classmethod
    def replay(cls, level):
        return cls.start("replay", f"{cls.folder.name}/web.vpt", "--metrics", "tcp:127.0.0.1:0", "--metrics-level",
                         level)

    @classmethod
    def end_guest(cls):
        cls.guest.kill()
        cls.guest.wait()

    def answers(self, query):
        """How many series it has; those that are no number do not count."""
        return sum(1 for each in self.prometheus.ask("query", query=query)["result"] if each["value"][1] != "NaN")

    def wait_for_all(self, wanted):
        """{name: query}: until all have an answer. The names of those that have none."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            wanted = {name: query for name, query in wanted.items() if self.answers(query) == 0}
            if not wanted or time.monotonic() > give_up:
                return sorted(wanted)
            time.sleep(0.2)

    def queries_of(self, name, instance):
        vm = "live" if instance == "live" else "web"
        return {title + ": " + expr: filled(expr, instance, vm) for title, expr in queries(DASHBOARDS[name])}

    def test_there_are_three(self):
        self.assertEqual(set(DASHBOARDS), {"vcpulse-fleet.json", "vcpulse-host.json", "vcpulse-vm.json"})

    def test_every_query_of_the_fleet_has_an_answer(self):
        self.assertEqual(self.wait_for_all(self.queries_of("vcpulse-fleet.json", ".*")), [])

    def test_every_query_of_a_host_has_an_answer_at_each_level(self):
        self.expect_answers("vcpulse-host.json", ("live", "vcpu", "vm", "host"))

    def test_every_query_of_a_vm_has_an_answer_where_vms_are_served(self):
        self.expect_answers("vcpulse-vm.json", ("live", "vcpu", "vm"))

    def expect_answers(self, name, instances):
        everywhere = set(self.queries_of(name, ""))
        answered = set()
        for instance in instances:
            with self.subTest(instance):
                here = {title: query for title, query in self.queries_of(name, instance).items()
                        if not re.search(MAY_BE_EMPTY[instance], query)}
                self.assertGreater(len(here), 10)
                self.assertEqual(self.wait_for_all(here), [])
                answered |= set(here)
        self.assertEqual(everywhere - answered, set(), "these have an answer nowhere")

    def test_variables_list_what_is_there(self):
        for name, variable, values in (("fleet", "host", {*self.agents, "gone"}), ("host", "host", {*self.agents, "gone"}),
                                       ("vm", "host", {*self.agents, "gone"}), ("vm", "vm", {"web"})):
            with self.subTest(name, variable=variable):
                found = [each for each in DASHBOARDS[f"vcpulse-{name}.json"]["templating"]["list"] if each["name"] == variable]
                selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", found[0]["query"]["query"]).groups()
                series = self.prometheus.ask("series", **{"match[]": filled(selector, "vcpu", "")})
                self.assertEqual({each[label] for each in series}, values)

    def test_every_rule_is_evaluated_and_has_an_answer(self):
        rules = [rule for group in self.prometheus.ask("rules")["groups"] for rule in group["rules"]]
        recorded = {rule["name"]: rule["name"] for rule in rules if rule["type"] == "recording"}
        alerts = {rule["name"]: rule["query"] for rule in rules if rule["type"] == "alerting"}
        self.assertEqual((len(recorded), len(alerts)), (13, 15))
        loud = {name: query for name, query in alerts.items() if name not in QUIET_ALERTS}
        self.assertEqual(self.wait_for_all(recorded | loud), [])
        self.assertEqual(set(QUIET_ALERTS) - set(alerts), set())
        # A quiet one asks for series that are there, and holds them against a limit.
        for name in QUIET_ALERTS:
            for metric in re.findall(r"\bvcpulse[:_][a-z0-9_:]+", alerts[name]):
                self.assertGreater(self.answers(f"{{__name__=\"{metric}\"}}"), 0, (name, metric))
        for group in self.prometheus.ask("rules")["groups"]:
            for rule in group["rules"]:
                self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""), rule["name"])

    def test_a_scrape_has_as_many_series_as_the_docs_say(self):
        """1 VM of 4 vCPUs, with counters, without statistics (8 less of each), a stream (11 less) or a reader (1 less)."""
        host = 60 - 8 - 11 - 1
        vm = host + (23 - 8)
        for level, series in (("host", host), ("vm", vm), ("vcpu", vm + 4 * (19 - 8))):
            scraped = self.prometheus.wait_for(f'scrape_samples_scraped{{instance="{level}"}}')
            self.assertEqual([value for _, value in scraped], [series], level)

    def test_labels_select_hosts(self):
        by_rack = ('sum by (label_rack) (rate(vcpulse_host_band_seconds_total[10s])'
                   ' * on (job, instance) group_left (label_rack) vcpulse_agent_labels{agent="live"})')
        self.assertEqual([labels for labels, _ in self.prometheus.wait_for(by_rack)], [{"label_rack": "12"}])

    def test_levels_say_the_same(self):
        """In one scrape, the sum over a finer level is that of the coarser one."""
        for name in ("band_seconds", "starved_seconds", "run_delay_seconds", "guest_cycles"):
            with self.subTest(name):
                text = self.agents["vcpu"].text()
                sums = {level: sum(float(line.split()[-1]) for line in text.splitlines()
                                   if line.startswith(f"vcpulse_{level}_{name}_total")) for level in ("host", "vm", "vcpu")}
                self.assertGreater(sums["host"], 0)
                self.assertAlmostEqual(sums["host"], sums["vm"], delta=1e-6 * sums["host"])
                self.assertAlmostEqual(sums["host"], sums["vcpu"], delta=1e-6 * sums["host"])


def why_not():
    for program in ("prometheus", "qemu-system-x86_64"):
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
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
