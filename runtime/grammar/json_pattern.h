// The regular expressions of JSON schemas ("pattern") as grammar nodes. Needs: JsonPieces.
//
// Of ECMA 262: characters and their escapes (\d \w \s \D \W \S \t \n \r \v \f \xHH \uHHHH and
// escaped punctuation). `.`, classes, groups without back references, `|`, and ? * + {m} {m,}
// {m,n}, greedy or not. ^ and $ at the two ends of the expression or of an alternative of it.
#pragma once

#include <string>
#include <string_view>

#include "grammar/json_pieces.h"
#include "vkformer/result.h"

namespace vkformer {

// A part of a string's content and how many characters it can have.
struct JsonText {
  uint32_t node = 0;
  uint64_t least = 0;
  uint64_t most = 0;  // UINT64_MAX for no limit
};

// The strings that hold a match. `place` opens messages.
Result<JsonText> parse_json_pattern(std::string_view pattern, const std::string& place,
                                    GrammarTree& tree, JsonPieces& pieces);

}  // namespace vkformer
