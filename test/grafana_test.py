"""Tests the files of deploy/grafana with promtool, and compares their metrics with docs/metrics.md."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

import grafana_files

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
NAME = re.compile(r"(?<![a-zA-Z_])(?:tributary|process|profile)_[a-z0-9_]+")
# Metrics that other programs make, or the options of docs/profile-metrics.md.
ELSEWHERE = {"profile_cpu_seconds_total", "profile_function_cpu_seconds_total"}


def promtool(*args):
    """Runs promtool, and returns its output. Debian's package prometheus has it: dev/deps installs it."""
    result = subprocess.run(["promtool", *map(str, args)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"promtool {args}:\n{result.stdout}{result.stderr}")
    return result.stdout + result.stderr


class Grafana(unittest.TestCase):
    def test_rules_and_configuration_are_valid(self):
        self.assertIn("SUCCESS", promtool("check", "rules", grafana_files.RULES))
        self.assertIn("SUCCESS", promtool("check", "config", "--syntax-only", grafana_files.CONFIG))

    def test_rules_pass_their_unit_tests(self):
        self.assertIn("SUCCESS", promtool("test", "rules", *grafana_files.RULE_TESTS))

    def test_unit_tests_can_fail(self):
        """A rule that never fires fails the unit tests."""
        with tempfile.TemporaryDirectory() as directory:
            for file in (grafana_files.RULES, *grafana_files.RULE_TESTS):
                text = file.read_text().replace('up{job=~"tributary-.*"} == 0', 'up{job=~"tributary-.*"} == 2')
                (pathlib.Path(directory) / file.name).write_text(text)
            with self.assertRaisesRegex(AssertionError, "TributaryTargetDown"):
                promtool("test", "rules", *(pathlib.Path(directory) / file.name for file in grafana_files.RULE_TESTS))

    def test_every_rule_has_a_case_that_fires_and_one_that_does_not(self):
        alerts = re.findall(r"alert: (\w+)", grafana_files.RULES.read_text())
        tests = "".join(file.read_text() for file in grafana_files.RULE_TESTS)
        cases = re.findall(r"alertname: (\w+)\n +exp_alerts:( \[\])?", tests)
        self.assertGreater(len(alerts), 10)
        for alert in alerts:
            self.assertEqual({quiet for name, quiet in cases if name == alert}, {"", " []"}, alert)

    def test_queries_are_valid(self):
        queries = grafana_files.queries("1m")
        self.assertGreater(len(queries), 15)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:
            json.dump({"groups": [{"name": "dashboard", "rules": [
                {"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries.values())]}]}, rules)
            rules.flush()
            promtool("check", "rules", rules.name)

    def test_panels_have_ids_titles_and_places(self):
        dashboard = json.loads(grafana_files.DASHBOARD.read_text())
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        taken = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, f"{panel['title']} is on another panel")
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells
        for panel in grafana_files.panels():
            self.assertTrue(panel["title"] and panel["description"].endswith("."), panel["id"])
            for of in (panel, *panel["targets"]):
                self.assertEqual(of["datasource"], {"type": "prometheus", "uid": "${datasource}"})

    def test_metrics_exist(self):
        known = set(NAME.findall((DOCS / "metrics.md").read_text())) | ELSEWHERE
        for file in (grafana_files.RULES, *grafana_files.RULE_TESTS, grafana_files.DASHBOARD):
            used = set(NAME.findall(file.read_text()))
            self.assertTrue(used)
            self.assertEqual(used - known, set(), file.name)


if __name__ == "__main__":
    unittest.main()
