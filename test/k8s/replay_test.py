"""Tests a replayed recording of cluster_test.py: k8s-collector's entities must equal the API server's final state.

The recording was made with `cluster_test.py --pods 60 --keep-recording DIR` and `tar -C DIR -cJf recording.tar.xz .`
"""

import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

import expected

HERE = pathlib.Path(__file__).resolve().parent
COLLECTOR = pathlib.Path(os.environ["TRIBUTARY_BIN"]) / "k8s-collector"


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="tributary-k8s-"))
        with tarfile.open(HERE / "recording.tar.xz") as recording:
            recording.extractall(directory, filter="data")
        cls.directory = pathlib.Path(directory)
        cls.wanted = json.loads((cls.directory / "expected.json").read_text())

    def replay(self, directory, *arguments):
        return subprocess.run([COLLECTOR, "--replay", directory, "--print-entities", *arguments], capture_output=True, text=True, timeout=60)

    def test_replay_prints_the_expected_entities(self):
        done = self.replay(self.directory, "--cluster-name", "prod")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertIn({"complete": True}, lines)
        printed = {(line["kind"], line["id"]): line for line in lines if "kind" in line}
        want = expected.entities(self.wanted["objects"], cluster_name="prod")
        self.assertGreater(sum(key[0] == "pod" for key in want), 40)
        self.assertEqual(expected.differences(want, printed), [])
        rollouts = [line for line in lines if line.get("kind") == "rollout"]
        self.assertEqual([r["attributes"] for r in rollouts], [r["attributes"] for r in self.wanted["rollouts"]])
        self.assertEqual([r["id"] for r in rollouts], [r["id"] for r in self.wanted["rollouts"]])

    def test_ended_objects_have_the_time_of_their_end(self):
        lines = [json.loads(line) for line in self.replay(self.directory).stdout.splitlines()]
        first = json.loads((self.directory / "pods.jsonl").read_text().split("\n", 1)[0])["t"]
        gone = [line for line in lines if line.get("gone")]
        self.assertGreater(len(gone), 10)
        for line in gone:
            self.assertLess(0, line["from"] // 10**6 - first, line)

    def test_bad_recordings_are_reported(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("no recording", self.replay(empty).stderr)
            text = (self.directory / "pods.jsonl").read_text()
            (pathlib.Path(empty) / "pods.jsonl").write_text(text[: len(text) // 2])
            done = self.replay(empty)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"pods\.jsonl:\d+")


if __name__ == "__main__":
    unittest.main()
