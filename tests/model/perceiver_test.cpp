#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kPerceiver = {{"model_type", "perceiver"},
                         {"num_latents", 5},
                         {"d_latents", 16},
                         {"d_model", 8},
                         {"num_blocks", 2},
                         {"num_self_attends_per_block", 3},
                         {"num_self_attention_heads", 4},
                         {"num_cross_attention_heads", 2},
                         {"vocab_size", 20},
                         {"max_position_embeddings", 12},
                         {"image_size", 4}};

Json of_class(const char* name) {
  return with(kPerceiver, "architectures", Json::array({name}));
}

void check_perceiver_inputs(const Json& config, const TensorMap& inputs,
                            const std::vector<std::string>& parts) {
  const auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  ForwardInputs result;
  const Status read = (*family)->read_inputs(inputs, result);
  REQUIRE_FALSE(read.ok());
  for (const std::string& part : parts) {
    CHECK_MESSAGE(test::contains(read.error().message, part), read.error().message);
  }
}

TensorMap inputs_of(Tensor tensor) {
  TensorMap inputs;
  inputs["inputs"] = std::move(tensor);
  return inputs;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("perceiver: facts are the configuration's, and of an empty one the library's") {
    const ModelFacts facts = facts_of(kPerceiver);
    CHECK(facts.source == SourceKind::kArrays);
    CHECK(facts.head == HeadKind::kNone);
    CHECK(facts.width == 16);
    CHECK(facts.encoder_layers == 6);
    CHECK(facts.encoder_heads == 4);
    const ModelFacts base = facts_of({{"model_type", "perceiver"}});
    CHECK(base.width == 1280);
    CHECK(base.encoder_layers == 26);
    const ModelFacts words = facts_of(of_class("PerceiverForMaskedLM"));
    CHECK(words.head == HeadKind::kMasked);
    CHECK(words.target_vocab == 20);
    CHECK(words.max_source == 12);
    for (const char* name :
         {"PerceiverForSequenceClassification", "PerceiverForImageClassificationLearned",
          "PerceiverForImageClassificationFourier"}) {
      const Json one = with(of_class(name), "num_cross_attention_heads", 1);
      const ModelFacts classes = facts_of(with(one, "num_labels", 3));
      CHECK(classes.head == HeadKind::kSequence);
      CHECK(classes.labels.size() == 3);
    }
  }

  TEST_CASE("perceiver: inputs are read by the class, and a mask hides their ends") {
    const auto family = load_config(of_class("PerceiverForMaskedLM"));
    REQUIRE(family.ok());
    ForwardInputs result;
    TensorMap inputs = inputs_of(Tensor::zeros(DType::kI64, {1, 4}));
    inputs["attention_mask"] = Tensor::from_ints({1, 4}, std::vector<int64_t>{1, 0, 1, 0});
    REQUIRE((*family)->read_inputs(inputs, result).ok());
    CHECK(result.shape.source == 4);
    CHECK(result.words.at("key_mask") == std::vector<uint32_t>{5});
    inputs["attention_mask"] = Tensor::zeros(DType::kI64, {1, 5});
    check_perceiver_inputs(of_class("PerceiverForMaskedLM"), inputs,
                           {"[attention_mask]", "(1, 5)"});
    check_perceiver_inputs(kPerceiver, {}, {"[inputs]", "missing"});
    check_perceiver_inputs(kPerceiver, inputs_of(Tensor::zeros(DType::kF32, {1, 3, 9})),
                           {"(1, 3, 9)", "8"});
    check_perceiver_inputs(of_class("PerceiverForMaskedLM"),
                           inputs_of(Tensor::zeros(DType::kI64, {1, 13})), {"(1, 13)", "12"});
    check_perceiver_inputs(of_class("PerceiverForMaskedLM"),
                           inputs_of(Tensor::from_ints({1, 1}, std::vector<int64_t>{20})),
                           {"20", "19"});
    const Json learned = of_class("PerceiverForImageClassificationLearned");
    check_perceiver_inputs(learned, inputs_of(Tensor::zeros(DType::kF32, {1, 3, 4, 5})),
                           {"(1, 3, 4, 5)"});
  }

  TEST_CASE("perceiver: hostile sizes and impossible settings are refused, with their numbers") {
    check_sizes(kPerceiver,
                {"num_latents", "d_latents", "d_model", "num_blocks", "num_self_attends_per_block",
                 "num_self_attention_heads", "num_cross_attention_heads", "qk_channels",
                 "v_channels", "self_attention_widening_factor"});
    const auto invalid = ErrorCode::kInvalidFile;
    check_refused(with(kPerceiver, "qk_channels", 6), invalid, {"6", "4 heads"});
    check_refused(with(kPerceiver, "v_channels", 8), invalid, {"[v_channels]", "8", "16"});
    check_refused(with(kPerceiver, "qk_channels", 2048), ErrorCode::kUnsupported, {"256"});
    check_refused(with(kPerceiver, "cross_attention_shape_for_attention", "v"), invalid,
                  {"[cross_attention_shape_for_attention]", "v"});
    check_refused(with(with(kPerceiver, "num_blocks", 1024), "num_self_attends_per_block", 1024),
                  invalid, {"[num_blocks]", "1024"});
    check_refused(of_class("PerceiverForOpticalFlow"), ErrorCode::kUnsupported,
                  {"[architectures]", "PerceiverForOpticalFlow"});
    check_refused(with(of_class("PerceiverForMaskedLM"), "d_model", 12), invalid,
                  {"12", "8 heads"});
  }

  TEST_CASE("perceiver: words have a row of logits for every position of the decoder") {
    const GoldenGraphs model = golden_graphs("perceiver-words");
    CHECK(output_shape(model, "logits", 2, 5) == Shape{2, 14, 20});
    CHECK(output_shape(model, "last_hidden_state", 2, 5) == Shape{2, 5, 8});
    CHECK(output_shape(model, "cross_attentions.0", 2, 5) == Shape{2, 2, 5, 5});
    CHECK(output_shape(model, "cross_attentions.1", 2, 5) == Shape{2, 8, 14, 5});
    ChangedModel changed("perceiver-words");
    changed.check_resolves();
    changed.tensors.erase("embedding_decoder.bias");
    changed.check_refused("embedding_decoder.bias");
  }
}

}  // namespace vkformer::testing
