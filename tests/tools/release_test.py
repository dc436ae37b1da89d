#!/usr/bin/env python3
"""tools/release finds every place of the version, and cuts the changelog; and the changelog has its form.

    release_test.py SOURCE_DIRECTORY [unittest arguments]"""
import importlib.machinery
import importlib.util
import io
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()
CHANGES = "# Changelog\n\n## [Unreleased]\n\nBecomes 0.3.0: a reason.\n\n### Added\n\n- A.\n\n## [0.2.0] - 2026-01-02\n\n### Fixed\n\n- B.\n"


def load():
    loader = importlib.machinery.SourceFileLoader("release_tool", str(SOURCE / "tools" / "release"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("release_tool", loader))
    loader.exec_module(module)
    return module


class Places(unittest.TestCase):
    def test_every_place_states_the_version(self):
        tool = load()
        for name, pattern in tool.PLACES:
            stated = pattern.format(**tool.names_of(tool.current_version()))
            self.assertIn(stated, (SOURCE / name).read_text(encoding="utf-8"), name)

    def test_hexadecimal(self):
        self.assertEqual(load().names_of("1.12.3"), {"version": "1.12.3", "minor": "1.12", "hex": "0x010c03"})

    def test_a_place_that_is_gone(self):
        with self.assertRaisesRegex(SystemExit, r"x does not have \[of 0\.1\.0\]"):
            load().with_version("nothing", " of {version}", "0.1.0", "0.2.0", "x")


class Changelog(unittest.TestCase):
    def test_cut(self):
        text = load().with_section(CHANGES, "0.3.0", "2026-03-04")
        self.assertIn("## [Unreleased]\n\n## [0.3.0] - 2026-03-04\n\n### Added\n\n- A.\n", text)
        self.assertEqual(list(load().sections(text)), ["Unreleased", "0.3.0", "0.2.0"])
        self.assertEqual(load().sections(text)["0.3.0"], ("2026-03-04", "### Added\n\n- A."))

    def test_refusals(self):
        for text, version, message in ((CHANGES, "0.2.0", "already"),
                                       (CHANGES.replace("Becomes 0.3.0: a reason.\n\n### Added\n\n- A.\n\n", ""), "0.3.0", "nothing to release"),
                                       (CHANGES + "## [0.2.0] - 2026-01-02\n", "0.3.0", "two sections")):
            with self.assertRaisesRegex(SystemExit, message):
                load().with_section(text, version, "2026-03-04")

    def test_the_projects_own(self):
        tool = load()
        found = tool.changelog()
        self.assertEqual(next(iter(found)), "Unreleased")
        versions = list(found)[1:]
        self.assertEqual(versions, sorted(versions, key=tool.number, reverse=True))
        self.assertIn(tool.current_version(), versions)
        for name, (date, text) in found.items():
            self.assertEqual(date is None, name == "Unreleased", name)
            titles = re.findall(r"^### (.*)$", text, re.M)
            self.assertEqual(len(titles), len(set(titles)), f"[{name}] has a title twice")
            self.assertLessEqual(set(titles), {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, name)


class Archive(unittest.TestCase):
    def test_equal_commits_give_equal_archives(self):
        tool = load()
        with tempfile.TemporaryDirectory() as name:
            tool.ROOT = root = Path(name) / "tree"
            (root / "build" / "release").mkdir(parents=True)
            (root / "tools").mkdir()
            (root / ".gitignore").write_text("/build/\n", encoding="utf-8")
            (root / "CMakeLists.txt").write_text("project(vkformer VERSION 0.2.0 \n", encoding="utf-8")
            (root / "CHANGELOG.md").write_text(CHANGES, encoding="utf-8")
            for tool_name, line in (("sbom", "echo '{}' > \"$2\""), ("packages", "echo deb > \"$1/vkformer.deb\""),
                                    ("cross", "echo deb > \"$3/vkformer_$2.deb\"")):
                script = root / "tools" / tool_name
                script.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
                script.chmod(0o755)
            (root / "build" / "release" / "CPackConfig.cmake").write_text("", encoding="utf-8")
            for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "One"]):
                subprocess.run(["git", "-C", str(root), *command], check=True)
            folders = [Path(name) / "one", Path(name) / "two"]
            for folder in folders:
                tool.files(folder, ["aarch64"])
            with self.assertRaisesRegex(SystemExit, "is not empty"):
                tool.files(folders[0])
            first, second = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders)
            self.assertEqual(first, second)
            self.assertEqual(sorted(first), ["NOTES.md", "SHA256SUMS", "vkformer-0.2.0.cdx.json", "vkformer-0.2.0.tar.gz", "vkformer.deb",
                                             "vkformer_aarch64.deb"])
            self.assertEqual(first["SHA256SUMS"].count(b"\n"), 5)
            with tarfile.open(fileobj=io.BytesIO(first["vkformer-0.2.0.tar.gz"])) as packed:
                self.assertIn("vkformer-0.2.0/CMakeLists.txt", packed.getnames())
            checked = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folders[0], check=False)
            self.assertEqual(checked.returncode, 0)


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
