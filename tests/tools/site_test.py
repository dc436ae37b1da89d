#!/usr/bin/env python3
"""tools/site finds broken links, and builds the site where mkdocs is installed.

    site_test.py SOURCE_DIRECTORY [unittest arguments]"""
import importlib.machinery
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path()


def load():
    loader = importlib.machinery.SourceFileLoader("site_tool", str(SOURCE / "tools" / "site"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("site_tool", loader))
    loader.exec_module(module)
    return module


class Links(unittest.TestCase):
    def findings(self, text):
        """What is found in a page of a project with one other page, which has the heading "The end"."""
        module = load()
        with tempfile.TemporaryDirectory() as folder:
            module.ROOT = Path(folder).resolve()
            page, other = module.ROOT / "a.md", module.ROOT / "b.md"
            page.write_text(text, encoding="utf-8")
            other.write_text("# B\n\n## The `end`, at last\n", encoding="utf-8")
            return list(module.broken_links([page, other]))

    def test_what_is_there_is_no_finding(self):
        self.assertEqual(self.findings("# A b\n\n[b](b.md) [end](b.md#the-end-at-last) [here](#a-b) [out](https://example.org)\n"), [])

    def test_code_has_no_links(self):
        self.assertEqual(self.findings("    [x](absent.md)\n\n```\n[x](absent.md)\n```\n"), [])

    def test_a_missing_page(self):
        self.assertEqual(self.findings("one\n\n[x](absent.md)\n"), ["a.md:3: [absent.md] does not exist."])

    def test_a_missing_heading(self):
        self.assertEqual(self.findings("[x](b.md#begin)\n"), ["a.md:1: [b.md#begin]: b.md has no heading [begin]."])

    def test_a_link_over_two_lines(self):
        self.assertEqual(self.findings("a [long\nlabel](absent.md)\n"), ["a.md:1: [absent.md] does not exist."])

    def test_a_link_out_of_the_project(self):
        self.assertEqual(self.findings("[x](../../etc/passwd)\n"), ["a.md:1: [../../etc/passwd] leads out of the project."])

    def test_a_picture_from_elsewhere(self):
        module = load()
        page = module.Page('<script src="https://example.org/a.js"></script><a href="https://example.org">x</a>')
        self.assertEqual(page.loaded, ["https://example.org/a.js"])


class Comments(unittest.TestCase):
    """Headers have plain comments; doxygen reads them through a filter."""

    def test_where_comments_belong(self):
        self.assertEqual(load().doxygen_comments("// A file.\n#pragma once\n// One.\n// Two.\nint f();\n"),
                         "/// @file \n/// A file.\n#pragma once\n/// One.\n/// Two.\nint f();\n")

    def test_comments_after_a_member(self):
        self.assertEqual(load().doxygen_comments("// F.\nint a;  // One,\n        // two.\n// Next.\nint b;\n").splitlines()[2:],
                         ["int a;  ///< One,", "        ///< two.", "/// Next.", "int b;"])

    def test_dividers_describe_nothing(self):
        self.assertEqual(load().doxygen_comments("// F.\n\n// --- Group. More\n// of it.\n\n// One.\nint a;\n").splitlines()[2:],
                         ["", "// --- Group. More", "// of it.", "", "/// One.", "int a;"])


class Templates(unittest.TestCase):
    """Forms that GitHub refuses are shown to nobody, and nothing says so."""

    @unittest.skipUnless(importlib.util.find_spec("yaml"), "python3-yaml is not installed")
    def test_issue_forms(self):
        import yaml
        forms = sorted((SOURCE / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
        self.assertGreaterEqual(len(forms), 4)
        for path in forms:
            form = yaml.safe_load(path.read_text(encoding="utf-8"))
            if path.name == "config.yml":
                self.assertIsInstance(form["blank_issues_enabled"], bool)
                continue
            self.assertTrue(form["name"] and form["description"], path.name)
            fields = [entry for entry in form["body"] if entry["type"] != "markdown"]
            self.assertEqual(len({field["id"] for field in fields}), len(fields), f"{path.name} has an id twice")
            for field in fields:
                self.assertIn(field["type"], ("input", "textarea", "dropdown", "checkboxes"), path.name)
                self.assertTrue(field["attributes"]["label"], path.name)
            self.assertTrue(any(field.get("validations", {}).get("required") for field in fields), path.name)

    def test_what_forms_name_is_there(self):
        for path in (SOURCE / ".github").rglob("*.*"):
            for name in re.findall(r"\b(?:docs|tools)/[\w.]+|\b[A-Z]{4,}\.md", path.read_text(encoding="utf-8")):
                self.assertTrue((SOURCE / name.rstrip(".")).exists(), f"{path.name} names {name}")


class Site(unittest.TestCase):
    def test_pages_of_the_project(self):
        done = subprocess.run([SOURCE / "tools" / "site", "--links"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("mkdocs"), "mkdocs is not installed")
    def test_the_site(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([SOURCE / "tools" / "site", "--output", folder], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue((Path(folder) / "docs" / "tutorial.html").is_file())
            if shutil.which("doxygen"):
                page = (Path(folder) / "reference" / "structvkformer_1_1SessionOptions.html").read_text(encoding="utf-8")
                self.assertIn("Decoding steps per submit", page)


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
