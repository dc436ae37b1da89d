#!/usr/bin/env python3
"""Tests of the linters: a linter that finds nothing must be able to find something."""
import sys
import tempfile
import unittest
from pathlib import Path

import common
import layout
import operator_tables
import shader_headers
import sizes
import spelling
import words

CODE = """// A function in a comment: f(int a) {
#define MACRO(x) do { f(x); } while (0)
namespace a::b {
struct alignas(16) S {
  explicit S(int x, char c = '{') : x_(x), y_{x}, z_(c) {
    if (x) { x_ = 1; }
  }
  bool operator==(const S& other) const { return x_ == other.x_; }
  int operator()(int i, std::map<int, int> m) const noexcept { return i; }
  int x_ = 0, y_{1};
  char z_;
};
enum class E { kA, kB };
constexpr int kTable[] = {1, 2, f(3)};
const auto kLambda = [](int a) { return a; };
template <class T, int N = 3>
std::function<void(T)> C<T>::many(int a, int b, int c,
                          std::function<void(int, int)> d, int e, int f, int g) {
  const char* text = R"x(}}} ")x";
  for (int i = 0; i < 3; ++i) {
    call([&] { return "}"; });
  }
  return {};
}
extern "C" int plain(void) { return 1'000'000; }
}  // namespace a::b
TEST_CASE("a (b, c)") {
  CHECK(f({1, 2}) == 3);
}
"""


class Sizes(unittest.TestCase):
    def test_functions_are_found_with_lines_and_parameters(self):
        found = list(sizes.functions(CODE))
        self.assertEqual(found, [
            ("S", 5, 3, 2), ("operator==", 8, 1, 1), ("operator()", 9, 1, 2),
            ("many", 16, 9, 7), ("plain", 25, 1, 0),
            ("TEST_CASE", 27, 3, 1)])

    def test_shader_main_and_blocks(self):
        code = ("#version 450\nlayout(local_size_x_id = 0) in;\n"
                "layout(set = 0, binding = 0) readonly buffer X { float x[]; } x;\n"
                "shared float tile[4];\nvoid main() {\n  x.x[0] = 1;\n}\n")
        self.assertEqual(list(sizes.functions(code)), [("main", 5, 3, 0)])


class Layout(unittest.TestCase):
    def test_stray_folders_are_found(self):
        self.assertEqual(layout.strays(["docs", ".ci"]), [])
        self.assertEqual(len(layout.strays(["docs", "left_over"])), 1)

    def check(self, path, target, quoted=True):
        return layout.check(common.ROOT / path, quoted, target)

    def test_rooms(self):
        self.assertIsNone(self.check("runtime/ops/x.cpp", "plan/plan.h"))
        self.assertIsNone(self.check("runtime/model/blocks/x.cpp", "model/blocks/y.h"))
        self.assertIsNone(self.check("runtime/text/x.cpp", "vkformer/result.h"))
        self.assertIn("out of reach", self.check("runtime/plan/x.cpp", "ops/op.h"))
        self.assertIn("out of reach", self.check("runtime/session/x.cpp", "api/a.h"))
        self.assertIn("climbs", self.check("runtime/ops/x.cpp", "../plan/plan.h"))
        self.assertIn("no room", self.check("runtime/ops/x.cpp", "misc/plan.h"))

    def test_public_calls_are_guarded(self):
        code = """namespace {
Status helper() {
  return {};
}
}  // namespace
Result<int> A::good(
    int x) {
  return guarded([&] { return f(x); });
}
Status bad(int x) {
  return g(x);
}
Status declared(int x);
int plain() {
"""
        self.assertEqual(list(layout.unguarded(code)), [10])

    def test_optional_rooms(self):
        header = "attention_view/heat_map.h"
        self.assertIsNone(self.check("runtime/api/heat_map.cpp", header))
        for room in ("session", "tasks", "measure", "image"):
            self.assertIn("out of reach", self.check(f"runtime/{room}/x.cpp", header))
        self.assertIsNone(self.check("runtime/vulkan/x.cpp", "software/compiler.h"))
        self.assertIn("out of reach", self.check("runtime/plan/x.cpp", "software/compiler.h"))

    def test_vulkan_headers(self):
        self.assertIsNone(self.check("runtime/vulkan/x.h", "vulkan/vulkan_core.h", False))
        self.assertIn("Vulkan", self.check("runtime/plan/x.h", "vulkan/vulkan.h", False))
        self.assertIn("Vulkan", self.check("runtime/plan/x.h", "vkformer/vulkan_interop.h"))
        self.assertIn("belongs", self.check("include/vkformer/a.h", "vulkan/vulkan.h", False))
        self.assertIsNone(
            self.check("include/vkformer/vulkan_interop.h", "vulkan/vulkan_core.h", False))

    def test_public_headers(self):
        self.assertIsNone(self.check("include/vkformer/a.h", "string_view", False))
        self.assertIsNone(self.check("include/vkformer/vkformer.h", "stdint.h", False))
        self.assertIn("standard", self.check("include/vkformer/a.h", "nlohmann/json.hpp", False))
        self.assertIn("not a public", self.check("include/vkformer/a.h", "base/check.h"))
        self.assertIn("not public", self.check("samples/cli/a.cpp", "session/session.h"))


class ShaderHeaders(unittest.TestCase):
    def check(self, check, text):
        with tempfile.TemporaryDirectory(dir=common.ROOT) as folder:
            path = Path(folder) / "x.comp"
            path.write_text(text, encoding="utf-8")
            return check(path)

    def test_labels(self):
        good = "".join(f"// {label}: text\n//   more\n" for label in shader_headers.LABELS)
        self.assertEqual(self.check(shader_headers.check_shader, good + "#version 450\n"), [])
        behind = "#version 450\n#extension GL_GOOGLE_include_directive : require\n" + good
        self.assertEqual(self.check(shader_headers.check_shader, behind), [])
        first, rest = good.split("// shapes:")
        swapped = "// shapes:" + rest + first
        self.assertIn("another order", self.check(shader_headers.check_shader, swapped)[0])
        variants_first = "// variants: text\n" + good.replace("// variants: text\n//   more\n", "")
        self.assertIn("another order", self.check(shader_headers.check_shader, variants_first)[0])
        missing = good.replace("bounds", "limits")
        self.assertIn("bounds", self.check(shader_headers.check_shader, missing)[0])
        late = "#version 450\nlayout(push_constant) uniform P { int a; };\n" + good
        self.assertEqual(len(self.check(shader_headers.check_shader, late)), 1)

    def test_needs(self):
        self.assertEqual(self.check(shader_headers.check_include, "// needs: nothing.\n"), [])
        self.assertEqual(len(self.check(shader_headers.check_include, "// helps\n")), 1)

    def test_columns(self):
        variant = "// variants: " + "a" * 60 + "__f32 FEATURES subgroup DEFINES VKF_LITERAL=1\n"
        self.assertEqual(self.check(shader_headers.check_columns, "/" * 100 + "\n" + variant), [])
        self.assertIn(":1: has 101 columns", self.check(shader_headers.check_columns, "/" * 101 + "\n")[0])
        self.assertIn(":1: has a tab", self.check(shader_headers.check_columns, "uint a; \n")[0])

    def test_only_units_ask_for_the_size_of_subgroups(self):
        code = "uint n = gl_NumSubgroups;\nuint size = gl_SubgroupSize;  // a size\n"
        units = "// variants: a__f32_matrix FEATURES matrix\n//           b__f32_matrix2 FEATURES matrix matrix2\n"
        self.assertEqual(self.check(shader_headers.check_subgroup_size, units + code), [])
        for head in ("// needs: nothing.\n", "// variants: a__f32_subgroup FEATURES subgroup\n",
                     units + "//           a__f32\n", "// variants: a__f32_matrix\n"):
            found = self.check(shader_headers.check_subgroup_size, head + code)
            self.assertEqual(len(found), 1)
            self.assertIn(f":{head.count(chr(10)) + 2}: reads gl_SubgroupSize", found[0])
        words = "// needs: nothing.\nshared uint a, b;\nshared float c[4];\n"
        self.assertEqual(self.check(shader_headers.check_shared, words), [])
        for vectors in ("shared vec4 d[3];\n", "shared f16vec4 d[3];\n"):
            found = self.check(shader_headers.check_shared, words + vectors)
            self.assertEqual(len(found), 1)
            self.assertIn(":2: puts single words into shared memory", found[0])
        comment = "// needs: nothing.\n// gl_SubgroupSize may be another.\n"
        self.assertEqual(self.check(shader_headers.check_subgroup_size, comment), [])


class OperatorTables(unittest.TestCase):
    COMMENT = ("// twice (Rows)\n// inputs:     X (..., D)\n//             and no more\n"
               "// outputs:    Y\n// computes:   2 X\n//\n// Why.\n")

    def test_entry(self):
        name, table, texts = operator_tables.entry(self.COMMENT)
        self.assertEqual((name, table), ("twice", "Rows"))
        self.assertEqual(texts, {"inputs": "X (..., D) and no more", "outputs": "Y",
                                 "computes": "2 X"})
        self.assertIsNone(operator_tables.entry("// Twice as much.\n"))

    def test_tables(self):
        entries = {"twice": operator_tables.entry(self.COMMENT)}
        head = "## Rows\n\n| Operator |\n|---|\n"
        whole = head + "| `twice` | | X (..., D) and no more | Y | 2 X |\n\nText.\n"
        for given in (head + "\nText.\n", head + "| `twice` | | X | Y | old |\n\nText.\n",
                      head + "| `gone` | | X | Y | Z |\n\nText.\n"):
            written, seen = operator_tables.tables(given, entries)
            self.assertEqual(written, whole)
            self.assertEqual(seen, {"twice"})
        self.assertEqual(operator_tables.tables("## Other\n", entries)[1], set())


class Words(unittest.TestCase):
    def found(self, suffix, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / ("text" + suffix)
            path.write_text(text, encoding="utf-8")
            return [(line, kind) for line, kind, _ in words.findings(path)]

    def test_comments_are_read_and_code_is_not(self):
        self.assertEqual(self.found(".cpp", "int behind = 0;  // the one behind it\nauto colour = 1;\n// Its colour.\n"),
                         [(1, "private"), (3, "british")])

    def test_messages_are_read(self):
        text = '// A comment.\nf("the one " "is drawn of the rest");\ng("drawn", "a \\"colour\\" of a text");\n'
        self.assertEqual([(line, what) for line, what in words.messages(text)],
                         [(2, "the one is drawn of the rest"), (3, 'a \\"colour\\" of a text')])
        self.assertEqual([found[1] for line, message in words.messages(text) for found in words.words_of(line, message)],
                         ["private", "british"])

    def test_long_sentences_go_over_lines(self):
        self.assertEqual(self.found(".h", "// " + "word " * 14 + "\n// " + "word " * 14 + "end.\n"), [(1, "long")])
        self.assertEqual(self.found(".h", "// " + "word " * 14 + "end.\n// " + "word " * 14 + "end.\n"), [])

    def test_sentences_end_at_full_stops_alone(self):
        half = "word " * 14
        for mark in (":", ";", ","):
            self.assertEqual(self.found(".md", f"{half}end{mark} {half}end.\n"), [(1, "long")])
        for mark in (".", "!", "?"):
            self.assertEqual(self.found(".md", f"{half}end{mark} {half}end.\n"), [])
        self.assertEqual(self.found(".md", f"* {half}end;\n* {half}end.\n"), [])
        self.assertEqual(self.found(".h", f"// inputs:     {half}\n// outputs:    {half}\n"), [])
        self.assertEqual(self.found(".h", f"// inputs of {half}\n// outputs of {half}\n"), [(1, "long")])
        self.assertEqual(self.found(".h", f"// one    {half}\n// other  {half}\n"), [(1, "long")])
        self.assertEqual(self.found(".h", f"// one     {half}\n// other   {half}\n"), [])
        self.assertEqual(self.found(".sh", f"one  # {half}\ntwo  # {half}\n"), [])

    def test_formulas_and_trailing_comments_are_apart(self):
        half = "word " * 14
        self.assertEqual(self.found(".h", f"// {half}\n//   {half}\n//   {half}\n"), [])
        self.assertEqual(self.found(".h", f"int a;  // {half}\nint b;  // {half}\n// {half}\n"), [])
        self.assertEqual(self.found(".h", f"int a;  // {half}\n        // {half}\n"), [(1, "long")])
        self.assertEqual(self.found(".h", "//   what lies behind\n"), [(1, "private")])

    def test_code_and_tables_of_documents_are_no_prose(self):
        self.assertEqual(self.found(".md", "| behind |\n\n    behind\n\n```\nbehind\n```\n`behind`\n\nIt is behind.\n"),
                         [(10, "private")])

    def test_counts_may_only_fall(self):
        row = {"private": 2, "british": 0, "long": 1}
        self.assertEqual(list(words.more_than({"a": row}, {"a": row})), [])
        self.assertEqual(len(list(words.more_than({"a": row}, {"a": {**row, "long": 2}}))), 1)
        self.assertEqual(len(list(words.more_than({}, {"a": row}))), 2)

    def test_means_of_documents_are_bounded(self):
        row = {"private": 0, "british": 0, "long": 0, "mean": f"{words.MEAN:.1f}"}
        self.assertEqual(list(words.more_than({"a.md": row}, {"a.md": row})), [])
        longer = {**row, "mean": f"{words.MEAN + 0.1:.1f}"}
        self.assertEqual(len(list(words.more_than({"a.md": longer}, {"a.md": longer}))), 1)
        self.assertEqual(list(words.more_than({"a": row}, {"a": {**row, "mean": ""}})), [])


class Spelling(unittest.TestCase):
    def test_names_code_and_addresses_are_no_words_of_a_dictionary(self):
        text = "A plain word, `code`, *a title*, a.file, some/path, snake_case, 3rd and https://a.test/page."
        self.assertEqual(spelling.plain_words(text), ["plain", "word", "and"])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    print(f"linters' own tests: {result.testsRun} run")
    sys.exit(0 if result.wasSuccessful() and result.testsRun else 1)
