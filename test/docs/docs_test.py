"""Tests that the documentation agrees with the code (checks.py), and that the checks find planted errors."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import checks

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ["TRIBUTARY_BIN"])


def run(*command):
    return subprocess.run([BIN / command[0], *command[1:]], check=True, capture_output=True, text=True).stdout


def all_helps():
    helps = [(name, run(name, "--help")) for name in ("kernel-collector", "reducer", "k8s-collector")]
    for name in run("tributary", "--print-docs", "commands").split():
        words = name.split("-")
        helps.append((" ".join(["tributary", *words]), run("tributary", *words, "--help")))
    return helps


HELPS = all_helps()

# Planted errors: the page, the text to replace (empty: append to the page), the new text, and words that the report
# must contain.
PLANTED = [
    ("docs/architecture.md", "| cli/ | `tributary` | |\n", "", "folder table: cli/ is missing"),
    ("docs/architecture.md", "| spool/ |", "| sqool/ |", "sqool/ is not in dev/layers"),
    ("docs/security.md", "", "\n" + "| `--tls` | stands twice in this table |\n" * 2, "a row stands twice"),
    ("docs/spool.md", "", "\nThis sentence has more than eight words in it. This sentence has more than eight words in it.\n",
     "a sentence stands twice"),
    ("schemas/intake/intake.capnp", "ClosedSession);  # at most 32", "ClosedSession);  # at most 8", "kClosedSessionsMax"),
    ("docs/unwinding.md", "more than 512", "more than 256", "TRIB_USER_FRAMES_MAX"),
    ("docs/options.md", "| `7d` |", "| `8d` |", "docs/options.md: no such option"),
    ("README.md", "`--spool-dir DIR`", "`--spool-folder DIR`", "there is no option --spool-folder"),
    ("docs/metrics.md", "tributary_reducer_committed_samples_total", "tributary_reducer_committed_sample_total",
     "tributary_reducer_committed_sample_total does not exist"),
    ("README.md", "(docs/troubleshooting.md)", "(docs/trouble.md)", "docs/trouble.md: there is no such file"),
    ("docs/flame-graphs.md", "(symbols.md#lines)", "(symbols.md#rows)", "symbols.md#rows: there is no such heading"),
    ("docs/store.md", "", "\n" + "long " * 25 + "\n", "125 columns, 120 at most"),
    ("README.md", "## Start", "It " + "is very " * 16 + "long.\n\n## Start", "a sentence of 34 words"),
]


class DocsTest(unittest.TestCase):
    maxDiff = None

    def test_pages_match_the_code(self):
        if os.environ.get("UPDATE_GOLDEN"):
            (SOURCE / "docs/options.md").write_text(checks.options_page(HELPS))
        self.assertEqual(checks.check_all(SOURCE, HELPS), [])

    def test_planted_errors_are_found(self):
        for page, old, new, report in PLANTED:
            with self.subTest(page=page, report=report), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                for path in SOURCE.iterdir():
                    if path.name in ("docs", "schemas"):
                        shutil.copytree(path, root / path.name, ignore=shutil.ignore_patterns("*.xz"))
                    elif path.suffix == ".md":
                        shutil.copy(path, root / path.name)
                    elif path.name != "build" and not path.name.startswith("."):
                        (root / path.name).symlink_to(path)
                text = (root / page).read_text()
                self.assertIn(old, text)
                (root / page).write_text(text.replace(old, new, 1) if old else text + new)
                errors = checks.check_all(root, HELPS)
                self.assertTrue(any(report in error for error in errors), errors)


if __name__ == "__main__":
    unittest.main()
