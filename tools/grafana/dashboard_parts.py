"""Panels, variables and links as Grafana's JSON has them, made of what differs between them."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCHEMA_VERSION = 39  # that of Grafana 10.4 and 11; later releases convert it
WIDTH = 24  # of a dashboard, in Grafana's columns
BAND_COLORS = {"halted": "#8e8e8e", "spinning": "#e02f44", "productive": "#37872d", "unknown": "#e0b400"}
TAG = "vcpulse"


def steps(*limits):
    """Thresholds: green, then each (value, color)."""
    return {"mode": "absolute", "steps": [{"color": "green", "value": None},
                                          *({"color": color, "value": value} for value, color in limits)]}


WARN, BAD = "orange", "red"
NO_LIMIT = steps()
ANY_IS_BAD = steps((1, BAD))
OF_SHARE = steps((0.06, WARN), (0.144, BAD))  # as the alerts have it


def target(ref, expr, legend="", **more):
    return {"refId": ref, "datasource": DATASOURCE, "expr": " ".join(expr.split()), "legendFormat": legend or "__auto",
            "editorMode": "code", "range": True, **more}


def targets_of(queries, **more):
    """Of (legend, expression), or of one expression."""
    if isinstance(queries, str):
        queries = [("", queries)]
    return [target(chr(ord("A") + i), expr, legend, **more) for i, (legend, expr) in enumerate(queries)]


def panel(kind, title, description, size, unit, thresholds, targets, options, custom=None, overrides=(), **more):
    defaults = {"unit": unit, "thresholds": thresholds, "color": {"mode": "palette-classic"}, "mappings": []}
    if unit == "percentunit":
        defaults["min"] = 0
    if custom is not None:
        defaults["custom"] = custom
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE,
            "gridPos": {"w": size[0], "h": size[1], "x": 0, "y": 0}, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options, **more}


def stat(title, description, query, unit="short", thresholds=NO_LIMIT, width=4, mappings=()):
    made = panel("stat", title, description, (width, 4), unit, thresholds,
                 targets_of(query),
                 {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "auto", "wideLayout": True,
                  "orientation": "auto", "percentChangeColorMode": "standard", "showPercentChange": False,
                  "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}})
    made["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}
    made["fieldConfig"]["defaults"]["mappings"] = list(mappings)
    return made


def color_of(name, color):
    return {"matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}]}


def series(title, description, queries, unit="short", thresholds=NO_LIMIT, width=12, stacked=False, overrides=(), links=()):
    has_limit = len(thresholds["steps"]) > 1
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 70 if stacked else 10, "showPoints": "never",
              "spanNulls": False, "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
              "thresholdsStyle": {"mode": "dashed" if has_limit else "off"}}
    made = panel("timeseries", title, description, (width, 8), unit, thresholds, targets_of(queries),
                 {"legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
                  "tooltip": {"mode": "multi", "sort": "desc"}}, custom, overrides)
    if stacked:
        made["fieldConfig"]["defaults"]["max"] = 1
    if links:
        made["fieldConfig"]["defaults"]["links"] = list(links)
    return made


def bands(title, description, query, width=12):
    return series(title, description, [("{{band}}", query)], "percentunit", width=width, stacked=True,
                  overrides=[color_of(band, color) for band, color in BAND_COLORS.items()])


def table(title, description, columns, keys, width=24, height=9, sort="", links=None):
    """columns: (name, expression, unit, thresholds), hidden without a name; keys: {label: name}; links: {label: link}."""
    queries = targets_of([("", expr) for _, expr, _, _ in columns], format="table", instant=True)
    for each in queries:
        each["range"] = False
    # Grafana numbers the values of several queries.
    values = [f"Value #{each['refId']}" for each in queries] if len(queries) > 1 else ["Value"]
    shown = [(value, *column) for value, column in zip(values, columns) if column[0]]
    hidden = {name: True for name in ("Time", "job", "__name__", *set(values).difference(each[0] for each in shown))}
    names = keys | {value: name for value, name, *_ in shown}
    overrides = []
    for _, name, _, unit, thresholds in shown:
        properties = [{"id": "unit", "value": unit}, {"id": "thresholds", "value": thresholds}]
        if len(thresholds["steps"]) > 1:
            properties.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
        overrides.append({"matcher": {"id": "byName", "options": name}, "properties": properties})
    for label, link in (links or {}).items():
        overrides.append({"matcher": {"id": "byName", "options": keys[label]},
                          "properties": [{"id": "links", "value": [link]}]})
    made = panel("table", title, description, (width, height), "short", NO_LIMIT, queries,
                 {"showHeader": True, "cellHeight": "sm", "frameIndex": 0,
                  "sortBy": [{"displayName": sort, "desc": True}] if sort else []},
                 {"align": "auto", "filterable": True, "cellOptions": {"type": "auto"}, "inspect": False}, overrides,
                 transformations=[{"id": "merge", "options": {}},
                                  {"id": "organize", "options": {"excludeByName": hidden, "indexByName": {},
                                                                 "renameByName": names}}])
    made["fieldConfig"]["defaults"]["color"] = {"mode": "thresholds"}
    return made


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [],
            "gridPos": {"w": WIDTH, "h": 1, "x": 0, "y": 0}}


def placed(panels):
    """Left to right, then down; each row of panels is as high as its highest."""
    x = y = height = 0
    for number, each in enumerate(panels, 1):
        place = each["gridPos"]
        if x + place["w"] > WIDTH:
            x, y, height = 0, y + height, 0
        place["x"], place["y"] = x, y
        x, height = x + place["w"], max(height, place["h"])
        each["id"] = number
    return panels


def datasource_variable():
    return {"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus", "regex": "",
            "description": "The Prometheus that scrapes vcpulse", "multi": False, "includeAll": False, "refresh": 1,
            "hide": 0, "options": [], "current": {"selected": False, "text": "default", "value": "default"},
            "skipUrlSync": False}


def query_variable(name, label, description, query, multi=False):
    current = {"current": {"selected": True, "text": "All", "value": "$__all"}} if multi else {}
    return {"name": name, "type": "query", "label": label, "description": description, "datasource": DATASOURCE,
            "query": {"query": query, "refId": f"variable-{name}"}, "refresh": 2, "sort": 1, "regex": "", "hide": 0,
            "multi": multi, "includeAll": multi, "allValue": ".*" if multi else "", "options": [],
            "skipUrlSync": False, **current}


def dashboard_link(title, uid):
    return {"title": title, "type": "link", "url": f"/d/{uid}?${{datasource:queryparam}}", "icon": "dashboard", "tags": [],
            "tooltip": "", "asDropdown": False, "includeVars": False, "keepTime": True, "targetBlank": False}


def data_link(title, uid, **variables):
    values = "".join(f"&var-{name}={value}" for name, value in variables.items())
    return {"title": title, "url": f"/d/{uid}?${{datasource:queryparam}}&${{__url_time_range}}{values}"}


def dashboard(uid, title, description, variables, panels, links):
    return {"uid": uid, "title": title, "description": description, "tags": [TAG], "schemaVersion": SCHEMA_VERSION,
            "version": 1, "editable": True, "graphTooltip": 1, "timezone": "browser", "refresh": "30s",
            "time": {"from": "now-1h", "to": "now"}, "timepicker": {}, "fiscalYearStartMonth": 0, "links": links,
            "annotations": {"list": []}, "templating": {"list": [datasource_variable(), *variables]},
            "panels": placed(panels)}
