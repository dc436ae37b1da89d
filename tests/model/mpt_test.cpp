#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kMpt = {{"model_type", "mpt"}, {"d_model", 24},     {"n_layers", 2},
                   {"n_heads", 3},        {"max_seq_len", 64}, {"vocab_size", 50}};

Json with_attention(const char* key, Json value) {
  return with(kMpt, "attn_config", {{key, std::move(value)}});
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("mpt: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(kMpt);
    CHECK(facts.width == 24);
    CHECK(facts.max_target == 64);
    const ModelFacts base = facts_of({{"model_type", "mpt"}});
    CHECK(base.width == 2048);
    CHECK(base.decoder_layers == 24);
    CHECK(base.target_vocab == 50368);
    check_sizes(kMpt, {"d_model", "n_layers", "n_heads", "max_seq_len", "vocab_size"});
  }

  TEST_CASE("mpt: variants that are not done are refused by name") {
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with_attention("alibi", false), unsupported, {"[attn_config.alibi]"});
    check_refused(with_attention("attn_type", "multiquery_attention"), unsupported,
                  {"[attn_config.attn_type]", "multiquery_attention"});
    for (const char* key : {"prefix_lm", "qk_ln", "attn_uses_sequence_id"}) {
      check_refused(with_attention(key, true), unsupported, {key});
      CHECK(load_config(with_attention(key, false)).ok());
    }
    check_refused(with_attention("clip_qkv", 6.0), unsupported, {"[attn_config.clip_qkv]"});
    CHECK(load_config(with_attention("clip_qkv", nullptr)).ok());
    check_refused(with(kMpt, "logit_scale", 0.5), unsupported, {"[logit_scale]"});
    check_refused(with_attention("softmax_scale", 1e300), ErrorCode::kInvalidFile,
                  {"[attn_config.softmax_scale]", "finite"});
    CHECK_FALSE(load_config(with(kMpt, "attn_config", 3)).ok());
  }

  TEST_CASE("mpt: a missing tensor is named") {
    ChangedModel model("mpt-heads");
    model.check_resolves();
    model.tensors.erase("transformer.blocks.1.attn.Wqkv.weight");
    model.check_refused("transformer.blocks.1.attn.Wqkv.weight");
  }
}

}  // namespace vkformer::testing
