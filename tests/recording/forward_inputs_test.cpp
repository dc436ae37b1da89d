// What callers may name and give as the inputs of a pass or a generation.
#include "recording/forward_inputs.h"

#include "generate/generation_sizes.h"
#include "support/golden_graphs.h"
#include "support/test_device.h"
#include "vkformer/session.h"

namespace vkformer::testing {
namespace {

std::unique_ptr<ModelFamily> family_of(const std::string& golden) {
  const GoldenCase found = golden_case(golden);
  auto family = load_family(*make_directory_store(found.path("model")));
  REQUIRE_MESSAGE(family.ok(), family.error().message);
  return std::move(family).value();
}

TensorMap ids_of(int64_t batch, int64_t tokens) {
  const std::vector<int64_t> ids(static_cast<size_t>(batch * tokens), 5);
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({batch, tokens}, ids);
  return inputs;
}

Tensor ints(Shape shape, std::vector<int64_t> values) {
  return Tensor::from_ints(std::move(shape), values);
}

template <class T>
void check_says(const Result<T>& result, const std::vector<std::string>& parts) {
  REQUIRE_FALSE(result.ok());
  CAPTURE(result.error().message);
  CHECK(result.error().code == ErrorCode::kInvalidArgument);
  for (const std::string& part : parts) {
    CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, part);
  }
}

Status read_generation(const ModelFamily& family, const TensorMap& inputs) {
  StepShape shape;
  const auto read = read_single_inputs(family, inputs, generation_defaults(family), shape);
  return read.ok() ? Status{} : Status(read.error());
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("inputs: a name that the model does not take is an error with the nearest one") {
    const struct {
      const char *golden, *wrong, *nearest;
    } rows[] = {{"bert-base", "attention_masks", "attention_mask"},
                {"bert-base", "input_id", "input_ids"},
                {"bert-base", "pixel_values", "input_ids"},
                {"gpt2-base", "token_types", "token_type_ids"},
                {"gpt2-base", "decoder_attention_mask", "attention_mask"},
                {"bart-base", "decoder_input_id", "decoder_input_ids"},
                {"vit-base", "pixel_value", "pixel_values"},
                {"vit-base", "attention_mask", "pixel_values"},
                {"whisper-base", "input_feature", "input_features"},
                {"longformer-masked", "global_attention_masks", "global_attention_mask"},
                {"bigbird-patterns", "rand_blocks.9", "rand_blocks.0"}};
    for (const auto& row : rows) {
      CAPTURE(row.golden);
      const auto family = family_of(row.golden);
      TensorMap inputs = golden_case(row.golden).pass_inputs();
      const auto good = read_forward_inputs(*family, inputs);
      CHECK_MESSAGE(good.ok(), good.error().message);
      inputs[row.wrong] = ints({1}, {1});
      check_says(read_forward_inputs(*family, inputs),
                 {"[" + std::string(row.wrong) + "]", "the nearest is " + std::string(row.nearest),
                  family->facts().architecture});
    }
  }

  TEST_CASE("inputs: a decoder's names have errors of their own") {
    const auto decoder = family_of("gpt2-base");
    TensorMap inputs = ids_of(1, 3);
    inputs["decoder_input_ids"] = inputs["input_ids"];
    check_says(read_forward_inputs(*decoder, inputs), {"[decoder_input_ids]", "pass input_ids"});
    const auto both = family_of("bart-base");
    inputs = ids_of(1, 3);
    inputs["decoder_attention_mask"] = ints({1, 3}, {1, 1, 1});
    check_says(read_forward_inputs(*both, inputs),
               {"[decoder_attention_mask]", "without decoder_input_ids"});
  }

  TEST_CASE("inputs: a generation takes no positions, no target and no token types but zeros") {
    for (const char* golden : {"gpt2-base", "bart-base"}) {
      CAPTURE(golden);
      const auto family = family_of(golden);
      TensorMap inputs = ids_of(1, 3);
      inputs["attention_mask"] = ints({1, 3}, {0, 1, 1});
      inputs["token_type_ids"] = ints({1, 3}, {0, 0, 0});
      const Status good = read_generation(*family, inputs);
      CHECK_MESSAGE(good.ok(), good.error().message);
      inputs["token_type_ids"] = ints({1, 3}, {0, 1, 0});
      check_says(read_generation(*family, inputs), {"[token_type_ids]", "holds 1"});
      inputs["token_type_ids"] = ints({1, 2}, {0, 0});
      check_says(read_generation(*family, inputs), {"[token_type_ids]", "(1, 2)"});
      inputs.erase("token_type_ids");
      for (const char* name : {"position_ids", "decoder_input_ids", "attention_masks"}) {
        TensorMap more = inputs;
        more[name] = ints({1, 3}, {0, 1, 2});
        check_says(read_generation(*family, more),
                   {"[" + std::string(name) + "]", "generation of ", "the nearest is "});
      }
    }
  }

  TEST_CASE("inputs: masks hold 0 and 1; other values are an error that names one") {
    const struct {
      const char *golden, *mask;
    } rows[] = {{"bert-base", "attention_mask"},
                {"gpt2-base", "attention_mask"},
                {"bart-base", "decoder_attention_mask"},
                {"perceiver-words", "attention_mask"},
                {"wav2vec2-conformer-rotary", "attention_mask"},
                {"longformer-masked", "global_attention_mask"},
                {"rnn-bahdanau-lstm", "decoder_attention_mask"}};
    for (const auto& row : rows) {
      CAPTURE(row.golden);
      const auto family = family_of(row.golden);
      TensorMap inputs = golden_case(row.golden).pass_inputs();
      const bool target = std::string(row.mask).starts_with("decoder_");
      const auto ids = inputs.find(target ? "decoder_input_ids" : "input_ids");
      Shape shape;
      if (ids != inputs.end()) shape = ids->second.shape;
      if (const auto given = inputs.find(row.mask); given != inputs.end()) {
        shape = given->second.shape;
      }
      REQUIRE(shape.size() == 2);
      std::vector<int64_t> values(static_cast<size_t>(element_count(shape)), 1);
      inputs[row.mask] = ints(shape, values);
      const auto good = read_forward_inputs(*family, inputs);
      CHECK_MESSAGE(good.ok(), good.error().message);
      for (const int64_t wrong : {int64_t{2}, int64_t{-10000}, INT64_MIN, int64_t{256}}) {
        values[1] = wrong;
        inputs[row.mask] = ints(shape, values);
        check_says(
            read_forward_inputs(*family, inputs),
            {"[" + std::string(row.mask) + "]", "holds " + std::to_string(wrong), "element 1"});
      }
      // A byte of a truth value is 1 whatever it holds.
      Tensor truths = Tensor::zeros(DType::kBool, shape);
      std::fill(truths.bytes.begin(), truths.bytes.end(), std::byte{7});
      inputs[row.mask] = truths;
      CHECK(read_forward_inputs(*family, inputs).ok());
      std::vector<float> floats(static_cast<size_t>(element_count(shape)), 1.0f);
      inputs[row.mask] = Tensor::from_floats(shape, floats);
      check_says(read_forward_inputs(*family, inputs), {"[" + std::string(row.mask) + "]"});
    }
  }
}

TEST_SUITE("model") {
  TEST_CASE("inputs: sessions refuse what they do not know, in passes, slices and generations") {
    if (!have_test_device()) return;
    const auto model = Model::load(*test_device(), golden_case("gpt2-base").path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    auto session = Session::create(*model);
    REQUIRE(session.ok());
    TensorMap inputs = ids_of(1, 4);
    inputs["attention_masks"] = ints({1, 4}, {0, 1, 1, 1});
    const std::vector<std::string> says = {"[attention_masks]", "the nearest is attention_mask"};
    check_says(session->run(inputs), says);
    check_says(session->start(inputs), says);
    check_says(session->generate_masked(inputs, session->generation_defaults()), says);
    check_says(session->start_generation(inputs, session->generation_defaults()), says);
    check_says(session->score_masked(inputs, {{5}}), says);
    inputs.erase("attention_masks");
    inputs["attention_mask"] = ints({1, 4}, {0, 1, 3, 1});
    check_says(session->run(inputs), {"[attention_mask]", "holds 3"});
    check_says(session->generate_masked(inputs, session->generation_defaults()),
               {"[attention_mask]", "holds 3"});
    inputs["attention_mask"] = ints({1, 4}, {0, 1, 1, 1});
    CHECK(session->run(inputs).ok());
  }
}

}  // namespace vkformer::testing
