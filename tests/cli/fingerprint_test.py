#!/usr/bin/env python3
"""Fingerprints of models of every kind of input: which ways to generate they have, and that two of them are equal.

  fingerprint_test.py VKFORMER FOLDER

FOLDER is tests/golden."""
import json
import os
import sys
import tempfile
import unittest

import cli_support
from cli_support import run, run_on_device

SEARCHES = {"greedy", "beams", "sampled"}
TEXTS = SEARCHES | {"batched", "drafted"}
# What a fingerprint has of a model beside its pass. Models that read pictures or sound have no batch of texts.
WAYS = {
    "bert-base": set(),
    "detr-bare": set(),
    "gpt2-base": TEXTS,
    "marian-base": TEXTS,
    "blip-base": SEARCHES,
    "llava-tiny": SEARCHES,
    "whisper-base": SEARCHES,
    "vision-encoder-decoder-trocr": SEARCHES,
}


def take(file, models):
    folders = [os.path.join(cli_support.MODEL, name) for name in models]
    return run_on_device("fingerprint", *folders, "--filter", "softmax/plain", "--quiet", "--json", file)


class Fingerprints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.first, self.second = (os.path.join(folder.name, name) for name in ("a.json", "b.json"))

    def test_models_have_their_ways_to_generate(self):
        taken = take(self.first, WAYS)
        self.assertEqual(taken.returncode, 0, taken.stderr)
        with open(self.first, encoding="utf-8") as file:
            names = {entry["name"] for entry in json.load(file)["entries"]}
        for model, ways in WAYS.items():
            own = {name.split("/")[2] for name in names if name.startswith(f"model/{model}/") and name.count("/") == 2}
            self.assertEqual(own & TEXTS, ways, model)
            self.assertTrue(any(name.startswith(f"model/{model}/") for name in names), model)

    def test_the_same_models_are_equal_and_others_are_named(self):
        for file in (self.first, self.second):
            taken = take(file, ["gpt2-base", "blip-base"])
            self.assertEqual(taken.returncode, 0, taken.stderr)
        self.assertEqual(run("fingerprint", "diff", self.first, self.second).returncode, 0)
        with open(self.second, encoding="utf-8") as file:
            changed = json.load(file)
        entry = next(e for e in changed["entries"] if e["name"] == "model/blip-base/beams" and e["tensor"] == "ids")
        entry["digest"] = "0" * len(entry["digest"])
        with open(self.second, "w", encoding="utf-8") as file:
            json.dump(changed, file)
        compared = run("fingerprint", "diff", self.first, self.second)
        self.assertNotEqual(compared.returncode, 0)
        self.assertIn("model/blip-base/beams", compared.stdout + compared.stderr)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1], sys.argv[2]
    unittest.main(argv=sys.argv[:1])
