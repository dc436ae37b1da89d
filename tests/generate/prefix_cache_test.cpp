// A session that keeps the keys of its texts: what it generates must not depend on what it kept.
#include "generate/generation_case.h"

namespace vkformer::testing {
namespace {

Session keeping_session(const Model& model, CacheFormat cache = CacheFormat::kF32) {
  SessionOptions options;
  options.prefix_reuse = true;
  options.cache = cache;
  auto session = Session::create(model, options);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return std::move(session).value();
}

std::vector<int64_t> joined_ids(std::vector<int64_t> first, const std::vector<int64_t>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a conversation reads what is new, and gets the bits of one that begins anew") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "llama-gqa", "bloom-alibi"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      Session keeps = keeping_session(model);
      Session plain = make_session(model);
      GenerateOptions options = options_for(keeps, 1, 7, {});
      options.choice = TokenChoice::kSampled;
      options.sampling = {.temperature = 1.1, .seed = 5};
      std::vector<int64_t> text = {5, 17, 42, 9, 21};
      size_t before = 0;
      for (int turn = 0; turn < 4; ++turn) {
        CAPTURE(turn);
        const Generation found = generate(keeps, {text}, options);
        CHECK(keeps.counters().reused_tokens == static_cast<int64_t>(before));
        CHECK(keeps.counters().steps > 0);
        CHECK(keeps.counters().submits == keeps.counters().steps);
        Session fresh = keeping_session(model);
        for (int64_t reused : {int64_t{0}, static_cast<int64_t>(text.size()) - 1}) {
          const Generation again = generate(fresh, {text}, options);
          check_same(found, again);
          CHECK(found[0][0].log_probabilities == again[0][0].log_probabilities);
          CHECK(fresh.counters().reused_tokens == reused);
        }
        CHECK(generate(plain, {text}, options)[0][0].ids == found[0][0].ids);
        // Of what was generated, the last token was never fed.
        before = found[0][0].ids.size() - 1;
        text = joined_ids(found[0][0].ids, {8, 30 + turn, 11});
      }
    }
  }

  TEST_CASE("packed caches are kept by nobody") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    Session keeps = keeping_session(model, CacheFormat::kQ8);
    SessionOptions q8;
    q8.cache = CacheFormat::kQ8;
    auto plain = Session::create(model, q8);
    REQUIRE(plain.ok());
    const GenerateOptions options = options_for(keeps, 1, 9, {});
    for (int turn = 0; turn < 2; ++turn) {
      check_same(generate(keeps, {{5, 17, 42}}, options), generate(*plain, {{5, 17, 42}}, options));
      CHECK(keeps.counters().reused_tokens == 0);
    }
  }

  TEST_CASE("several inputs and sequences, growing texts and grammars in rows that are kept") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    Session keeps = keeping_session(model);
    Session plain = make_session(model);
    GenerateOptions options = options_for(keeps, 1, 9, {4});
    options.choice = TokenChoice::kSampled;
    options.return_sequences = 3;
    const Rows rows = random_rows(model, 7, 3);
    const Generation found = generate(keeps, rows, options);
    const Generation wanted = generate(plain, rows, options);
    for (size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(found[i].size() == 3);
      for (size_t k = 0; k < 3; ++k) {
        CHECK(found[i][k].ids == wanted[i][k].ids);
        CHECK(found[i][k].score == doctest::Approx(wanted[i][k].score).epsilon(1e-4));
        CHECK(found[i][k].log_probabilities.size() == wanted[i][k].log_probabilities.size());
      }
    }
    options.return_sequences = 1;
    const std::string gbnf = "root ::= [A-F]+ \".\"";
    const auto vocab = model.info().target_vocab;
    options.eos = {};
    options.grammar = constraint_of(gbnf, vocab, {});
    const auto kept = generate(keeps, {rows[0]}, options);
    CHECK(keeps.counters().submits > keeps.counters().steps);
    options.grammar = constraint_of(gbnf, vocab, {});
    CHECK(kept[0][0].ids == generate(plain, {rows[0]}, options)[0][0].ids);
    // Beams have passes of their own.
    GenerateOptions beams = options_for(keeps, 3, 6, {});
    check_same(generate(keeps, rows, beams), generate(plain, rows, beams));
    CHECK(keeps.counters().reused_tokens == 0);
  }

  TEST_CASE("where keys give way to newer ones, a text goes back by a message and its answer") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    Session keeps = keeping_session(model);
    GenerateOptions options = options_for(keeps, 1, 330, {});
    options.context = 12;
    options.sinks = 3;
    const std::vector<int64_t> prompt = {5, 17, 42, 9, 33};
    const std::vector<int64_t> text = generate(keeps, {prompt}, options)[0][0].ids;
    REQUIRE(text.size() == prompt.size() + 330);
    options.max_new_tokens = 25;
    // Of what was fed, up to 256 tokens and those of a step come again, or all of them.
    for (const auto& [bound_kept, reused] :
         {std::pair<size_t, int64_t>{300, 300}, {110, 110}, {20, 0}}) {
      const auto& kept = bound_kept;
      CAPTURE(kept);
      const std::vector<int64_t> begin(text.begin(), text.begin() + static_cast<ptrdiff_t>(kept));
      const std::vector<int64_t> edited = joined_ids(begin, {(text[kept] + 1) % 50, 7, 12});
      const Generation found = generate(keeps, {edited}, options);
      CHECK(keeps.counters().reused_tokens == reused);
      Session fresh = keeping_session(model);
      const Generation anew = generate(fresh, {edited}, options);
      check_same(found, anew);
      CHECK(found[0][0].log_probabilities == anew[0][0].log_probabilities);
      (void)generate(keeps, {text}, options);
    }
  }

  TEST_CASE("a context that rolls, and who follows or stops a text that is kept") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    Session keeps = keeping_session(model);
    GenerateOptions options = options_for(keeps, 1, 30, {});
    options.context = 12;
    options.sinks = 3;
    Session plain = make_session(model);
    const Rows rows = {{5, 17, 42, 9}};
    CHECK(generate(keeps, rows, options)[0][0].ids == generate(plain, rows, options)[0][0].ids);
    options.context.reset();
    std::vector<int64_t> seen;
    options.on_token = [&](const NewToken& token) {
      CHECK(token.input == 0);
      seen.push_back(token.id);
      return seen.size() == 5 ? TokenVerdict::kEnd : TokenVerdict::kGoOn;
    };
    const Generation ended = generate(keeps, rows, options);
    CHECK(ended[0][0].ids == joined_ids(rows[0], seen));
    CHECK(seen.size() == 5);
    options.on_token = [](const NewToken&) { return TokenVerdict::kCancel; };
    const auto stopped = keeps.generate({{5, 6}, {7}}, options);
    REQUIRE_FALSE(stopped.ok());
    CHECK(stopped.error().code == ErrorCode::kCancelled);
    // What was stopped leaves nothing in the cache.
    options.on_token = {};
    CHECK(generate(keeps, rows, options)[0][0].ids == generate(plain, rows, options)[0][0].ids);
    options.max_new_tokens = 1 << 19;
    CHECK_FALSE(keeps.generate(rows, options).ok());
  }
}

}  // namespace vkformer::testing
