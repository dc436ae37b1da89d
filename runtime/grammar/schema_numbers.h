// Numbers of a JSON schema as grammar nodes. Needs: JsonPieces, SchemaMerger.
#pragma once

#include "grammar/json_pieces.h"
#include "grammar/schema_merge.h"

namespace vkformer {

// The numbers that a plain schema allows, of those `types` that are numbers. Where one bound is
// missing they have nine digits or one more than the other bound, if that has more.
Result<uint32_t> schema_number(const SchemaPlace& place, JsonTypes types, GrammarTree& tree,
                               JsonPieces& pieces);

}  // namespace vkformer
