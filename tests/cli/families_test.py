#!/usr/bin/env python3
"""The table of docs/families.md is what the program prints.

    families_test.py PROGRAM PAGE [--write]

--write puts the table into the page, between its two markers. That every row of the table is true
is shown by the golden cases: tests/model/family_traits_test.cpp.
"""
import subprocess
import sys

BEGIN = "<!-- families: written by tests/cli/families_test.py --write -->\n"
END = "<!-- families end -->\n"


def main():
    program, page = sys.argv[1:3]
    printed = subprocess.run([program, "families", "--markdown"], stdout=subprocess.PIPE,
                             encoding="utf-8", check=True).stdout
    with open(page, encoding="utf-8") as file:
        text = file.read()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        return f"{page} lacks the lines {BEGIN.strip()} and {END.strip()}, once each."
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    if table.strip() == printed.strip():
        return 0
    if sys.argv[3:] == ["--write"]:
        with open(page, "w", encoding="utf-8") as file:
            file.write(f"{before}{BEGIN}\n{printed}\n{END}{after}")
        return 0
    wanted, found = printed.splitlines(), table.strip().splitlines()
    for line in [line for line in wanted if line not in found]:
        print("missing: " + line)
    for line in [line for line in found if line not in wanted]:
        print("not so:  " + line)
    return (f"The table of families in {page} is not what the program prints. To write it anew:\n"
            f"  python3 tests/cli/families_test.py {program} {page} --write")


if __name__ == "__main__":
    sys.exit(main())
