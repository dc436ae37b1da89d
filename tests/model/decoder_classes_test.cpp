// Which token of a text a decoder's classifying head reads, and what its files must have.
#include "model/encoder_cases.h"
#include "recording/forward_inputs.h"

namespace vkformer::testing {
namespace {

const Json kClassifier = {
    {"model_type", "llama"},    {"architectures", {"LlamaForSequenceClassification"}},
    {"hidden_size", 24},        {"num_hidden_layers", 1},
    {"num_attention_heads", 3}, {"intermediate_size", 40},
    {"vocab_size", 60}};

using Ints = std::vector<int64_t>;

// The mask of the tokens that the head may read, of rows of 3 tokens; empty: the key mask's.
std::vector<uint32_t> class_mask(const Json& config, const Ints& ids, const Ints& mask) {
  const auto family = load_config(config);
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  const Shape shape = {static_cast<int64_t>(ids.size()) / 3, 3};
  TensorMap inputs{{"input_ids", Tensor::from_ints(shape, ids)}};
  if (!mask.empty()) inputs["attention_mask"] = Tensor::from_ints(shape, mask);
  const auto read = read_forward_inputs(**family, inputs);
  REQUIRE_MESSAGE(read.ok(), read.error().message);
  const auto found = read->words.find("class_mask");
  return found == read->words.end() ? std::vector<uint32_t>() : found->second;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("decoders: the head of classes reads the last token that is no padding") {
    using Words = std::vector<uint32_t>;
    const Json padded = with(kClassifier, "pad_token_id", 2);
    // Padding on the right, on the left, and a text that ends with the token that pads.
    CHECK(class_mask(padded, {5, 6, 2, 2, 5, 6, 5, 6, 7}, {}) == Words{3, 6, 7});
    CHECK(class_mask(padded, {5, 2, 2}, {1, 1, 0}) == Words{1});
    // What the key mask omits does not count, whatever its id.
    CHECK(class_mask(padded, {5, 6, 7}, {1, 1, 0}) == Words{3});
    // Of nothing but padding the first token counts.
    CHECK(class_mask(padded, {2, 2, 2}, {}) == Words{1});
    CHECK(class_mask(kClassifier, {5, 6, 2}, {1, 1, 0}).empty());
    CHECK(class_mask(with(kClassifier, "pad_token_id", -1), {5, 6, 2}, {1, 1, 0}).empty());
  }

  TEST_CASE("decoders: a head of classes has its labels, a matrix, and no generation") {
    const ModelFacts facts = facts_of(with(kClassifier, "id2label", {{"0", "bad"}, {"1", "good"}}));
    CHECK(facts.head == HeadKind::kSequence);
    CHECK(facts.labels == std::vector<std::string>{"bad", "good"});
    ChangedModel model("llama-classes");
    const auto found = model.resolve();
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    CHECK(row_of(*found, "classes")->biases.empty());
    CHECK(row_of(*found, "head") == nullptr);
    CHECK(output_shape(*found, "logits", 2, 7) == Shape{2, 3});
    model.config["id2label"] = {{"0", "only"}};
    model.check_refused("score.weight");
    model.tensors.erase("score.weight");
    model.check_refused("score.weight");
  }
}

}  // namespace vkformer::testing
