"""Tests the verdicts of comparison.py with stacks made by hand."""

import unittest

from comparison import FRAMES_MAX, Verdict, compare, place


class FakeCode:
    """One file "a" at 0x1000 to 0x5000. Below 0x2000 it has no unwind information."""

    def mapping_of(self, pc):
        return (0x1000, 0x5000, 0, "/a") if 0x1000 <= pc < 0x5000 else None

    def locate(self, pc):
        return ("a", pc - 0x1000, "/a") if self.mapping_of(pc) else ("", pc, "")

    def has_unwind_information(self, pc):
        return 0x2000 <= pc < 0x5000


def ours(*pcs):
    return [("a", pc - 0x1000, "/a") if 0x1000 <= pc <= 0x5000 else ("", pc, "") for pc in pcs]


def verdict(mine, ending, *pcs, signal_at=None):
    code = FakeCode()
    frames = [{"pc": pc, "name": None, "signal": i == signal_at} for i, pc in enumerate(pcs)]
    return compare(ours(*mine), ending, place(frames, code), code)


class Comparison(unittest.TestCase):
    def test_equal_stacks_are_identical(self):
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2000, 0x3000), Verdict.IDENTICAL)

    def test_gdb_frames_past_the_last_code_are_left_out(self):
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2000, 0x3000, 0x0), Verdict.IDENTICAL)
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2000, 0x3000, 0x7ffc0000, 0x3000), Verdict.IDENTICAL)

    def test_return_address_may_lie_right_after_the_file(self):
        self.assertIs(verdict((0x2000, 0x5000), "complete", 0x2000, 0x5000), Verdict.IDENTICAL)

    def test_interrupted_address_is_not_changed(self):
        self.assertIs(verdict((0x2000, 0x3000, 0x1000), "complete", 0x2000, 0x3000, 0x1000, signal_at=1), Verdict.IDENTICAL)

    def test_depth_limit_counts_as_identical_only_at_the_limit(self):
        pcs = [0x2000 + i for i in range(FRAMES_MAX + 10)]
        self.assertIs(verdict(pcs[:FRAMES_MAX], "truncated_depth", *pcs), Verdict.IDENTICAL)
        self.assertIs(verdict(pcs[:FRAMES_MAX - 1], "truncated_depth", *pcs), Verdict.CUT)
        self.assertIs(verdict(pcs[:FRAMES_MAX], "complete", *pcs), Verdict.WRONG_COMPLETE)

    def test_complete_and_shorter_is_always_wrong(self):
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2000, 0x3000, 0x4000), Verdict.WRONG_COMPLETE)
        self.assertIs(verdict((0x2000, 0x1800), "complete", 0x2000, 0x1800, 0x4000), Verdict.WRONG_COMPLETE)

    def test_differences_have_names(self):
        self.assertIs(verdict((0x2000, 0x3000), "no_table", 0x2000, 0x3000, 0x4000), Verdict.CUT)
        self.assertIs(verdict((0x2000, 0x1800), "frame_pointer_lost", 0x2000, 0x1800, 0x4000), Verdict.NO_INFORMATION)
        self.assertIs(verdict((0x2000, 0x3000, 0x4000), "complete", 0x2000, 0x3000), Verdict.GDB_STOPS)
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2000, 0x4000), Verdict.UNEXPLAINED)

    def test_another_leaf_is_a_failed_stop(self):
        self.assertIs(verdict((0x2000, 0x3000), "complete", 0x2004, 0x3000), Verdict.FAILED_STOP)
        self.assertIs(verdict((), "kernel_only", 0x2004), Verdict.FAILED_STOP)


if __name__ == "__main__":
    unittest.main()
