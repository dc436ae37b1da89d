#!/usr/bin/env python3
"""Checks the tables of docs/operators.md: they are what the adaptors in runtime/operators say.

An adaptor opens with its name, the table it belongs to, and four labels:

    // rms_norm (Row-wise operators)
    // attributes: `eps` (1e-6)
    // inputs:     X (..., D); optional weight (D)
    // outputs:    Y (..., D)
    // computes:   X / sqrt(mean(X²) + eps) · weight

With --write the tables are written again. A row that says "not by name" has no adaptor and stays.
"""
import re
import sys

from common import ROOT, files, relative, report

MANUAL = ROOT / "docs/operators.md"
LABELS = ["attributes", "inputs", "outputs", "computes"]
LIST = re.compile(r"^VKF_(?:OPERATOR|CALL)\((\w+)\)$", re.M)
ADAPTOR = re.compile(r"^((?://.*\n)*)Result<PreparedOperator> prepare_(\w+)\(const Operator", re.M)


def entry(comment):
    """(name, table, {label: text}) of an adaptor's comment, or None."""
    opening = re.match(r"// (\w+) \((.+)\)\n", comment)
    if not opening:
        return None
    texts, label = {}, None
    for line in comment[opening.end():].splitlines():
        found = re.match(r"// (\w+): +(\S.*)", line)
        if found and found[1] in LABELS:
            label = found[1]
            texts[label] = found[2]
        elif label and line.startswith("//    "):
            texts[label] += " " + line[2:].strip()
        else:
            break
    return opening[1], opening[2], texts


def row(name, texts):
    cells = [f"`{name}`"] + [texts.get(label, "") for label in LABELS]
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def adaptors():
    """(entries by name, findings)."""
    entries, findings = {}, []
    known = LIST.findall((ROOT / "runtime/ops/op_list.def").read_text(encoding="utf-8"))
    for path in files("runtime/operators", suffixes={".cpp"}):
        for match in ADAPTOR.finditer(path.read_text(encoding="utf-8")):
            if match[2] not in known:
                continue  # what adaptors share
            said = entry(match[1])
            if said and said[0] == match[2] and {"outputs", "computes"} <= said[2].keys():
                entries[said[0]] = said
                continue
            findings.append(f"{relative(path)}:1: [{match[2]}] lacks its documentation. Open its "
                            f"adaptor with `// {match[2]} (TABLE)` and {', '.join(LABELS)}.")
    return entries, findings


def tables(text, entries):
    """The manual with every table written again from the entries."""
    lines, section, seen = [], None, set()
    rest = {table: [name for name, said in entries.items() if said[1] == table]
            for table in {said[1] for said in entries.values()}}
    inside = False
    for line in text.splitlines():
        heading = re.match(r"## (.*)", line)
        section = heading[1] if heading else section
        known = re.match(r"\| `(\w+)` \|", line)
        if inside and not line.startswith("|"):
            # After the last row of a table: what is new in it.
            for name in rest.get(section, []):
                if name not in seen:
                    lines.append(row(name, entries[name][2]))
                    seen.add(name)
        inside = line.startswith("|")
        if known and known[1] in entries and entries[known[1]][1] == section:
            seen.add(known[1])
            lines.append(row(known[1], entries[known[1]][2]))
        elif not known or "not by name" in line:
            lines.append(line)
    return "\n".join(lines) + "\n", seen


def main():
    entries, findings = adaptors()
    text = MANUAL.read_text(encoding="utf-8")
    written, seen = tables(text, entries)
    findings += [f"docs/operators.md:1: [{name}] belongs to the table '{entries[name][1]}', which "
                 "is none of its headings." for name in entries if name not in seen]
    if "--write" in sys.argv[1:]:
        MANUAL.write_text(written, encoding="utf-8")
    elif written != text:
        number = next((i for i, (a, b) in enumerate(
            zip(text.splitlines(), written.splitlines()), 1) if a != b), 1)
        findings.append(f"docs/operators.md:{number}: differs from what runtime/operators says. "
                        "Run tools/lint/operator_tables.py --write.")
    report("operator tables", len(entries), findings)


if __name__ == "__main__":
    main()
