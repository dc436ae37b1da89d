#!/usr/bin/env python3
"""The programs in docs/c_api.md do what the page says.

    guide_test.py SOURCE_DIRECTORY LIBRARY C_COMPILER"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path


def block(text, language):
    """The one block of that language on the page."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.S | re.M)
    assert len(blocks) == 1, f"docs/c_api.md has {len(blocks)} blocks of {language}, not one"
    return blocks[0]


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout.strip(), done.stderr.strip()


def main():
    source, library, compiler = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    page = (source / "docs" / "c_api.md").read_text(encoding="utf-8")
    model = str(source / "models" / "g2p-en")
    told = re.search(r"prints `([^`]+)`", page)[1]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.c"
        program.write_text(block(page, "c"), encoding="utf-8")
        built = Path(folder) / "program"
        output(compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
               f"-I{source / 'include'}", str(program), "-o", str(built), str(library),
               f"-Wl,-rpath,{library.parent}")
        assert output(str(built), model, "attention") == (told, ""), output(str(built), model)
        missing = output(str(built), f"{folder}/absent")
        assert missing[0] == "" and f"{folder}/absent" in missing[1], missing
        script = Path(folder) / "program.py"
        script.write_text(block(page, "python"), encoding="utf-8")
        assert output(sys.executable, str(script), str(library), model, "attention")[0] == told
    print("guide: both programs print", told)


if __name__ == "__main__":
    main()
