#!/usr/bin/python3
"""The Grafana dashboards against Grafana's own types: those of the npm package @grafana/schema, checked by TypeScript.

usage: dashboard_types_test.py ROOT FOLDER_FOR_NPM [unittest arguments]

Checked of each dashboard: its fields, variables and links; of each panel: its fields, options and field configuration as
its kind has them. Enumerations are compared by their values, as JSON has them. @grafana/schema has no types of queries to
Prometheus: PrometheusTarget below lists the fields that Grafana's documentation of that data source names.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, NPM = (os.path.abspath(path) for path in sys.argv[1:3])
HERE = os.path.dirname(os.path.abspath(__file__))
CFG = "@grafana/schema/dist/esm/raw/composable"
TYPES = f"""
import type {{ Dashboard, DataSourceRef, FieldConfigSource, Panel, RowPanel, TableFieldOptions }} from "@grafana/schema";
import type {{ Options as StatOptions }} from "{CFG}/stat/panelcfg/x/StatPanelCfg_types.gen";
import type {{ Options as TableOptions }} from "{CFG}/table/panelcfg/x/TablePanelCfg_types.gen";
import type {{ Options as TimeseriesOptions, FieldConfig as TimeseriesField }} from
    "{CFG}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// As JSON has it: the values of enumerations in place of their names.
type Json<T> = T extends string ? `${{T}}` : T extends Array<infer U> ? Json<U>[]
    : T extends object ? {{ [K in keyof T]: Json<T[K]> }} : T;
interface PrometheusTarget {{
  refId: string; expr: string; legendFormat: string; datasource: DataSourceRef; editorMode: "code" | "builder";
  range?: boolean; instant?: boolean; format?: "time_series" | "table" | "heatmap";
}}
type Of<Options, Field> = Omit<Panel, "options" | "fieldConfig" | "targets"> & {{
  options: Options; fieldConfig: FieldConfigSource<Field>; targets: PrometheusTarget[];
}};
type Whole = Json<Omit<Dashboard, "panels">>;
type OfRow = Json<RowPanel>;
type OfStat = Json<Of<StatOptions, {{}}>>;
type OfTable = Json<Of<TableOptions, TableFieldOptions>>;
type OfTimeseries = Json<Of<TimeseriesOptions, TimeseriesField>>;
"""


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def fetch():
    if shutil.which("npm") is None:
        skip("npm is not there")
    shutil.copytree(os.path.join(HERE, "npm"), NPM, dirs_exist_ok=True)
    fetched = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=NPM, check=False,
                             capture_output=True, text=True)
    if fetched.returncode != 0:
        skip("npm could not fetch @grafana/schema: " + " ".join(fetched.stderr.split())[:300])


def as_typescript(dashboard):
    constants = [("Whole", {key: value for key, value in dashboard.items() if key != "panels"})]
    constants += [("Of" + panel["type"].capitalize(), panel) for panel in dashboard["panels"]]
    return "".join(f"export const c{number}: {kind} = {json.dumps(value, indent=1)};\n"
                   for number, (kind, value) in enumerate(constants))


def compile_all(dashboards):
    """What TypeScript says of these, {name: dashboard}; nothing: they fit."""
    with tempfile.TemporaryDirectory(dir=NPM) as folder:
        paths = []
        for name, dashboard in dashboards.items():
            paths.append(os.path.join(folder, name + ".ts"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(TYPES + as_typescript(dashboard))
        done = subprocess.run([os.path.join(NPM, "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck",
                               "--target", "es2022", "--module", "preserve", "--moduleResolution", "bundler", *paths],
                              cwd=NPM, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr


def dashboards():
    made = {}
    for name in ("fleet", "host", "vm"):
        with open(os.path.join(ROOT, f"tools/grafana/vcpulse-{name}.json"), encoding="utf-8") as file:
            made[name] = json.load(file)
    return made


class DashboardTypesTest(unittest.TestCase):
    def test_they_fit_grafanas_types(self):
        self.assertEqual(compile_all(dashboards()), "")

    def test_what_does_not_fit_is_found(self):
        broken = {}
        for what in ("field", "option", "kind", "variable", "unit"):
            broken[what] = json.loads(json.dumps(dashboards()["vm"]))
            panel = next(each for each in broken[what]["panels"] if each["type"] == "timeseries")
            if what == "field":
                panel["titel"] = "x"
            elif what == "option":
                panel["options"]["legend"]["displayMode"] = "lists"
            elif what == "kind":
                panel["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "lines"
            elif what == "variable":
                broken[what]["templating"]["list"][1]["type"] = "queries"
            else:
                panel["fieldConfig"]["defaults"]["unit"] = 3
        said = compile_all(broken)
        for what in broken:
            self.assertIn(f"{what}.ts(", said)


if __name__ == "__main__":
    fetch()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
