#!/usr/bin/env python3
"""Tests of pictures in the prompts of `vkformer generate` and `vkformer chat`.

    pictures_test.py PROGRAM TASK_MODELS [unittest arguments]

TASK_MODELS is tests/tasks/golden; its models prompts-* answer as transformers does."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import cli_support
from cli_support import run_on_device

FAMILIES = ("llava", "paligemma", "gemma3", "idefics3", "smolvlm", "qwen2_5_vl", "qwen3_vl")


def model(name):
    return os.path.join(cli_support.MODEL, name)


def prompts(family):
    with open(model(f"prompts-{family}/expected.json"), encoding="utf-8") as file:
        return json.load(file)["prompts"]


class PicturesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def generate(self, directory, text, pictures, *options, code=0):
        named = [part for picture in pictures for part in ("--picture", model(picture))]
        result = run_on_device("generate", directory, text, *named, "--json", "--beams", "1",
                               "--max-new-tokens", "8", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout) if code == 0 else result.stderr

    def chat(self, family, *lines, options=(), code=0):
        result = run_on_device("chat", model(f"prompts-{family}"), "--max-new-tokens", "8", *options,
                               text="".join(line + "\n" for line in lines))
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_a_model_answers_as_in_transformers(self):
        for family in FAMILIES:
            directory = model(f"prompts-{family}")
            for entry in prompts(family):
                # Without placeholders a text is what a user says, where there is a template.
                templated = family != "paligemma" and entry["prompt"] is not None
                if templated and not entry["chat"]:
                    continue
                found = self.generate(directory, entry["text"], entry["pictures"])
                self.assertEqual(found["ids"], entry["generated"], (family, entry))

    def test_lines_name_their_own_pictures(self):
        entries = [entry for entry in prompts("paligemma") if entry["prompt"] is not None]
        lines = self.path("in.jsonl")
        with open(lines, "w", encoding="utf-8") as file:
            for entry in entries:
                paths = [model(name) for name in entry["pictures"]]
                paths = paths[0] if len(paths) == 1 else paths
                file.write(json.dumps({"text": entry["text"], "pictures": paths}) + "\n")
        result = run_on_device("generate", model("prompts-paligemma"), "--input", lines, "--json",
                               "--beams", "1", "--max-new-tokens", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        answers = [json.loads(line) for line in result.stdout.splitlines()]
        self.assertEqual([answer["ids"] for answer in answers],
                         [entry["generated"] for entry in entries])
        with open(lines, "w", encoding="utf-8") as file:
            file.write(json.dumps({"text": "a", "pictures": [7]}) + "\n")
        result = run_on_device("generate", model("prompts-paligemma"), "--input", lines)
        self.assertEqual(result.returncode, 1)
        self.assertIn("[pictures]", result.stderr)

    def test_one_text_is_seen_while_it_is_written(self):
        entry = prompts("smolvlm")[3]
        result = run_on_device("generate", model("prompts-smolvlm"), entry["text"], "--picture",
                               model(entry["pictures"][0]), "--stream", "on", "--beams", "1",
                               "--max-new-tokens", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, entry["answer"] + "\n")

    def test_wrong_pictures_are_told(self):
        directory = model("prompts-llava")
        self.assertIn("absent.png", self.generate(directory, "a", ["absent.png"], code=1))
        error = self.generate(directory, "a <image>", ["picture-0.png", "picture-1.png"], code=1)
        self.assertIn("1 placeholders <image>, but 2 pictures", error)
        error = self.generate(model("judge"), "a", ["picture-0.png"], code=3)
        self.assertIn("reads no pictures", error)
        error = self.generate(directory, "a", ["picture-0.png"], "--prompt-lookup", "2", code=2)
        self.assertIn("--picture", error)
        bad = self.path("bad.png")
        with open(bad, "w", encoding="utf-8") as file:
            file.write("no picture")
        error = self.generate(directory, "a", [bad], code=3)
        self.assertIn("bad.png", error)
        # 1,200 tokens of one picture, and 512 positions.
        wide = self.path("wide")
        shutil.copytree(model("prompts-qwen3_vl"), wide)
        settings = os.path.join(wide, "preprocessor_config.json")
        with open(settings, encoding="utf-8") as file:
            content = json.load(file)
        content["size"] = {"shortest_edge": 19200, "longest_edge": 40000}
        with open(settings, "w", encoding="utf-8") as file:
            json.dump(content, file)
        error = self.generate(wide, "a", ["picture-1.png"], code=1)
        self.assertIn("of its pictures, but the model takes at most 512", error)

    def test_a_captioning_model_describes_one_picture(self):
        picture = model("picture-0.png")
        caption = json.loads(run_on_device("caption", model("captions"), picture).stdout)["text"]
        asked = run_on_device("generate", model("captions"), "--picture", picture)
        self.assertEqual(asked.stdout, caption + "\n", asked.stderr)
        begun = json.loads(run_on_device("generate", model("captions"), "ab", "--json",
                                         "--picture", picture).stdout)
        self.assertEqual(begun["input"], "ab")
        self.assertTrue(begun["text"].startswith("ab"), begun)
        prefixed = run_on_device("caption", model("captions"), "--prefix", "ab", picture)
        self.assertEqual(json.loads(prefixed.stdout)["text"], begun["text"])
        both = self.generate(model("captions"), "a", ["picture-0.png", "picture-1.png"], code=1)
        self.assertIn("one picture at a time, but 2 were given", both)
        stream = run_on_device("generate", model("captions"), "a", "--picture", picture,
                               "--stream", "on")
        self.assertIn("this one describes pictures", stream.stderr)

    def test_a_conversation_shows_pictures(self):
        for family in ("llava", "gemma3", "smolvlm", "qwen2_5_vl"):
            entry = prompts(family)[3]
            picture = model(entry["pictures"][0])
            spoken = self.chat(family, "/picture " + picture, entry["text"])
            self.assertEqual(spoken.stdout, entry["answer"] + "\n", family)
            given = self.chat(family, entry["text"], options=["--picture", picture])
            self.assertEqual(given.stdout, spoken.stdout, family)

    def test_a_conversation_keeps_its_pictures(self):
        picture = model("picture-0.png")
        begun, ended = self.path("begun.json"), self.path("ended.json")
        self.chat("smolvlm", "/picture " + picture, "One", "/save " + begun)
        with open(begun, encoding="utf-8") as file:
            said = json.load(file)["messages"]
        self.assertEqual(said[0]["pictures"], [picture])
        self.assertNotIn("pictures", said[1])
        whole = self.chat("smolvlm", "/picture " + picture, "One", "Two", "/save " + ended)
        later = self.chat("smolvlm", "/load " + begun, "Two", "/history")
        self.assertIn("user: [" + picture + "]", later.stdout)
        self.assertTrue(whole.stdout.splitlines()[-1] in later.stdout)

    def test_a_conversation_goes_on_after_a_wrong_picture(self):
        error = self.chat("smolvlm", "/picture " + self.path("absent.png"), code=1).stderr
        self.assertIn("absent.png", error)
        self.assertIn("lacks a file", self.chat("smolvlm", "/picture", code=1).stderr)
        result = run_on_device("chat", model("judge"), text="/picture " + model("picture-0.png"))
        self.assertNotEqual(result.returncode, 0)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
