#!/usr/bin/env python3
"""Tests of tools/answers: what it writes of a build, and what its comparison finds.

    answers_test.py PROGRAM ANSWERS [unittest arguments]

ANSWERS is tools/answers."""
import base64
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

PROGRAM, ANSWERS = sys.argv.pop(1), sys.argv.pop(1)
KEY = {"driver": "d", "tier": "best", "case": "c"}


def answers(*arguments):
    return subprocess.run([sys.executable, "-B", ANSWERS, *arguments], capture_output=True,
                          encoding="utf-8", check=False)


def floats(output, values):
    data = struct.pack(f"<{len(values)}f", *values)
    return {**KEY, "output": output, "kind": "floats", "dtype": "F32", "shape": [len(values)],
            "hash": data.hex(), "data": base64.b64encode(zlib.compress(data)).decode()}


def ids(output, value):
    return {**KEY, "output": output, "kind": "ids", "value": value}


class AnswersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, rows):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def compare(self, old, new):
        return answers("compare", self.write("old", old), self.write("new", new))

    def test_same_rows_in_another_order(self):
        rows = [floats("logits", [1.0, 2.0]), ids("ids", "3,4")]
        result = self.compare(rows, rows[::-1])
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("2 rows are the same to the bit, 0 differ", result.stdout)

    def test_one_bit_of_a_float(self):
        changed = struct.unpack("<f", struct.pack("<I", 0x3F800001))[0]
        result = self.compare([floats("logits", [1.0, -4.0])], [floats("logits", [changed, -4.0])])
        self.assertEqual(result.returncode, 1)
        self.assertIn("1 of 2 values differ, at most by 1.19e-07 (largest value 4)", result.stdout)

    def test_zeros_and_nans(self):
        result = self.compare([floats("logits", [0.0, 1.0])],
                              [floats("logits", [-0.0, float("nan")])])
        self.assertEqual(result.returncode, 1)
        self.assertIn("2 of 2 values differ, at most by 0", result.stdout)
        self.assertIn("1 are not finite", result.stdout)

    def test_ids_shapes_and_missing_rows(self):
        result = self.compare([ids("a", "1,2,3"), floats("b", [1.0]), ids("c", "1")],
                              [ids("a", "1,2"), floats("b", [1.0, 2.0]), ids("d", "1")])
        self.assertEqual(result.returncode, 1)
        self.assertIn("ids differ from number 2 on, of 3 and 2", result.stdout)
        self.assertIn("d best c b: another kind, type or shape", result.stdout)
        self.assertEqual(result.stdout.count("only in"), 2)
        self.assertIn("0 rows are the same to the bit, 4 differ", result.stdout)

    def test_bad_input(self):
        result = answers("compare", os.path.join(self.folder, "absent"), self.write("new", []))
        self.assertEqual(result.returncode, 2)
        self.assertIn("absent] cannot be read", result.stderr)
        result = answers("write", "--program", self.folder + "/absent", "--output", os.devnull)
        self.assertEqual(result.returncode, 2)
        self.assertIn("absent is not a program", result.stderr)

    def test_a_build_answers_itself(self):
        paths = [os.path.join(self.folder, name) for name in ("one", "two")]
        tier = os.environ.get("VKFORMER_TEST_TIER") or "best"
        for path in paths:
            result = answers("write", "--program", PROGRAM, "--driver", "present", "--tier", tier,
                             "--only", "gpt2-base", "--output", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(", 0 of them errors", result.stdout)
        result = answers("compare", *paths)
        self.assertEqual(result.returncode, 0, result.stdout)
        with open(paths[0], encoding="utf-8") as file:
            outputs = {json.loads(line)["output"] for line in file}
        self.assertLessEqual({"logits", "greedy_ids", "beam4_ids", "beam4_scores"}, outputs)


if __name__ == "__main__":
    unittest.main()
