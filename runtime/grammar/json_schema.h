// JSON schemas: a schema to a GrammarTree of JSON texts that are valid for it.
// Needs: GrammarTree, Result.
//
// Every text of the grammar is valid; the grammar need not have every valid text. It writes
// properties in the order of the schema, and others only where additionalProperties asks for them.
// A keyword that is not supported is an error: none is passed over but those that only describe.
#pragma once

#include <string_view>

#include "grammar/grammar_tree.h"
#include "vkformer/result.h"

namespace vkformer {

Result<GrammarTree> parse_json_schema(std::string_view schema);

}  // namespace vkformer
