#!/usr/bin/env python3
"""Every `vkformer` command in a code block of a document is one that the program takes.

  documents_test.py PROGRAM SOURCE_DIRECTORY

Checked are the command, its subcommand and the names of its options, against the program's own help. Old names of
options are in no help, so documents must use the new ones. Nothing is run: most commands need a model that is not here.
What runs are the commands of docs/tutorial.md and the programs of docs/embedding.md and docs/c_api.md (tests/embed,
tests/c).
"""
import re
import shlex
import subprocess
import sys
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


def documents(root):
    folders = ("docs", "samples", "bindings", "models", "mpi", "tools")
    found = [p for folder in folders for p in (root / folder).rglob("*.md")]
    return sorted(p for p in [*found, *root.glob("*.md")] if p.name != "CHANGELOG.md" and "build" not in p.parts)


def main(program, root):
    program, checked, faults = Program(program), 0, []
    for path in documents(Path(root)):
        for number, line in code_lines(path.read_text(encoding="utf-8")):
            for words in commands(line):
                checked += 1
                fault = program.fault(words)
                if fault:
                    faults.append(f"{path.relative_to(root)}:{number}: {fault}: {line}")
    for fault in faults:
        print(fault)
    print(f"documents: {checked} commands, {len(faults)} faults")
    if faults or checked < 150:
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
