#!/usr/bin/env python3
"""Tests of the table of tools/reproducible.

    reproducible_test.py SOURCE_DIRECTORY [unittest arguments]"""
import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

SOURCE = Path()


def load():
    path = str(SOURCE / "tools/reproducible")
    loader = importlib.machinery.SourceFileLoader("reproducible", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproducible", loader))
    loader.exec_module(module)
    return module


def entry(name, digest):
    return {"name": name, "tensor": "y", "shape": [2], "digest": digest}


class ReproducibleTest(unittest.TestCase):
    ENTRIES = [entry("softmax/plain", "1"), entry("model/a/layer.0/matmul", "2"), entry("model/a/greedy", "3"),
               entry("model/a/sampled", "4")]

    def changed(self, at):
        made = [dict(e) for e in self.ENTRIES]
        made[at]["digest"] = "f"
        return {"entries": made}

    def test_each_entry_changes_the_digest_of_its_kind_alone(self):
        tool = load()
        usual = tool.digests_of({"entries": self.ENTRIES})
        self.assertIsNone(usual["beams"])
        for at, kind in enumerate(["operators", "passes", "greedy", "sampled"]):
            other = tool.digests_of(self.changed(at))
            self.assertEqual([key for key in usual if usual[key] != other[key]], [kind])

    def test_the_table_has_a_row_for_each_run_and_columns_that_hold_something(self):
        tool = load()
        digests = tool.digests_of({"entries": self.ENTRIES})
        table = tool.table_of([("lavapipe", "as it is", digests, 4, 1, True),
                               ("swiftshader", "tier baseline", digests, 4, 1, False)]).splitlines()
        self.assertEqual(len(table), 4)
        self.assertEqual(table[0], "| driver | run | operators | passes | greedy | sampled | tensors | the host's bits |")
        self.assertTrue(table[2].endswith("| 4 | in 1 of 1 |"))
        self.assertTrue(table[3].endswith("| 4 | no |"))
        self.assertEqual({line.count("|") for line in table}, {table[0].count("|")})


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
