// Requests that run together in a batch: what each gets must not depend on the others, on what its
// row held before, or on guesses.
#include "vkformer/generation_batch.h"

#include <atomic>
#include <random>
#include <thread>

#include "support/golden_generation.h"
#include "support/test_device.h"

namespace vkformer::testing {
namespace {

using Tokens = std::vector<int64_t>;
using State = BatchUpdate::State;

const Model& batch_model(const std::string& name) {
  static std::map<std::string, Model> loaded;
  const auto known = loaded.find(name);
  if (known != loaded.end()) return known->second;
  auto model = Model::load(*test_device(), golden_case(name).path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  return loaded.emplace(name, std::move(model).value()).first->second;
}

GenerationBatch make_batch(const Model& model, const BatchOptions& options) {
  auto batch = GenerationBatch::create(model, options);
  REQUIRE_MESSAGE(batch.ok(), batch.error().message);
  return std::move(batch).value();
}

Tokens random_tokens(const Model& model, size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> token(3, model.info().target_vocab - 1);
  Tokens tokens(count);
  for (int64_t& id : tokens) id = token(engine);
  return tokens;
}

BatchRequest request_for(const GenerationBatch& batch, Tokens prompt, int max_new_tokens) {
  BatchRequest request{.prompt = std::move(prompt), .options = batch.generation_defaults()};
  request.options.beams = request.options.return_sequences = 1;
  request.options.max_new_tokens = max_new_tokens;
  request.options.min_new_tokens = 0;
  request.options.eos.clear();
  request.options.forced_eos = -1;
  return request;
}

// All that was told of a request.
struct Told {
  Tokens tokens;
  double score = 0;
  BatchWork work;
  State state = State::kRunning;
  std::string error;
};

using Stories = std::map<uint64_t, Told>;

void take_step(GenerationBatch& batch, Stories& stories) {
  auto updates = batch.step();
  REQUIRE_MESSAGE(updates.ok(), updates.error().message);
  for (const BatchUpdate& u : *updates) {
    Told& told = stories[u.request];
    REQUIRE(told.state == State::kRunning);
    told.tokens.insert(told.tokens.end(), u.tokens.begin(), u.tokens.end());
    told.score = u.score;
    told.work = u.work;
    told.state = u.state;
    told.error = u.error.message;
  }
}

uint64_t submit(GenerationBatch& batch, const BatchRequest& request) {
  const auto id = batch.submit(request);
  REQUIRE_MESSAGE(id.ok(), id.error().message);
  return *id;
}

Told run_alone(GenerationBatch& batch, const BatchRequest& request) {
  const uint64_t id = submit(batch, request);
  Stories stories;
  while (!batch.idle()) take_step(batch, stories);
  return stories.at(id);
}

void check_same(const Told& a, const Told& b) {
  CHECK(a.state == State::kFinished);
  CHECK(a.state == b.state);
  CHECK(a.tokens == b.tokens);
  CHECK(a.score == b.score);
}

Tokens joined(Tokens first, const Tokens& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

Tokens plain_text(const Model& model, const BatchRequest& request) {
  auto session = Session::create(model);
  REQUIRE(session.ok());
  auto generation = session->generate({request.prompt}, request.options);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  return (*generation)[0][0].ids;
}

void check_refused(GenerationBatch& batch, const BatchRequest& request, const std::string& part) {
  const auto id = batch.submit(request);
  REQUIRE_FALSE(id.ok());
  CHECK_MESSAGE(id.error().message.find(part) != std::string::npos, id.error().message);
}

constexpr const char* kDecoders[] = {"gpt2-base",   "llama-gqa",      "mistral-window",
                                     "bloom-alibi", "gemma2-windows", "gptneox-parallel"};

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("requests that join and leave a batch get the bits of each alone") {
    if (!have_test_device()) return;
    for (const char* name : kDecoders) {
      CAPTURE(name);
      const Model& model = batch_model(name);
      const BatchOptions options{.rows = 3, .capacity = 40, .step_tokens = 7};
      GenerationBatch together = make_batch(model, options);
      BatchOptions plain = options;
      plain.prefix_reuse = BatchOptions::PrefixReuse::kOff;
      GenerationBatch alone = make_batch(model, plain);
      std::vector<BatchRequest> requests;
      std::vector<uint64_t> ids;
      Stories stories;
      for (uint32_t i = 0; i < 8; ++i) {
        const size_t tokens = 1 + (i * 5) % 17;
        requests.push_back(request_for(together, random_tokens(model, tokens, 50 + i),
                                       3 + static_cast<int>(i * 7) % 11));
        ids.push_back(submit(together, requests.back()));
        if (i % 3 != 0) take_step(together, stories);
      }
      CHECK(together.counters().running == 3);
      while (!together.idle()) take_step(together, stories);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        const Told lonely = run_alone(alone, requests[i]);
        check_same(stories.at(ids[i]), lonely);
        CHECK(lonely.work.new_tokens == requests[i].options.max_new_tokens);
        CHECK(joined(requests[i].prompt, lonely.tokens) == plain_text(model, requests[i]));
      }
      CHECK(alone.counters().work.steps > together.counters().work.steps);
    }
  }

  TEST_CASE("a prompt that begins like an earlier text is read from where they part") {
    if (!have_test_device()) return;
    for (const char* name : kDecoders) {
      CAPTURE(name);
      const Model& model = batch_model(name);
      BatchOptions options{.rows = 2, .capacity = 44, .step_tokens = 5};
      GenerationBatch keeps = make_batch(model, options);
      options.prefix_reuse = BatchOptions::PrefixReuse::kOff;
      GenerationBatch forgets = make_batch(model, options);
      const BatchRequest first = request_for(keeps, random_tokens(model, 9, 3), 8);
      const Told said = run_alone(keeps, first);
      CHECK(said.work.reused_tokens == 0);
      CHECK(said.work.prompt_tokens == 9);
      // The conversation goes on: of what was generated, the last token was never fed.
      const Tokens more = random_tokens(model, 6, 4);
      const BatchRequest second =
          request_for(keeps, joined(joined(first.prompt, said.tokens), more), 9);
      const Told went_on = run_alone(keeps, second);
      check_same(went_on, run_alone(forgets, second));
      CHECK(went_on.work.reused_tokens == 16);
      CHECK(went_on.work.prompt_tokens == 7);
      CHECK(keeps.counters().work.reused_tokens == 16);
      // Another turn instead of the last one; the other row's text stays where it is.
      const BatchRequest other = request_for(keeps, random_tokens(model, 12, 5), 4);
      CHECK(run_alone(keeps, other).work.reused_tokens == 0);
      Tokens changed = second.prompt;
      changed[19] = changed[19] == 5 ? 6 : 5;
      const BatchRequest third = request_for(keeps, changed, 7);
      const Told again = run_alone(keeps, third);
      check_same(again, run_alone(forgets, third));
      // A window's cache was written over by then.
      const bool rolled = again.work.reused_tokens == 0;
      CHECK((rolled || again.work.reused_tokens == 19));
      if (std::string(name) != "mistral-window" && std::string(name) != "gemma2-windows") {
        CHECK_FALSE(rolled);
      }
      CHECK(forgets.counters().work.reused_tokens == 0);
      // The whole prompt again: its last token is fed for what comes behind it.
      if (!rolled) CHECK(run_alone(keeps, third).work.prompt_tokens == 1);
    }
  }

  TEST_CASE("guesses change the number of steps and nothing else") {
    if (!have_test_device()) return;
    for (const char* name : kDecoders) {
      CAPTURE(name);
      const Model& model = batch_model(name);
      BatchOptions options{.rows = 2, .capacity = 64, .step_tokens = 11};
      GenerationBatch plain = make_batch(model, options);
      options.lookup = 3;
      GenerationBatch looks = make_batch(model, options);
      options.lookup = 0;
      options.draft = model;
      GenerationBatch drafts = make_batch(model, options);
      for (uint32_t seed : {1u, 2u}) {
        const BatchRequest request = request_for(plain, random_tokens(model, 7, seed), 33);
        const Told expected = run_alone(plain, request);
        CHECK(expected.work.guessed_tokens == 0);
        for (GenerationBatch* batch : {&looks, &drafts}) {
          const Told found = run_alone(*batch, request);
          check_same(found, expected);
          // Every step but those of the prompt gains a token and those that were guessed right.
          CHECK(found.work.steps + found.work.accepted_tokens == expected.work.steps);
          CHECK(found.work.accepted_tokens <= found.work.guessed_tokens);
        }
      }
      // The model itself guesses right.
      const BatchWork work = drafts.counters().work;
      CHECK(work.accepted_tokens == work.guessed_tokens);
      CHECK(work.steps < plain.counters().work.steps / 3);
      CHECK(drafts.counters().draft_steps > work.steps);
    }
  }

  TEST_CASE("several rows share what is left of a step for their guesses") {
    if (!have_test_device()) return;
    const Model& model = batch_model("llama-gqa");
    BatchOptions options{.rows = 3, .capacity = 48, .step_tokens = 9};
    GenerationBatch plain = make_batch(model, options);
    options.draft = model;
    options.lookup = 2;
    GenerationBatch guesses = make_batch(model, options);
    std::vector<BatchRequest> requests;
    for (uint32_t i = 0; i < 5; ++i) {
      requests.push_back(
          request_for(plain, random_tokens(model, 4 + i, 90 + i), 12 + 3 * static_cast<int>(i)));
    }
    Stories a, b;
    for (const BatchRequest& request : requests) {
      submit(plain, request);
      submit(guesses, request);
    }
    while (!plain.idle()) take_step(plain, a);
    while (!guesses.idle()) take_step(guesses, b);
    for (uint64_t id = 1; id <= requests.size(); ++id) check_same(b.at(id), a.at(id));
    CHECK(guesses.counters().work.steps < plain.counters().work.steps);
    CHECK(guesses.counters().work.accepted_tokens > 0);
    CHECK(guesses.counters().work.new_tokens == plain.counters().work.new_tokens);
  }

  TEST_CASE("a context with sinks rolls in a batch as it does alone") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gptneox-parallel", "bloom-alibi"}) {
      CAPTURE(name);
      const Model& model = batch_model(name);
      BatchOptions options{.rows = 2, .capacity = 90, .step_tokens = 6};
      options.context = 12;
      options.sinks = 3;
      GenerationBatch batch = make_batch(model, options);
      options.lookup = 2;
      GenerationBatch looks = make_batch(model, options);
      for (size_t tokens : {1u, 11u, 30u}) {
        const BatchRequest request = request_for(batch, random_tokens(model, tokens, 8), 40);
        BatchRequest session = request;
        session.options.context = 12;
        session.options.sinks = 3;
        const Told told = run_alone(batch, request);
        CHECK(joined(request.prompt, told.tokens) == plain_text(model, session));
        check_same(run_alone(looks, request), told);
      }
      CHECK(looks.counters().work.steps <= batch.counters().work.steps);
      // Lines for the context and for the tokens of a step beyond the first, not for 90 positions.
      BatchOptions whole = options;
      whole.context.reset();
      whole.capacity = 60;
      CHECK(batch.counters().cache_bytes * 60 ==
            make_batch(model, whole).counters().cache_bytes * (12 + 5));
    }
  }

  TEST_CASE("a smaller draft of another family guesses for many rows") {
    if (!have_test_device()) return;
    const Model& model = batch_model("gpt2-sharded");
    BatchOptions options{.rows = 2, .capacity = 50, .step_tokens = 8};
    GenerationBatch plain = make_batch(model, options);
    options.draft = batch_model("bloom-alibi");
    options.guesses = 2;
    GenerationBatch guesses = make_batch(model, options);
    for (uint32_t seed : {3u, 4u}) {
      const BatchRequest request = request_for(plain, random_tokens(model, 10, seed), 20);
      check_same(run_alone(guesses, request), run_alone(plain, request));
    }
    CHECK(guesses.counters().work.guessed_tokens > 0);
  }

  TEST_CASE("end tokens, forced tokens and forbidden ones count in a batch as they do alone") {
    if (!have_test_device()) return;
    const Model& model = batch_model("gpt2-base");
    BatchOptions options{.rows = 2, .capacity = 40, .step_tokens = 6};
    options.lookup = 2;
    options.draft = model;
    GenerationBatch batch = make_batch(model, options);
    BatchRequest request = request_for(batch, random_tokens(model, 5, 11), 16);
    const Tokens free = run_alone(batch, request).tokens;
    request.options.eos = {free[6], free[9]};
    request.options.forced_bos = 7;
    request.options.forced_eos = 3;
    for (int least : {0, 12}) {
      request.options.min_new_tokens = least;
      request.options.suppress = {free[2]};
      request.options.begin_suppress = {free[0]};
      const Told told = run_alone(batch, request);
      CHECK(joined(request.prompt, told.tokens) == plain_text(model, request));
      request.options.forced_bos = -1;
      CHECK(joined(request.prompt, run_alone(batch, request).tokens) == plain_text(model, request));
    }
  }

  TEST_CASE("requests are cancelled while they wait and while they run") {
    if (!have_test_device()) return;
    const Model& model = batch_model("llama-gqa");
    const BatchOptions options{.rows = 1, .capacity = 60, .step_tokens = 4};
    GenerationBatch batch = make_batch(model, options);
    Stories stories;
    const BatchRequest request = request_for(batch, random_tokens(model, 5, 21), 30);
    const uint64_t runs = submit(batch, request);
    const uint64_t waits = submit(batch, request);
    const uint64_t stays = submit(batch, request);
    for (int i = 0; i < 4; ++i) take_step(batch, stories);
    CHECK(batch.cancel(waits).ok());
    CHECK(batch.cancel(runs).ok());
    while (!batch.idle()) take_step(batch, stories);
    CHECK(stories.at(runs).state == State::kCancelled);
    CHECK(stories.at(runs).tokens.size() == 3);
    CHECK(stories.at(waits).state == State::kCancelled);
    CHECK(stories.at(waits).tokens.empty());
    CHECK(stories.at(stays).state == State::kFinished);
    // What the cancelled one had read and generated served the other.
    CHECK(stories.at(stays).work.reused_tokens == 4);
    const Status gone = batch.cancel(runs);
    REQUIRE_FALSE(gone.ok());
    CHECK(gone.error().code == ErrorCode::kNotFound);
    auto nothing = batch.step();
    REQUIRE(nothing.ok());
    CHECK(nothing->empty());
  }

  TEST_CASE("clients that ask for little are not held up by one that asks for much") {
    if (!have_test_device()) return;
    const Model& model = batch_model("llama-gqa");
    BatchOptions options{.rows = 2, .capacity = 40, .step_tokens = 4};
    options.running_of_client = 1;
    GenerationBatch batch = make_batch(model, options);
    Stories stories;
    BatchRequest much = request_for(batch, random_tokens(model, 3, 31), 20);
    much.client = "much";
    std::vector<uint64_t> ids;
    for (int i = 0; i < 6; ++i) ids.push_back(submit(batch, much));
    take_step(batch, stories);
    CHECK(batch.counters().running == 1);
    BatchRequest little = request_for(batch, random_tokens(model, 3, 32), 2);
    little.client = "little";
    const uint64_t id = submit(batch, little);
    for (int i = 0; i < 2; ++i) take_step(batch, stories);
    CHECK(stories.at(id).state == State::kFinished);
    CHECK(stories.at(ids[0]).state == State::kRunning);
    while (!batch.idle()) take_step(batch, stories);
    for (uint64_t each : ids) CHECK(stories.at(each).tokens == stories.at(ids[0]).tokens);
  }

  TEST_CASE("requests are submitted and cancelled from other threads while steps are taken") {
    if (!have_test_device()) return;
    const Model& model = batch_model("llama-gqa");
    const BatchOptions options{.rows = 3, .capacity = 24, .step_tokens = 6, .waiting = 4};
    GenerationBatch batch = make_batch(model, options);
    const BatchRequest request = request_for(batch, random_tokens(model, 4, 41), 6);
    const Told expected = run_alone(batch, request);
    std::atomic<int> left = 2;
    std::atomic<int> full = 0;
    const auto submits = [&] {
      for (int done = 0; done < 12;) {
        const auto id = batch.submit(request);
        if (id.ok()) {
          ++done;
          if (done % 4 == 0) (void)batch.cancel(*id);
        } else {
          full += id.error().code == ErrorCode::kOutOfMemory ? 1 : 100000;
          std::this_thread::yield();
        }
      }
      --left;
    };
    std::thread first(submits), second(submits);
    Stories stories;
    while (left > 0 || !batch.idle()) take_step(batch, stories);
    first.join();
    second.join();
    CHECK(full < 100000);
    CHECK(stories.size() == 24);
    size_t finished = 0;
    for (const auto& [id, told] : stories) {
      if (told.state == State::kCancelled) continue;
      ++finished;
      check_same(told, expected);
    }
    CHECK(finished >= 18);
  }

  TEST_CASE("what a batch cannot do is refused with a sentence") {
    if (!have_test_device()) return;
    const Model& model = batch_model("llama-gqa");
    const auto refused = [&](const Model& of, BatchOptions options, const std::string& part) {
      CAPTURE(part);
      const auto batch = GenerationBatch::create(of, options);
      REQUIRE_FALSE(batch.ok());
      CHECK_MESSAGE(batch.error().message.find(part) != std::string::npos, batch.error().message);
    };
    refused(batch_model("linear_transformer-steps"), {}, "no decoder alone with a cache");
    refused(batch_model("marian-base"), {}, "no decoder alone with a cache");
    refused(batch_model("gpt2-bare"), {}, "no language head");
    refused(batch_model("llama-longrope"), {}, "depend on the length of a prompt");
    refused(model, {.rows = 0}, "[rows] is 0, but must lie between 1");
    refused(model, {.rows = 9, .step_tokens = 8}, "[step_tokens] is 8, but must lie between 9");
    refused(model, {.capacity = 129}, "[capacity] is 129, but must lie between 0 and 128");
    refused(model, {.waiting = 0}, "[waiting] is 0");
    BatchOptions options;
    options.context = 8;
    options.sinks = 8;
    refused(model, options, "[sinks] is 8, but must lie between 0 and 7");
    options = {};
    options.draft = batch_model("gpt2-base");
    refused(model, options, "[draft] knows 80 tokens, but the model 90");
    options.draft = batch_model("marian-base");
    refused(model, options, "[draft] a Marian");
    options = {.rows = 1, .capacity = 16, .step_tokens = 2, .waiting = 1};
    GenerationBatch batch = make_batch(model, options);
    const BatchRequest good = request_for(batch, {3, 4, 5}, 4);
    check_refused(batch, request_for(batch, {}, 4), "[prompt] has no token");
    check_refused(batch, request_for(batch, {3, 90}, 4), "[prompt] names the token 90");
    check_refused(batch, request_for(batch, random_tokens(model, 16, 1), 0), "room for 16");
    check_refused(batch, request_for(batch, random_tokens(model, 10, 1), 7), "and 7 more");
    BatchRequest bad = good;
    bad.options.beams = 2;
    check_refused(batch, bad, "a request of a batch is one row");
    bad = good;
    bad.options.context = 5;
    check_refused(batch, bad, "belongs to the whole batch");
    bad = good;
    bad.options.suppress = {90};
    check_refused(batch, bad, "[suppress] names the token 90");
    submit(batch, good);
    check_refused(batch, good, "1 requests wait already");
    BatchRequest impossible = good;
    Stories stories;
    while (!batch.idle()) take_step(batch, stories);
    for (int64_t token = 0; token < 90; ++token) impossible.options.suppress.push_back(token);
    const Told told = run_alone(batch, impossible);
    CHECK(told.state == State::kFailed);
    CHECK_MESSAGE(told.error.find("every token is forbidden") != std::string::npos, told.error);
  }
}

}  // namespace vkformer::testing
