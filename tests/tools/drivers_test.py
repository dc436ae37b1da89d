#!/usr/bin/env python3
"""Tests of tools/drivers with an archive of its own: no network, no packages of this machine.

    drivers_test.py SOURCE_DIRECTORY [unittest arguments]"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()
NEEDED = ("apt-get", "dpkg", "dpkg-deb", "gcc")


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, encoding="utf-8",
                          timeout=120, check=False, **options)


@unittest.skipUnless(all(shutil.which(tool) for tool in NEEDED), f"needs {', '.join(NEEDED)}")
class DriversTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.root.chmod(0o755)
        self.machine = run("dpkg", "--print-architecture").stdout.strip()
        (self.root / "tools").mkdir()
        for name in ("drivers", "common.sh", "gpus.sh"):
            shutil.copy(SOURCE / "tools" / name, self.root / "tools")

    def package(self, version):
        """A chromium-common whose manifest says which version it is of: its file and its record."""
        tree = self.root / f"tree-{version}"
        library = tree / "usr/lib/chromium"
        library.mkdir(parents=True)
        (library / "vk_swiftshader_icd.json").write_text(json.dumps({"version": version}))
        shutil.copy(shutil.which("true"), library / "libvk_swiftshader.so")
        record = (f"Package: chromium-common\nVersion: {version}\nArchitecture: {self.machine}\n"
                  "Maintainer: nobody <nobody@example.org>\nDescription: a test\n")
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(record)
        name = f"pool/chromium-common_{version}_{self.machine}.deb"
        (self.root / "archive/pool").mkdir(parents=True, exist_ok=True)
        built = run("dpkg-deb", "--root-owner-group", "--build", tree, self.root / "archive" / name)
        self.assertEqual(built.returncode, 0, built.stderr)
        data = (self.root / "archive" / name).read_bytes()
        return (f"{record}Filename: {name}\nSize: {len(data)}\n"
                f"SHA256: {hashlib.sha256(data).hexdigest()}\n\n")

    def suite(self, codename, packages):
        folder = self.root / "archive/dists" / codename
        index = f"main/binary-{self.machine}/Packages"
        (folder / index).parent.mkdir(parents=True)
        (folder / index).write_text(packages)
        data = packages.encode()
        (folder / "Release").write_text(
            f"Origin: Debian\nLabel: Debian\nCodename: {codename}\nSuite: {codename}\n"
            f"Architectures: {self.machine}\nComponents: main\n"
            "Date: Wed, 01 Jan 2025 00:00:00 UTC\nSHA256:\n"
            f" {hashlib.sha256(data).hexdigest()} {len(data)} {index}\n")

    def get_swiftshader(self, suites, installed):
        """What `get swiftshader` brings where apt knows these suites and that version is installed."""
        (self.root / "status").write_text(
            f"Package: chromium-common\nStatus: install ok installed\nVersion: {installed}\n"
            f"Architecture: {self.machine}\nMaintainer: nobody\nDescription: a test\n\n")
        (self.root / "sources.list").write_text("".join(
            f"deb [trusted=yes] file:{self.root}/archive {suite} main\n" for suite in suites))
        (self.root / "lists/partial").mkdir(parents=True)
        (self.root / "apt.conf").write_text(
            f'Dir::Etc::SourceList "{self.root}/sources.list";\nDir::Etc::SourceParts "/dev/null";\n'
            f'Dir::State::status "{self.root}/status";\nDir::State::Lists "{self.root}/lists";\n'
            'Acquire::AllowInsecureRepositories "true";\nAPT::Get::AllowUnauthenticated "true";\n')
        got = run(self.root / "tools/drivers", "get", "swiftshader",
                  env={**os.environ, "APT_CONFIG": str(self.root / "apt.conf")})
        self.assertEqual(got.returncode, 0, got.stdout + got.stderr)
        manifest = self.root / "build/drivers/swiftshader/usr/lib/chromium/vk_swiftshader_icd.json"
        return json.loads(manifest.read_text())["version"]

    def test_an_installed_version_that_the_archive_lacks_does_not_matter(self):
        self.suite("bookworm", self.package("1.0"))
        self.suite("bookworm-backports", "")
        self.assertEqual(self.get_swiftshader(["bookworm"], "999.0"), "1.0")

    def test_security_updates_are_taken_where_apt_knows_them(self):
        self.suite("bookworm", self.package("1.0"))
        self.suite("bookworm-backports", "")
        self.suite("bookworm-security", self.package("2.0"))
        found = self.get_swiftshader(["bookworm", "bookworm-security"], "999.0")
        self.assertEqual(found, "2.0")


if __name__ == "__main__":
    SOURCE = Path(sys.argv[1]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
