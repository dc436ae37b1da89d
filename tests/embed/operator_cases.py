#!/usr/bin/env python3
"""Runs the operator cases of a folder with a program, perhaps in an emulator, and compares.

    operator_cases.py FOLDER COMMAND... [--match REGEX]

The command is `vkformer`, with whatever runs it before it. Nothing but Python is needed."""
import array
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

KINDS = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "U32": "I", "U8": "B", "BOOL": "B"}


def read_tensors(path):
    data = Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["shape"], array.array(KINDS[entry["dtype"]], data[begin:end]))
    return tensors


def close(actual, wanted, tolerance):
    if actual != actual or wanted != wanted:  # NaN must meet NaN
        return actual != actual and wanted != wanted
    if actual == wanted:
        return True
    return abs(actual - wanted) <= tolerance["abs"] + tolerance["rel"] * abs(wanted)


def check(case, command):
    facts = json.loads((case / "case.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/actual.safetensors"
        done = subprocess.run([*command, "case", str(case), "--output", output],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"exit {done.returncode}: {done.stderr.strip()[-300:]}"
        actual = read_tensors(output)
    for name, (shape, wanted) in read_tensors(case / "expected.safetensors").items():
        if name.startswith("mask."):
            continue
        found = actual.get(name)
        if found is None or found[0] != shape:
            return f"{name} is {found and found[0]}, not {shape}"
        wrong = sum(not close(a, w, facts["tolerance"]) for a, w in zip(found[1], wanted))
        if wrong:
            return f"{name}: {wrong} of {len(wanted)} values differ"
    return ""


def main():
    arguments = sys.argv[1:]
    match = "."
    if "--match" in arguments:
        at = arguments.index("--match")
        match = arguments[at + 1]
        del arguments[at:at + 2]
    folder, command = Path(arguments[0]), arguments[1:]
    cases = [case for case in sorted(folder.iterdir())
             if (case / "op.json").exists() and re.search(match, case.name)]
    failed = 0
    for case in cases:
        problem = check(case, command)
        if problem:
            failed += 1
            print(f"{case.name}: {problem}")
    print(f"operator cases: {len(cases) - failed} of {len(cases)} passed")
    sys.exit(failed > 0 or not cases)


if __name__ == "__main__":
    main()
