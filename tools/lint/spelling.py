#!/usr/bin/env python3
"""Looks for misspelled words with codespell, in code, documents, scripts and their names.

Words that only look misspelled are in spelling_words.txt, one a line. Where codespell is not installed (tools/setup --tests installs
it), a line says so, and nothing is checked."""
import shutil
import subprocess

import common

WORDS = common.ROOT / "tools" / "lint" / "spelling_words.txt"
FOLDERS = ["include", "runtime", "shaders", "conformance", "samples", "bench", "mpi", "tests", "bindings", "tools", "cmake", "docs", "models", ".github"]
SUFFIXES = {".h", ".cpp", ".c", ".comp", ".glsl", ".def", ".md", ".py", ".sh", ".cmake", ".yml", ".cs", ".gd", ""}
# Names and texts in many languages, and what other programs wrote.
SKIPPED = ("tests/fuzz/corpus/", "tests/text/", "tests/golden/", "tools/golden/", "shaders/spirv/", "bindings/python/build/")


def checked_files():
    found = [p for p in common.files(*FOLDERS, suffixes=SUFFIXES) if not common.relative(p).startswith(SKIPPED)]
    found += sorted(p for p in common.ROOT.glob("*") if p.is_file() and p.suffix in (".md", ".txt"))
    return [p for p in found if "__pycache__" not in p.parts and "node_modules" not in p.parts]


def main():
    if shutil.which("codespell") is None:
        print("spelling: codespell is not installed, so nothing was checked; run tools/setup --tests")
        return
    checked = checked_files()
    done = subprocess.run(["codespell", "--quiet-level", "3", "--ignore-words", str(WORDS), *map(str, checked)], capture_output=True,
                          text=True, check=False)
    findings = []
    for line in done.stdout.splitlines():
        place, _, found = line.partition(": ")
        wrong, _, right = found.partition(" ==> ")
        findings.append(f"{place.replace(str(common.ROOT) + '/', '')}: [{wrong}] may be [{right}]. Correct it, or add it to "
                        "tools/lint/spelling_words.txt in lower case.")
    common.report("spelling", len(checked), findings)


if __name__ == "__main__":
    main()
