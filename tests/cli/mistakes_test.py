#!/usr/bin/env python3
"""Typical mistakes on the command line, and what the program says. It names the nearest command, option or model. It
says what a hub name or a GGUF file needs, and which drivers are missing or hidden.

    mistakes_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cli_support
from cli_support import NO_DRIVER, device_arguments, run, run_on_device

SOURCE = ""  # set below


def model(name):
    return os.path.join(SOURCE, "models", name)


def task(name):
    return os.path.join(SOURCE, "tests/tasks/golden", name)


class MistakesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content=""):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)

    def said(self, code, *arguments, **options):
        """What one message says, without the program's name."""
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("vkformer: "), lines[0])
        self.assertRegex(lines[0], r"[.?]$|: /\S+$")
        return lines[0][len("vkformer: "):]


class CommandLineTest(MistakesTest):
    def test_commands(self):
        text = self.said(2, "generat", "x")
        self.assertIn("[generat] is not a command of `vkformer`", text)
        self.assertIn("did you mean `vkformer generate`?", text)
        self.assertIn("did you mean `vkformer classify`?", self.said(2, "clasify", "x"))
        self.assertIn("did you mean `vkformer bench models`?", self.said(2, "bench", "modles"))
        text = self.said(2, "dance")
        self.assertNotIn("did you mean", text)
        self.assertIn("`vkformer --help`", text)
        self.assertIn("needs a command", self.said(2))
        self.assertIn("--estimate CHIP is required", self.said(2, "bench"))

    def test_options(self):
        text = self.said(2, "generate", model("g2p-en"), "x", "--temprature", "0.8")
        self.assertIn("[--temprature] is not an option of `vkformer generate`", text)
        self.assertIn("did you mean --temperature?", text)
        self.assertIn("`vkformer generate --help`", text)
        self.assertIn("--temperature?", self.said(2, "generate", "M", "x", "--temprature=0.8"))
        self.assertIn("--temperature?", self.said(2, "generate", "M", "x", "-temperature", "1"))
        # A misspelled option that is needed is what is wrong, not that it is missing.
        self.assertIn("did you mean --tokens?", self.said(2, "plan", "M", "--tokns", "5"))
        text = self.said(2, "classify", "M", "x", "--beams", "4")
        self.assertIn("these commands have it: ", text)
        self.assertIn("generate", text)

    def test_arguments(self):
        self.assertIn("[x] is one argument too many", self.said(2, "quantize", "M", "out", "x"))
        self.assertIn("MODEL is required", self.said(2, "generate"))
        text = self.said(2, "generate", "M", "x", "--batch", "0")
        self.assertIn("`vkformer generate`: --batch", text)
        self.assertIn("--tier", self.said(2, "generate", "M", "x", "--tier", "best-of-all"))

    def test_help_as_a_command(self):
        self.assertEqual(run("help").stdout, run("--help").stdout)
        for names in (["generate"], ["bench", "gemm"], ["bench"]):
            result = run("help", *names)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, run(*names, "--help").stdout)
        self.assertIn("did you mean `vkformer generate`?", self.said(2, "help", "generat"))
        self.assertIn("did you mean `vkformer bench gemm`?", self.said(2, "help", "bench", "gem"))


class HelpTest(MistakesTest):
    def entry(self, command, option):
        """The lines of help on an option, as one."""
        text = run(*command.split(), "--help").stdout
        found = re.search(r"\n  (?:-\w,)?" + option + r"(?![\w-]).*?(?=\n\S|\n  -|\n\n)", text, re.DOTALL)
        self.assertTrue(found, (command, option, text))
        return " ".join(found[0].split())

    def test_defaults_are_shown(self):
        for command, option, shown in (
                ("generate", "--batch", "1 to 4096; default 32"),
                ("transcribe", "--batch", "default 8"),
                ("classify", "--top", "default 5"),
                ("generate", "--device", "default best"),
                ("generate", "--tier", "default best"),
                ("generate", "--limits", "default none"),
                ("generate", "--weights", "default stored"),
                ("generate", "--stream", "default auto"),
                ("generate", "--cache", "default f32"),
                ("quantize", "--weights", "default q8"),
                ("embed", "--pooling", "default model"),
                ("attend", "--range", "default one"),
                ("attend", "--head", "default all"),
                ("profile", "--rounds", "default 3"),
                ("bench encoder", "--tokens", "default 145")):
            with self.subTest(command=command, option=option):
                self.assertIn(shown, self.entry(command, option))

    def test_no_default_is_made_up(self):
        """Numbers that stand for "not given" are no defaults."""
        commands = re.findall(r"^  ([a-z][a-z-]+) +[A-Z]", run("--help").stdout, re.MULTILINE)
        self.assertGreater(len(commands), 20)
        for command in commands + ["bench models", "bench all", "conformance diff"]:
            text = run(*command.split(), "--help").stdout
            with self.subTest(command=command):
                self.assertNotRegex(text, r"default\s+(-1|\[\]|\{\}|\"\")")
                self.assertNotRegex(text, r"default[^;)]*default")

    def test_defaults_are_those_in_force(self):
        """What help calls the default gives the same as leaving the option away."""
        usual = run_on_device("attend", model("g2p-en"), "cat", "--json").stdout
        self.assertEqual(
            run_on_device("attend", model("g2p-en"), "cat", "--json", "--head", "all",
                          "--range", "one").stdout, usual)
        usual = run_on_device("plan", model("g2p-en"), "--tokens", "8").stdout
        for option in ("--batch", "--beams", "--pass"):
            value = re.search(r"default (\S+?)\)", self.entry("plan", option))[1]
            self.assertEqual(run_on_device("plan", model("g2p-en"), "--tokens", "8", option,
                                           value).stdout, usual)


class ModelTest(MistakesTest):
    def test_a_typing_error_names_the_nearest_folder(self):
        self.write("models/g2p-en/config.json", "{}")
        self.write("models/other/notes.txt")
        for wrong in ("models/g2p-eng", "modles/g2p-en", "models/g2p", "models/g2p-ne/"):
            text = self.said(1, "generate", self.path(wrong), "a")
            self.assertIn("does not exist; did you mean " + self.path("models/g2p-en") + "?", text)
        self.assertNotIn("did you mean", self.said(1, "generate", self.path("models/othr"), "a"))

    def test_every_command_with_a_model(self):
        self.write("models/g2p-en/config.json", "{}")
        wrong = self.path("models/g2p-em")
        for arguments in (["embed", wrong, "a"], ["inspect", wrong], ["attend", wrong, "a"],
                          ["tokenize", wrong, "a"], ["chat", wrong], ["serve", wrong],
                          ["plan", wrong, "--tokens", "4"], ["quantize", wrong, self.path("out")],
                          ["bench", "decode", wrong],
                          ["generate", model("g2p-en"), "a", "--draft", wrong]):
            with self.subTest(arguments=arguments):
                # Before a device is looked for.
                text = self.said(1, *arguments, environment=NO_DRIVER)
                self.assertIn("did you mean " + self.path("models/g2p-en"), text)

    def test_hub_names(self):
        cache = {"HF_HUB_CACHE": self.path("hub")}
        text = self.said(1, "generate", "openai-community/gpt2", "a", environment=cache)
        self.assertIn("is not in the hub's cache " + self.path("hub"), text)
        self.assertIn("`vkformer pull openai-community/gpt2`", text)
        # One that is there already, as far as it goes.
        snapshot = self.path("hub/models--openai-community--gpt2/snapshots/0123abc")
        self.write("hub/models--openai-community--gpt2/snapshots/0123abc/config.json", "{}")
        text = self.said(1, "inspect", "openai-community/gpt2", environment=cache)
        self.assertIn(snapshot + "/config.json", text)

    def test_files(self):
        self.write("m/config.json", "{}")
        self.write("m/model.safetensors")
        with open(self.path("llama.bin"), "wb") as file:
            file.write(b"GGUF\3\0\0\0")
        for command in ("generate", "tokenize"):
            text = self.said(1, command, self.path("llama.bin"), "a")
            self.assertIn("is not a GGUF file that can be read", text)
            self.assertIn("may be cut short", text)
        self.write("q4.gguf")
        self.assertIn("does not begin with 'GGUF'", self.said(1, "generate", self.path("q4.gguf"), "a"))
        self.assertIn("give its folder: " + self.path("m") + ".",
                      self.said(1, "generate", self.path("m/model.safetensors"), "a") + ".")

    def test_folders_without_a_model(self):
        self.write("models/one/config.json", "{}")
        text = self.said(1, "generate", self.path("models"), "a")
        self.assertIn("it holds models; give one of them: " + self.path("models/one"), text)
        os.makedirs(self.path("gguf"))
        with open(self.path("gguf/llama-q4.gguf"), "wb") as file:
            file.write(b"GGUF\3\0\0\0")
        self.assertIn("it holds a GGUF file; give that: " + self.path("gguf/llama-q4.gguf"),
                      self.said(1, "generate", self.path("gguf"), "a"))
        self.write("empty/notes.txt")
        self.assertIn("has no config.json", self.said(1, "generate", self.path("empty"), "a"))

    def test_shapes_of_benchmarks(self):
        for command in (["profile"], ["bench", "models", "--in-process"]):
            result = run_on_device(*command, "bert-bse")
            self.assertEqual(result.returncode, 1)
            self.assertIn("did you mean bert-base?", result.stderr)


class InputTest(MistakesTest):
    def test_a_pipe_is_the_input(self):
        piped = run_on_device("generate", model("g2p-en"), text="hi\nhello\n")
        self.assertEqual(piped.returncode, 0, piped.stderr)
        given = run_on_device("generate", model("g2p-en"), "hi", "hello")
        self.assertEqual(piped.stdout, given.stdout)
        lines = run_on_device("embed", task("embed"), text="hi\n")
        self.assertEqual(json.loads(lines.stdout)["text"], "hi")
        self.assertEqual(run("tokenize", model("g2p-en"), text="hi\n").stdout,
                         run("tokenize", model("g2p-en"), "hi").stdout)

    def test_an_empty_pipe_is_a_mistake(self):
        text = self.said(2, "generate", model("g2p-en"), text="")
        self.assertIn("from --input, or from a pipe", text)
        self.assertIn("both", self.said(2, "generate", model("g2p-en"), "a", "--input", "-"))

    def test_arguments_leave_a_pipe_alone(self):
        result = run_on_device("generate", model("g2p-en"), "hi", text="hello\n")
        self.assertEqual(len(result.stdout.splitlines()), 1)


class FilesTest(MistakesTest):
    def test_cache_folders_that_cannot_be_written(self):
        self.write("file")
        result = run_on_device("generate", model("g2p-en"), "hi", "--cache-dir",
                               self.path("file", "cache"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(self.path("file", "cache"), result.stderr)
        self.assertIn("could not be written", result.stderr)
        quiet = run_on_device("generate", model("g2p-en"), "hi", "--quiet", "--cache-dir",
                              self.path("file", "cache"))
        self.assertEqual(quiet.stderr, "")

    def test_profile_says_what_it_wrote(self):
        trace = self.path("trace.json")
        result = run_on_device("profile", model("g2p-en"), "hi", "--rounds", "1", "--trace", trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("wrote " + trace, result.stderr)
        with open(trace, encoding="utf-8") as file:
            self.assertTrue(json.load(file)["traceEvents"])


class DriverTest(MistakesTest):
    def test_no_driver(self):
        for arguments in (["devices"], ["generate", model("g2p-en"), "a"]):
            text = self.said(4, *arguments, environment=NO_DRIVER)
            self.assertIn("There is no Vulkan driver", text)
            self.assertIn("VK_DRIVER_FILES=" + NO_DRIVER["VK_DRIVER_FILES"], text)
            self.assertIn("mesa-vulkan-drivers on Debian", text)
            self.assertIn("`vkformer doctor`", text)

    def doctor(self, code, **environment):
        result = run("doctor", "--json", *device_arguments(), environment=environment)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def test_doctor_on_a_device(self):
        health = self.doctor(0)
        self.assertTrue(health["healthy"])
        self.assertTrue(any(loader["path"] for loader in health["loaders"]))
        self.assertTrue(any(not driver["problem"] for driver in health["drivers"]))
        used = [device for device in health["devices"] if device["used"]]
        self.assertEqual(len(used), 1)
        self.assertIn("is used, at tier ", used[0]["standing"])
        self.assertGreater(health["self_check"]["checks"], 20)
        self.assertEqual(health["self_check"]["failures"], [])
        result = run("doctor", *device_arguments())
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("Vulkan loaders", "Vulkan drivers", "Vulkan devices", "Self-check",
                      used[0]["name"], " 0 failed"):
            self.assertIn(words, result.stdout)
        self.assertNotIn("\033", result.stdout)

    def test_doctor_without_a_driver(self):
        health = self.doctor(4, **NO_DRIVER)
        self.assertFalse(health["healthy"])
        self.assertIn("VK_DRIVER_FILES=" + NO_DRIVER["VK_DRIVER_FILES"], health["variables"])
        missing = [driver for driver in health["drivers"]
                   if driver["path"] == NO_DRIVER["VK_DRIVER_FILES"]]
        self.assertIn("could not be opened", missing[0]["problem"])
        for driver in health["drivers"]:
            if driver is not missing[0]:
                self.assertEqual(driver["problem"], "VK_DRIVER_FILES is set and does not name it")
        self.assertIn("There is no Vulkan driver", health["error"])
        self.assertTrue(health["advice"])

    def test_doctor_says_why_drivers_are_not_used(self):
        self.write("no-library.json", json.dumps({"ICD": {"library_path": "./gone.so"}}))
        self.write("no-icd.json", "{}")
        self.write("no-driver.json", json.dumps({"ICD": {"library_path": "libc.so.6"}}))
        self.write("no-json.json", "{")
        health = self.doctor(4, VK_DRIVER_FILES=self.folder, VK_ICD_FILENAMES="")
        problems = {os.path.basename(driver["path"]): driver["problem"]
                    for driver in health["drivers"]}
        self.assertIn(self.path("gone.so"), problems["no-library.json"].replace("/./", "/"))
        self.assertIn("names no library", problems["no-icd.json"])
        self.assertIn("vk_icdGetInstanceProcAddr", problems["no-driver.json"])
        self.assertIn("is not a JSON object", problems["no-json.json"])
        health = self.doctor(4, VK_DRIVER_FILES="", VK_ICD_FILENAMES="",
                             VK_LOADER_DRIVERS_SELECT="nothing*")
        for driver in health["drivers"]:
            self.assertEqual(driver["problem"], "VK_LOADER_DRIVERS_SELECT does not name it")


if __name__ == "__main__":
    cli_support.PROGRAM, SOURCE = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:])
