#!/usr/bin/env python3
"""Looks for misspelled words: with codespell in code, documents and scripts, and with aspell in the prose of documents.

codespell knows common errors. Words that only look like one are in spelling_words.txt, one a line. aspell knows a
dictionary of American English. Words of documents that it lacks are in document_words.txt, one a line, sorted. Where a
program is not installed (tools/setup --tests installs both), a line says so, and its part is not checked."""
import re
import shutil
import subprocess

import common
import words

WORDS = common.ROOT / "tools" / "lint" / "spelling_words.txt"
DOCUMENT_WORDS = common.ROOT / "tools" / "lint" / "document_words.txt"
FOLDERS = ["include", "runtime", "shaders", "conformance", "samples", "bench", "mpi", "tests", "bindings", "tools",
           "cmake", "docs", "models", ".github"]
SUFFIXES = {".h", ".cpp", ".c", ".comp", ".glsl", ".def", ".md", ".py", ".sh", ".cmake", ".yml", ".cs", ".gd", ""}
# Names and texts in many languages, and what other programs wrote.
SKIPPED = ("tests/fuzz/corpus/", "tests/text/", "tests/golden/", "tools/golden/", "shaders/spirv/", "bindings/python/build/")


def checked_files():
    found = [p for p in common.files(*FOLDERS, suffixes=SUFFIXES) if not common.relative(p).startswith(SKIPPED)]
    found += sorted(p for p in common.ROOT.glob("*") if p.is_file() and p.suffix in (".md", ".txt"))
    return [p for p in found if "__pycache__" not in p.parts and "node_modules" not in p.parts]


def documents():
    found = common.files("docs", "samples", "bindings", "tests", "mpi", "tools", "models", suffixes={".md"})
    found += sorted(p for p in common.ROOT.glob("*.md") if p.name != "CHANGELOG.md")
    # Generated from headers and tables.
    return [p for p in found if common.relative(p) not in words.GENERATED and "build" not in p.parts]


def plain_words(paragraph):
    """Words in lower case: names, numbers, code, formulas and addresses are no matter of a dictionary."""
    text = re.sub(r"`[^`]*`|\*[^*]+\*|<[^>]*>|https?://\S+|\[[\w.]+\]", " ", paragraph)
    return re.findall(r"(?<![\w./-])[a-z][a-z']+[a-z](?![\w/]|\.\w|-\d)", text)


def unknown_words(candidates):
    """Those of the words that neither aspell nor the project's list knows."""
    done = subprocess.run(["aspell", "list", "--lang=en_US", "--mode=none", "--encoding=utf-8"], text=True, check=True,
                          input="\n".join(sorted(candidates)), capture_output=True)
    return set(done.stdout.split()) - set(DOCUMENT_WORDS.read_text(encoding="utf-8").split())


def misspelled_in_documents(paths):
    places = {}
    for path in paths:
        for line, paragraph in words.prose(path.read_text(encoding="utf-8")):
            for word in plain_words(paragraph):
                places.setdefault(word, f"{common.relative(path)}:{line}")
    for word in sorted(unknown_words(places)):
        yield (f"{places[word]}: aspell does not know [{word}]. Correct it, or add it to tools/lint/document_words.txt.")


def common_errors(checked):
    done = subprocess.run(["codespell", "--quiet-level", "3", "--ignore-words", str(WORDS), *map(str, checked)], capture_output=True,
                          text=True, check=False)
    for line in done.stdout.splitlines():
        place, _, found = line.partition(": ")
        wrong, _, right = found.partition(" ==> ")
        yield (f"{place.replace(str(common.ROOT) + '/', '')}: [{wrong}] may be [{right}]. Correct it, or add it to "
               "tools/lint/spelling_words.txt in lower case.")


def main():
    findings = []
    if shutil.which("aspell") is None:
        print("spelling: aspell is not installed, so the prose of documents was not checked; run tools/setup --tests")
    else:
        findings += misspelled_in_documents(documents())
    if shutil.which("codespell") is None:
        print("spelling: codespell is not installed, so code was not checked; run tools/setup --tests")
    else:
        findings += common_errors(checked_files())
    common.report("spelling", len(checked_files()), findings)


if __name__ == "__main__":
    main()
