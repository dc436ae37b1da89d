// Parakeet's configuration, weights and inputs; tests/golden has its numbers.
#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kParakeet = {{"model_type", "parakeet_encoder"},
                        {"architectures", {"ParakeetEncoder"}},
                        {"hidden_size", 24},
                        {"num_hidden_layers", 2},
                        {"num_attention_heads", 3},
                        {"intermediate_size", 40},
                        {"conv_kernel_size", 5},
                        {"subsampling_conv_channels", 8},
                        {"num_mel_bins", 16},
                        {"max_position_embeddings", 4}};

Json hearing(const Json& encoder, int64_t classes) {
  return {{"model_type", "parakeet_ctc"},
          {"architectures", {"ParakeetForCTC"}},
          {"encoder_config", encoder},
          {"vocab_size", classes},
          {"pad_token_id", 4}};
}

// What the family says of features of `frames` frames, and of a mask.
Status features_read(int64_t frames, const std::vector<int64_t>& mask) {
  const auto family = load_config(kParakeet);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  TensorMap inputs{{"input_features", Tensor::zeros(DType::kF32, {1, frames, 16})}};
  if (!mask.empty()) {
    inputs["attention_mask"] = Tensor::from_ints({1, static_cast<int64_t>(mask.size())}, mask);
  }
  const auto read = read_forward_inputs(**family, inputs);
  if (!read) return read.error();
  CHECK(read->shape.source == frames);
  return {};
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("parakeet: facts are the configuration's, with the library's defaults") {
    const ModelFacts facts = facts_of(hearing(kParakeet, 9));
    CHECK(facts.family == "parakeet_ctc");
    CHECK(facts.head == HeadKind::kCtc);
    CHECK(facts.source == SourceKind::kFeatures);
    CHECK(facts.target_vocab == 9);
    CHECK(facts.grid.width == 16);
    const ModelFacts base = facts_of({{"model_type", "parakeet_encoder"}});
    CHECK(base.width == 1024);
    CHECK(base.encoder_layers == 24);
    CHECK(base.grid.width == 80);
    CHECK(base.head == HeadKind::kNone);
  }

  TEST_CASE("parakeet: hostile sizes and unknown switches are refused") {
    check_sizes(kParakeet, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                            "intermediate_size", "conv_kernel_size", "subsampling_conv_channels",
                            "num_mel_bins", "max_position_embeddings", "subsampling_factor"});
    check_refused(with(kParakeet, "conv_kernel_size", 4), ErrorCode::kInvalidFile,
                  {"[conv_kernel_size]", "4"});
    check_refused(with(kParakeet, "subsampling_factor", 6), ErrorCode::kInvalidFile,
                  {"[subsampling_factor]", "6"});
    check_refused(with(kParakeet, "num_mel_bins", 20), ErrorCode::kInvalidFile, {"20"});
    check_refused(with(kParakeet, "subsampling_conv_stride", 3), ErrorCode::kUnsupported,
                  {"[subsampling_conv_stride]", "3"});
    check_refused(with(kParakeet, "num_key_value_heads", 1), ErrorCode::kUnsupported,
                  {"[num_key_value_heads]"});
    check_refused(with(kParakeet, "architectures", {"ParakeetForTDT"}), ErrorCode::kUnsupported,
                  {"ParakeetForTDT"});
    check_refused(hearing(kParakeet, 4), ErrorCode::kInvalidFile, {"[pad_token_id]", "4"});
  }

  TEST_CASE("parakeet: weights resolve with and without biases of convolutions") {
    ChangedModel model("parakeet-ctc");
    model.check_resolves();
    const auto found = model.resolve();
    CHECK(row_of(*found, "layers.0.conv.gate")->biases.size() == 1);
    CHECK(output_shape(*found, "logits", 2, 50) == Shape{2, 7, 9});
    model.tensors.erase("encoder.layers.1.conv.depthwise_conv.bias");
    model.check_refused("encoder.layers.1.conv.depthwise_conv.bias");
    ChangedModel plain("parakeet-ctc-plain");
    plain.check_resolves();
    CHECK(row_of(*plain.resolve(), "layers.0.conv.gate")->biases.empty());
    plain.config["encoder_config"]["attention_bias"] = true;
    plain.check_refused("encoder.layers.0.feed_forward1.linear1.bias");
  }

  TEST_CASE("parakeet: recordings end where positions do, and masks mask nothing") {
    CHECK(features_read(32, {}).ok());
    const Status longer = features_read(33, {});
    REQUIRE_FALSE(longer.ok());
    CHECK(test::contains(longer.error().message, "33 frames"));
    CHECK(features_read(3, {1, 1, 1}).ok());
    const Status masked = features_read(3, {1, 1, 0});
    REQUIRE_FALSE(masked.ok());
    CHECK(test::contains(masked.error().message, "[attention_mask]"));
    CHECK_FALSE(features_read(3, {1, 1}).ok());
  }
}

}  // namespace vkformer::testing
