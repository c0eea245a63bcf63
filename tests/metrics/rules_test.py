#!/usr/bin/python3
"""tools/prometheus: promtool accepts the rules, each alert fires above its limit and not just below it, and says where
docs/prometheus.md has more.

usage: rules_test.py ROOT [unittest arguments]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv[1])
RULES = [os.path.join(ROOT, "tools/prometheus", name) for name in ("vcpulse-recording.yml", "vcpulse-alerts.yml")]
AGENT = 'instance="host1",job="vcpulse"'
COLLECTOR = 'instance="collector1",job="collector"'
VM = AGENT + ',vm="web",pid="7"'
HOUR = 60  # minutes


def grows(per_minute, minutes):
    return f"0+{per_minute}x{minutes}"


def stays(value, minutes=40):
    return f"{value}x{minutes}"


def judged(share, band, level="vm", labels=VM, minutes=7 * HOUR):
    """Of one vCPU: this share of its time in the band, else halted."""
    return {f'vcpulse_{level}_band_seconds_total{{{labels},band="halted"}}': grows(60 * (1 - share), minutes),
            f'vcpulse_{level}_band_seconds_total{{{labels},band="{band}"}}': grows(60 * share, minutes)}


def starved(share, level="vm", labels=VM, minutes=7 * HOUR):
    return judged(0.5, "productive", level, labels, minutes) | {
        f"vcpulse_{level}_starved_seconds_total{{{labels}}}": grows(60 * share, minutes)}


def gaps(missed, of_vms=0, vms=1, ticks=1000):
    """Per minute: so many ticks of which some are missed; gaps of single VMs."""
    return {f'vcpulse_gap_ticks_total{{{AGENT},reason="tick-missed"}}': grows(missed, 40),
            f'vcpulse_gap_ticks_total{{{AGENT},reason="read-failed"}}': grows(of_vms, 40),
            f'vcpulse_gap_ticks_total{{{AGENT},reason="queue-full"}}': grows(0, 40),
            f"vcpulse_vms{{{AGENT}}}": stays(vms),
            f"vcpulse_ticks_total{{{AGENT}}}": grows(ticks - missed, 40)}


def lag(seconds, last_chunk=grows(60, 40)):
    return {f'vcpulse_collector_agent_lag_seconds{{{COLLECTOR},agent="a"}}': stays(seconds),
            f'vcpulse_collector_agent_last_chunk_timestamp_seconds{{{COLLECTOR},agent="a"}}': last_chunk}


def silent(connections, errors="0x80", vms=None):
    """Agent `a`, whose latest chunk came at minute 10."""
    series = {f'vcpulse_collector_agent_last_chunk_timestamp_seconds{{{COLLECTOR},agent="a"}}': stays(600, 80),
              f'vcpulse_collector_agent_connections{{{COLLECTOR},agent="a"}}': stays(connections, 80),
              f'vcpulse_collector_agent_errors_total{{{COLLECTOR},agent="a"}}': errors}
    if vms is not None:
        series |= {f'vcpulse_agent_labels{{{AGENT},agent="a"}}': stays(1, 80), f"vcpulse_vms{{{AGENT}}}": stays(vms, 80)}
    return series


def idle_then_spins(minutes):
    """An agent of the level `host` that has no VM for so long, then one whose vCPU spins."""
    return {f'vcpulse_host_band_seconds_total{{{AGENT},band="halted"}}': f"0x{minutes + 60}",
            f'vcpulse_host_band_seconds_total{{{AGENT},band="spinning"}}': f"0x{minutes} 60+60x60"}


def spool(on_disk, in_memory):
    return {f"vcpulse_stream_spool_bytes{{{AGENT}}}": stays(on_disk),
            f"vcpulse_stream_spool_memory_bytes{{{AGENT}}}": stays(in_memory),
            f"vcpulse_stream_spool_limit_bytes{{{AGENT}}}": stays(1000)}


def one(name, labels, value):
    return {f"{name}{{{labels}}}": stays(value)}


def ended(name, labels, minutes_before):
    """A target that answered, then does not: its own series end."""
    return {f"up{{{labels}}}": f"1x{minutes_before - 1} 0x40", f"{name}{{{labels}}}": f"1x{minutes_before - 1} _x40"}


SPIN_LESS = {f'vcpulse_vm_band_seconds_total{{{VM},band="halted"}}': "0+30x60 1800+54x40",
                 f'vcpulse_vm_band_seconds_total{{{VM},band="spinning"}}': "0+30x60 1800+6x40"}

# Alert, series, minute, the labels with which it fires (nothing: it does not).
CASES = [
    ("VcpulseSpinningFast", judged(0.146, "spinning"), 70, VM + ',severity="critical"'),
    ("VcpulseSpinningFast", judged(0.142, "spinning"), 70, None),
    ("VcpulseSpinningFast", judged(0.9, "productive"), 70, None),
    ("VcpulseSpinningFast", judged(0.146, "spinning", "host", AGENT), 70, AGENT + ',severity="critical"'),
    # Where there are VMs, the host's sum is not another alert.
    ("VcpulseSpinningFast", judged(0.142, "spinning") | judged(0.5, "spinning", "host", AGENT), 70, None),
    ("VcpulseSpinningFast", SPIN_LESS, 58, VM + ',severity="critical"'),
    ("VcpulseSpinningFast", SPIN_LESS, 70, None),  # of the hour it was much, of the last minutes it is 10 %
    # At least half of the long window must have judged time.
    ("VcpulseSpinningFast", judged(0.9, "spinning"), 27, None),
    ("VcpulseSpinningFast", judged(0.9, "spinning"), 34, VM + ',severity="critical"'),
    ("VcpulseSpinningFast", idle_then_spins(60), 75, None),
    ("VcpulseSpinningFast", idle_then_spins(60), 95, AGENT + ',severity="critical"'),
    ("VcpulseSpinningSlowly", judged(0.9, "spinning"), 2 * HOUR + 50, None),
    ("VcpulseSpinningSlowly", judged(0.9, "spinning"), 3 * HOUR + 20, VM + ',severity="warning"'),
    ("VcpulseStarvedFast", starved(0.9), 27, None),
    ("VcpulseStarvedFast", starved(0.9), 34, VM + ',severity="critical"'),
    ("VcpulseStarvedSlowly", starved(0.9), 2 * HOUR + 50, None),
    ("VcpulseStarvedSlowly", starved(0.9), 3 * HOUR + 20, VM + ',severity="warning"'),
    ("VcpulseSpinningSlowly", judged(0.061, "spinning"), 6 * HOUR + 30, VM + ',severity="warning"'),
    ("VcpulseSpinningSlowly", judged(0.059, "spinning"), 6 * HOUR + 30, None),
    ("VcpulseStarvedFast", starved(0.146), 70, VM + ',severity="critical"'),
    ("VcpulseStarvedFast", starved(0.142), 70, None),
    ("VcpulseStarvedFast", starved(0.146, "host", AGENT), 70, AGENT + ',severity="critical"'),
    ("VcpulseStarvedSlowly", starved(0.061), 6 * HOUR + 30, VM + ',severity="warning"'),
    ("VcpulseStarvedSlowly", starved(0.059), 6 * HOUR + 30, None),
    ("VcpulseAgentDown", ended("vcpulse_build_info", AGENT, 10), 16, AGENT + ',severity="critical"'),
    ("VcpulseAgentDown", ended("vcpulse_build_info", AGENT, 10), 14, None),
    ("VcpulseAgentDown", ended("another_build_info", AGENT, 10), 30, None),
    ("VcpulseAgentDisconnected", one("vcpulse_stream_connected", AGENT, 0), 10, AGENT + ',severity="warning"'),
    ("VcpulseAgentDisconnected", one("vcpulse_stream_connected", AGENT, 0), 9, None),
    ("VcpulseAgentDisconnected", one("vcpulse_stream_connected", AGENT, 1), 30, None),
    ("VcpulseSpoolFilling", spool(801, 100), 10, AGENT + ',severity="warning"'),
    ("VcpulseSpoolFilling", spool(800, 100), 10, None),
    ("VcpulseSpoolFilling", spool(801, 100), 4, None),
    ("VcpulseRecordsLost", {f"vcpulse_stream_lost_records_total{{{AGENT}}}": "0x20 1x20"}, 25,
     AGENT + ',severity="critical"'),
    ("VcpulseRecordsLost", {f"vcpulse_stream_lost_records_total{{{AGENT}}}": "0x20 1x20"}, 40, None),
    ("VcpulseRecordsLost", one("vcpulse_stream_lost_records_total", AGENT, 5), 25, None),
    ("VcpulseGaps", gaps(10.5), 30, AGENT + ',severity="warning"'),
    ("VcpulseGaps", gaps(9.5), 30, None),
    ("VcpulseGaps", gaps(9.5, vms=10), 30, None),
    ("VcpulseGaps", gaps(10.5, vms=10), 30, AGENT + ',severity="warning"'),
    # Of the ticks of 10 VMs.
    ("VcpulseGaps", gaps(0, of_vms=95, vms=10), 30, None),
    ("VcpulseGaps", gaps(0, of_vms=105, vms=10), 30, AGENT + ',severity="warning"'),
    ("VcpulseGaps", gaps(0, of_vms=1000, ticks=0), 30, AGENT + ',severity="warning"'),  # of its only VM nothing is read
    ("VcpulseGaps", gaps(0, vms=0, ticks=0), 30, None),
    ("VcpulseVcpusNotOpened", one("vcpulse_host_vcpus", AGENT + ',state="not-opened"', 1), 10,
     AGENT + ',severity="warning",state="not-opened"'),
    ("VcpulseVcpusNotOpened", one("vcpulse_host_vcpus", AGENT + ',state="not-opened"', 1), 9, None),
    ("VcpulseVcpusNotOpened", one("vcpulse_host_vcpus", AGENT + ',state="not-opened"', 0), 30, None),
    ("VcpulseWithoutCounters", one("vcpulse_host_vcpus", AGENT + ',state="no-counters"', 1), 10,
     AGENT + ',severity="info",state="no-counters"'),
    ("VcpulseWithoutCounters", one("vcpulse_host_vcpus", AGENT + ',state="no-counters"', 0), 30, None),
    ("VcpulseCollectorDown", ended("vcpulse_collector_connections", COLLECTOR, 10), 16,
     COLLECTOR + ',severity="critical"'),
    ("VcpulseCollectorDown", ended("vcpulse_collector_connections", COLLECTOR, 10), 14, None),
    ("VcpulseCollectorNotStoring", one("vcpulse_collector_storage_failing", COLLECTOR, 1), 2,
     COLLECTOR + ',severity="critical"'),
    ("VcpulseCollectorNotStoring", one("vcpulse_collector_storage_failing", COLLECTOR, 1), 1, None),
    ("VcpulseCollectorNotStoring", one("vcpulse_collector_storage_failing", COLLECTOR, 0), 30, None),
    ("VcpulseCollectorLagging", lag(61), 10, COLLECTOR + ',agent="a",severity="warning"'),
    ("VcpulseCollectorLagging", lag(61), 9, None),
    ("VcpulseCollectorLagging", lag(60), 30, None),
    ("VcpulseCollectorLagging", lag(61, "0+60x15 900x40"), 19, COLLECTOR + ',agent="a",severity="warning"'),
    ("VcpulseCollectorLagging", lag(61, "0+60x15 900x40"), 20, None),  # gone since minute 15
    ("VcpulseAgentSilent", silent(1), 18, COLLECTOR + ',agent="a",severity="warning"'),
    ("VcpulseAgentSilent", silent(1), 17, None),
    ("VcpulseAgentSilent", silent(0), 30, None),  # its recording ended normally
    ("VcpulseAgentSilent", silent(0, "0x10 1x70"), 30, COLLECTOR + ',agent="a",severity="warning"'),
    ("VcpulseAgentSilent", silent(0, "0x10 1x70"), 72, None),
    ("VcpulseAgentSilent", silent(1, vms=1), 30, COLLECTOR + ',agent="a",severity="warning"'),
    ("VcpulseAgentSilent", silent(1, vms=0), 30, None),
]

FIRST_WORDS = [
    ("VcpulseSpinningFast", judged(0.5, "spinning"), 70, VM, "VM web on host1 spin 50% of the time"),
    ("VcpulseSpinningFast", judged(0.5, "spinning", "host", AGENT), 70, AGENT,
     "All VMs together on host1 spin 50% of the time"),
    ("VcpulseGaps", gaps(0, of_vms=1000, ticks=0), 30, AGENT, "100% of the ticks on host1 are missing"),
]


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def input_series(series):
    return [{"series": name, "values": values} for name, values in series.items()]


def case(alert, series, minute, labels):
    name = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    samples = [{"labels": f'ALERTS{{alertname="{alert}",alertstate="firing",{labels}}}', "value": 1}] if labels else []
    return {"interval": "1m", "input_series": input_series(series),
            "promql_expr_test": [{"expr": name, "eval_time": f"{minute}m", "exp_samples": samples}]}


def alert_blocks():
    with open(RULES[1], encoding="utf-8") as file:
        parts = re.split(r"^      - alert: (\w+)$", file.read(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def anchors(markdown):
    """Of its headings, as web sites make them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", markdown, re.M)}


class RulesTest(unittest.TestCase):
    def run_tests(self, tests):
        with tempfile.TemporaryDirectory(prefix="vcpulse-rules-") as folder:
            path = os.path.join(folder, "test.yml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"rule_files": RULES, "evaluation_interval": "1m", "tests": tests}, file)  # JSON is YAML
            return promtool("test", "rules", path)

    def test_promtool_accepts_the_rules(self):
        code, said = promtool("check", "rules", *RULES)
        self.assertEqual(code, 0, said)

    def test_each_alert_fires_above_its_limit_and_not_below(self):
        for each in CASES:
            with self.subTest(alert=each[0], minute=each[2], fires=each[3]):
                code, said = self.run_tests([case(*each)])
                self.assertEqual(code, 0, said)

    def test_each_alert_has_a_case_of_either_kind(self):
        names = set(alert_blocks())
        self.assertGreaterEqual(len(names), 15)
        for kind in (True, False):
            self.assertEqual({alert for alert, _, _, labels in CASES if bool(labels) == kind}, names)

    def test_summaries_say_of_whom_and_how_much(self):
        for alert, series, minute, labels, summary in FIRST_WORDS:
            # The rest of the annotations is what promtool prints of its own when they differ.
            made = case(alert, series, minute, labels)
            made["alert_rule_test"] = [{"alertname": alert, "eval_time": f"{minute}m",
                                        "exp_alerts": [{"exp_labels": {}, "exp_annotations": {}}]}]
            made["promql_expr_test"] = []
            code, said = self.run_tests([made])
            self.assertNotEqual(code, 0)
            self.assertIn(f'summary="{summary}"', said)

    def test_each_says_what_to_do_and_where_more_is(self):
        with open(os.path.join(ROOT, "docs/prometheus.md"), encoding="utf-8") as file:
            there = anchors(file.read())
        for alert, block in alert_blocks().items():
            with self.subTest(alert):
                self.assertRegex(block, r'\n          summary: ".{10,}"\n')
                self.assertRegex(block, r'\n          description: ".{80,}"\n')
                self.assertRegex(block, r"labels: \{severity: (critical|warning|info)\}")
                place = re.search(r'runbook: "docs/prometheus\.md#(.*)"', block)
                self.assertIsNotNone(place)
                self.assertIn(place[1], there)
                self.assertIn(alert.lower(), place[1])


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: promtool is not there")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
