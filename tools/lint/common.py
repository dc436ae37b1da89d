"""Shared by the linters: the project's files, and how findings are printed."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def files(*folders, suffixes):
    """Files below the folders with one of the suffixes, in order; missing folders hold none."""
    found = []
    for folder in folders:
        found += [p for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file()]
    return sorted(found)


def relative(path):
    return path.relative_to(ROOT).as_posix()


def report(linter, checked, findings):
    """Prints the findings, `path:line: sentence`, and exits with 1 if there are any."""
    for finding in findings:
        print(finding)
    print(f"{linter}: {checked} files, {len(findings)} findings")
    if not checked:
        print(f"{linter}: found no file to check; is this the project's folder?")
    sys.exit(1 if findings or not checked else 0)
