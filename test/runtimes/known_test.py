"""Tests that the chains of known.py are those of the interpreter itself."""

import json
import pathlib
import subprocess
import sys
import unittest


class Known(unittest.TestCase):
    def test_chains_are_those_of_the_interpreter(self):
        program = pathlib.Path(__file__).resolve().parent / "known.py"
        done = subprocess.run([sys.executable, program, "0.15", "--check"], check=False, capture_output=True, encoding="utf-8", timeout=250)
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = json.loads(done.stdout)
        self.assertGreaterEqual(len(answers["parts"]) + len(answers["missing"]), 22)
        for part in answers["parts"]:
            self.assertGreaterEqual(part["cpu_ns"], 0.15e9, part["name"])


if __name__ == "__main__":
    unittest.main()
