#!/usr/bin/env python3
"""Tests of `vkformer verify`, with references made of golden cases.

    verify_test.py PROGRAM SOURCE_DIRECTORY [unittest arguments]"""
import array
import json
import os
import sys
import tempfile
import unittest

import cli_support
from cli_support import read_tensors, run_on_device, write_tensors

GOLDEN = ""
TEXT = "attention"
TOKENS = [3, 22, 22, 7, 16, 22, 11, 17, 16, 1]  # models/g2p-en's


class VerifyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = os.path.join(GOLDEN, "bert-mlm", "model")
        inputs = read_tensors(os.path.join(GOLDEN, "bert-mlm", "inputs.safetensors"))
        self.tensors = {"input." + name: tensor for name, tensor in inputs.items()}
        # Padded rows of a golden case are not compared; here all tokens are.
        mask = self.tensors["input.attention_mask"]
        self.tensors["input.attention_mask"] = (mask[0], mask[1], array.array("q", [1] * len(mask[2])))
        self.expect("logits", self.logits())

    def logits(self):
        """Of the program itself, all tokens attended."""
        inputs = os.path.join(self.folder, "inputs.safetensors")
        outputs = os.path.join(self.folder, "outputs.safetensors")
        write_tensors(inputs, {name[6:]: tensor for name, tensor in self.tensors.items()})
        done = run_on_device("run", self.model, "--inputs", inputs, "--outputs", outputs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return read_tensors(outputs)["logits"]

    def expect(self, name, tensor, rounding=1e-6):
        self.tensors["expected." + name] = tensor
        self.tensors["rounding." + name] = ("F32", [1], array.array("f", [rounding]))

    def verify(self, *arguments, code=0, model=None):
        path = os.path.join(self.folder, "reference.safetensors")
        write_tensors(path, self.tensors)
        done = run_on_device("verify", model or self.model, path, *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_equal_outputs_are_verified(self):
        self.assertIn("verified", self.verify().stdout)
        report = json.loads(self.verify("--json").stdout)
        self.assertTrue(report["passes"])
        self.assertEqual(report["outputs"][0]["name"], "logits")
        self.assertEqual(report["outputs"][0]["same_best"], 1)
        self.assertAlmostEqual(report["outputs"][0]["allowed"], 1e-5, places=9)
        self.assertEqual(self.verify("--quiet").stdout, "")

    def test_a_value_that_differs_fails_unless_it_is_allowed(self):
        dtype, shape, values = self.tensors["expected.logits"]
        values = array.array("f", values)
        values[7] += 0.01
        self.expect("logits", (dtype, shape, values))
        self.assertIn("too far", self.verify(code=1).stdout)
        self.verify("--tolerance", "0.02")
        self.expect("logits", (dtype, shape, values), rounding=0.002)
        self.verify()
        values[7] = float("nan")
        self.expect("logits", (dtype, shape, values))
        report = json.loads(self.verify("--json", "--tolerance", "1000", code=1).stdout)
        self.assertIsNone(report["outputs"][0]["difference"])

    def test_other_weights_are_shown_and_judged_only_when_asked(self):
        self.assertIn("not judged", self.verify("--weights", "q8").stdout)
        self.assertIsNone(json.loads(self.verify("--weights", "q8", "--json").stdout)["outputs"][0]["allowed"])
        self.verify("--weights", "q4", "--tolerance", "1e-7", code=1)

    def test_the_tokenizer_must_read_the_text_as_the_reference_did(self):
        ids = array.array("q", TOKENS)
        spelled = array.array("B", TEXT.encode())
        self.tensors = {"text": ("U8", [len(spelled)], spelled), "input.input_ids": ("I64", [1, len(ids)], ids)}
        self.tensors["input.decoder_input_ids"] = ("I64", [1, 1], array.array("q", [0]))
        self.expect("logits", ("F32", [1, 1, 101], array.array("f", [0] * 101)))
        self.assertIn("too far", self.verify(code=1, model=cli_support.MODEL).stdout)
        ids[3] = 8
        self.assertIn("token 3 of the reference's text is 7 here and 8", self.verify(
            code=1, model=cli_support.MODEL).stderr)

    def test_what_is_no_reference_is_said(self):
        for name, tensor, part in (
                ("logits", ("F32", [1], array.array("f", [0])), "'logits' is none of text"),
                ("rounding.logits", ("F32", [2], array.array("f", [0, 0])), "is not one number"),
                ("expected.other", ("F32", [1], array.array("f", [0])), "'rounding.other' is missing")):
            whole = dict(self.tensors)
            self.tensors[name] = tensor
            done = self.verify(code=1)
            self.assertIn(part, done.stderr)
            self.assertIn("tools/verify_reference.py", done.stderr)
            self.tensors = whole
        self.expect("pooled", ("F32", [1], array.array("f", [0])))
        self.assertIn("gives no 'pooled'", self.verify(code=3).stderr)
        del self.tensors["expected.pooled"], self.tensors["rounding.pooled"]
        self.expect("logits", ("F32", [1, 2], array.array("f", [0, 0])))
        self.assertIn("in the reference", self.verify(code=1).stderr)


if __name__ == "__main__":
    cli_support.PROGRAM = sys.argv[1]
    cli_support.MODEL = os.path.join(sys.argv[2], "models", "g2p-en")
    GOLDEN = os.path.join(sys.argv[2], "tests", "golden")
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
