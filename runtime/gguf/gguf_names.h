// The names of tensors in GGUF files, by architecture, and those that the families read.
//
// Threading: pure functions.
#pragma once

#include <vector>

#include "gguf/gguf_tensors.h"

namespace vkformer {

std::vector<GgufName> plain_decoder_names();
// Rows of queries and keys are by pairs in files.
std::vector<GgufName> paired_decoder_names();
std::vector<GgufName> llama_names();
std::vector<GgufName> qwen3_names();
std::vector<GgufName> qwen3_moe_names();
std::vector<GgufName> gpt_oss_names();
std::vector<GgufName> gemma_names();
std::vector<GgufName> gemma2_names();
std::vector<GgufName> gemma_embedding_names();
std::vector<GgufName> olmo2_names();
std::vector<GgufName> starcoder2_names();
std::vector<GgufName> stablelm_names();
std::vector<GgufName> lfm2_names();
std::vector<GgufName> mamba2_names();
std::vector<GgufName> falcon_h1_names();
std::vector<GgufName> gpt_neox_names();
std::vector<GgufName> bloom_names();
std::vector<GgufName> phi3_names();
std::vector<GgufName> bert_names();
std::vector<GgufName> nomic_bert_names();
// `gated`: the feed-forward layers have a gate.
std::vector<GgufName> t5_names(bool gated);

}  // namespace vkformer
