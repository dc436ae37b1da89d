#!/usr/bin/env python3
"""Checks the recipe's data part against the files of models/g2p-en.

    tools/train/g2p_data_test.py                 error rates, tokenizer, f16 conversion
    tools/train/g2p_data_test.py cmudict.dict    also split, vocabulary and gold file
"""
import json
import math
import struct
import sys
import tempfile
import unittest
from pathlib import Path

import g2p_data
import score
import to_f16

MODEL = score.MODEL_DIR
CMUDICT = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else None


def load(name):
    return json.loads((MODEL / name).read_text(encoding="utf-8"))


class Rates(unittest.TestCase):
    def test_edit_distance(self):
        self.assertEqual(g2p_data.edit_distance("kitten", "sitting"), 3)
        self.assertEqual(g2p_data.edit_distance("", "abc"), 3)

    def test_card(self):
        """The numbers of the model card, from the reference outputs and the gold file."""
        gold = score.read_gold(MODEL / "test_gold.json")
        for name, expected in (("reference_greedy.json", (28.3, 23.6, 5.7)),
                               ("reference_beam4.json", (25.0, 19.8, 5.1))):
            outputs = score.read_outputs((MODEL / name).read_text(encoding="utf-8"))
            rates = g2p_data.error_rates(outputs, gold)
            found = (rates["word_error_rate"], rates["word_error_rate_without_stress"],
                     rates["phoneme_error_rate_without_stress"])
            self.assertEqual(tuple(round(100 * rate, 1) for rate in found), expected, name)


class Dictionary(unittest.TestCase):
    def test_lines(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.dict"
            path.write_text("a AH0\na(2) EY1\naalborg AO1 L # place\nb@d B\n"
                            f"{'x' * 25} K\na(3) AH0\n", encoding="utf-8")
            self.assertEqual(g2p_data.read_cmudict(path),
                             {"a": [("AH0",), ("EY1",)], "aalborg": [("AO1", "L")]})

    def test_tokenizer_file(self):
        tokenizer = load("tokenizer.json")
        self.assertEqual(g2p_data.tokenizer_json(tokenizer["model"]["vocab"]), tokenizer)

    @unittest.skipUnless(CMUDICT, "needs the path of cmudict.dict")
    def test_split_vocabulary_and_gold(self):
        words = g2p_data.read_cmudict(CMUDICT)
        split, files = g2p_data.split_words(words), load("split.json")
        self.assertEqual((split["test"], split["dev"]), (files["test"], files["dev"]))
        self.assertEqual(len(split["train"]), 112051)
        vocabulary = g2p_data.build_vocabulary(words)
        self.assertEqual(list(vocabulary.items()),
                         list(load("tokenizer.json")["model"]["vocab"].items()))
        gold = score.read_gold(MODEL / "test_gold.json")
        self.assertEqual(gold, {word: words[word] for word in split["test"]})


class Half(unittest.TestCase):
    def test_rounding(self):
        values = (1.0, 1 + 2 ** -11, 1 + 3 * 2 ** -11, -0.0, 2 ** -25, math.inf)
        halves = struct.unpack("<6e", to_f16.to_half("x", struct.pack("<6f", *values)))
        self.assertEqual(halves, (1.0, 1.0, 1 + 2 ** -9, -0.0, 0.0, math.inf))

    def test_overflow_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, r"\[x\] holds 70000"):
            to_f16.to_half("x", struct.pack("<2f", 1.0, 70000.0))

    def test_model_is_f16_and_complete(self):
        _, tensors = to_f16.read_safetensors(MODEL / "model.safetensors")
        self.assertEqual(len(tensors), 118)
        for name, dtype, shape, data in tensors:
            self.assertEqual((dtype, len(data)), ("F16", 2 * math.prod(shape)), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
