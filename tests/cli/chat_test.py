#!/usr/bin/env python3
"""Tests of `vkformer chat` with lines on stdin, as a person would type them.

    chat_test.py PROGRAM MODEL [unittest arguments]

MODEL is models/shakespeare, which has no chat template: a token is a byte."""
import json
import os
import re
import sys
import tempfile
import unittest

import cli_support
from cli_support import run_on_device

TEMPLATE = ("{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


class ChatTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.template = self.path("template.jinja")
        with open(self.template, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def chat(self, *lines, options=(), code=0):
        result = run_on_device("chat", cli_support.MODEL, "--template", self.template,
                               "--max-new-tokens", "12", "--seed", "3", "--temperature", "0.8",
                               "--stop", "\n", *options, text="".join(l + "\n" for l in lines))
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def talk(self, *lines, options=()):
        """The conversation at the end."""
        target = self.path("talk.json")
        self.chat(*lines, "/save " + target, options=options)
        with open(target, encoding="utf-8") as file:
            return [(m["role"], m["content"]) for m in json.load(file)["messages"]]

    def test_a_conversation_has_its_history(self):
        said = self.talk("Good morrow", "What news?", options=["--system", "Be brief."])
        self.assertEqual([role for role, _ in said],
                         ["system", "user", "assistant", "user", "assistant"])
        self.assertEqual([said[i][1] for i in (0, 1, 3)],
                         ["Be brief.", "Good morrow", "What news?"])
        shown = self.chat("Good morrow", "What news?", "/history",
                          options=["--system", "Be brief."]).stdout.splitlines()
        # Each answer where it was written, then the whole.
        self.assertEqual(shown[:2], [said[2][1], said[4][1]])
        self.assertEqual(shown[2:], ["%s: %s" % entry for entry in said])
        # The same as one text given to `generate`.
        prompt = "<system>Be brief.\n<user>Good morrow\n<assistant>"
        single = run_on_device("generate", cli_support.MODEL, prompt, "--max-new-tokens", "12",
                               "--seed", "3", "--temperature", "0.8", "--stop", "\n", "--json")
        self.assertEqual(single.returncode, 0, single.stderr)
        self.assertEqual(json.loads(single.stdout)["text"], said[2][1])

    def test_messages_can_be_taken_back_and_changed(self):
        plain = self.talk("One")
        self.assertEqual(self.talk("One", "Two", "/undo"), plain)
        self.assertEqual(self.talk("Two", "/clear", "One"), plain)
        edited = self.talk("Two", "/edit One")
        self.assertEqual([edited[0], len(edited)], [("user", "One"), 2])
        again = self.talk("One", "/retry")
        self.assertEqual(again[0], plain[0])
        self.assertNotEqual(again[1], plain[1], "another seed")
        system = self.talk("/system Be loud.", "One")
        self.assertEqual(system[0], ("system", "Be loud."))
        self.assertEqual(self.talk("/system Be loud.", "/system", "One"), plain)

    def test_a_conversation_is_saved_and_goes_on(self):
        whole = self.talk("One", "Two")
        begun = self.path("begun.json")
        self.chat("One", "/save " + begun)
        self.assertEqual(self.talk("Two", options=["--load", begun]), whole)
        self.assertEqual(self.talk("/load " + begun, "Two"), whole)

    def test_the_rate_is_seen_and_what_was_said_is_not_read_again(self):
        reports = [line for line in self.chat("One", "Two").stderr.splitlines() if "tokens/s" in line]
        self.assertEqual(len(reports), 2, reports)
        kept = [int(re.search(r"(\d+) prompt tokens from the cache", line).group(1))
                for line in reports]
        self.assertEqual(kept[0], 0)
        self.assertGreater(kept[1], len("<user>One\n<assistant>"))
        self.assertEqual(self.chat("One", options=["--quiet"]).stderr, "")

    def test_mistakes_are_told_and_the_conversation_goes_on(self):
        for line, part in (("/dance", "[/dance] is not a command"), ("/undo", "nothing was said yet"),
                           ("/retry", "nothing was said yet"), ("/edit", "lacks the new message"),
                           ("/save", "lacks a file"), ("/load " + self.path("absent"), "absent"),
                           ("x" * 5000, "tokens")):
            result = self.chat(line, "/history", code=1)
            self.assertIn(part, result.stderr)
            self.assertEqual(result.stdout.strip(), "", "nothing was said")
        broken = self.path("broken.json")
        with open(broken, "w", encoding="utf-8") as file:
            file.write('{"messages": [{"role": "user"}]}')
        self.assertIn("is no conversation", self.chat("/load " + broken, code=1).stderr)
        self.assertIn("/retry", self.chat("/help").stdout)
        self.assertEqual(self.chat("/quit", "never said").stdout, "")

    def test_without_a_template_it_is_refused(self):
        result = run_on_device("chat", cli_support.MODEL, text="Hello\n")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--template", result.stderr)
        self.assertEqual(result.stdout, "")
        with open(self.template, "w", encoding="utf-8") as file:
            file.write("{% for m in messages %}")
        self.assertNotEqual(run_on_device("chat", cli_support.MODEL, "--template", self.template,
                                          text="Hello\n").returncode, 0)


if __name__ == "__main__":
    cli_support.PROGRAM, cli_support.MODEL = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
