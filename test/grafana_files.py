"""Reads the files of deploy/grafana for tests."""

import json
import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "deploy/grafana"
RULES, CONFIG, DASHBOARD = (FOLDER / name for name in ("tributary-rules.yml", "prometheus.yml", "tributary-dashboard.json"))
RULE_TESTS = sorted(FOLDER.glob("tributary-rules-*test.yml"))


def panels():
    """Returns the panels that have queries."""
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries(rate_interval):
    """Returns {panel and letter: query}, with the variables replaced as Grafana does."""
    found = {}
    for panel in panels():
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", rate_interval).replace("$service", ".*")
            assert "$" not in query, f"unknown variable: {query}"
            found[f"{panel['title']} {target['refId']}"] = query
    return found


def metric_options():
    """Returns the options of docs/profile-metrics.md that make the metrics of the dashboard."""
    page = (FOLDER.parent.parent / "docs/profile-metrics.md").read_text()
    specs = re.findall(r"^ *--metric '(name=profile_[^']*)'", page, re.MULTILINE)
    assert len(specs) == 2, f"docs/profile-metrics.md has other options than the dashboard needs: {specs}"
    return [argument for spec in specs for argument in ("--metric", spec)]
