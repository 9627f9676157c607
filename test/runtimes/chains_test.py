"""Tests the comparison of chains with stacks, on which the other tests of this folder depend."""

import unittest

import chains


def python(function, line=1):
    return {"kind": "python", "function": function, "file": "a.py", "line": line}


def element(function, line=None):
    return {"function": function, "file": "a.py", "line": line}


def native(function):
    return {"kind": "native", "function": function, "file": "", "line": 0}


STACK = [native("main"), python("a", 1), native("sort"), python("b", 2), native("hash")]


class Chains(unittest.TestCase):
    def test_matches_a_whole_stack_with_native_frames_between(self):
        self.assertTrue(chains.matches([element("a", 1), element("b", 2)], STACK))
        self.assertTrue(chains.matches([element("a"), element("b")], STACK))

    def test_refuses_missing_and_additional_frames(self):
        for chain in ([element("a")], [element("b")], [element("a"), element("b"), element("c")], [element("b"), element("a")], []):
            self.assertFalse(chains.matches(chain, STACK), chain)
        self.assertFalse(chains.matches([element("a"), element("b")], STACK + [python("c")]))

    def test_refuses_another_line_or_file(self):
        self.assertFalse(chains.matches([element("a", 1), element("b", 3)], STACK))
        self.assertFalse(chains.matches([element("a"), dict(element("b"), file="b.py")], STACK))

    def test_any_matches_any_number_of_frames(self):
        self.assertTrue(chains.matches([chains.ANY, element("b")], STACK))
        self.assertTrue(chains.matches([chains.ANY, element("a"), element("b")], STACK))
        self.assertTrue(chains.matches([element("a"), chains.ANY], STACK))
        self.assertFalse(chains.matches([chains.ANY, element("a")], STACK))

    def test_native_must_be_at_its_place(self):
        self.assertTrue(chains.matches([chains.native("main"), element("a"), chains.native("sort"), element("b"), chains.native("hash")], STACK))
        self.assertFalse(chains.matches([element("a"), element("b"), chains.native("sort")], STACK))
        self.assertFalse(chains.matches([chains.native("sort"), element("a"), element("b")], STACK))

    def test_either_matches_one_of_its_chains(self):
        either = {"either": [[element("a"), element("b")], [element("a"), element("c")]]}
        self.assertTrue(chains.matches([either], STACK))
        self.assertFalse(chains.matches([either, element("b")], STACK))

    def test_text_shortens_repetitions(self):
        self.assertEqual(chains.text([element("a", 1)] * 3 + [chains.ANY, chains.native("sort")]), "a:1 × 3 → … → [sort]")
        self.assertEqual(chains.stack_text(STACK), "[main] → a:1 → [sort] → b:2 → [hash]")


if __name__ == "__main__":
    unittest.main()
