#!/usr/bin/env python3
"""Tests of tools/drivers with a test archive: no network, no packages of this machine.

    drivers_test.py SOURCE_DIRECTORY [unittest arguments]"""
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()
NEEDED = ("apt-get", "dpkg", "dpkg-deb", "gcc")
TRIPLET = f"{platform.machine()}-linux-gnu"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, encoding="utf-8",
                          timeout=120, check=False, **options)


class Project(unittest.TestCase):
    """A folder with the script and nothing got."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.root.chmod(0o755)
        (self.root / "tools").mkdir()
        for name in ("drivers", "common.sh", "apt.sh", "gpus.sh"):
            shutil.copy(SOURCE / "tools" / name, self.root / "tools")


class GpuNames(Project):
    """Names of GPUs that are not there."""

    def refusal(self, *arguments):
        refused = run(self.root / "tools/drivers", *arguments)
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assertEqual(refused.stdout, "")
        self.assertFalse((self.root / "build").exists(), "something was got")
        return refused.stderr

    def place(self, name):
        """A file as a download leaves it, of no content."""
        path = self.root / "build/drivers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return str(path)

    def test_a_name_without_a_chip_is_refused_with_the_chips_that_work(self):
        for driver, chip in {"nvk": "172 (Ampere)", "turnip": "660", "radv-newest": "navi31",
                             "anv": "tgl", "panvk": "a867 (G610)"}.items():
            for name in (driver, f"{driver}:"):
                with self.subTest(name):
                    told = self.refusal("run", name, "true")
                    self.assertIn("names no chip", told)
                    self.assertIn(chip, told)

    def test_a_chip_that_fails_is_refused_with_the_reason(self):
        for name in ("turnip:640", "turnip:650", "turnip:690"):
            self.assertIn("does not know this chip", self.refusal("run", name, "true"))
        for name in ("turnip:702", "panvk:7212", "panvk:7402"):
            self.assertIn("Vulkan 1.0 only", self.refusal("run", name, "true"))

    def test_a_driver_of_one_chip_takes_none(self):
        for driver in ("asahi", "v3dv", "powervr"):
            self.assertIn("stands alone", self.refusal("run", f"{driver}:1", "true"))

    def test_an_unknown_driver_is_refused_with_the_names(self):
        for name in ("nvidia:172", "radv-newer:navi31", "nvk172"):
            told = self.refusal("run", name, "true")
            self.assertIn(f"[{name}] is not a driver", told)
            self.assertIn("radv-newest:CHIP", told)

    @unittest.skipIf(platform.machine() == "aarch64", "a machine of arm64 runs its programs")
    def test_a_driver_of_arm64_takes_programs_of_arm64(self):
        self.assertIn("is no program of arm64", self.refusal("run", "v3dv", "true"))
        self.assertIn("was not found", self.refusal("run", "v3dv", "vkformer-that-is-not-there"))

    def test_names_are_of_drivers_that_run_kernels(self):
        self.place("lavapipe-newest/usr/share/vulkan/icd.d/lvp_icd.json")
        self.place(f"lavapipe-newest/usr/lib/{TRIPLET}/libnouveau_noop_drm_shim.so")
        named = run(self.root / "tools/drivers", "names")
        self.assertEqual([name for name in named.stdout.split() if name != "lavapipe"],
                         ["lavapipe-newest"], named.stderr)
        listed = run(self.root / "tools/drivers", "list")
        self.assertIn("nvk:CHIP", listed.stdout)

    def test_a_command_gets_the_driver_its_shim_and_its_chip(self):
        # In place of the mount namespace, which not every user may make.
        namespace = self.root / "bin/unshare"
        namespace.parent.mkdir()
        namespace.write_text('#!/bin/sh\nwhile [ "$1" != env ]; do shift; done\nexec "$@"\n')
        namespace.chmod(0o755)
        self.place("lavapipe-newest/usr/share/vulkan/icd.d/lvp_icd.json")
        for name, manifest, shim, variable in (
                ("nvk:172", "nouveau", "nouveau", "NOUVEAU_CHIPSET=172"),
                ("turnip:660", "freedreno", "freedreno", "FD_GPU_ID=660"),
                ("asahi", "asahi", "asahi", ""),
                ("radv-newest:navi31", "radeon", "amdgpu", "AMDGPU_GPU_ID=navi31"),
                ("anv:tgl", "intel", "intel", "INTEL_STUB_GPU_PLATFORM=tgl")):
            with self.subTest(name):
                newest = "lavapipe-newest/usr"
                shims = "intel-shim" if shim == "intel" else f"{newest}/lib/{TRIPLET}"
                manifest = self.place(f"{newest}/share/vulkan/icd.d/{manifest}_icd.json")
                shim = self.place(f"{shims}/lib{shim}_noop_drm_shim.so")
                ran = run(self.root / "tools/drivers", "run", name, "env",
                          env={**os.environ, "PATH": f"{namespace.parent}:{os.environ['PATH']}"})
                self.assertEqual(ran.returncode, 0, ran.stderr)
                got = ran.stdout.splitlines()
                self.assertIn(f"VK_DRIVER_FILES={manifest}", got)
                self.assertIn(f"LD_PRELOAD={shim}", got)
                self.assertIn("MESA_SHADER_CACHE_DISABLE=true", got)
                if variable:
                    self.assertIn(variable, got)


@unittest.skipUnless(all(shutil.which(tool) for tool in NEEDED), f"needs {', '.join(NEEDED)}")
class DriversTest(Project):
    def setUp(self):
        super().setUp()
        self.machine = run("dpkg", "--print-architecture").stdout.strip()

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
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
