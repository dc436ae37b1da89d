#include "gguf/gguf_names.h"

#include <string_view>

namespace vkformer {
namespace {

using Names = std::vector<GgufName>;

void append(Names& names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
}

// LLaMA's layers, whose norms have these names; `gain` of their gains.
Names decoder_names(GgufUse gain, const char* ffn_norm) {
  return {{"token_embd", "model.embed_tokens"},
          {"output", "lm_head"},
          {"output_norm", "model.norm", gain},
          {"blk.{}.attn_norm", "model.layers.{}.input_layernorm", gain},
          {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
          {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
          {"blk.{}.ffn_norm", ffn_norm, gain},
          {"blk.{}.ffn_gate", "model.layers.{}.mlp.gate_proj"},
          {"blk.{}.ffn_down", "model.layers.{}.mlp.down_proj"},
          {"rope_freqs", "", GgufUse::kIgnored},
          {"blk.{}.rope_freqs", "", GgufUse::kIgnored},
          {"blk.{}.attn_rot_embd", "", GgufUse::kIgnored}};
}

constexpr const char* kFfnNorm = "model.layers.{}.post_attention_layernorm";

Names apart_names(GgufUse queries = GgufUse::kPlain, GgufUse keys = GgufUse::kPlain) {
  return {{"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj", queries},
          {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj", keys},
          {"blk.{}.ffn_up", "model.layers.{}.mlp.up_proj"}};
}

Names head_norm_names(GgufUse gain = GgufUse::kPlain) {
  return {{"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_norm", gain},
          {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_norm", gain}};
}

Names expert_names(const char* router) {
  return {{"blk.{}.ffn_gate_inp", router},
          {"blk.{}.ffn_gate_exps", "model.layers.{}.mlp.experts.{x}.gate_proj", GgufUse::kExperts},
          {"blk.{}.ffn_up_exps", "model.layers.{}.mlp.experts.{x}.up_proj", GgufUse::kExperts},
          {"blk.{}.ffn_down_exps", "model.layers.{}.mlp.experts.{x}.down_proj", GgufUse::kExperts}};
}

}  // namespace

Names plain_decoder_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, apart_names());
  return names;
}

Names paired_decoder_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, apart_names(GgufUse::kQueries, GgufUse::kKeys));
  return names;
}

Names llama_names() {
  Names names = paired_decoder_names();
  // Mixtral's experts.
  append(names, {{"blk.{}.ffn_gate_inp", "model.layers.{}.block_sparse_moe.gate"},
                 {"blk.{}.ffn_gate_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w1",
                  GgufUse::kExperts},
                 {"blk.{}.ffn_down_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w2",
                  GgufUse::kExperts},
                 {"blk.{}.ffn_up_exps", "model.layers.{}.block_sparse_moe.experts.{x}.w3",
                  GgufUse::kExperts}});
  return names;
}

Names qwen3_names() {
  Names names = plain_decoder_names();
  append(names, head_norm_names());
  return names;
}

Names qwen3_moe_names() {
  Names names = qwen3_names();
  append(names, expert_names("model.layers.{}.mlp.gate"));
  return names;
}

Names gpt_oss_names() {
  Names names = plain_decoder_names();
  append(names, expert_names("model.layers.{}.mlp.router"));
  append(names,
         {{"blk.{}.post_attention_norm", kFfnNorm},
          {"blk.{}.attn_sinks.weight", "model.layers.{}.self_attn.sinks", GgufUse::kPlain, true}});
  return names;
}

Names gemma_names() {
  Names names = decoder_names(GgufUse::kGain, kFfnNorm);
  append(names, apart_names());
  return names;
}

Names gemma2_names() {
  Names names = decoder_names(GgufUse::kGain, "model.layers.{}.pre_feedforward_layernorm");
  append(names, apart_names());
  append(names, head_norm_names(GgufUse::kGain));
  append(names,
         {{"blk.{}.post_attention_norm", kFfnNorm, GgufUse::kGain},
          {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm", GgufUse::kGain}});
  return names;
}

Names gemma_embedding_names() {
  Names names = gemma2_names();
  append(names, {{"dense_2", "2_Dense/linear"}, {"dense_3", "3_Dense/linear"}});
  return names;
}

// Its norms stand after attention and feed-forward layer.
Names olmo2_names() {
  Names names = plain_decoder_names();
  std::erase_if(names, [](const GgufName& one) {
    return one.from == std::string_view("blk.{}.attn_norm") ||
           one.from == std::string_view("blk.{}.ffn_norm");
  });
  append(names, head_norm_names());
  append(names, {{"blk.{}.post_attention_norm", kFfnNorm},
                 {"blk.{}.post_ffw_norm", "model.layers.{}.post_feedforward_layernorm"}});
  return names;
}

Names starcoder2_names() {
  Names names = plain_decoder_names();
  for (GgufName& one : names) {
    if (one.from == std::string_view("blk.{}.ffn_up")) one.to = "model.layers.{}.mlp.c_fc";
    if (one.from == std::string_view("blk.{}.ffn_down")) one.to = "model.layers.{}.mlp.c_proj";
  }
  return names;
}

Names stablelm_names() {
  Names names = plain_decoder_names();
  append(names, {{"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm.norms.{x}",
                  GgufUse::kExperts},
                 {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm.norms.{x}",
                  GgufUse::kExperts}});
  return names;
}

Names lfm2_names() {
  return {
      {"token_embd", "model.embed_tokens"},
      {"output", "lm_head"},
      {"output_norm", "model.embedding_norm"},
      {"token_embd_norm", "model.embedding_norm"},  // the same, in older files
      {"blk.{}.attn_norm", "model.layers.{}.operator_norm"},
      {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
      {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
      {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
      {"blk.{}.attn_output", "model.layers.{}.self_attn.out_proj"},
      {"blk.{}.attn_q_norm", "model.layers.{}.self_attn.q_layernorm"},
      {"blk.{}.attn_k_norm", "model.layers.{}.self_attn.k_layernorm"},
      {"blk.{}.shortconv.in_proj", "model.layers.{}.conv.in_proj"},
      {"blk.{}.shortconv.conv.weight", "model.layers.{}.conv.conv.weight", GgufUse::kTaps, true},
      {"blk.{}.shortconv.conv.bias", "model.layers.{}.conv.conv.bias", GgufUse::kPlain, true},
      {"blk.{}.shortconv.out_proj", "model.layers.{}.conv.out_proj"},
      {"blk.{}.ffn_norm", "model.layers.{}.ffn_norm"},
      {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.w1"},
      {"blk.{}.ffn_down", "model.layers.{}.feed_forward.w2"},
      {"blk.{}.ffn_up", "model.layers.{}.feed_forward.w3"}};
}

// The state-space part of a layer of Mamba 2.
#define VKF_MAMBA_NAMES(layer)                                                   \
  {"blk.{}.ssm_in", layer "in_proj"},                                            \
      {"blk.{}.ssm_conv1d.weight", layer "conv1d.weight", GgufUse::kTaps, true}, \
      {"blk.{}.ssm_conv1d.bias", layer "conv1d.bias", GgufUse::kPlain, true},    \
      {"blk.{}.ssm_dt.bias", layer "dt_bias", GgufUse::kPlain, true},            \
      {"blk.{}.ssm_a", layer "A_log", GgufUse::kRates, true},                    \
      {"blk.{}.ssm_d", layer "D", GgufUse::kFlat, true},                         \
      {"blk.{}.ssm_norm", layer "norm", GgufUse::kFlat}, {                       \
    "blk.{}.ssm_out", layer "out_proj"                                           \
  }

Names mamba2_names() {
  return {{"token_embd", "backbone.embeddings"},
          {"output", "lm_head"},
          {"output_norm", "backbone.norm_f"},
          {"blk.{}.attn_norm", "backbone.layers.{}.norm"},
          VKF_MAMBA_NAMES("backbone.layers.{}.mixer.")};
}

Names falcon_h1_names() {
  return {{"token_embd", "model.embed_tokens"},
          {"output", "lm_head"},
          {"output_norm", "model.final_layernorm"},
          {"blk.{}.attn_norm", "model.layers.{}.input_layernorm"},
          {"blk.{}.attn_q", "model.layers.{}.self_attn.q_proj"},
          {"blk.{}.attn_k", "model.layers.{}.self_attn.k_proj"},
          {"blk.{}.attn_v", "model.layers.{}.self_attn.v_proj"},
          {"blk.{}.attn_output", "model.layers.{}.self_attn.o_proj"},
          VKF_MAMBA_NAMES("model.layers.{}.mamba."),
          {"blk.{}.ffn_norm", "model.layers.{}.pre_ff_layernorm.weight", GgufUse::kPlain, true},
          {"blk.{}.ffn_gate", "model.layers.{}.feed_forward.gate_proj"},
          {"blk.{}.ffn_up", "model.layers.{}.feed_forward.up_proj"},
          {"blk.{}.ffn_down", "model.layers.{}.feed_forward.down_proj"}};
}

#undef VKF_MAMBA_NAMES

Names gpt_neox_names() {
  return {{"token_embd", "gpt_neox.embed_in"},
          {"output", "embed_out"},
          {"output_norm", "gpt_neox.final_layer_norm"},
          {"blk.{}.attn_norm", "gpt_neox.layers.{}.input_layernorm"},
          {"blk.{}.attn_qkv", "gpt_neox.layers.{}.attention.query_key_value", GgufUse::kFused},
          {"blk.{}.attn_output", "gpt_neox.layers.{}.attention.dense"},
          {"blk.{}.ffn_norm", "gpt_neox.layers.{}.post_attention_layernorm"},
          {"blk.{}.ffn_up", "gpt_neox.layers.{}.mlp.dense_h_to_4h"},
          {"blk.{}.ffn_down", "gpt_neox.layers.{}.mlp.dense_4h_to_h"}};
}

Names bloom_names() {
  return {{"token_embd", "transformer.word_embeddings"},
          {"token_embd_norm", "transformer.word_embeddings_layernorm"},
          {"output", "lm_head"},
          {"output_norm", "transformer.ln_f"},
          {"blk.{}.attn_norm", "transformer.h.{}.input_layernorm"},
          {"blk.{}.attn_qkv", "transformer.h.{}.self_attention.query_key_value", GgufUse::kFused},
          {"blk.{}.attn_output", "transformer.h.{}.self_attention.dense"},
          {"blk.{}.ffn_norm", "transformer.h.{}.post_attention_layernorm"},
          {"blk.{}.ffn_up", "transformer.h.{}.mlp.dense_h_to_4h"},
          {"blk.{}.ffn_down", "transformer.h.{}.mlp.dense_4h_to_h"}};
}

Names phi3_names() {
  Names names = decoder_names(GgufUse::kPlain, kFfnNorm);
  append(names, {{"blk.{}.attn_qkv", "model.layers.{}.self_attn.qkv_proj"},
                 {"blk.{}.ffn_up", "model.layers.{}.mlp.gate_up_proj"},
                 {"rope_factors_long", "", GgufUse::kIgnored},
                 {"rope_factors_short", "", GgufUse::kIgnored}});
  return names;
}

Names bert_names() {
  return {{"token_embd", "embeddings.word_embeddings"},
          {"position_embd", "embeddings.position_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "embeddings.LayerNorm"},
          {"blk.{}.attn_q", "encoder.layer.{}.attention.self.query"},
          {"blk.{}.attn_k", "encoder.layer.{}.attention.self.key"},
          {"blk.{}.attn_v", "encoder.layer.{}.attention.self.value"},
          {"blk.{}.attn_output", "encoder.layer.{}.attention.output.dense"},
          {"blk.{}.attn_output_norm", "encoder.layer.{}.attention.output.LayerNorm"},
          {"blk.{}.ffn_up", "encoder.layer.{}.intermediate.dense"},
          {"blk.{}.ffn_down", "encoder.layer.{}.output.dense"},
          {"blk.{}.layer_output_norm", "encoder.layer.{}.output.LayerNorm"},
          {"cls", "pooler.dense"},
          {"cls.output", "classifier"}};
}

Names nomic_bert_names() {
  return {{"token_embd", "embeddings.word_embeddings"},
          {"token_types", "embeddings.token_type_embeddings"},
          {"token_embd_norm", "emb_ln"},
          {"blk.{}.attn_qkv", "encoder.layers.{}.attn.Wqkv"},
          {"blk.{}.attn_output", "encoder.layers.{}.attn.out_proj"},
          {"blk.{}.attn_output_norm", "encoder.layers.{}.norm1"},
          {"blk.{}.ffn_up", "encoder.layers.{}.mlp.fc11"},
          {"blk.{}.ffn_gate", "encoder.layers.{}.mlp.fc12"},
          {"blk.{}.ffn_down", "encoder.layers.{}.mlp.fc2"},
          {"blk.{}.layer_output_norm", "encoder.layers.{}.norm2"}};
}

// A stack of T5. Its feed-forward layer is number 1 in the encoder, 2 in the decoder, and has other
// names where it has a gate.
#define VKF_T5_STACK(prefix, stack, ffn, gated)                                             \
  {prefix ".output_norm", stack ".final_layer_norm"},                                       \
      {prefix ".blk.{}.attn_norm", stack ".block.{}.layer.0.layer_norm"},                   \
      {prefix ".blk.{}.attn_q", stack ".block.{}.layer.0.SelfAttention.q"},                 \
      {prefix ".blk.{}.attn_k", stack ".block.{}.layer.0.SelfAttention.k"},                 \
      {prefix ".blk.{}.attn_v", stack ".block.{}.layer.0.SelfAttention.v"},                 \
      {prefix ".blk.{}.attn_o", stack ".block.{}.layer.0.SelfAttention.o"},                 \
      {prefix ".blk.{}.attn_rel_b",                                                         \
       stack ".block.{}.layer.0.SelfAttention.relative_attention_bias"},                    \
      {prefix ".blk.{}.ffn_norm", stack ".block.{}.layer." ffn ".layer_norm"},              \
      {prefix ".blk.{}.ffn_gate", stack ".block.{}.layer." ffn ".DenseReluDense.wi_0"},     \
      {prefix ".blk.{}.ffn_up", gated ? stack ".block.{}.layer." ffn ".DenseReluDense.wi_1" \
                                      : stack ".block.{}.layer." ffn ".DenseReluDense.wi"}, \
  {                                                                                         \
    prefix ".blk.{}.ffn_down", stack ".block.{}.layer." ffn ".DenseReluDense.wo"            \
  }

Names t5_names(bool gated) {
  return {VKF_T5_STACK("enc", "encoder", "1", gated),
          VKF_T5_STACK("dec", "decoder", "2", gated),
          {"token_embd", "shared"},
          {"output", "lm_head"},
          {"dec.blk.{}.cross_attn_norm", "decoder.block.{}.layer.1.layer_norm"},
          {"dec.blk.{}.cross_attn_q", "decoder.block.{}.layer.1.EncDecAttention.q"},
          {"dec.blk.{}.cross_attn_k", "decoder.block.{}.layer.1.EncDecAttention.k"},
          {"dec.blk.{}.cross_attn_v", "decoder.block.{}.layer.1.EncDecAttention.v"},
          {"dec.blk.{}.cross_attn_o", "decoder.block.{}.layer.1.EncDecAttention.o"},
          {"dec.blk.{}.cross_attn_rel_b", "", GgufUse::kIgnored}};
}

#undef VKF_T5_STACK

}  // namespace vkformer
