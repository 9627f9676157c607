"""Tests the memory cgroup of the benchmarks with a folder of ordinary files."""

import pathlib
import tempfile
import unittest

import memory_cgroup


class MemoryCgroupTest(unittest.TestCase):
    def setUp(self):
        self._directory = tempfile.TemporaryDirectory()
        self.addCleanup(self._directory.cleanup)
        self.root = pathlib.Path(self._directory.name)
        self.control = self.root / "cgroup.subtree_control"

    def folders(self):
        return [each for each in self.root.iterdir() if each.is_dir()]

    def test_switches_the_controller_on_and_off_again(self):
        self.control.write_text("cpu pids")
        with memory_cgroup.MemoryCgroup(self.root):
            self.assertEqual(self.control.read_text(), "+memory")
            self.assertEqual(len(self.folders()), 1)
        self.assertEqual(self.control.read_text(), "-memory")
        self.assertEqual(self.folders(), [])

    def test_leaves_a_controller_that_was_on(self):
        self.control.write_text("cpu memory")
        with memory_cgroup.MemoryCgroup(self.root):
            pass
        self.assertEqual(self.control.read_text(), "cpu memory")

    def test_an_error_names_its_cause_and_leaves_nothing(self):
        with self.assertRaisesRegex(RuntimeError, "cannot make a memory cgroup: .*this needs root"):
            memory_cgroup.MemoryCgroup(self.root).__enter__()  # there is no cgroup.subtree_control
        self.control.write_text("cpu")
        cgroup = memory_cgroup.MemoryCgroup(self.root)
        cgroup._directory.write_text("")  # mkdir fails
        with self.assertRaises(RuntimeError):
            cgroup.__enter__()
        self.assertEqual(self.control.read_text(), "-memory")


if __name__ == "__main__":
    unittest.main()
