#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kMoonshine = {{"model_type", "moonshine"},        {"hidden_size", 16},
                         {"intermediate_size", 20},          {"vocab_size", 40},
                         {"encoder_num_hidden_layers", 1},   {"decoder_num_hidden_layers", 2},
                         {"encoder_num_attention_heads", 2}, {"decoder_num_attention_heads", 2},
                         {"max_position_embeddings", 32}};

TensorMap moonshine_sound(int64_t samples) {
  TensorMap inputs;
  inputs["input_values"] = Tensor::zeros(DType::kF32, {1, samples});
  return inputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("moonshine: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kMoonshine);
    CHECK(facts.kind == ModelKind::kEncoderDecoder);
    CHECK(facts.source == SourceKind::kWaveform);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.encoder_layers == 1);
    CHECK(facts.decoder_layers == 2);
    CHECK(facts.max_target == 32);
    CHECK(facts.wave.samples_per_frame == 384);
    CHECK(facts.wave.least_samples == 895);
    const ModelFacts base = facts_of({{"model_type", "moonshine"}});
    CHECK(base.width == 288);
    CHECK(base.encoder_layers == 6);
    CHECK(base.decoder_heads == 8);
    CHECK(base.target_vocab == 32768);
    CHECK(base.max_target == 512);
    const Json bare = with(kMoonshine, "architectures", Json::array({"MoonshineModel"}));
    CHECK(facts_of(bare).head == HeadKind::kNone);
  }

  TEST_CASE("moonshine: hostile sizes and settings that are not done are refused") {
    check_sizes(kMoonshine, {"hidden_size", "intermediate_size", "vocab_size",
                             "encoder_num_hidden_layers", "decoder_num_hidden_layers",
                             "encoder_num_attention_heads", "max_position_embeddings"});
    const auto unsupported = ErrorCode::kUnsupported;
    check_refused(with(kMoonshine, "decoder_num_attention_heads", 4), unsupported,
                  {"[decoder_num_attention_heads]", "4", "2"});
    check_refused(with(kMoonshine, "encoder_num_key_value_heads", 1), unsupported,
                  {"[encoder_num_key_value_heads]", "1"});
    check_refused(with(kMoonshine, "partial_rotary_factor", 0.05), ErrorCode::kInvalidFile,
                  {"[partial_rotary_factor]", "0 of 8"});
    check_refused(with(kMoonshine, "architectures", Json::array({"MoonshineForNothing"})),
                  unsupported, {"MoonshineForNothing"});
    const Json stretched = {{"rope_type", "linear"},
                            {"factor", 2.0},
                            {"rope_theta", 1e4},
                            {"partial_rotary_factor", 0.9}};
    check_refused(with(kMoonshine, "rope_parameters", stretched), unsupported,
                  {"[rope_parameters]", "7"});
  }

  TEST_CASE("moonshine: a mask keeps the frames whose first sample it keeps") {
    const auto family = load_config(kMoonshine);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    TensorMap inputs = moonshine_sound(1700);
    ForwardInputs plain;
    REQUIRE((*family)->read_inputs(inputs, plain).ok());
    CHECK(plain.shape.source == 3);
    CHECK(plain.words.at("key_mask") == std::vector<uint32_t>{7});
    std::vector<int64_t> mask(1700, 1);
    for (size_t i = 700; i < mask.size(); ++i) mask[i] = 0;
    inputs["attention_mask"] = Tensor::from_ints({1, 1700}, mask);
    ForwardInputs masked;
    REQUIRE((*family)->read_inputs(inputs, masked).ok());
    CHECK(masked.words.at("key_mask") == std::vector<uint32_t>{3});
    const Status small = (*family)->read_inputs(moonshine_sound(894), plain);
    REQUIRE_FALSE(small.ok());
    CHECK(test::contains(small.error().message, "(1, 894)"));
  }

  TEST_CASE("moonshine: a missing tensor is named") {
    ChangedModel model("moonshine-base");
    REQUIRE(model.resolve().ok());
    model.tensors.erase("model.encoder.groupnorm.bias");
    model.check_refused("groupnorm.bias");
  }
}

}  // namespace vkformer::testing
