// Where an error says that logits became NaN: the input of the call, and the position in its own
// text.
#include "generate/generation_case.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

// A GPT-2 whose position 4 gives NaN: of a text, the token at position 5 cannot be chosen.
Session spoiled_session() {
  ChangedModel changed("gpt2-base");
  changed.spoil_row("transformer.wpe.weight", 4);
  return make_session(changed.load(*test_device()));
}

std::string message_of(Session& session, const Rows& rows, const GenerateOptions& options) {
  const auto generation = session.generate(rows, options);
  REQUIRE_FALSE(generation.ok());
  CHECK(generation.error().code == ErrorCode::kDriver);
  return generation.error().message;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a NaN is at the position of its input's own text, whatever it is batched with") {
    if (!have_test_device()) return;
    Session session = spoiled_session();
    const GenerateOptions options = options_for(session, 1, 6, {});
    const std::string alone = message_of(session, {{3, 4}}, options);
    CHECK_MESSAGE(test::contains(alone, "the logits of input 0 became NaN at position 5"), alone);
    // Padded to a batch of four tokens, it would be position 7.
    const std::string batched = message_of(session, {{3, 4}, {3, 4, 5, 6}}, options);
    CHECK(batched == alone);
  }

  TEST_CASE("a NaN is of an input, of which there may be several sequences") {
    if (!have_test_device()) return;
    Session session = spoiled_session();
    GenerateOptions options = options_for(session, 1, 1, {});
    options.choice = TokenChoice::kSampled;
    options.sampling.temperature = 1;
    options.return_sequences = 2;
    // Sequences 0 and 1 of the first input are well; those of the second one are rows 2 and 3.
    const std::string found = message_of(session, {{3, 4}, {3, 4, 5, 6, 7}}, options);
    CHECK_MESSAGE(test::contains(found, "the logits of input 1 became NaN at position 5"), found);
  }

  TEST_CASE("contrastive search stops at a NaN, which has no place among the likeliest") {
    if (!have_test_device()) return;
    Session session = spoiled_session();
    GenerateOptions options = options_for(session, 1, 4, {});
    options.contrastive_tokens = 4;
    const std::string logits = message_of(session, {{3, 4, 5, 6, 7}}, options);
    CHECK_MESSAGE(test::contains(logits, "the logits of input 0 became NaN"), logits);
    // The candidates' own states are the first to be NaN here.
    const std::string states = message_of(session, {{3, 4, 5, 6}}, options);
    CHECK_MESSAGE(test::contains(states, "the hidden states of input 0 became NaN"), states);
  }
}

}  // namespace vkformer::testing
