#include "model/blocks/seq2seq_reading.h"

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

Result<HeadKind> read_seq2seq_head(const JsonConfig& config, const std::string& architecture) {
  for (const char* ending : {"ForConditionalGeneration", "WithLMHeadModel"}) {
    if (architecture.ends_with(ending)) return HeadKind::kLanguage;
  }
  const bool half =
      architecture.ends_with("EncoderModel") || architecture.ends_with("DecoderModel");
  if (architecture.ends_with("Model") && !half) return HeadKind::kNone;
  return unsupported(
      message({"[architectures] in ", config.where(), " names a ", architecture,
               "; of this family a bare model and one for conditional generation are supported"}));
}

Result<GenerationFacts> read_seq2seq_generation(const ModelFiles& files,
                                                const TokenDefaults& defaults) {
  VKF_ASSIGN(GenerationFacts facts, read_generation(files.config, files.generation));
  const auto missing = [&](const char* key) {
    return !files.config.has(key) && !files.generation.has(key);
  };
  // A generation_config.json without end tokens means that there are none.
  const bool alone = files.generation.keys().empty();
  if (defaults.eos >= 0 && alone && missing("eos_token_id")) facts.eos = {defaults.eos};
  if (defaults.pad >= 0 && missing("pad_token_id")) facts.pad = defaults.pad;
  if (defaults.decoder_start >= 0 && missing("decoder_start_token_id")) {
    facts.decoder_start = defaults.decoder_start;
  }
  return facts;
}

}  // namespace vkformer
