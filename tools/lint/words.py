#!/usr/bin/env python3
"""Checks the language of comments, documents and messages: private words, British spellings, long sentences.

  tools/lint/words.py            fails where a folder or document has more of them than words_known.tsv says
  tools/lint/words.py --write    writes that file, after a change that has fewer; more are refused
  tools/lint/words.py --list PATH...   prints every finding in these files or folders

Each folder has a count that may only fall. Of messages (texts of C++ with a few words) the words count alone. A line of words_known.tsv is a folder or document,
private words, British spellings, sentences of more than 25 words, and of a document its mean words a sentence,
which may be 17 at most.
"""
import ast
import re
import sys

import common

KNOWN = common.ROOT / "tools" / "lint" / "words_known.tsv"
LONG = 25  # words of a sentence
MEAN = 17  # words of a sentence of a document, at most
# A word of ours, and the standard one. What looks like one and is not stands in ALLOWED.
PRIVATE = {
    r"behind": "after, follows", r"so (many|much)": "a number: up to N", r"of its own": "separate, own",
    r"leaves? (away|out)|leaving (away|out)|left (away|out)": "omit", r"mend(s|ed|ing)?": "fix",
    r"guess(es|ed|ing)?": "draft tokens", r"drawn|draws? tokens": "sampled", r"kept texts?|kept prefix(es)?": "cached prefix",
    r"who (asks|waits|gives|reads|writes)": "the client, the caller", r"lets? through": "gate projection",
    r"sounds(?!\.)": "audio", r"in front of": "before",
}
ALLOWED = re.compile(r"drawn (boxes|masks|by|as|on|over|in)|boxes,? drawn|draws? (a|an|the|frames|boxes)", re.I)
BRITISH = re.compile(r"\b\w*(?:[a-z]{2}isation|alis(?:e|ed|es|ing)|quantis\w+|normalis\w+|optimis\w+|recognis\w+|initialis\w+|"
                     r"colour\w*|behaviour\w*|neighbour\w*|favour\w*|centre[sd]?|analys(?:e|ed|es)|licence\w*|grey)\b", re.I)
PRIVATE_WORDS = re.compile(r"\b(?:" + "|".join(PRIVATE) + r")\b", re.I)
FOLDERS = ["include", "runtime", "shaders", "conformance", "samples", "bench", "mpi", "tests", "bindings", "docs", "tools",
           "cmake"]
SUFFIXES = {".h", ".cpp", ".comp", ".glsl", ".c", ".cs", ".md", ".py", ".sh", ".cmake", ""}
SPEAKING = ("runtime", "samples", "conformance", "mpi")  # folders whose texts people read
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
GENERATED = ("docs/bindings_functions.md", "docs/operators.md")
HASHED = {"", ".sh", ".cmake"}  # programs of tools/ have no suffix
COMMENT = re.compile(r"^\s*(?://+|\*)\s?(.*)$")
LABEL = re.compile(r"(attributes|inputs|outputs|computes|shapes|mapping|bounds|requires|variants): ")
ROW = re.compile(r"\S {3,}\S")  # of a table without lines: a name, a gap and what it is
TRAILING_COMMENT = re.compile(r"\s//\s(.*)$")


def comments(text):
    """Comments of C++ or GLSL, paragraphs of lines that follow each other; (line, text).

    A comment at the end of a line of code is a paragraph, with the lines of comment below it in the same column. So is
    an indented line: a formula or a row of a table. So is what follows a name and a gap, or a label of an operator's or
    a shader's table.
    """
    paragraph, begin, column = [], 0, None
    for number, line in enumerate(text.splitlines() + [""], 1):
        found = COMMENT.match(line)
        trailing = None if found else TRAILING_COMMENT.search(line)
        at = trailing.start() + 1 if trailing else len(line) - len(line.lstrip())
        formula = bool(found) and found[1].startswith("  ")
        row = bool(found) and (LABEL.match(found[1]) or ROW.search(found[1]))
        if paragraph and (not found or formula or row or not found[1].strip() or at != column):
            yield begin, " ".join(paragraph)
            paragraph = []
        if formula:
            yield number, found[1].strip()
        elif (found and found[1].strip()) or trailing:
            if not paragraph:
                begin, column = number, at
            paragraph.append((found or trailing)[1])


def python_comments(text):
    """Comments and docstrings of Python; (line, text)."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            first = node.body[0].lineno
            for line, paragraph in prose(ast.get_docstring(node)):
                yield first + line - 1, paragraph
    yield from comments(hash_comments(text))


def hash_comments(text):
    """Comments of Python, shells and CMake as those of C++; what is no comment is left empty."""
    lines = []
    for line in text.splitlines():
        alone = re.match(r"\s*#(?!!)\s?(.*)$", line)
        found = alone or re.search(r"  #\s(.*)$", line)
        code = "" if alone or not found else "x"  # what a comment at its end follows
        lines.append(code + " " * (found.start(1) - 3 - len(code)) + "// " + found[1] if found else "")
    return "\n".join(lines)


def reader_of(path):
    """The function that reads the paragraphs of this kind of file."""
    if path.suffix == ".md":
        return prose
    if path.suffix == ".py":
        return python_comments
    if path.suffix in HASHED or path.name == "CMakeLists.txt":
        return lambda text: comments(hash_comments(text))
    return comments


def prose(text):
    """Paragraphs of a document, without code, tables and addresses; (line, text)."""
    paragraph, begin, fenced = [], 0, False
    for number, line in enumerate(text.splitlines() + [""], 1):
        if line.startswith("```"):
            fenced = not fenced
        skipped = fenced or line.startswith(("    ", "|", "#", "```", "<")) or not line.strip()
        item = re.match(r"\s*(?:[*-]|\d+\.)\s+", line)
        if (skipped or item or ROW.search(line)) and paragraph:
            yield begin, " ".join(paragraph)
            paragraph = []
        if skipped:
            continue
        if not paragraph:
            begin = number
        paragraph.append(re.sub(r"\]\([^)]*\)", "]", line[item.end():] if item else line).strip())


def sentences(text):
    """Sentences, which end at `.`, `!` or `?` alone; what stands in backticks is one word."""
    text = re.sub(r"`[^`]*`", "code", text)
    return [s for s in re.split(r"(?<=[.!?])\s+", text) if re.search(r"[A-Za-z]{2}", s)]


def words(sentence):
    return len(re.findall(r"[A-Za-z0-9][\w'-]*", sentence))


def messages(text):
    """String literals of C++ that have three spaces at least, with those that follow joined; (line, text)."""
    code = re.sub(r"(?m)^\s*//.*$|R\"[\s\S]*?\)\"", lambda found: "\n" * found[0].count("\n"), text)
    for found in LITERALS.finditer(code):
        joined = re.sub(r'"\s*"', "", found[0])
        if joined.count(" ") >= 3:
            yield code.count("\n", 0, found.start()) + 1, joined[1:-1].replace("\\n", " ")


def words_of(line, text):
    """Private words and British spellings of a text: (line, kind, what)."""
    plain = re.sub(r"`[^`]*`|\[[\w.]+\]", "code", text)
    for found in PRIVATE_WORDS.finditer(ALLOWED.sub("", plain)):
        yield line, "private", found[0]
    for found in BRITISH.finditer(plain):
        if "_" not in found[0]:  # an identifier
            yield line, "british", found[0]


def findings(path):
    """Every finding of a file: (line, kind, what)."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".cpp" and any(path.is_relative_to(common.ROOT / folder) for folder in SPEAKING):
        for line, message in messages(text):
            yield from words_of(line, message)
    for line, paragraph in reader_of(path)(text):
        yield from words_of(line, paragraph)
        for sentence in sentences(paragraph):
            if words(sentence) > LONG:
                yield line, "long", f"{words(sentence)} words: {sentence[:60]}"


def place_of(path):
    """A document stands alone; code is counted by room."""
    name = common.relative(path)
    if path.suffix == ".md":
        return name
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


def checked_files():
    # The linters name the words that they look for.
    skipped = (*GENERATED, "tests/fuzz/corpus/", "tools/lint/words.py", "tools/lint/self_test.py")
    found = common.files(*FOLDERS, suffixes=SUFFIXES)
    found += [p for p in common.files(*FOLDERS, suffixes={".txt"}) if p.name == "CMakeLists.txt"]
    found += [common.ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    found += sorted((common.ROOT / "models").glob("*/README.md"))
    return [p for p in found if not common.relative(p).startswith(skipped) and "/build/" not in str(p)]


def counted():
    """For each place its counts, and of a document the mean words a sentence."""
    counts = {}
    for path in checked_files():
        row = counts.setdefault(place_of(path), {"private": 0, "british": 0, "long": 0, "mean": ""})
        for _, kind, _ in findings(path):
            row[kind] += 1
        if path.suffix == ".md":
            lengths = [words(s) for _, p in prose(path.read_text(encoding="utf-8")) for s in sentences(p)]
            row["mean"] = f"{sum(lengths) / max(len(lengths), 1):.1f}"
    return counts


def known():
    rows = {}
    if KNOWN.exists():
        for line in KNOWN.read_text(encoding="utf-8").splitlines()[1:]:
            place, private, british, long, mean = line.split("\t")
            rows[place] = {"private": int(private), "british": int(british), "long": int(long), "mean": mean}
    return rows


def more_than(before, now):
    """Sentences on what a place has more of than it had; a new place may have nothing."""
    for place, row in sorted(now.items()):
        old = before.get(place, {"private": 0, "british": 0, "long": 0})
        for kind, what in (("private", "private words"), ("british", "British spellings"),
                           ("long", f"sentences of more than {LONG} words")):
            if row[kind] > old[kind]:
                yield (f"{place}: {row[kind]} {what}, but {old[kind]} before; tools/lint/words.py --list {place} "
                       "shows them")
        if row.get("mean") and float(row["mean"]) > MEAN:
            yield f"{place}: a sentence has {row['mean']} words on average, but at most {MEAN} are allowed; split long ones"


def main(arguments):
    if arguments[:1] == ["--list"]:
        for path in checked_files():
            if any(common.relative(path).startswith(a.rstrip("/")) for a in arguments[1:]):
                for line, kind, what in findings(path):
                    print(f"{common.relative(path)}:{line}: {kind}: {what}")
        return
    before, now = known(), counted()
    worse = list(more_than(before, now)) if before else []
    if arguments == ["--write"] and not worse:
        lines = ["place\tprivate\tbritish\tlong\tmean"]
        lines += ["\t".join([place, *(str(row[k]) for k in ("private", "british", "long", "mean"))])
                  for place, row in sorted(now.items())]
        KNOWN.write_text("\n".join(lines) + "\n", encoding="utf-8")
    common.report("words", len(checked_files()), worse)


if __name__ == "__main__":
    main(sys.argv[1:])
