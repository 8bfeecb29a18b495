#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the gale authors
"""monitoring_test.py METRICS_TEST ROOT PROMTOOL -- dashboard and alerts ask for metrics that gale writes.

Each query of docs/grafana.json, docs/alerts.yml and docs/metrics.md names metrics, labels, results and reasons that
exist; counters are read by rate or increase, and gauges are not.  As promtool says, all of it is PromQL,
and each alert fires as tests/unit/alerts_test.yml says.  Then each kind of fault is planted, and found.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

# What Prometheus adds to each line that it has read.
ADDED = {"job", "instance"}
NAME = r"gale_\w+"


def written(metrics_test):
    """What gale_metrics_write writes: name -> (type, labels)."""
    text = subprocess.run([metrics_test, "--text"], capture_output=True, text=True, check=True).stdout
    types = dict(re.findall(rf"^# TYPE ({NAME}) (\w+)$", text, re.M))
    labels = {name: set() for name in types}
    for line in text.splitlines():
        if found := re.match(rf"({NAME})\{{(.*)\}} ", line):
            labels[found[1]] |= set(re.findall(r'(\w+)="', re.sub(r"\\.", "", found[2])))
    return {name: (types[name], labels[name]) for name in types}


def reasons(root):
    """The names that gale_why_name has."""
    text = (root / "engine/names.c").read_text()
    return set(re.findall(r'return "(\w+)"', text.split("gale_why_name")[1].split("\n}")[0]))


def faults_of_query(query, metrics, words):
    """What is wrong with a query; words: label -> the values that it can have."""
    reads = re.compile(rf"(\w+\()?({NAME})(?:\{{([^}}]*)\}})?(\[)?").findall(query)
    known = set()
    if not reads:
        yield "asks for no metric"
    for function, name, matchers, _ in reads:
        if name not in metrics:
            yield f"there is no metric {name}"
            continue
        kind, labels = metrics[name]
        known |= labels | ADDED
        if (kind == "counter") != (function in ("rate(", "increase(")):
            yield f"{name} is a {kind}"
        for label, values in re.findall(r'(\w+)\s*[!=]~?\s*"([^"]*)"', matchers):
            if label not in labels | ADDED:
                yield f"{name} has no label {label}"
            for value in values.split("|"):
                if label in words and value not in words[label]:
                    yield f"no {label} is {value}"
    for group in re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", query):
        for label in re.split(r"\s*,\s*", group):
            if label not in known:
                yield f"no metric here has the label {label}"


def kept(query, metrics):
    """The labels that a query's result has."""
    if groups := re.findall(r"\bby\s*\(([^)]*)\)", query):
        return set.union(*(set(re.split(r"\s*,\s*", group)) for group in groups))
    return ADDED.union(*(metrics[name][1] for name in re.findall(NAME, query) if name in metrics))


def faults_of_dashboard(text, metrics, words):
    board = json.loads(text)
    variables = board["templating"]["list"]
    names = {variable["name"] for variable in variables}
    for variable in variables:
        if variable["type"] != "query":
            continue
        name, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["query"]).groups()
        if name not in metrics or label not in metrics[name][1] | ADDED:
            yield f"variable {variable['name']}: {name} has no {label}"
    for used in set(re.findall(r"\$\{?(\w+)", text)) - names - {"__rate_interval", "__all"}:
        yield f"there is no variable {used}"
    ids = [panel["id"] for panel in board["panels"]]
    if len(ids) != len(set(ids)):
        yield "two panels have one id"
    for panel in board["panels"]:
        if panel["type"] == "row":
            continue
        if not panel["title"] or not panel["description"] or not panel["targets"]:
            yield f"panel {panel['id']} lacks words or queries"
        for target in panel["targets"]:
            query = target["expr"]
            for fault in faults_of_query(re.sub(r"\$\w+", "", query), metrics, words):
                yield f"{panel['title']}: {fault}"
            for label in set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) - kept(query, metrics):
                yield f"{panel['title']}: the legend has no {label}"


def alerts_of(text):
    """(name, query, the words of the rule), one for each alert; promtool reads the file as YAML."""
    for rule in re.split(r"^      - alert: ", text, flags=re.M)[1:]:
        yield rule.split("\n")[0], *re.findall(r"^        expr: (.*)$", rule, re.M), rule


def faults_of_alerts(text, metrics, words):
    names = []
    for name, query, rule in alerts_of(text):
        names.append(name)
        for fault in faults_of_query(query, metrics, words):
            yield f"{name}: {fault}"
        for label in set(re.findall(r"\$labels\.(\w+)", rule)) - kept(query, metrics):
            yield f"{name}: the alert has no {label}"
        for part in ("severity: ", "summary: ", "description: "):
            if part not in rule:
                yield f"{name} lacks its {part.rstrip(': ')}"
    if len(names) != len(set(names)) or len(names) != text.count("expr:"):
        yield "two alerts have one name, or a query is not understood"


def promtool_says(promtool, *arguments):
    done = subprocess.run([promtool, *arguments], capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [done.stdout + done.stderr]


def faults_for_promtool(promtool, root, board, alerts):
    """Dashboard's queries become rules, as promtool reads rules; alerts fire as their own test says."""
    cases = (root / "tests/unit/alerts_test.yml").read_text()
    queries = [target["expr"].replace("$__rate_interval", "5m")
               for panel in json.loads(board)["panels"] for target in panel.get("targets", [])]
    with tempfile.TemporaryDirectory() as folder:
        rules, copy, test = (pathlib.Path(folder) / name for name in ("rules.yml", "alerts.yml", "test.yml"))
        rules.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": [
            {"record": f"query{number}", "expr": query} for number, query in enumerate(queries)]}]}))
        copy.write_text(alerts)
        test.write_text(cases)
        yield from promtool_says(promtool, "check", "rules", str(rules), str(copy))
        yield from promtool_says(promtool, "test", "rules", str(test))
    for name, _, _ in alerts_of(alerts):
        if f"alertname: {name}\n" not in cases:
            yield f"no case of alerts_test.yml has {name}"


def main():
    metrics_test, root, promtool = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    metrics = written(metrics_test)
    words = {"result": {"allowed", "denied"}, "why": reasons(root)}
    board, alerts = ((root / "docs" / name).read_text() for name in ("grafana.json", "alerts.yml"))

    def faults(board, alerts, promtool=None):
        yield from faults_of_dashboard(board, metrics, words)
        yield from faults_of_alerts(alerts, metrics, words)
        if promtool:
            yield from faults_for_promtool(promtool, root, board, alerts)

    bad = list(faults(board, alerts, promtool))
    for query in re.findall(r"`([^`]*rate\([^`]*)`", (root / "docs/metrics.md").read_text()):
        bad += [f"docs/metrics.md: {query}: {fault}" for fault in faults_of_query(query.replace("\\|", "|"), metrics, words)]
    planted = [  # what is replaced in the dashboard, or else in the alerts; what is said of it
        (board, "gale_store_wrong_total", "gale_store_wrongs_total", "no metric gale_store_wrongs_total"),
        (board, '$job\\"}, guard', '$job\\"}, store', "gale_guard_limit has no store"),
        (board, "sum by (store)", "sum by (shop)", "has the label shop"),
        (board, "{{store}} wrong", "{{shop}} wrong", "the legend has no shop"),
        (board, "$limiter", "$limit", "there is no variable limit"),
        (board, "credit|spent", "credit|spend", "no why is spend"),
        (alerts, "gale_guard_cut_off ==", "gale_guard_cutoff ==", "no metric gale_guard_cutoff"),
        (alerts, 'total{why="down"}', 'total{reason="down"}', "no label reason"),
        (alerts, "rate(gale_store_full_total[5m])", "gale_store_full_total", "gale_store_full_total is a counter"),
        (alerts, "$labels.guard", "$labels.limiter", "the alert has no limiter"),
    ]
    planted_for_promtool = [
        (board, "[$__rate_interval]", "[$__rate_interval", "rules.yml"),
        (alerts, "gale_guard_cut_off == 1", "gale_guard_cut_off == 2", "GaleGuardCutOff"),
        (alerts, "rules:", "rules", "alerts.yml"),
    ]
    for page, before, after, said in planted + planted_for_promtool:
        assert before in page, before
        new = page.replace(before, after)
        reader = promtool if (page, before, after, said) in planted_for_promtool else None
        found = list(faults(new, alerts, reader) if page is board else faults(board, new, reader))
        if not any(said in fault for fault in found):
            bad.append(f"{after} is not noticed: {found}")
    print("\n".join(bad + [f"{board.count('expr')} queries of panels, {alerts.count('expr:')} alerts, {len(bad)} faults"]))
    return 1 if bad else 0


sys.exit(main())
