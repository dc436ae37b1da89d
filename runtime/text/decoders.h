// Decoders: token strings back to text. Needs: JsonRef.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/json_access.h"

namespace vkformer {

// One decoding step. Immutable; threads may share it.
class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // The pieces of text that `tokens` stand for; the pieces of the last step are joined without a
  // gap.
  virtual Result<std::vector<std::string>> decode(std::vector<std::string> tokens) const = 0;
};

// Reads the file's "decoder" by the list in decoders.cpp.
Result<std::unique_ptr<TokenDecoder>> parse_decoder(const JsonRef& json, int depth = 0);

}  // namespace vkformer
