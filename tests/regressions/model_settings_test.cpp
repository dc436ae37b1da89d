// What a model's generation_config.json asks for, where that once went wrong.
#include "generate/generation_case.h"
#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

using Scores = std::vector<std::vector<float>>;

Scores scores_of(const Model& model, const Rows& inputs, const Rows& continuations) {
  Session session = make_session(model);
  const auto scores = session.score(inputs, continuations);
  REQUIRE_MESSAGE(scores.ok(), scores.error().message);
  return *scores;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("scores do not depend on how a model would generate") {
    if (!have_test_device()) return;
    ChangedModel changed("gpt2-base");
    const Rows inputs = {{3, 4, 5}}, continuations = {{6, 7}};
    changed.generation = Json::object();
    const Scores plain = scores_of(changed.load(*test_device()), inputs, continuations);
    REQUIRE(plain.size() == 1);
    CHECK(plain[0].size() == 2);
    for (const Json& settings :
         {Json{{"do_sample", true}, {"num_return_sequences", 3}},
          Json{{"num_beams", 4}, {"num_beam_groups", 2}, {"diversity_penalty", 1.0}},
          Json{{"num_beams", 20}}, Json{{"penalty_alpha", 0.6}, {"top_k", 4}}}) {
      CAPTURE(settings.dump());
      changed.generation = settings;
      CHECK(scores_of(changed.load(*test_device()), inputs, continuations) == plain);
    }
  }

  TEST_CASE("more beams than there are is an error that names the setting, not fewer beams") {
    if (!have_test_device()) return;
    ChangedModel changed("gpt2-base");
    changed.generation = {{"num_beams", 20}, {"max_new_tokens", 4}};
    Session session = make_session(changed.load(*test_device()));
    GenerateOptions options = session.generation_defaults();
    CHECK(options.beams == 20);
    const auto refused = session.generate({{3, 4, 5}}, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    for (const char* part : {"[beams] is 20", "between 1 and 16", "num_beams", "--beams"}) {
      CHECK_MESSAGE(test::contains(refused.error().message, part), refused.error().message);
    }
    options.beams = 16;
    CHECK(session.generate({{3, 4, 5}}, options).ok());
  }

  TEST_CASE("a number just below zero is told from zero") {
    if (!have_test_device()) return;
    Session session = make_session(golden_model("gpt2-base"));
    GenerateOptions options = session.generation_defaults();
    options.beams = 4;
    options.beam_groups = 2;
    options.diversity = -1e-9;
    const auto refused = session.generate({{3, 4, 5}}, options);
    REQUIRE_FALSE(refused.ok());
    CHECK_MESSAGE(test::contains(refused.error().message, "[diversity] is -1e-09"),
                  refused.error().message);
  }
}

}  // namespace vkformer::testing
