// OLMo 2 (OLMo Team, 2024): LLaMA's layers with norms after the sublayers instead of before them,
// and of queries and keys over their whole width.
#include "model/family_list.h"
#include "model/llama.h"

namespace vkformer {
namespace {

Status read_olmo2_rest(const JsonConfig&, DecoderConfig& block) {
  StackConfig& stack = block.stack;
  stack.before_norm = StackConfig::BeforeNorm::kNo;
  stack.after_norm = StackConfig::AfterNorm::kYes;
  stack.qk_norm = StackConfig::QueryKeyNorm::kWhole;
  return {};
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_olmo2(const ModelFiles& files) {
  LlamaKind kind{.family = "olmo2",
                 .architecture = "Olmo2ForCausalLM",
                 .vocabulary = 50304,
                 .epsilon = 1e-5,
                 .read_rest = read_olmo2_rest};
  VKF_ASSIGN(kind.biases, read_attention_biases(files.config));
  return load_llama_kind(files, kind);
}

}  // namespace vkformer
