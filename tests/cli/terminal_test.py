#!/usr/bin/env python3
"""What the program shows on a terminal and nowhere else: answers for people, colors, progress bars.

    terminal_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""
import array
import json
import os
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

import cli_support
from cli_support import device_arguments, run_on_device, write_llama, write_tensors

SOURCE = ""  # set below
LIMIT_S = 600


def model(name):
    return os.path.join(SOURCE, "models", name)


def task(name):
    return os.path.join(SOURCE, "tests/tasks/golden", name)


def digit(number):
    return os.path.join(model("digits"), "%d.png" % number)


def on_terminal(*arguments, stream="stdout", **environment):
    """(exit code, what came to that stream), a terminal of 80 columns; the other is a pipe."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "COLUMNS": "80"}
    variables.pop("NO_COLOR", None)
    variables.update(environment)
    other = "stderr" if stream == "stdout" else "stdout"
    process = subprocess.Popen([cli_support.PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                               env=variables, **{stream: theirs, other: subprocess.DEVNULL})
    os.close(theirs)
    text, end = b"", time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            piece = os.read(ours, 65536)
        except OSError:  # what Linux gives at the end of a terminal
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    return process.wait(timeout=60), text.decode("utf-8").replace("\r\n", "\n")


class TerminalTest(unittest.TestCase):
    def read(self, *arguments, **environment):
        code, text = on_terminal(*arguments, *device_arguments(), NO_COLOR="1", **environment)
        self.assertEqual(code, 0, text)
        self.assertNotIn("\033", text)
        return text.splitlines()

    def json(self, *arguments):
        result = run_on_device(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]


class ReadableTest(TerminalTest):
    def test_classify(self):
        lines = self.read("classify", model("digits"), digit(7))
        answer = self.json("classify", model("digits"), digit(7))[0]
        self.assertEqual(answer["label"], "7")
        self.assertEqual(len(lines), 5)
        self.assertRegex(lines[0], r"^7   +\d+\.\d %  █+[▏▎▍▌▋▊▉]?$")
        self.assertIn("%.1f %%" % (100 * answer["score"]), lines[0])
        bars = [line.split("%")[1].strip() for line in lines]
        self.assertEqual(sorted(bars, key=len, reverse=True), bars)
        # Several inputs have headings.
        lines = self.read("classify", model("digits"), digit(7), digit(3), "--top", "1")
        self.assertEqual([lines[0], lines[2]], [digit(7), digit(3)])
        self.assertEqual([lines[1][0], lines[3][0]], ["7", "3"])

    def test_bars_of_other_locales(self):
        lines = self.read("classify", model("digits"), digit(7), "--top", "1", LC_ALL="C")
        self.assertRegex(lines[0], r"^7   +\d+\.\d %  #+$")

    def test_entities(self):
        lines = self.read("classify", task("entities"), "Ada in Rome")
        answer = self.json("classify", task("entities"), "Ada in Rome")[0]
        if not answer["entities"]:
            self.assertEqual(lines, ["no entities"])
        for line, entity in zip(lines, answer["entities"]):
            for word in (entity["text"], entity["label"],
                         "characters %d to %d" % (entity["begin"], entity["end"])):
                self.assertIn(word, line)

    def test_answer(self):
        question = ("answer", task("answers"), "what is it", "--context", "a quick brown fox")
        lines = self.read(*question)
        answer = self.json(*question)[0]
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].startswith(answer["answer"] or "(no answer)"), lines[0])
        self.assertIn("%.1f %%" % (100 * answer["score"]), lines[0])
        self.assertEqual(len(self.read(*question, "--top", "3")),
                         len(self.json(*question, "--top", "3")[0]["answers"]))

    def test_fill_mask(self):
        text = self.mask_text()
        lines = self.read("fill-mask", task("masks"), text, "--top", "3")
        candidates = self.json("fill-mask", task("masks"), text, "--top", "3")[0]["masks"][0]
        self.assertEqual(len(lines), 4)
        for line, candidate in zip(lines, candidates):
            self.assertIn(candidate["token_text"], line)
        self.assertEqual(lines[3], candidates[0]["text"])

    def mask_text(self):
        with open(os.path.join(task("masks"), "tokenizer.json"), encoding="utf-8") as file:
            tokens = [token["content"] for token in json.load(file)["added_tokens"]]
        mask = next(token for token in tokens if "mask" in token.lower())
        return "the " + mask + " is here"

    def test_embed(self):
        lines = self.read("embed", task("embed"), "a fox", "a dog")
        vectors = [answer["embedding"] for answer in self.json("embed", task("embed"), "a fox",
                                                               "a dog")]
        length = sum(value * value for value in vectors[0]) ** 0.5
        self.assertEqual(lines[0], "a fox")
        self.assertTrue(lines[1].startswith("%d numbers, length %.3f: " % (len(vectors[0]), length)))
        self.assertIn(" %.3f" % vectors[0][0], lines[1])
        other = sum(value * value for value in vectors[1]) ** 0.5
        cosine = sum(a * b for a, b in zip(*vectors)) / (length * other)
        self.assertRegex(lines[4], r"^cosine with the first: -?\d\.\d{3}$")
        self.assertAlmostEqual(float(lines[4].split()[-1]), cosine, delta=0.001)

    def test_texts(self):
        picture = task("picture-0.png")
        self.assertEqual("\n".join(self.read("caption", task("captions"), picture)),
                         self.json("caption", task("captions"), picture)[0]["text"])

    def test_json_where_it_is_asked_for(self):
        lines = self.read("classify", model("digits"), digit(7), "--json")
        self.assertEqual(json.loads(lines[0]),
                         self.json("classify", model("digits"), digit(7))[0])
        with tempfile.TemporaryDirectory() as folder:
            output = os.path.join(folder, "out.jsonl")
            self.assertEqual(self.read("classify", model("digits"), digit(7), "--output", output), [])
            with open(output, encoding="utf-8") as file:
                self.assertEqual(json.loads(file.read())["label"], "7")

    def test_errors_of_inputs(self):
        code, text = on_terminal("classify", model("digits"), digit(7), "/gone.png", "--keep-going",
                                 *device_arguments(), NO_COLOR="1")
        self.assertEqual(code, 1)
        self.assertIn("\n/gone.png\n", text)
        self.assertIn("[/gone.png", text.split("\n/gone.png\n")[1])


class ColorTest(TerminalTest):
    def test_colors_on_a_terminal_only(self):
        arguments = ["classify", model("digits"), digit(7), *device_arguments()]
        self.assertIn("\033[36m", on_terminal(*arguments)[1])
        for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", on_terminal(*arguments, **variable)[1])
        self.assertNotIn("\033", run_on_device("classify", model("digits"), digit(7)).stdout)

    def test_messages(self):
        code, text = on_terminal("generat", stream="stderr")
        self.assertEqual(code, 2)
        self.assertTrue(text.startswith("\033[31mvkformer:\033[0m ["), text)
        code, text = on_terminal("generat", stream="stderr", NO_COLOR="1")
        self.assertTrue(text.startswith("vkformer: ["), text)


class ProgressTest(TerminalTest):
    def test_a_bar_for_pieces(self):
        code, text = on_terminal("conformance", "--quick", "--filter", "matmul", "--filter", "model/",
                                 "--cache-dir", "none", *device_arguments(), stream="stderr",
                                 NO_COLOR="1")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"\r\033\[Kchecking .+ \[[█▏▎▍▌▋▊▉ ]{24}\] \d+ of \d+")
        # It leaves nothing on the screen.
        self.assertTrue(text.endswith("\r\033[K"), text[-100:])

    def test_a_bar_for_loading(self):
        with tempfile.TemporaryDirectory() as folder:
            large = os.path.join(folder, "large")
            os.mkdir(large)
            # 151 MB in 9 large tensors, which it rounds to 4 bits: seconds.
            write_llama(large, lambda count, is_matrix: array.array("f", bytes(4 * count)),
                        {"vocab_size": 1024, "hidden_size": 256, "intermediate_size": 16384,
                         "num_hidden_layers": 3, "num_attention_heads": 4,
                         "max_position_embeddings": 64, "tie_word_embeddings": True}, {})
            inputs = os.path.join(folder, "inputs.safetensors")
            write_tensors(inputs, {"input_ids": ("I64", [1, 2], [5, 6])})
            code, text = on_terminal("run", large, "--inputs", inputs, "--outputs", inputs + ".out",
                                     "--weights", "q4m", "--cache-dir", "none", *device_arguments(),
                                     stream="stderr", NO_COLOR="1")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"\r\033\[Kloading \S*large \[[█▏▎▍▌▋▊▉ ]{24}\] \d+ of \d+ MB")

    def test_none_in_a_pipe(self):
        result = run_on_device("conformance", "--quick", "--filter", "matmul", "--cache-dir", "none")
        self.assertEqual(result.stderr, "")


if __name__ == "__main__":
    cli_support.PROGRAM, SOURCE = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
