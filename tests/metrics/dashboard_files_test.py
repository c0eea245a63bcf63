#!/usr/bin/python3
"""The Grafana dashboards as files: what make_dashboards makes, with panels that do not overlap, each with a unit and a
description, and with variables and links that lead somewhere.

usage: dashboard_files_test.py ROOT [unittest arguments]
"""

import filecmp
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

GRAFANA = os.path.join(os.path.abspath(sys.argv[1]), "tools/grafana")
NAMES = ("vcpulse-fleet.json", "vcpulse-host.json", "vcpulse-vm.json")
BUILT_IN = {"__rate_interval", "__url_time_range"}


def read(name):
    with open(os.path.join(GRAFANA, name), encoding="utf-8") as file:
        return json.load(file)


class DashboardFilesTest(unittest.TestCase):
    def setUp(self):
        self.dashboards = {name: read(name) for name in NAMES}

    def panels(self):
        for name, dashboard in self.dashboards.items():
            for panel in dashboard["panels"]:
                yield name, panel

    def test_they_are_what_is_made(self):
        with tempfile.TemporaryDirectory(prefix="vcpulse-grafana-") as folder:
            subprocess.run([os.path.join(GRAFANA, "make_dashboards"), folder], check=True)
            self.assertEqual(sorted(os.listdir(folder)), sorted(NAMES))
            for name in NAMES:
                self.assertTrue(filecmp.cmp(os.path.join(folder, name), os.path.join(GRAFANA, name), shallow=False),
                                f"{name} is not what tools/grafana/make_dashboards makes: run it")

    def test_each_panel_says_what_it_shows_in_which_unit(self):
        count = 0
        for name, panel in self.panels():
            if panel["type"] == "row":
                continue
            with self.subTest(name, panel=panel["title"]):
                count += 1
                self.assertGreater(len(panel["description"]), 15)
                self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
                self.assertEqual(panel["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["value"], None)
                self.assertTrue(panel["targets"])
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"]["uid"], "${datasource}")
        self.assertGreater(count, 50)

    def test_panels_have_ids_of_their_own_and_do_not_overlap(self):
        for name, dashboard in self.dashboards.items():
            with self.subTest(name):
                ids = [panel["id"] for panel in dashboard["panels"]]
                self.assertEqual(len(ids), len(set(ids)))
                taken = set()
                for panel in dashboard["panels"]:
                    place = panel["gridPos"]
                    cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                             for y in range(place["y"], place["y"] + place["h"])}
                    self.assertLessEqual(place["x"] + place["w"], 24)
                    self.assertEqual(taken & cells, set(), panel["title"])
                    taken |= cells

    def test_each_variable_is_defined_and_used(self):
        for name, dashboard in self.dashboards.items():
            with self.subTest(name):
                defined = {variable["name"] for variable in dashboard["templating"]["list"]}
                used = set()
                for panel in dashboard["panels"]:
                    for target in panel.get("targets", []):
                        used |= set(re.findall(r"\$(\w+)", target["expr"]))
                for variable in dashboard["templating"]["list"]:
                    if variable["type"] == "query":
                        used |= set(re.findall(r"\$(\w+)", variable["query"]["query"]))
                self.assertEqual(used - BUILT_IN | {"datasource"}, defined)

    def test_links_lead_to_a_dashboard_and_its_variables(self):
        variables = {dashboard["uid"]: {variable["name"] for variable in dashboard["templating"]["list"]}
                     for dashboard in self.dashboards.values()}
        links = 0
        for name, dashboard in self.dashboards.items():
            for url in re.findall(r'"(/d/[^"]*)"', json.dumps(dashboard)):
                with self.subTest(name, url=url):
                    links += 1
                    uid = re.match(r"/d/([\w-]+)\?", url)[1]
                    self.assertIn(uid, variables)
                    self.assertLessEqual(set(re.findall(r"var-(\w+)=", url)), variables[uid])
        self.assertGreater(links, 12)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
