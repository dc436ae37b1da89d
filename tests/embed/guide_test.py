#!/usr/bin/env python3
"""The program in docs/embedding.md does what the page says, in under 60 lines.

    guide_test.py SOURCE_DIRECTORY LIBRARY CXX_COMPILER VULKAN_INCLUDE

Exits with 77 where there is no Vulkan loader to link."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77


def output(*command, fails=False):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == fails, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout.strip(), done.stderr.strip()


def main():
    source, library, compiler, vulkan = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    page = (source / "docs" / "embedding.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.S | re.M)
    assert len(blocks) == 1, f"docs/embedding.md has {len(blocks)} blocks of cpp, not one"
    lines = blocks[0].count("\n")
    assert lines < 60, f"the program in docs/embedding.md has {lines} lines; 59 are allowed"
    told = re.search(r"^prints `([^`]+)`", page, re.M)[1]
    model = str(source / "models" / "g2p-en")
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.cpp"
        probe.write_text("int main() {}\n", encoding="utf-8")
        found = subprocess.run([compiler, str(probe), "-o", f"{folder}/probe", "-lvulkan"],
                               capture_output=True, check=False)
        if found.returncode != 0:
            print("Skipped: there is no Vulkan loader to link the program with.")
            sys.exit(SKIPPED)
        program = Path(folder) / "program.cpp"
        program.write_text(blocks[0], encoding="utf-8")
        built = str(Path(folder) / "program")
        output(compiler, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic",
               "-Wno-missing-field-initializers", "-Werror", f"-I{source / 'include'}",
               f"-idirafter{vulkan}", str(program), "-o", built, str(library), "-lvulkan",
               f"-Wl,-rpath,{library.parent}")
        assert output(built, model, "attention") == (told, ""), output(built, model, "attention")
        missing = output(built, f"{folder}/absent", "attention", fails=True)
        assert missing[0] == "" and f"{folder}/absent" in missing[1], missing
    print(f"guide: {lines} lines, which print {told}")


if __name__ == "__main__":
    main()
