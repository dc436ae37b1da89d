"""Public functions of the headers, and the examples of samples/reference that show them.

An example is what is between two lines of a sample:

  //! [Device::create Device::tier]   the functions that it shows, without their namespace
  //! [end]

Where one line is too short for the names, more lines like the first follow it. tools/site puts examples into the reference; tests/tools/reference_test.py asks for one for every function.
"""
import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples" / "reference"
HEADERS = ROOT / "include" / "vkformer"
BEGIN = re.compile(r"\s*//! \[(.+)\]$")
END = "[end]"
SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b(?:\s+VKFORMER_API|\s*\[\[\w+\]\])?\s*([\w:]*)")
ACCESS = re.compile(r"\s*(public|protected|private)\s*:(?!:)")


def blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def name_of(statement):
    """What a declaration's first parentheses follow, outside of angle brackets; None if it is no function."""
    depth = 0
    for at, letter in enumerate(statement):
        if letter == "=" and depth == 0 and not re.search(r"\boperator\W*$", statement[:at]):
            return None
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            found = re.search(r"(~?\b\w+)\s*$", statement[:at])
            return found[1] if found and statement[at + 1] != "*" else None  # not of a pointer to a function
    return None


def is_function(statement, name, scope):
    """Operators, constructors, destructors and deleted functions are shown with their class."""
    if name is None or name.startswith("~") or name == scope or re.search(r"\boperator\b", statement):
        return False
    return not re.match(r"\s*(friend|using|typedef|static_assert)\b", statement) and \
        not re.search(r"=\s*(delete|default)\s*$", statement)


def functions(text):
    """(line of its declaration, name with its classes) of every public function of a header, from line 0 on."""
    text = SKIPPED.sub(blank, text)
    scopes, start, round_depth, at = [], 0, 0, 0  # a scope is [class or "", whether it is public]
    while at < len(text):
        letter = text[at]
        round_depth += {"(": 1, ")": -1}.get(letter, 0)
        access = ACCESS.match(text, start)
        if access:
            scopes[-1][1] = access[1] == "public"
            start = at = access.end()
            continue
        if round_depth == 0 and letter in ";{}":
            statement = text[start:at]
            scope = SCOPE.search(re.sub(r"template\s*<[^>]*>", "", statement))
            opens = scope and "(" not in statement and "=" not in statement
            name = None if opens else name_of(statement)
            if letter != "}" and all(public for _, public in scopes) and \
                    is_function(statement, name, scopes[-1][0] if scopes else ""):
                first = start + len(statement) - len(statement.lstrip())
                yield text[:first].count("\n"), "::".join([s for s, _ in scopes if s] + [name])
            if letter == "{" and ((opens and scope[1] != "enum") or statement.strip() == "extern"):
                kind, called = (scope[1], scope[2]) if opens else ("extern", "")
                scopes.append(["" if kind in ("namespace", "extern") else called, kind != "class"])
            elif letter == "{":
                depth = 1
                while depth:
                    at += 1
                    depth += {"{": 1, "}": -1}.get(text[at], 0)
                if name is None:  # of an initializer or an enum the declaration goes on
                    at += 1
                    continue
            elif letter == "}":
                scopes.pop()
            start = at + 1
        at += 1


def examples_in(file, text):
    """The examples of one sample, as (file, line, names, text). An example without an end is a ValueError."""
    names, first, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        marker = BEGIN.match(line)
        if marker and marker[0].strip() == f"//! {END}":
            if names is None:
                raise ValueError(f"{file}:{number}: [end] ends no example. Begin one with [names of functions].")
            yield file, first, names, textwrap.dedent("\n".join(lines))
            names = None
        elif marker and names is not None and lines:
            raise ValueError(f"{file}:{number}: The example of line {first} has no [end] before this one.")
        elif marker:
            first, names, lines = (number, [], []) if names is None else (first, names, lines)
            names += marker[1].split()
        elif names is not None:
            lines.append(line)
    if names is not None:
        raise ValueError(f"{file}:{first}: The example has no [end] before the end of the file.")


def examples(folder=SAMPLES):
    """The examples, as (file, line, names, text), in the order of files."""
    return [found for file in sorted(path for path in folder.rglob("*") if path.suffix in (".cpp", ".c"))
            for found in examples_in(file, file.read_text(encoding="utf-8"))]


def shown():
    """(file, text) of the example of each function that has one; the first that names it counts."""
    found = {}
    for file, _, names, text in examples():
        for name in names:
            found.setdefault(name, (file, text))
    return found


def comments_of_examples(text):
    """Per line of a header the comment for doxygen that goes before it."""
    found = shown()
    inserted = {}
    for line, name in functions(text):
        if name in found:
            file, example = found[name]
            indent = re.match(r"\s*", text.splitlines()[line])[0]
            inserted[line] = [f"{indent}/// {part}".rstrip() for part in
                              ["@par Example", f"@code{{{file.suffix}}}", *example.splitlines(), "@endcode"]]
    return inserted
