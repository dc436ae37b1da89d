#!/usr/bin/env python3
"""Every `vkformer` command in a code block of a document is one that the program takes.

  documents_test.py PROGRAM SOURCE_DIRECTORY          the names of commands and options
  documents_test.py PROGRAM SOURCE_DIRECTORY --run    also runs what runs with the models of the project

Names are compared with the program's own help. Old names of options are in no help, so documents must use the new ones.
A command runs where it names a model of models/ and its input files are there. Most others need a model that is not
here. The commands of docs/tutorial.md have a test in tests/embed, and README's others one in tests/first_hour.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLACEHOLDERS = {"COMMAND", "[SUBCOMMAND]"}
ENDS = {"|", ">", ">>", "<", "&&", ";", "&", "2>", "2>>"}


def code_lines(text):
    """Lines of code of a document, indented or fenced; a line that ends in a backslash goes on with the next."""
    fenced, begun, first = False, "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            if not begun:
                first = number
            begun += line.strip().removeprefix("$ ")
            if begun.endswith("\\"):
                begun = begun[:-1]
                continue
            yield first, begun
        begun = ""


def commands(line):
    """The words after each `vkformer` of a line of a shell."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return
    for at, word in enumerate(words):
        if word != "vkformer" and not word.endswith("/bin/vkformer"):
            continue
        if at > 0 and (words[at - 1] in ("install", "cd") or "=" not in words[at - 1] and words[at - 1] not in ENDS
                       and not is_runner(words[:at])):
            continue
        end = next((i for i in range(at + 1, len(words)) if words[i] in ENDS), len(words))
        yield words[at + 1:end]


def is_runner(words):
    """Programs that run the command that follows: drivers, emulators, timers, mpirun."""
    return any(Path(word).name in ("drivers", "time", "mpirun", "srun", "env", "wine", "exec", "xargs") for word in words)


class Program:
    def __init__(self, path):
        self.path, self.known = path, {}

    def help_of(self, *words):
        """(subcommands, options) of a command; None where the program does not know it."""
        if words not in self.known:
            done = subprocess.run([self.path, *words, "--help"], capture_output=True, text=True, check=False)
            names = re.findall(r"(?<![\w-])--[a-z][\w-]*", "\n".join(
                line.split("  ")[1] for line in done.stdout.splitlines() if line.startswith("  -")))
            listed = done.stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
            subcommands = re.findall(r"^  ([a-z][\w-]*)", listed, re.M)
            self.known[words] = (set(subcommands), set(names)) if done.returncode == 0 else None
        return self.known[words]

    def fault(self, words):
        """What is wrong with a command of a document; empty: nothing."""
        subcommands, options = self.help_of()
        if not words or re.match(r"[-\[<.0-9]", words[0]) or words[0] in PLACEHOLDERS:
            return ""
        if words[0] not in subcommands:
            return f"[{words[0]}] is no command"
        path = [words[0]]
        own, options = self.help_of(*path)
        names = set(options)
        if len(words) > 1 and words[1] in own:
            names |= self.help_of(words[0], words[1])[1]
        for word in words[1:]:
            if word == "--":
                break
            name = word.partition("=")[0]
            if re.fullmatch(r"--[a-z][\w-]*", name) and name not in names:
                return f"[{name}] is no option of `vkformer {words[0]}`"
        return ""


# Files that commands of documents read, and where they write.
INPUTS = {
    "words.txt": "attention\nentropy\n",
    "requests.jsonl": '{"id": 1, "text": "ROMEO:", "max_new_tokens": 4}\n{"id": 2, "text": "JULIET:", "max_new_tokens": 4}\n',
}
# Needs the validation layer, or minutes on a software driver.
NOT_RUN = {"--validation", "fingerprint", "profile", "bench", "tune"}


def runnable(words):
    """A model of the project, no other file that is missing, and nothing that takes long."""
    inputs = [word for word in words if word.endswith((".safetensors", ".jsonl", ".txt", ".wav", ".jpg"))
              and not word.startswith("out")]
    return (any(word.startswith("models/") for word in words) and not NOT_RUN & set(words)
            and all(word in INPUTS for word in inputs))


def run(program, line, words, folder):
    """The fault of a command that fails."""
    words = [word.replace("/tmp/", f"{folder}/") for word in words]
    stdin = re.search(r"<\s*(\S+)", line)
    if stdin and stdin[1] not in INPUTS:
        return ""
    started = time.monotonic()
    done = subprocess.run([program, *words], cwd=folder, input=INPUTS[stdin[1]] if stdin else "", text=True, check=False,
                          capture_output=True, timeout=600)
    print(f"{time.monotonic() - started:6.1f} s  vkformer {shlex.join(words)}", flush=True)
    return "" if done.returncode == 0 else f"exit code {done.returncode}, {done.stderr.strip()[-300:]}"


def documents(root):
    folders = ("docs", "samples", "bindings", "models", "mpi", "tools")
    found = [p for folder in folders for p in (root / folder).rglob("*.md")]
    return sorted(p for p in [*found, *root.glob("*.md")] if p.name != "CHANGELOG.md" and "build" not in p.parts)


def main(path, root, *arguments):
    program, checked, ran, faults = Program(path), 0, set(), []
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(Path(root) / "models", Path(folder) / "models")
        for name, text in INPUTS.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        for page in documents(Path(root)):
            for number, line in code_lines(page.read_text(encoding="utf-8")):
                for words in commands(line):
                    checked += 1
                    fault = program.fault(words)
                    if not fault and arguments == ("--run",) and runnable(words) and tuple(words) not in ran:
                        ran.add(tuple(words))
                        fault = run(path, line, words, folder)
                    if fault:
                        faults.append(f"{page.relative_to(root)}:{number}: {fault}: {line}")
    for fault in faults:
        print(fault)
    print(f"documents: {checked} commands, {len(ran)} of them run, {len(faults)} faults")
    if faults or checked < 150 or (arguments and len(ran) < 20):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
