// The formats of JSON schemas ("format") as grammar nodes. Needs: JsonPattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/json_pattern.h"

namespace vkformer {

// The content of strings of a format, or nothing for a format that is not known. Dates are those
// from 1000-01-01 to 2999-12-31, without the 29th of February.
std::optional<JsonText> json_format(std::string_view name, GrammarTree& tree, JsonPieces& pieces);

// The formats that are known, for messages.
extern const char* const kJsonFormats;

}  // namespace vkformer
