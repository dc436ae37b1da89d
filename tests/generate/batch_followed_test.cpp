// Requests of a batch that are followed token by token, keep to grammars, or want several
// sequences.
#include "generate/batch_requests.h"

namespace vkformer::testing {
namespace {

constexpr const char* kLists =
    "root ::= list\n"
    "list ::= \"(\" (item (\",\" item)*)? \")\"\n"
    "item ::= list | [0-9]+\n";

// By the tokens of constraint_of.
std::string text_of(const Tokens& tokens, const std::vector<int64_t>& eos) {
  std::string text;
  for (int64_t id : tokens) {
    if (std::find(eos.begin(), eos.end(), id) != eos.end()) break;
    text += static_cast<char>(' ' + id);
  }
  return text;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("texts of a batch keep to grammars as they do alone, whatever a draft proposes") {
    if (!have_test_device()) return;
    const auto grammar = Grammar::from_gbnf(kLists);
    REQUIRE(grammar.ok());
    for (const char* name : {"gpt2-base", "llama-gqa", "marian-base"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      BatchOptions options{.rows = 3, .capacity = 48, .step_tokens = 9};
      GenerationBatch plain = make_batch(model, options);
      options.lookup = 2;
      GenerationBatch looks = make_batch(model, options);
      for (const std::vector<int64_t>& eos : {std::vector<int64_t>{}, {1, 2}}) {
        const auto constraint = constraint_of(kLists, model.info().target_vocab, eos);
        std::vector<BatchRequest> requests;
        std::vector<uint64_t> ids;
        Stories stories;
        for (uint32_t i = 0; i < 6; ++i) {
          requests.push_back(request_for(plain, random_tokens(model, 2 + i, 30 + i), 24));
          GenerateOptions& o = requests.back().options;
          o.forced_bos = -1;
          o.eos = eos;
          o.choice = TokenChoice::kSampled;
          o.sampling = {.temperature = 3, .seed = i};
          // One is free beside the others.
          if (i != 4) o.grammar = constraint;
          ids.push_back(submit(looks, requests.back()));
        }
        while (!looks.idle()) take_step(looks, stories);
        for (size_t i = 0; i < requests.size(); ++i) {
          CAPTURE(i);
          const Told told = run_alone(plain, requests[i]);
          check_same(stories.at(ids[i]), told);
          const Tokens alone = plain_text(model, requests[i]);
          CHECK(std::equal(told.tokens.rbegin(), told.tokens.rend(), alone.rbegin()));
          if (i == 4) continue;
          const std::string text = text_of(told.tokens, eos);
          CHECK_MESSAGE(*grammar->matches(text), text);
        }
      }
      CHECK(looks.counters().work.steps <= plain.counters().work.steps);
    }
  }

  TEST_CASE("a grammar that a request has no room for fails it and nobody else") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    GenerationBatch batch = make_batch(model, {.rows = 2, .capacity = 20, .step_tokens = 4});
    const BatchRequest good = request_for(batch, {5, 6, 7}, 6);
    const Told alone = run_alone(batch, good);
    BatchRequest tight = good;
    tight.options.max_new_tokens = 3;
    tight.options.grammar = constraint_of("root ::= \"ABCDEFGH\"", model.info().target_vocab, {});
    BatchRequest narrow = good;
    narrow.options.grammar = constraint_of("root ::= \"0\"", 32, {});
    const uint64_t first = submit(batch, tight), second = submit(batch, narrow),
                   third = submit(batch, good);
    Stories stories;
    while (!batch.idle()) take_step(batch, stories);
    CHECK(stories.at(first).state == State::kFailed);
    CHECK_MESSAGE(stories.at(first).error.find("max_new_tokens") != std::string::npos,
                  stories.at(first).error);
    CHECK(stories.at(second).state == State::kFailed);
    CHECK(stories.at(second).error.find("[grammar] its vocabulary") != std::string::npos);
    check_same(stories.at(third), alone);
  }

  TEST_CASE("who follows a request of a batch sees its tokens in order and may end it") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    BatchOptions options{.rows = 2, .capacity = 40, .step_tokens = 8};
    options.lookup = 2;
    GenerationBatch batch = make_batch(model, options);
    const BatchRequest request = request_for(batch, random_tokens(model, 4, 3), 20);
    const Told whole = run_alone(batch, request);
    for (TokenVerdict verdict : {TokenVerdict::kGoOn, TokenVerdict::kEnd, TokenVerdict::kCancel}) {
      Tokens seen;
      double score = 0;
      uint64_t number = 0;
      BatchRequest followed = request;
      followed.options.on_token = [&](const NewToken& token) {
        CHECK(token.input == number);
        CHECK(token.sequence == 0);
        seen.push_back(token.id);
        score += token.log_probability;
        return seen.size() == 7 ? verdict : TokenVerdict::kGoOn;
      };
      number = submit(batch, followed);
      Stories stories;
      while (!batch.idle()) take_step(batch, stories);
      const Told& told = stories.at(number);
      CHECK(told.tokens == seen);
      CHECK(told.score == score);
      const size_t tokens = verdict == TokenVerdict::kGoOn ? 20 : 7;
      CHECK(seen ==
            Tokens(whole.tokens.begin(), whole.tokens.begin() + static_cast<ptrdiff_t>(tokens)));
      CHECK(told.state ==
            (verdict == TokenVerdict::kCancel ? State::kCancelled : State::kFinished));
    }
  }

  TEST_CASE("the sequences of a request are those that a session draws") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
    GenerationBatch batch =
        make_batch(model, {.rows = 3, .capacity = 40, .step_tokens = 6, .waiting = 8});
    BatchRequest request = request_for(batch, random_tokens(model, 6, 9), 12);
    request.options.choice = TokenChoice::kSampled;
    request.options.sampling = {.temperature = 1.5, .seed = 4};
    request.options.return_sequences = 5;
    const uint64_t number = submit(batch, request);
    // Another one beside it, and one too many.
    BatchRequest single = request;
    single.options.return_sequences = 1;
    const uint64_t next = submit(batch, single);
    CHECK(next > number);
    request.options.return_sequences = 3;
    CHECK(batch.submit(request).error().code == ErrorCode::kQueueFull);
    single.options.choice = TokenChoice::kBest;
    single.options.return_sequences = 2;
    check_refused(batch, single, "several differ only where tokens are sampled");
    std::vector<Tokens> found(5);
    std::vector<State> ends(5, State::kRunning);
    Tokens other;
    while (!batch.idle()) {
      const auto updates = batch.step();
      REQUIRE_MESSAGE(updates.ok(), updates.error().message);
      for (const BatchUpdate& u : *updates) {
        Tokens& to = u.request == next ? other : found.at(u.sequence);
        to.insert(to.end(), u.tokens.begin(), u.tokens.end());
        if (u.request == number) ends.at(u.sequence) = u.state;
      }
    }
    request.options.return_sequences = 5;
    Session session = make_session(model);
    const Generation wanted = generate(session, {request.prompt}, request.options);
    for (size_t i = 0; i < 5; ++i) {
      CHECK(ends[i] == State::kFinished);
      CHECK(joined(request.prompt, found[i]) == wanted[0][i].ids);
    }
    CHECK(other == found[0]);
    CHECK(found[0] != found[1]);
    // Cancelled together, whether they run or wait.
    const uint64_t gone = submit(batch, request);
    REQUIRE(batch.step().ok());
    REQUIRE(batch.cancel(gone).ok());
    size_t cancelled = 0;
    while (!batch.idle()) {
      const auto updates = batch.step();
      REQUIRE(updates.ok());
      for (const BatchUpdate& u : *updates) cancelled += u.state == State::kCancelled ? 1 : 0;
    }
    CHECK(cancelled == 5);
    CHECK(batch.cancel(gone).error().code == ErrorCode::kNotFound);
  }
}

}  // namespace vkformer::testing
