#!/usr/bin/env python3
"""Every `vkformer` command in a code block of a document is one that the program takes.

  documents_test.py PROGRAM SOURCE_DIRECTORY [--run]

With --run, the commands also run, with small models in the place of those they name.
Names are compared with the program's own help. Old names of options are in no help, so documents must use the new ones.
A command that is not run here has a reason and a test that runs the like. The commands of docs/tutorial.md have a test
in tests/embed, too, and README's one in tests/first_hour.
"""
import collections
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from document_stand_ins import StandIns

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
            return f"[{words[0]}] is not a command"
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
                return f"[{name}] is not an option of `vkformer {words[0]}`"
        return ""


# Commands that are not run here: a word that they have, the reason, and the test that runs the like.
ELSEWHERE = [
    ("pull", "needs a network", "tests/cli/pull_test.py"),
    ("verify", "needs the model's original files", "tests/cli/verify_test.py"),
    ("serve", "goes on until it is stopped", "tests/cli/serve_test.py"),
    ("bench", "takes minutes", "tests/cli/bench_test.py"),
    ("profile", "takes minutes", "tests/cli/bench_test.py"),
    ("conformance", "takes minutes", "tests/cli/cli_test.py"),
    ("fingerprint", "takes minutes", "tests/conformance/conformance_test.cpp"),
    ("tune", "takes minutes", "tests/measure/tuning_test.cpp"),
    ("--devices", "needs two devices", "tests/session/device_group_test.cpp"),
    ("--device", "needs two devices", "tests/cli/cli_test.py"),
    ("--validation", "needs the validation layer", "tests/vulkan/host_callbacks_test.cpp"),
    ("run", "needs tensors in a file", "tests/cli/cli_test.py"),
    ("op", "needs tensors in a file", "tests/cli/cli_test.py"),
    ("--source-language", "needs a tokenizer of languages", "tests/tasks/tasks_test.cpp"),
    ("--adapter", "needs an adapter of the model", "tests/cli/pack_test.py"),
]


def elsewhere(words):
    """Why a command is not run here; empty: it is."""
    if not words or words[0][0].isdigit() or any(word.startswith("[") or word == "..." for word in words):
        return "is a synopsis or an answer"
    return next((f"{reason} ({test})" for word, reason, test in ELSEWHERE if word in words), "")


def run(program, line, words, stand_ins):
    """The fault of a command that fails."""
    words = stand_ins.words(words)
    stdin = re.search(r"<\s*(\S+)", line)
    text = (stand_ins.folder / stdin[1]).read_text(encoding="utf-8") if stdin else ""
    started = time.monotonic()
    done = subprocess.run([program, *words], cwd=stand_ins.folder, input=text, text=True, check=False,
                          capture_output=True, timeout=600)
    print(f"{time.monotonic() - started:6.1f} s  vkformer {shlex.join(words)}", flush=True)
    return "" if done.returncode == 0 else f"exit code {done.returncode}, {done.stderr.strip()[-300:]}"


def documents(root):
    folders = ("docs", "samples", "bindings", "models", "mpi", "tools")
    found = [p for folder in folders for p in (root / folder).rglob("*.md")]
    return sorted(p for p in [*found, *root.glob("*.md")] if p.name != "CHANGELOG.md" and "build" not in p.parts)


def main(path, root, *arguments):
    program, faults, ran, not_run = Program(path), [], set(), collections.Counter()
    root = Path(root).resolve()
    faults += [f"{test} does not exist" for _, _, test in ELSEWHERE if not (root / test).is_file()]
    checked = 0
    with tempfile.TemporaryDirectory() as folder:
        stand_ins = StandIns(Path(folder), root, path) if arguments == ("--run",) else None
        for page in documents(root):
            for number, line in code_lines(page.read_text(encoding="utf-8")):
                for words in commands(line):
                    checked += 1
                    fault, reason = program.fault(words), elsewhere(words)
                    if reason:
                        not_run[reason] += 1
                    elif not fault and stand_ins and tuple(words) not in ran:
                        ran.add(tuple(words))
                        fault = run(path, line, words, stand_ins)
                    if fault:
                        faults.append(f"{page.relative_to(root)}:{number}: {fault}: {line}")
    for reason, count in sorted(not_run.items()):
        print(f"not run: {count:3}, each {reason}")
    for fault in faults:
        print(fault)
    print(f"documents: {checked} commands, {len(ran)} different ones run, {len(faults)} faults")
    if faults or checked < 150 or (stand_ins and len(ran) < 80):
        sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
