"""Tests a recording of cluster_test.py that is replayed to a reducer.

Samples of every container, also in deleted pods, must have the attributes from the API server. replay_test.py describes
how the recording is made.
"""

import json
import pathlib
import tarfile
import tempfile
import unittest

from pipeline import Pipeline

RECORDING = pathlib.Path(__file__).resolve().parent / "recording.tar.xz"


class ReplayJoinTest(unittest.TestCase):
    def test_samples_before_and_after_their_metadata(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tributary-k8s-")))
        recording = directory / "recording"
        with tarfile.open(RECORDING) as packed:
            packed.extractall(recording, filter="data")
        wanted = json.loads((recording / "expected.json").read_text())
        objects, gone = wanted["objects"], wanted["gone_pods"]
        self.assertGreater(len(objects["pods"]), 40)
        self.assertGreater(len(gone), 10)
        # A replay sends the last state of each object.
        objects["pods"] += gone
        nodes = {pod["spec"]["nodeName"] for pod in objects["pods"]}
        pipeline = self.enterContext(Pipeline(directory, nodes, "--replay", recording))
        pipeline.history.take(objects)
        pipeline.send()
        pipeline.watch()
        pipeline.history.take(objects)
        pipeline.send()
        pipeline.assert_all_as_expected()


if __name__ == "__main__":
    unittest.main(warnings="ignore")
