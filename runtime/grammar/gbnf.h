// GBNF, the grammar notation of llama.cpp: text to a GrammarTree. Needs: GrammarTree, Result.
//
//   # a comment
//   root ::= item ("," ws item)* | "none"
//   item ::= [a-zA-Z_] [^,\n]{0,20}
//
// Literals and classes take the escapes \n \r \t \\ \" \[ \] \- \^ \xHH \uHHHH \UHHHHHHHH, each one
// character; `.` is any character; ? * + {m} {m,} {m,n} follow what they repeat. A rule ends with
// its line, but brackets and a `|` at the end or the beginning of a line carry it on.
#pragma once

#include <string>
#include <string_view>

#include "grammar/grammar_tree.h"
#include "vkformer/result.h"

namespace vkformer {

// Every rule that is used must be defined, once. `root` names the rule that the whole text matches.
Result<GrammarTree> parse_gbnf(std::string_view text, const std::string& root);

}  // namespace vkformer
