#!/usr/bin/env python3
"""The commands of docs/tutorial.md do what the page says, with the programs of this build.

    tutorial_test.py SOURCE_DIRECTORY LIBRARY CXX_COMPILER PROGRAM_DIRECTORY

Types every line of the page in a new folder with the models. Lines that build or install are left to tests/first_hour, but the
page's program is compiled here against the library of the build."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# What the build has done already.
ELSEWHERE = ("tools/demo", "cmake --install", "export ")
# What a line must have written.
PICTURES = {"hello.gif": b"GIF89a", "juliet.gif": b"GIF89a", "crowd.gif": b"GIF89a", "attention.html": b"<!"}


def steps(page):
    """(command, expected output or None) of every line that is typed; a block of text after a line is what it prints."""
    found, block = [], None
    for line in page.splitlines():
        if block is None and line.startswith("    "):
            found.append((line[4:], None))
        elif block is None and line.startswith("```"):
            block = [] if line == "```text" else None
        elif block is not None and line == "```":
            found[-1] = (found[-1][0], "".join(block))
            block = None
        elif block is not None:
            block.append(line + "\n")
    return found


def main():
    source, library, programs = (Path(sys.argv[i]).resolve() for i in (1, 2, 4))
    compiler = sys.argv[3]
    page = (source / "docs" / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.S | re.M)
    assert len(blocks) == 1, f"docs/tutorial.md has {len(blocks)} blocks of cpp, not one"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    typed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").symlink_to(source / "models")
        (folder / "frames.cpp").write_text(blocks[0], encoding="utf-8")
        lines = re.sub(r"^```cpp\n.*?^```$", "", page, flags=re.S | re.M)
        for command, expected in steps(lines):
            if command.startswith(ELSEWHERE):
                continue
            if command.startswith("c++ "):
                assert "$(pkg-config --cflags --libs vkformer) -Wl,-rpath,PREFIX/lib" in command, command
                command = (f"{compiler} -std=c++20 -Wall -Wextra -Werror -I{source / 'include'} frames.cpp -o frames "
                           f"{library} -Wl,-rpath,{library.parent}")
            done = subprocess.run(["bash", "-euc", command], cwd=folder, env=environment, capture_output=True, text=True,
                                  check=False)
            assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr}"
            assert expected is None or done.stdout == expected, f"{command} printed\n{done.stdout}\nnot\n{expected}"
            typed += 1
        for file, begin in PICTURES.items():
            assert (folder / file).read_bytes().startswith(begin), f"{file} does not begin with {begin}"
    assert typed >= 14, f"only {typed} lines of docs/tutorial.md were found"
    print(f"tutorial: {typed} lines, none failed")


if __name__ == "__main__":
    main()
