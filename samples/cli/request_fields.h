// The fields of a request to a batch, as docs/cli.md has them, read into the library's settings.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "vkformer/generation.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

// "[key] what".
Error bad_request(const std::string& key, const std::string& what);
// Names a field that there is not.
Status check_fields(const Json& fields);
// As `generate` has its options: whatever shapes the draw says that there is one.
Status read_settings(const Json& fields, GenerateOptions& options);
// The field `key`, a text or a list of texts; none where it is missing. Null: there is no
// tokenizer.
Result<std::vector<std::string>> texts_of(const Json& fields, const char* key,
                                          const Tokenizer* tokenizer);
// "adapters", names of --request-adapter and their scales.
Status read_adapters(const Json& fields, std::vector<AdapterScale>& adapters);
// "bad_words", as they are and after a space, and "logit_bias": as TextOptions has them.
Status read_words(const Json& fields, const Tokenizer* tokenizer, PenaltyOptions& penalties);

}  // namespace vkformer::cli
