#include "model/blocks/recurrent.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const Json kRnn = {{"model_type", "rnn_attention"},
                   {"architectures", Json::array({"RnnAttention"})},
                   {"attention", "bahdanau"},
                   {"src_vocab_size", 40},
                   {"tgt_vocab_size", 36},
                   {"embedding_size", 10},
                   {"encoder_hidden_size", 11},
                   {"decoder_hidden_size", 13},
                   {"attention_size", 9},
                   {"pad_token_id", 0},
                   {"bos_token_id", 1},
                   {"eos_token_id", 2}};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("rnn_attention: facts and token ids are the configuration's") {
    const auto family = load_config(kRnn);
    REQUIRE_MESSAGE(family.ok(), family.error().message);
    const ModelFacts& facts = (*family)->facts();
    CHECK(facts.kind == ModelKind::kEncoderDecoder);
    CHECK(facts.head == HeadKind::kLanguage);
    CHECK(facts.width == 13);
    CHECK(facts.decoder_layers == 1);
    CHECK(facts.source_vocab == 40);
    CHECK(facts.target_vocab == 36);
    CHECK(facts.prompts == ModelFacts::Prompts::kExact);
    CHECK((*family)->generation().decoder_start == 1);
    CHECK((*family)->generation().eos == std::vector<int64_t>{2});
    CHECK(facts_of(with(kRnn, "num_layers", 3)).encoder_layers == 3);
  }

  TEST_CASE("rnn_attention: hostile sizes and settings that fit nothing are refused") {
    check_sizes(kRnn, {"src_vocab_size", "tgt_vocab_size", "embedding_size", "encoder_hidden_size",
                       "decoder_hidden_size", "attention_size", "num_layers"});
    check_refused(with(kRnn, "encoder_hidden_size", 2049), ErrorCode::kInvalidFile,
                  {"[encoder_hidden_size]", "2049", "2048"});
    check_refused(with(kRnn, "attention", "luong_dot"), ErrorCode::kInvalidArgument,
                  {"[attention]", "13", "22"});
    check_refused(with(kRnn, "attention", "sparse"), ErrorCode::kUnsupported,
                  {"[attention]", "'sparse'", "luong_general"});
    check_refused(with(kRnn, "cell", "rnn"), ErrorCode::kUnsupported, {"[cell]", "'rnn'"});
    check_refused(with(kRnn, "attention_window", "local"), ErrorCode::kUnsupported,
                  {"[attention_window]", "local-p"});
    check_refused(with(with(kRnn, "attention_window", "local-m"), "window_size", 0),
                  ErrorCode::kInvalidFile, {"[window_size]", "0"});
    const Json none = with(kRnn, "attention", "none");
    check_refused(with(none, "input_feeding", true), ErrorCode::kInvalidArgument,
                  {"[input_feeding]", "'none'"});
    check_refused(with(none, "attention_window", "local-m"), ErrorCode::kInvalidArgument,
                  {"[attention_window]", "'none'"});
    check_refused(with(with(kRnn, "attention", "luong_location"), "location_size", -3),
                  ErrorCode::kInvalidFile, {"[location_size]", "-3"});
  }

  TEST_CASE("rnn_attention: tensors that are missing or of another size are named") {
    for (const char* name : {"v_a", "encoder.weight_hh_l1_reverse", "bridge_cell.bias"}) {
      ChangedModel model("rnn-bahdanau-lstm");
      REQUIRE(model.resolve().ok());
      model.tensors.erase(name);
      const auto resolved = model.resolve();
      REQUIRE_FALSE(resolved.ok());
      CHECK_MESSAGE(test::contains(resolved.error().message, name), resolved.error().message);
    }
    ChangedModel gru("rnn-bahdanau-lstm");
    gru.config["cell"] = "gru";
    const auto resolved = gru.resolve();
    REQUIRE_FALSE(resolved.ok());
    CHECK_MESSAGE(test::contains(resolved.error().message, "encoder.weight_ih_l0"),
                  resolved.error().message);
  }

  TEST_CASE("rnn_attention: tokens are listed in reading order, in reverse, and back") {
    ForwardInputs inputs;
    inputs.shape = {.batch = 2, .source = 4};
    inputs.words["key_mask"] = {0b1010u, 0u};
    add_token_order(inputs);
    constexpr uint32_t kNone = ~0u;
    using Words = std::vector<uint32_t>;
    CHECK(inputs.words["order_forward"] == Words{1, 3, kNone, kNone, kNone, kNone, kNone, kNone});
    CHECK(inputs.words["order_backward"] == Words{3, 1, kNone, kNone, kNone, kNone, kNone, kNone});
    CHECK(inputs.words["place_forward"] == Words{kNone, 0, kNone, 1, kNone, kNone, kNone, kNone});
    CHECK(inputs.words["place_backward"] == Words{kNone, 1, kNone, 0, kNone, kNone, kNone, kNone});
    CHECK(inputs.words["order_last"] == Words{1, kNone});
  }

  TEST_CASE("rnn_attention: a hidden decoder token before a real one is refused") {
    const auto family = load_config(kRnn);
    REQUIRE(family.ok());
    ForwardInputs words;
    words.shape = {.batch = 1, .source = 1};
    words.words["key_mask"] = {1u};
    TensorMap inputs;
    const std::vector<int64_t> left = {1, 1, 0, 0, 1, 1};
    inputs["decoder_attention_mask"] = Tensor::from_ints({2, 3}, left);
    const Status refused = (*family)->read_inputs(inputs, words);
    REQUIRE_FALSE(refused.ok());
    CHECK_MESSAGE(test::contains(refused.error().message, "token 1"), refused.error().message);
    const std::vector<int64_t> right = {1, 1, 0, 1, 1, 1};
    inputs["decoder_attention_mask"] = Tensor::from_ints({2, 3}, right);
    CHECK((*family)->read_inputs(inputs, words).ok());
  }
}

}  // namespace vkformer::testing
