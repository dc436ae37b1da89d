#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kBigBird = {
    {"model_type", "big_bird"},      {"hidden_size", 24},       {"num_hidden_layers", 2},
    {"num_attention_heads", 3},      {"intermediate_size", 48}, {"vocab_size", 80},
    {"max_position_embeddings", 96}, {"block_size", 4},         {"num_random_blocks", 1}};

// What a pass over `tokens` tokens reads, with patterns for layer 1.
Result<ForwardInputs> read_patterns(const Json& config, int64_t tokens, Tensor random) {
  VKF_ASSIGN(const auto family, load_config(config));
  ForwardInputs result;
  result.shape = {.batch = 1, .source = tokens};
  result.words["input_ids"].assign(static_cast<size_t>(tokens), 5u);
  VKF_CHECK(family->read_inputs({{"rand_blocks.1", std::move(random)}}, result));
  return result;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("big_bird: facts and the library's defaults") {
    const ModelFacts facts = facts_of(kBigBird);
    CHECK(facts.family == "big_bird");
    CHECK(facts.max_source == 96);
    const ModelFacts defaults = facts_of({{"model_type", "big_bird"}});
    CHECK(defaults.source_vocab == 50358);
    CHECK(defaults.max_source == 4096);
  }

  TEST_CASE("big_bird: hostile sizes and settings are refused") {
    check_sizes(kBigBird, {"hidden_size", "num_hidden_layers", "num_attention_heads",
                           "intermediate_size", "vocab_size", "block_size"});
    for (int64_t random : {int64_t{-1}, INT64_MAX}) {
      check_refused(with(kBigBird, "num_random_blocks", random), ErrorCode::kInvalidFile,
                    {"[num_random_blocks]", std::to_string(random)});
    }
    check_refused(with(kBigBird, "attention_type", "dense"), ErrorCode::kUnsupported,
                  {"[attention_type]", "dense"});
    check_refused(with(kBigBird, "is_decoder", true), ErrorCode::kUnsupported, {"[is_decoder]"});
    Json answers = with(kBigBird, "architectures", Json::array({"BigBirdForQuestionAnswering"}));
    CHECK(load_config(answers).ok());
    check_refused(with(answers, "type_vocab_size", 1), ErrorCode::kUnsupported,
                  {"[type_vocab_size]"});
  }

  TEST_CASE("big_bird: patterns fit the blocks of the input") {
    const std::vector<int64_t> zeros(3 * 8, 0);
    const auto read = read_patterns(kBigBird, 38, Tensor::from_ints({3, 8, 1}, zeros));
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(read->shape.more == std::vector<int64_t>{1});
    CHECK(read->words.at("block_map.0") == read->words.at("block_map.1"));
    CHECK(read->words.at("block_map.1")[0] == 4);
    const auto message = [](Tensor random) {
      const auto result = read_patterns(kBigBird, 38, std::move(random));
      return result.ok() ? std::string("accepted") : result.error().message;
    };
    CHECK(test::contains(message(Tensor::from_ints({2, 8, 1}, std::vector<int64_t>(16))),
                         "[rand_blocks.1] has shape (2, 8, 1)"));
    std::vector<int64_t> far = zeros;
    far[5] = 10;
    CHECK(test::contains(message(Tensor::from_ints({3, 8, 1}, far)),
                         "holds block 10, but there are blocks 0 to 9"));
    // A short input has ordinary attention and no use for patterns.
    const auto brief = read_patterns(kBigBird, 28, Tensor::from_ints({3, 5, 1}, zeros));
    CHECK(brief.ok());
  }

  TEST_CASE("big_bird: hidden blocks are not in the plan's work") {
    const auto flops = [](const char* type) {
      ChangedModel model("bigbird-bare");
      model.config["attention_type"] = type;
      model.config["max_position_embeddings"] = 4096;
      model.config["block_size"] = 16;
      TensorMap& tensors = model.tensors;
      tensors["embeddings.position_embeddings.weight"] =
          Tensor::from_floats({4096, 8}, std::vector<float>(4096 * 8));
      const auto resolved = model.resolve();
      REQUIRE_MESSAGE(resolved.ok(), resolved.error().message);
      const Graph graph = resolved->forward({.batch = 1, .source = 4096}, {});
      DeviceCaps caps;
      double sum = 0;
      const auto plan = make_plan(graph, caps, Precision::kF32);
      REQUIRE(plan.ok());
      for (const Dispatch& d : plan->dispatches) {
        if (d.label.find("self") != std::string::npos && d.push.size() == 128) sum += d.flops;
      }
      return sum;
    };
    CHECK(flops("block_sparse") < flops("original_full") / 20);
  }
}

}  // namespace vkformer::testing
