// What families with an encoder and a decoder read from their configurations in the same way,
// beyond config_reading.h.
#pragma once

#include "model/config_reading.h"

namespace vkformer {

// The head of a class: kLanguage for "...ForConditionalGeneration" and "...WithLMHeadModel", kNone
// for "...Model"; kUnsupported for others, whose heads or lone halves no such family has.
Result<HeadKind> read_seq2seq_head(const JsonConfig& config, const std::string& architecture);

// Token ids that stand in where neither configuration has a key, -1 for none. They are the ones
// that the family's configuration class has in Hugging Face's library.
struct TokenDefaults {
  int64_t pad = -1;
  int64_t eos = -1;
  int64_t decoder_start = -1;
};
// read_generation with these defaults.
Result<GenerationFacts> read_seq2seq_generation(const ModelFiles& files,
                                                const TokenDefaults& defaults);

}  // namespace vkformer
