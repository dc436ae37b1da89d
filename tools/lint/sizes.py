#!/usr/bin/env python3
"""Checks sizes: lines of a file, lines of a function, parameters of a function.

size_exceptions.txt beside this file lists what may be larger, one a line: `path reason` for a
file's length, `path:function reason` for a function. An entry that is no longer needed is an error.
"""
import re
import sys
from pathlib import Path

from common import ROOT, files, relative, report

FILE_LIMITS = {".cpp": 800, ".h": 400, ".def": 400, ".comp": 400, ".glsl": 400}
PUBLIC_HEADER_LIMIT = 250
FUNCTION_LIMIT = 80
SHADER_MAIN_LIMIT = 120
PARAMETER_LIMIT = 7

TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.S | re.M)
SCOPE = re.compile(r"(?:typedef\s+|inline\s+|export\s+)*"
                   r"(?:namespace|extern|class|struct|union|TEST_SUITE)\b")


def blank(text):
    """The text without comments, strings and preprocessor lines; line breaks stay."""
    def keep_lines(match):
        literal = match[0][0] in "\"'R"
        return ('""' if literal else " ") + "\n" * match[0].count("\n")
    return TOKENS.sub(keep_lines, text)


def matching(text, begin, pair):
    """Position of the bracket that closes the one at `begin`, or the text's end."""
    depth = 0
    for position in range(begin, len(text)):
        if text[position] == pair[0]:
            depth += 1
        elif text[position] == pair[1]:
            depth -= 1
            if depth == 0:
                return position
    return len(text)


def without_brackets(text):
    """Removes everything in round brackets, brackets included."""
    out, depth = [], 0
    for char in text:
        depth += char == "("
        if depth == 0:
            out.append(char)
        depth -= char == ")"
    return "".join(out)


def kind_of(head):
    """What a brace after `head` opens, at the level of a namespace or class."""
    head = re.sub(r"^\s*(?:public|private|protected)\s*:", "", head).strip()
    while re.match(r"template\s*<", head):
        head = head[matching(head, head.index("<"), "<>") + 1:].strip()
    if SCOPE.match(head) and not re.match(r"extern\b.*\(", head, re.S):
        return "scope"
    flat = without_brackets(head)
    if "(" not in head or head.startswith(("layout", "enum")):
        return "skip"
    if "=" in re.sub(r"operator\s*[=!<>+\-*/]+", "", flat):
        return "skip"
    # In `Name(int a) : a_(a), b_` the brace initializes b_; the body comes later.
    if re.search(r"(?<!:):(?!:)", flat) and re.search(r"[\w>]$", head):
        return "initialiser"
    return "function"


def split_head(head):
    """(name, position of the bracket that opens the parameters) of a function's head."""
    operator = re.search(r"\boperator\s*(\(\)|[^\s(]+|\w+)\s*\(", head)
    if operator:
        return "operator" + operator[1], operator.end() - 1
    depth = 0
    for position, char in enumerate(head):
        depth += (char in "<[") - (char in ">]")
        if char == "(" and depth == 0:
            name = re.search(r"([~\w]+)\s*$", head[:position])
            if name and name[1] not in ("alignas", "decltype", "explicit", "requires"):
                return name[1], position
    return "?", head.find("(")


def parameters_of(head, start):
    """How many parameters stand in the brackets that open at `start`."""
    inner = head[start + 1:matching(head, start, "()")]
    if not inner.strip() or inner.strip() == "void":
        return 0
    depth = count = 0
    for char in inner:
        depth += (char in "(<[{") - (char in ")>]}")
        count += char == "," and depth == 0
    return count + 1


def functions(text):
    """(name, first line, lines, parameters) of every function body that is in no other."""
    text = blank(text)
    position = head_start = 0
    while position < len(text):
        char = text[position]
        if char in ";}":
            head_start = position + 1
        elif char == "(":
            position = matching(text, position, "()")
        elif char == "{":
            head = text[head_start:position]
            kind = kind_of(head)
            if kind == "scope":
                head_start = position + 1
            else:
                end = matching(text, position, "{}")
                if kind == "function":
                    name, parameters = split_head(head)
                    begin = head_start + len(head) - len(head.lstrip())
                    first = text.count("\n", 0, begin) + 1
                    last = text.count("\n", 0, end) + 1
                    yield name, first, last - first + 1, parameters_of(head, parameters)
                position = end
                if kind != "initialiser":
                    head_start = end + 1
        position += 1


def file_limit(path):
    if relative(path).startswith("include/"):
        return PUBLIC_HEADER_LIMIT
    return FILE_LIMITS[path.suffix]


def check(path):
    """(exception key, finding) for everything in the file that is over a limit."""
    text = path.read_text(encoding="utf-8")
    name, lines, limit = relative(path), text.count("\n"), file_limit(path)
    if lines > limit:
        yield name, (f"{name}:1: {lines} lines, over the limit of {limit}; a file is one idea: split "
                     "two, or give the reason in size_exceptions.txt.")
    for function, line, length, parameters in functions(text):
        key = f"{name}:{function}"
        is_main = path.suffix == ".comp" and function == "main"
        limit = SHADER_MAIN_LIMIT if is_main else FUNCTION_LIMIT
        if length > limit:
            yield key, f"{name}:{line}: [{function}] has {length} lines, over the limit of {limit}."
        if parameters > PARAMETER_LIMIT and not function.startswith("TEST_CASE"):
            yield key, (f"{name}:{line}: [{function}] has {parameters} parameters, over the limit "
                        f"of {PARAMETER_LIMIT}; group them in a struct.")


def read_exceptions():
    """Key -> reason."""
    exceptions = {}
    text = (Path(__file__).parent / "size_exceptions.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, reason = line.partition(" ")
            exceptions[key] = reason.strip()
    return exceptions


def main():
    sources = files("runtime", "conformance", "include", "samples", "tests", "bench", "shaders",
                    suffixes=set(FILE_LIMITS))
    exceptions = read_exceptions()
    here = "tools/lint/size_exceptions.txt"
    findings = [f"{here}: [{key}] has no reason." for key, reason in exceptions.items() if not reason]
    used = set()
    for path in sources:
        for key, finding in check(path):
            if key in exceptions:
                used.add(key)
            else:
                findings.append(finding)
    findings += [f"{here}: [{key}] is within the limits now; remove its line."
                 for key in exceptions if key not in used]
    report("sizes", len(sources), findings)


if __name__ == "__main__":
    sys.exit(main())
