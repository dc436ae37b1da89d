#!/usr/bin/env python3
"""Completion in bash, zsh and fish, and manual pages. The shells read the scripts and complete with them, and the page
readers find nothing wrong. All that help names is in them.

    shells_test.py PROGRAM [unittest arguments]
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import cli_support
from cli_support import run


def script(shell):
    result = run("completion", shell)
    assert result.returncode == 0, result.stderr
    return result.stdout


def all_options():
    """(command, option) of everything that help lists."""
    found = set()
    commands = re.findall(r"^  ([a-z][a-z-]+) +[A-Z]", run("--help").stdout, re.MULTILINE)
    for command in commands + ["bench gemm", "conformance diff"]:
        text = run(*command.split(), "--help").stdout.split("\nExamples:")[0]
        for names in re.findall(r"^  (-[-\w,]+)", text, re.MULTILINE):
            found |= {(command, name) for name in names.split(",") if name.startswith("--")}
    return found


class ShellsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(os.path.join(self.folder, "models"))
        with open(os.path.join(self.folder, "my words.txt"), "w", encoding="utf-8"):
            pass

    def need(self, program):
        if not shutil.which(program):
            self.skipTest(program + " is not installed")

    def write(self, shell):
        path = os.path.join(self.folder, "script")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script(shell))
        return path

    def shell(self, *arguments):
        done = subprocess.run(arguments, cwd=self.folder, capture_output=True, encoding="utf-8",
                              timeout=60, env={**os.environ, "HOME": self.folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout


class BashTest(ShellsTest):
    def complete(self, *words):
        program = (
            'source "$1"; shift; COMP_WORDS=(vkformer "$@"); COMP_CWORD=$#; _vkformer; '
            'printf "%s\\n" "${COMPREPLY[@]}"')
        return [line for line in self.shell("bash", "--norc", "-c", program, "bash",
                                            self.write("bash"), *words).splitlines() if line]

    def test_completes(self):
        self.need("bash")
        self.shell("bash", "-n", self.write("bash"))
        self.assertEqual(self.complete("gen"), ["generate"])
        self.assertEqual(self.complete("bench", "ge"), ["gemm"])
        self.assertEqual(self.complete("generate", "--temp"), ["--temperature"])
        self.assertEqual(self.complete("generate", "M", "--tier", "ba"), ["baseline"])
        self.assertEqual(self.complete("generate", "M", "--input", "my"), ["my words.txt"])
        self.assertEqual(self.complete("generate", "M", "--draft", "m"), ["models"])
        self.assertEqual(self.complete("plan", "m"), ["models"])
        self.assertEqual(self.complete("inspect", "m"), ["my words.txt", "models"])
        self.assertEqual(self.complete("completion", "b"), ["bash"])
        self.assertEqual(self.complete("--ver"), ["--version"])
        self.assertIn("softmax", self.complete("bench", "operators", "soft"))

    def test_everything_is_there(self):
        lines = script("bash")
        for command, option in all_options():
            entry = re.search(r"'vkformer %s'\)\n +options='([^']*)'" % command, lines)
            self.assertIn(option, entry[1].split(), command)


class ZshTest(ShellsTest):
    def test_reads_it(self):
        self.need("zsh")
        self.shell("zsh", "-n", self.write("zsh"))

    def test_completes(self):
        """A shell on a pseudo-terminal lists what it would complete."""
        self.need("zsh")
        for typed, wanted in (("vkformer gen", "generate"), ("vkformer bench ge", "gemm"),
                              ("vkformer generate M --temp", "--temperature"),
                              ("vkformer generate M --tier ba", "baseline")):
            # A loaded machine may need longer than a shell is given at first.
            for seconds in (1, 5, 20):
                program = (
                    "zmodload zsh/zpty; zpty z zsh -f -i; "
                    "zpty -w z 'PS1=; autoload -U compinit; compinit -u -D; source %s; "
                    "print READY''1'; zpty -m z r1 '*READY1*' 2>/dev/null || zpty -r z r1 '*READY1*'; "
                    "zpty -n -w z $'%s\\t'; sleep %d; zpty -n -w z $'\\C-a print -r -- GOT: \\C-e\\n'; "
                    "zpty -r z r2 '*GOT: *\n*'; print -r -- $r2; zpty -d z" %
                    (self.write("zsh"), typed, seconds))
                output = subprocess.run(["zsh", "-f", "-c", program], cwd=self.folder, timeout=90,
                                        capture_output=True, encoding="utf-8").stdout
                if wanted in output:
                    break
            self.assertIn(wanted, output, typed)

    def test_everything_is_there(self):
        text = script("zsh")
        for command, option in all_options():
            function = re.search(r"^_vkformer_%s\(\) \{\n(.*?)^\}" % re.sub("[- ]", "_", command), text,
                                 re.MULTILINE | re.DOTALL)
            self.assertIn(option, function[1], command)


class FishTest(ShellsTest):
    def complete(self, line):
        text = self.shell("fish", "--no-config", "-c", "source %s; complete -C %s" %
                          (self.write("fish"), "'" + line + "'"))
        # Whether it quotes spaces depends on the version.
        return [entry.split("\t")[0].replace("\\ ", " ") for entry in text.splitlines()]

    def test_completes(self):
        self.need("fish")
        self.shell("fish", "--no-execute", self.write("fish"))
        self.assertEqual(self.complete("vkformer gen"), ["generate"])
        self.assertEqual(self.complete("vkformer bench ge"), ["gemm"])
        self.assertEqual(self.complete("vkformer generate M --temp"), ["--temperature"])
        self.assertEqual(self.complete("vkformer generate M --tier ba"), ["baseline"])
        self.assertEqual(self.complete("vkformer generate M --input my"), ["my words.txt"])
        self.assertEqual(self.complete("vkformer generate M --draft mo"), ["models/"])

    def test_everything_is_there(self):
        text = script("fish")
        for command, option in all_options():
            self.assertRegex(text, r"'__vkformer_at vkformer %s' .*-l %s " % (command, option[2:]))


class ManTest(ShellsTest):
    def pages(self):
        folder = os.path.join(self.folder, "man1")
        result = run("man", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        pages = {}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                pages[name] = file.read()
        self.assertIn("wrote %d pages" % len(pages), result.stderr)
        return folder, pages

    def test_pages_name_everything(self):
        pages = self.pages()[1]
        self.assertEqual(pages["vkformer.1"], run("man").stdout)
        for command, option in all_options():
            page = pages["vkformer-%s.1" % command.replace(" ", "-")]
            if option != "--help":
                self.assertIn("\\fB" + option.replace("-", "\\-") + "\\fR", page)
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXAMPLES",
                        "EXIT CODES", "ENVIRONMENT", "SEE ALSO"):
            self.assertIn(".SH " + section + "\n", pages["vkformer.1"])

    def test_mandoc(self):
        self.need("mandoc")
        folder, pages = self.pages()
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning",
                               *(os.path.join(folder, name) for name in pages)],
                              capture_output=True, encoding="utf-8", timeout=60)
        # A date would make two builds of one source differ.
        said = [line for line in done.stdout.splitlines() if "missing date" not in line]
        self.assertEqual(said, [])

    def test_man(self):
        self.need("man")
        folder, pages = self.pages()
        for name in pages:
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l",
                                   os.path.join(folder, name)], capture_output=True,
                                  encoding="utf-8", timeout=60,
                                  env={**os.environ, "MANWIDTH": "100", "MAN_KEEP_FORMATTING": ""})
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn("SYNOPSIS", done.stdout)


if __name__ == "__main__":
    cli_support.PROGRAM = sys.argv[1]
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:])
