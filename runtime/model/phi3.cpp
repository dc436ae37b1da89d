// Phi-3 (Abdin et al., 2024): LLaMA's layers with merged projections in its files, partly rotary
// heads, and LongRoPE.
#include "base/check.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/llama.h"
#include "model/text_decoder.h"

namespace vkformer {

Result<LlamaKind> phi3_kind(const JsonConfig& /*config*/) {
  return LlamaKind{.family = "phi3",
                   .architecture = "Phi3ForCausalLM",
                   .names = {.gate_up = {"gate_up_proj"}},
                   .vocabulary = 32064,
                   .width = 3072,
                   .ffn = 8192,
                   .max_positions = 4096,
                   .epsilon = 1e-5,
                   .rotary = {.original_positions = 4096, .yarn_is_longrope = true},
                   .projections = LlamaKind::Projections::kFused,
                   .read_rest = read_one_window};
}

Result<std::unique_ptr<ModelFamily>> load_phi3(const ModelFiles& files) {
  VKF_ASSIGN(const LlamaKind kind, phi3_kind(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
