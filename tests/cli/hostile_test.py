#!/usr/bin/env python3
"""Damaged models and texts, from outside: an error that says what is wrong, never a crash.

    hostile_test.py PROGRAM MODEL_DIR [unittest arguments]

Needs no driver."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import cli_support
from cli_support import NO_DRIVER, run

# Of config.json: values that no model can have.
WRONG_VALUES = (0, -1, 10**9, 2**63, 0.5, "many", [], {}, True)
WRONG_KEYS = ("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads",
              "decoder_attention_heads", "encoder_ffn_dim", "vocab_size")


class HostileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = os.path.join(folder.name, "model")
        shutil.copytree(cli_support.MODEL, self.model)
        with open(self.path("config.json"), encoding="utf-8") as file:
            self.config = json.load(file)

    def path(self, name):
        return os.path.join(self.model, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def inspect(self, code, *words):
        result = run("inspect", self.model, environment=NO_DRIVER)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertFalse(result.stdout)

    def test_sizes_that_no_model_has(self):
        for key in WRONG_KEYS:
            for value in WRONG_VALUES:
                with self.subTest(key=key, value=value):
                    self.write("config.json", json.dumps({**self.config, key: value}).encode())
                    self.inspect(1, key)

    def test_variants_that_are_not_supported(self):
        for key, value, code in (("model_type", "abacus", 3), ("model_type", 7, 1),
                                 ("activation_function", "abacus", 3)):
            self.write("config.json", json.dumps({**self.config, key: value}).encode())
            self.inspect(code, key)

    def test_damaged_files(self):
        with open(self.path("model.safetensors"), "rb") as file:
            weights = file.read()
        for size in (0, 7, 8, 100, len(weights) // 2, len(weights) - 1):
            self.write("model.safetensors", weights[:size])
            self.inspect(1, "model.safetensors")
        self.write("model.safetensors", b"\xff" * 8 + weights[8:])
        self.inspect(1, "model.safetensors")
        os.remove(self.path("model.safetensors"))
        self.inspect(1, self.model)
        for text in (b"", b"[]", b"{", b"null", b"\xff\xfe", b"[" * 100000):
            self.write("config.json", text)
            self.inspect(1, "config.json")

    def test_texts_that_are_not_utf8(self):
        for text, offset in ((b"\xff", 0), (b"a\xc3", 1), (b"ab\xed\xa0\x80", 2)):
            result = run("tokenize", self.model, text, environment=NO_DRIVER)
            self.assertEqual(result.returncode, 1)
            self.assertIn("byte offset %d" % offset, result.stderr)
            self.assertFalse(result.stdout)

    def test_damaged_tokenizers(self):
        with open(self.path("tokenizer.json"), "rb") as file:
            tokenizer = file.read()
        for content in (b"", b"{}", b"[]", tokenizer[:len(tokenizer) // 2]):
            self.write("tokenizer.json", content)
            result = run("tokenize", self.model, "a", environment=NO_DRIVER)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("tokenizer.json", result.stderr)

    def test_json_that_nests_a_million_deep(self):
        for text in (b'{"a":' * 10**6 + b"1" + b"}" * 10**6,
                     b'{"pairs":' + b"[" * 10**6 + b"]" * 10**6 + b"}"):
            case = os.path.dirname(self.model)
            for deep in ("case.json", "inputs.json"):
                for name in ("case.json", "inputs.json"):
                    with open(os.path.join(case, name), "wb") as file:
                        file.write(text if name == deep else b"{}")
                result = run("case", case, "--output", os.path.join(case, "out.json"),
                             environment=NO_DRIVER)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(deep, result.stderr)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
