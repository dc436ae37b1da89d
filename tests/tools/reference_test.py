#!/usr/bin/env python3
"""Every public function of the headers is shown by an example of samples/reference, which the program
reference_examples runs.

    reference_test.py SOURCE_DIRECTORY [unittest arguments]"""
import sys
import unittest
from pathlib import Path

SOURCE = Path()


def tool():
    sys.path.insert(0, str(SOURCE / "tools"))
    import reference_examples
    return reference_examples


def known():
    """All public functions, by name."""
    headers = sorted((SOURCE / "include" / "vkformer").rglob("*.h"))
    return {name for header in headers for _, name in tool().functions(header.read_text(encoding="utf-8"))}


class Parser(unittest.TestCase):
    def names(self, text):
        return list(tool().functions(text))

    def test_functions_and_their_lines(self):
        self.assertEqual(self.names("namespace a {\n// f(x)\nint f(int x);\n\nstd::vector<int> g(\n    int) const;\n}\n"),
                         [(2, "f"), (4, "g")])

    def test_members_are_public_or_not(self):
        text = ("class [[nodiscard]] A {\n int hidden();\n public:\n  A();\n  ~A();\n  A(A&&) = default;\n"
                "  static int make(std::function<int(int)> f = {});\n  int get() const { return x_; }\n"
                "  A& operator=(A&&);\n  explicit operator bool() const;\n private:\n  int off();\n  int x_ = f(1);\n};\n")
        self.assertEqual([name for _, name in self.names(text)], ["A::make", "A::get"])

    def test_values_are_no_functions(self):
        text = ("struct A {\n  std::function<int(int)> call = nullptr;\n  enum class B { kA, kB } b = B::kA;\n"
                "  int (*pointer)(int);\n  T map = {};\n  int f();\n};\ntypedef void (*g)(void);\nusing H = int(int);\n")
        self.assertEqual([name for _, name in self.names(text)], ["A::f"])


class Markers(unittest.TestCase):
    def examples(self, text):
        return [found[1:] for found in tool().examples_in(Path("a.cpp"), text)]

    def test_names_of_several_lines(self):
        text = "int x;\n  //! [a b]\n  //! [c]\n  f();\n    g();\n  //! [end]\nint y;\n//! [d]\nh();\n//! [end]\n"
        self.assertEqual(self.examples(text), [(2, ["a", "b", "c"], "f();\n  g();"), (8, ["d"], "h();")])

    def test_an_example_has_an_end(self):
        for text, where in (("//! [a]\nf();\n", "a.cpp:1: .* before the end of the file"),
                            ("\n//! [a]\nf();\n//! [b]\ng();\n//! [end]\n", "a.cpp:4: .* of line 2"),
                            ("//! [a]\nf();\n//! [end]\ng();\n//! [end]\n", "a.cpp:5: .* ends no example")):
            with self.subTest(text), self.assertRaisesRegex(ValueError, where):
                self.examples(text)


class Examples(unittest.TestCase):
    def test_every_function_is_shown(self):
        self.assertEqual(sorted(known() - set(tool().shown())), [], "These functions have no example in "
                         "samples/reference. Add one; its marker names the function.")

    def test_markers_name_functions(self):
        functions = known()
        for file, line, names, text in tool().examples():
            where = f"{file.name}:{line}"
            for name in names:
                self.assertIn(name, functions, where)
            self.assertRegex(text, r"^(//|/\*) [A-Z]", f"{where}: a comment says what the example does")
            self.assertLessEqual(len(text.splitlines()), 18, f"{where} is too long for an example")

    def test_examples_are_in_the_program(self):
        built = (SOURCE / "samples" / "reference" / "CMakeLists.txt").read_text(encoding="utf-8").split()
        for file, line, _, _ in tool().examples():
            name = file.relative_to(tool().SAMPLES).as_posix()
            self.assertIn(name, [part.rstrip(")") for part in built], f"{name}:{line}")

    def test_comments_get_their_examples(self):
        header = SOURCE / "include" / "vkformer" / "device.h"
        text = header.read_text(encoding="utf-8")
        lines = text.splitlines()
        inserted = tool().comments_of_examples(text)
        create = next(n for n in inserted if "create(" in lines[n])
        self.assertIn("/// @par Example", inserted[create][0])
        self.assertTrue(any("Device::create" in line for line in inserted[create]))
        self.assertIn("/// @code{.cpp}", [line.strip() for line in inserted[create]])

    def test_examples_of_c_are_c(self):
        text = (SOURCE / "include" / "vkformer" / "c" / "device.h").read_text(encoding="utf-8")
        self.assertIn("/// @code{.c}", [line for lines in tool().comments_of_examples(text).values() for line in lines])


if __name__ == "__main__":
    SOURCE = Path(sys.argv.pop(1)).resolve()
    unittest.main()
