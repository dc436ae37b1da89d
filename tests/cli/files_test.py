#!/usr/bin/env python3
"""Every option, argument and chat command that takes a file gets a directory, a file without permission, an empty one
and a missing one. The answer is a sentence that names it, never an exception's words.

    files_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cli_support
from cli_support import device_arguments, run, run_on_device

NOBODY = 65534
FILE = "{file}"  # stands for the path that is tried
SOURCE = TEMPLATE = ""  # set below


def model(name):
    return os.path.join(SOURCE, "models", name)


def task(name):
    return os.path.join(SOURCE, "tests/tasks/golden", name)


def reads():
    """Command, what of it takes a file (an option, an argument or a chat command): arguments,
    whether they take those of a device, and stdin."""
    g2p, shakespeare = model("g2p-en"), model("shakespeare")
    rows = {
        ("tokenize", "--file"): (["tokenize", g2p, "--file", FILE], False),
        ("run", "--inputs"): (["run", g2p, "--inputs", FILE, "--outputs", os.devnull], True),
        ("plan", "--cluster"): (["plan", g2p, "--cluster", FILE], True),
        ("op", "--inputs"): (["op", "softmax", "--inputs", FILE], True),
        ("generate", "--adapter"): (["generate", shakespeare, "a", "--adapter", FILE], True),
        ("compare", "--inputs"): (["compare", g2p, "--inputs", FILE], True),
        ("profile", "--inputs"): (["profile", g2p, "--inputs", FILE], True),
        ("inspect", "--inputs"): (["inspect", g2p, "--memory", "--inputs", FILE], True),
        ("inspect", "--picture"): (
            ["inspect", model("digits"), "--attention", "--picture", FILE], True),
        ("inspect", "--attention"): (["inspect", model("digits"), "--attention", FILE], True),
        ("answer", "--context-file"): (
            ["answer", task("answers"), "what is it", "--context-file", FILE], True),
        ("rerank", "--documents"): (
            ["rerank", task("rerank"), "what is it", "--documents", FILE], True),
        ("chat", "/load"): (
            ["chat", shakespeare, "--template", TEMPLATE], True, "/load " + FILE + "\n"),
        ("chat", "--load"): (
            ["chat", shakespeare, "--template", TEMPLATE, "--load", FILE], True, ""),
        ("chat", "--template"): (["chat", shakespeare, "--template", FILE], True, ""),
        ("attend", "INPUT picture"): (["attend", model("digits"), FILE], True),
        ("attend", "INPUT sound"): (["attend", task("speech"), FILE], True),
        ("classify", "INPUT"): (["classify", task("picture-labels"), FILE], True),
        ("caption", "PICTURE"): (["caption", task("captions"), FILE], True),
        ("detect", "PICTURE"): (["detect", task("objects"), FILE], True),
        ("depth", "PICTURE"): (["depth", task("depth"), FILE, "--output", os.devnull], True),
        ("segment", "PICTURE"): (["segment", task("segments"), FILE, "--point", "1,1"], True),
        ("transcribe", "SOUND"): (["transcribe", task("speech"), FILE], True),
        ("conformance", "--expect-never"): (
            ["conformance", "--quick", "--filter", "argmax", "--expect-never", FILE], True),
        ("conformance", "--expect-not-yet"): (
            ["conformance", "--quick", "--filter", "argmax", "--expect-not-yet", FILE], True),
        ("conformance diff", "BEFORE"): (["conformance", "diff", FILE, FILE], False),
        ("fingerprint diff", "FIRST"): (["fingerprint", "diff", FILE, FILE], False),
        ("bench compare", "BEFORE"): (["bench", "compare", FILE, FILE], False),
        ("case", "CASE_DIR"): (["case", FILE, "--output", os.devnull], True),
        ("inspect", "MODEL"): (["inspect", FILE], False),
        ("tokenize", "MODEL"): (["tokenize", FILE, "a"], False),
        ("embed", "MODEL"): (["embed", FILE, "a"], True),
        ("generate", "--picture"): (
            ["generate", task("prompts-llava"), "Say it.", "--picture", FILE], True),
        ("chat", "--picture"): (
            ["chat", task("prompts-llava"), "--picture", FILE], True, "Say it.\n"),
        ("generate", "--draft"): (["generate", shakespeare, "a", "--draft", FILE], True),
    }
    for command, name, more in (
            ("embed", task("embed"), []), ("classify", task("labels"), []),
            ("answer", task("answers"), ["--context", "a fox"]),
            ("rerank", task("rerank"), ["--document", "a fox"]), ("fill-mask", task("masks"), []),
            ("generate", g2p, []), ("transcribe", task("speech"), []),
            ("caption", task("captions"), []), ("detect", task("objects"), [])):
        rows[command, "--input"] = ([command, name, "--input", FILE, *more], True)
    for command, text in (("generate", ["ROMEO:", "--max-new-tokens", "4", "--beams", "1"]),
                          ("chat", ["--template", TEMPLATE])):
        for option in ("--grammar", "--json-schema"):
            rows[command, option] = ([command, shakespeare, *text, option, FILE], True, "")
    return rows


def writes():
    g2p, digits = model("g2p-en"), model("digits")
    picture = os.path.join(SOURCE, "models/digits/test_digits.png")
    inputs = os.path.join(SOURCE, "tests/golden/op-gelu/inputs.safetensors")
    rows = {
        ("op", "--outputs"): (
            ["op", "activation", "--attributes", '{"kind": "gelu"}', "--inputs", inputs,
             "--outputs", FILE], True),
        ("case", "--output"): (
            ["case", os.path.join(SOURCE, "tests/golden/op-gelu"), "--output", FILE], True),
        ("profile", "--trace"): (["profile", g2p, "hello", "--trace", FILE], True),
        ("embed", "--output"): (["embed", task("embed"), "hello", "--output", FILE], True),
        ("attend", "--png"): (["attend", g2p, "hello", "--png", FILE], True),
        ("attend", "--grid"): (["attend", g2p, "hello", "--grid", FILE], True),
        ("attend", "--html"): (["attend", g2p, "hello", "--html", FILE], True),
        ("attend", "--overlay"): (["attend", digits, picture, "--overlay", FILE], True),
        ("classify", "--overlay"): (["classify", digits, picture, "--overlay", FILE], True),
        ("detect", "--draw"): (["detect", task("objects"), picture, "--draw", FILE], True),
        ("speak", "--output"): (["speak", task("speak"), "hello", "--output", FILE], True),
        ("depth", "--output"): (["depth", task("depth"), picture, "--output", FILE], True),
        ("depth", "--values"): (["depth", task("depth"), picture, "--values", FILE], True),
        ("segment", "--output"): (
            ["segment", task("segments"), picture, "--point", "1,1", "--output", FILE], True),
        ("segment", "--masks"): (
            ["segment", task("segments"), picture, "--point", "1,1", "--masks", FILE], True),
        ("chat", "/save"): (["chat", model("shakespeare"), "--template", TEMPLATE], True,
                            "/save " + FILE + "\n"),
    }
    for option in ("--json", "--html", "--junit"):
        rows["conformance", option] = (
            ["conformance", "--quick", "--filter", "argmax", option, FILE], True)
    rows["fingerprint", "--json"] = (["fingerprint", "--filter", "argmax/normal", "--json", FILE], True)
    return rows


# What their help says of a file without being one of those: they are other models, folders, or the
# same option of another command.
ELSEWHERE = {
    ("run", "--outputs"),  # as op --outputs
    ("classify", "--output"), ("rerank", "--output"), ("answer", "--output"), ("fill-mask", "--output"),
    ("generate", "--output"), ("transcribe", "--output"), ("caption", "--output"), ("detect", "--output"),
    ("bench", "--json"), ("bench", "--csv"),  # minutes
    ("conformance", "--shaders"), ("conformance", "--failures"),
    ("classify", "--format"), ("embed", "--pooling"), ("embed", "--prompt-name"),
}


class FilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, row, path, **options):
        arguments, on_device, *stdin = row
        arguments = [argument.replace(FILE, path) for argument in arguments]
        if on_device:
            arguments += device_arguments() + ["--cache-dir", "none"]
        text = stdin[0].replace(FILE, path) if stdin else ""
        return subprocess.run([cli_support.PROGRAM, *arguments], input=text, encoding="utf-8",
                              capture_output=True, timeout=600, **options)

    def check_sentence(self, result, path):
        """One message that names the file."""
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        said = [line for line in result.stderr.splitlines() if line.startswith("vkformer: ")]
        self.assertEqual(len(said), 1, result.stderr)
        self.assertIn(path, said[0])
        for word in ("the command failed", "basic_", "std::", "exception"):
            self.assertNotIn(word, result.stderr)

    def test_directories_and_missing_files(self):
        directory = self.path("directory")
        os.mkdir(directory)
        for (command, what), row in reads().items():
            with self.subTest(command=command, what=what, kind="missing"):
                self.check_sentence(self.start(row, self.path("missing")), self.path("missing"))
            with self.subTest(command=command, what=what, kind="directory"):
                self.check_sentence(self.start(row, directory), directory)

    def test_files_without_permission(self):
        options = {}
        if os.geteuid() == 0:  # whom permissions do not stop
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            try:
                subprocess.run([cli_support.PROGRAM, "--version"], check=True, capture_output=True,
                               **options)
            except (PermissionError, subprocess.CalledProcessError):
                self.skipTest("the program lies where only root may run it")
        secret = self.path("secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("secret\n")
        os.chmod(secret, 0)
        for (command, what), row in reads().items():
            with self.subTest(command=command, what=what):
                self.check_sentence(self.start(row, secret, **options), secret)

    def test_empty_files(self):
        """An error with a sentence, or nothing to do."""
        empty = self.path("empty")
        with open(empty, "w", encoding="utf-8"):
            pass
        for (command, what), row in reads().items():
            with self.subTest(command=command, what=what):
                result = self.start(row, empty)
                self.assertIn(result.returncode, (0, 1), result.stderr)
                for word in ("the command failed", "basic_", "std::", "exception"):
                    self.assertNotIn(word, result.stderr)
                if result.returncode == 1:
                    self.assertTrue(result.stderr.startswith("vkformer: "), result.stderr)

    def test_targets_that_cannot_be_written(self):
        directory = self.path("directory")
        os.mkdir(directory)
        for (command, what), row in writes().items():
            for target in (directory, os.path.join(self.path("missing"), "file")):
                with self.subTest(command=command, what=what, target=target):
                    self.check_sentence(self.start(row, target), target)

    def test_the_list_is_complete(self):
        """Options whose help speaks of a file are tried above."""
        tried = set(reads()) | set(writes()) | ELSEWHERE
        listed = run("--help").stdout.split("\nExamples:")[0]
        commands = re.findall(r"^  ([a-z][a-z-]+) +[A-Z]", listed, re.MULTILINE)
        self.assertGreater(len(commands), 15)
        for command in commands:
            text = run(command, "--help").stdout.split("\nExamples:")[0]
            for entry in re.split(r"\n(?=  -)", text):
                entry = re.sub(r"\((not with|needs) [^)]*\)|[;(] *(not with|needs) [^;)]*", "", entry)
                option = re.match(r"  (?:-\w,)?(--[a-z-]+)", entry)
                if not option or not re.search(r"\bfiles?\b|FILE|picture|safetensors", entry):
                    continue
                if option[1] in ("--help", "--cache-dir") or option[1].startswith("--max-"):
                    continue  # a limit is a number
                if option[1] == "--adapter" and command != "generate":
                    continue  # one reader for all commands
                with self.subTest(command=command, option=option[1]):
                    self.assertIn((command, option[1]), tried, entry)

    def test_lines_that_never_end(self):
        limit = str(16 << 20)
        for arguments in (["tokenize", model("g2p-en"), "--file", "/dev/zero"],
                          ["embed", task("embed"), "--input", "/dev/zero"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 1, result.stdout[:200])
            self.assertIn("[/dev/zero, line 1]", result.stderr)
            self.assertIn(limit, result.stderr)
        result = run("answer", task("answers"), "what", "--context-file", "/dev/zero")
        self.assertEqual(result.returncode, 1)
        self.assertIn("[/dev/zero]", result.stderr)
        long_line = "a" * (16 << 20)
        for text, code in ((long_line + "\n", 0), (long_line + "a\n", 1)):
            with open(self.path("lines"), "w", encoding="utf-8") as file:
                file.write("short\n" + text)
            result = run("tokenize", model("g2p-en"), "--json", "--file", self.path("lines"))
            self.assertEqual(result.returncode, code, result.stderr)
            if code:
                self.assertIn("line 2]", result.stderr)

    def test_stdin_lines_that_never_end(self):
        endless = "a" * ((16 << 20) + 1)
        result = run_on_device("chat", model("shakespeare"), "--template", TEMPLATE, text=endless)
        self.assertEqual(result.returncode, 1)
        self.assertIn("[stdin, line 1]", result.stderr)
        # Of a server's clients one made the mistake; those after it are answered.
        request = '\n{"id": 2, "text": "The", "max_new_tokens": 1}\n'
        result = run_on_device("serve", model("shakespeare"), text=endless + request)
        self.assertEqual(result.returncode, 0, result.stderr)
        first, *others = result.stdout.splitlines()
        self.assertIn("16777216", first)
        self.assertTrue(any('"id":2' in line.replace(" ", "") for line in others), others)

    def test_output_that_cannot_be_written(self):
        """Said once, with the exit code of a failure; help and version included."""
        for arguments in (["--help"], ["--version"], ["generate", "--help"], ["families"],
                          ["tokenize", model("g2p-en"), "hello"],
                          ["embed", task("embed"), "hello", *device_arguments()]):
            with open("/dev/full", "wb") as full:
                result = run(*arguments, stdout=full)
            with self.subTest(arguments=arguments):
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr.count("[stdout]"), 1, result.stderr)
                self.assertIn("No space left on device", result.stderr)

    def test_cache_folders_are_made_with_those_above(self):
        cache = self.path("a/b/c")
        result = run("embed", task("embed"), "hello", *device_arguments(), "--cache-dir", cache)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(os.listdir(cache))

    def test_beams_have_the_limit_that_their_help_says(self):
        for command in ("generate", "transcribe", "caption", "plan", "inspect"):
            self.assertRegex(run(command, "--help").stdout, r"(?s)--beams.{0,90}up to 16")
            more = ["--memory"] if command == "inspect" else []
            result = run(command, model("g2p-en"), *more, "--beams", "17")
            self.assertEqual(result.returncode, 2)
            self.assertIn("16", result.stderr)
        result = run_on_device("generate", model("g2p-en"), "hello", "--beams", "16")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    cli_support.PROGRAM, SOURCE = sys.argv[1:3]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".jinja") as template:
        template.write("{% for m in messages %}{{ m.content }}{% endfor %}")
        template.flush()
        os.chmod(template.name, 0o644)
        TEMPLATE = template.name
        unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
