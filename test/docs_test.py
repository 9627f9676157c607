"""Docs say what the code does: every metric has a row in docs/metrics.md, every link leads somewhere, every option a README names exists."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])


def sources():
    for folder in ("base", "intake", "otlp", "kernel-collector", "k8s-collector", "reducer"):
        for path in (SOURCE / folder).rglob("*"):
            if path.suffix in (".cc", ".h") and not path.name.endswith("_test.cc"):
                yield path


class DocsTest(unittest.TestCase):
    def test_metrics_are_documented_and_exist(self):
        code = set()
        for path in sources():
            code |= set(re.findall(r'"(tributary_[a-z0-9]+_[a-z0-9_]+)"', path.read_text()))
        code = {name for name in code if not name.startswith("tributary_embedded")}
        code |= set(re.findall(r'"(process_[a-z_]+)"', (SOURCE / "base/process_metrics.cc").read_text()))
        documented = set(re.findall(r"(?<![a-z_])(?:tributary|process)_[a-z0-9_]+", (SOURCE / "docs/metrics.md").read_text()))
        self.assertGreater(len(code), 40)
        self.assertEqual(code - documented, set(), "metrics without a row")
        self.assertEqual(documented - code, set(), "rows without a metric")
        for name in code:
            self.assertNotRegex(name, "_(ms|us|ns|[a-z]+seconds|minutes)(_total)?$", "times are in seconds")

    def test_links_lead_somewhere(self):
        pages = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]
        for page in pages:
            for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
                if "://" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")

    def test_options_in_the_readme_exist(self):
        known = ""
        for command in (["reducer", "--help"], ["kernel-collector", "--help"], ["k8s-collector", "--help"],
                        ["tributary", "--help"], ["tributary", "top", "--help"],
                        ["tributary", "flamegraph", "--help"], ["tributary", "record", "--help"], ["tributary", "status", "--help"],
                        ["tributary", "inspect", "--help"], ["tributary", "replay", "--help"], ["tributary", "symbols", "push", "--help"], ["tributary", "lines", "--help"]):
            known += subprocess.run([BIN / command[0], *command[1:]], check=True, capture_output=True, text=True).stdout
        options = set(re.findall(r"--[a-z][a-z0-9-]+", known))
        for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]+)", (SOURCE / "README.md").read_text())):
            self.assertIn(option, options)


if __name__ == "__main__":
    unittest.main()
