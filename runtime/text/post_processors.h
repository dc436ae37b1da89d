// Post-processors: special tokens and type ids around encoded texts. Needs: JsonRef, Encoding.
#pragma once

#include <memory>
#include <vector>

#include "json/json_access.h"
#include "vkformer/tokenizer.h"

namespace vkformer {

// Appends the tokens of `more`.
void append_encoding(Encoding& to, Encoding more);
// Appends one token.
void append_token(Encoding& to, int32_t id, std::string token, TextRange range, int32_t type_id);

// One post-processing step. Immutable; threads may share it.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Special tokens that process() adds around one text, or around two.
  virtual size_t added_count(size_t texts) const = 0;
  // The first step gets one encoding per text. What the last one returns is joined in order.
  virtual Result<std::vector<Encoding>> process(std::vector<Encoding> parts,
                                                SpecialTokens special_tokens) const = 0;
  // Whether process() needs to be given the texts themselves, one encoding each.
  virtual bool wants_texts() const { return false; }
};

// Reads the file's "post_processor" by the list in post_processors.cpp.
Result<std::unique_ptr<PostProcessor>> parse_post_processor(const JsonRef& json, int depth = 0);

}  // namespace vkformer
