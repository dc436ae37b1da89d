#!/usr/bin/env python3
"""The C interface keeps what tests/c/abi.txt promises (docs/abi.md).

    abi_test.py SOURCE_DIRECTORY LIBRARY... [--write]

The libraries export every function of the file, and nothing of the C interface beside them, in the
version node of their SONAME. Constants keep their values. Structs keep their fields in order: those
with struct_size may grow at the end, the others never change. What is new must be added to the
file: --write does that, and refuses as the test does."""
import re
import subprocess
import sys
from pathlib import Path


def declared(source):
    """What the headers declare: lines "function NAME", "constant NAME VALUE", "struct NAME FIELDS"."""
    include = source / "include/vkformer"
    paths = [*sorted((include / "c").glob("*.h")), include / "vkformer_conformance.h"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    text = " ".join(re.sub(r"//[^\n]*|^#[^\n]*", "", text, flags=re.M).split())
    lines = {f"function {name}" for name in re.findall(r"VKFORMER_API [^;]*?\b(vkf_\w+)\(", text)}
    for body in re.findall(r"\benum \{([^}]*)\}", text):
        for name, value in re.findall(r"(VKF_\w+) = (-?\w+)", body):
            lines.add(f"constant {name} {value}")
    for body, name in re.findall(r"typedef struct \w+ \{([^}]*)\} (vkf_\w+);", text):
        lines.add(f"struct {name} " + "; ".join(field.strip() for field in body.split(";") if field.strip()))
    return lines


def exported(library):
    """C functions and their version nodes, and the number of the library's SONAME."""
    symbols = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library],
                             capture_output=True, text=True, check=True).stdout
    names = dict(re.findall(r" T (vkf_\w+)@@(\w+)$", symbols, re.M))
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True,
                             check=True).stdout
    return names, re.search(r"SONAME.*\[\w+\.so\.(\d+)\]", dynamic)[1]


def by_name(lines):
    return {tuple(line.split(" ", 2)[:2]): line.split(" ", 2)[2:] for line in lines}


def broken(promised, present):
    """Sentences on what a program that was built before would miss."""
    old, new = by_name(promised), by_name(present)
    for key, rest in sorted(old.items()):
        kind, name = key
        if key not in new:
            yield f"[{name}] is gone: the {kind} is promised. Keep it, or raise VKFORMER_SOVERSION."
        elif kind == "constant" and new[key] != rest:
            yield f"[{name}] is {new[key][0]}, but {rest[0]} is promised."
        elif kind == "struct":
            grows = rest[0].startswith("uint32_t struct_size")
            if not (new[key] == rest or grows and new[key][0].startswith(rest[0] + "; ")):
                yield f"[{name}] has other fields than [{rest[0]}], which are promised."


def main():
    source = Path(sys.argv[1])
    libraries = [word for word in sys.argv[2:] if word != "--write"]
    path = source / "tests/c/abi.txt"
    present = declared(source)
    promised = set(path.read_text(encoding="utf-8").splitlines()) if path.exists() else set()
    faults = list(broken(promised, present))
    functions = {line.split()[1] for line in present if line.startswith("function ")}
    found = set()
    for library in libraries:
        names, number = exported(library)
        found |= set(names)
        faults += [f"[{name}] is in version node {node}, but the SONAME ends with {number}."
                   for name, node in sorted(names.items())
                   if not re.fullmatch(rf"VKFORMER_(CONFORMANCE_)?{number}", node)]
    faults += [f"[{name}] is declared, but not exported." for name in sorted(functions - found)]
    faults += [f"[{name}] is exported, but not declared." for name in sorted(found - functions)]
    if "--write" in sys.argv and not faults:
        path.write_text("".join(f"{line}\n" for line in sorted(present)), encoding="utf-8")
        return 0
    faults += [f"[{line}] is not promised yet: run tests/c/abi_test.py with --write."
               for line in sorted(present - promised)]
    print("\n".join(faults) or f"abi: {len(functions)} functions as promised")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
