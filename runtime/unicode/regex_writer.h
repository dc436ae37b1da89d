// Writes a RegexTree in PCRE2's syntax, over the symbols of a RegexAlphabet.
#pragma once

#include <string>

#include "unicode/regex_alphabet.h"
#include "unicode/regex_tree.h"
#include "vkformer/result.h"

namespace vkformer {

// The pattern for PCRE2 with MULTILINE. A lookbehind, which PCRE2 takes with fixed lengths only, is
// written as its alternatives of each length. One that has none, or too many, is a kUnsupported
// error without a place.
Result<std::string> write_regex(const RegexTree& tree, const RegexAlphabet& alphabet);

}  // namespace vkformer
