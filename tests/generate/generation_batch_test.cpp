// Requests that run together in a batch: what each gets must not depend on the others, on what its
// row held before, or on drafts.
#include "generate/batch_requests.h"

namespace vkformer::testing {
namespace {

constexpr const char* kDecoders[] = {"gpt2-base",   "llama-gqa",      "mistral-window",
                                     "bloom-alibi", "gemma2-windows", "gptneox-parallel"};

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("requests that join and leave a batch get the bits of each alone") {
    if (!have_test_device()) return;
    for (const char* name : kDecoders) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      const BatchOptions options{.rows = 3, .capacity = 40, .step_tokens = 7};
      GenerationBatch together = make_batch(model, options);
      GenerationBatch alone = make_forgetting_batch(model, options);
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
      const Model& model = golden_model(name);
      const BatchOptions options{.rows = 2, .capacity = 44, .step_tokens = 5};
      GenerationBatch keeps = make_batch(model, options);
      GenerationBatch forgets = make_forgetting_batch(model, options);
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
      // The whole prompt again: its last token is fed for what comes after it.
      if (!rolled) CHECK(run_alone(keeps, third).work.prompt_tokens == 1);
    }
  }

  TEST_CASE("drafts change the number of steps and nothing else") {
    if (!have_test_device()) return;
    for (const char* name : kDecoders) {
      CAPTURE(name);
      const Model& model = golden_model(name);
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
        CHECK(expected.work.draft_tokens == 0);
        for (GenerationBatch* batch : {&looks, &drafts}) {
          const Told found = run_alone(*batch, request);
          check_same(found, expected);
          // Every step but those of the prompt gains a token and the draft tokens that were right.
          CHECK(found.work.steps + found.work.accepted_tokens == expected.work.steps);
          CHECK(found.work.accepted_tokens <= found.work.draft_tokens);
        }
      }
      // The model itself drafts right.
      const BatchWork work = drafts.counters().work;
      CHECK(work.accepted_tokens == work.draft_tokens);
      CHECK(work.steps < plain.counters().work.steps / 3);
      CHECK(drafts.counters().draft_steps > work.steps);
    }
  }

  TEST_CASE("several rows share what is left of a step for their drafts") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    BatchOptions options{.rows = 3, .capacity = 48, .step_tokens = 9};
    GenerationBatch plain = make_batch(model, options);
    options.draft = model;
    options.lookup = 2;
    GenerationBatch drafts = make_batch(model, options);
    std::vector<BatchRequest> requests;
    for (uint32_t i = 0; i < 5; ++i) {
      requests.push_back(
          request_for(plain, random_tokens(model, 4 + i, 90 + i), 12 + 3 * static_cast<int>(i)));
    }
    Stories a, b;
    for (const BatchRequest& request : requests) {
      submit(plain, request);
      submit(drafts, request);
    }
    while (!plain.idle()) take_step(plain, a);
    while (!drafts.idle()) take_step(drafts, b);
    for (uint64_t id = 1; id <= requests.size(); ++id) check_same(b.at(id), a.at(id));
    CHECK(drafts.counters().work.steps < plain.counters().work.steps);
    CHECK(drafts.counters().work.accepted_tokens > 0);
    CHECK(drafts.counters().work.new_tokens == plain.counters().work.new_tokens);
  }

  TEST_CASE("a context with sinks rolls in a batch as it does alone") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gptneox-parallel", "bloom-alibi"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
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

  TEST_CASE("a smaller draft of another family drafts for many rows") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-sharded");
    BatchOptions options{.rows = 2, .capacity = 50, .step_tokens = 8};
    GenerationBatch plain = make_batch(model, options);
    options.draft = golden_model("bloom-alibi");
    options.draft_tokens = 2;
    GenerationBatch drafts = make_batch(model, options);
    for (uint32_t seed : {3u, 4u}) {
      const BatchRequest request = request_for(plain, random_tokens(model, 10, seed), 20);
      check_same(run_alone(drafts, request), run_alone(plain, request));
    }
    CHECK(drafts.counters().work.draft_tokens > 0);
  }

  TEST_CASE("end tokens, forced tokens and forbidden ones count in a batch as they do alone") {
    if (!have_test_device()) return;
    const Model& model = golden_model("gpt2-base");
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

  TEST_CASE("tokens are sampled in a batch as they are alone, whatever a draft proposes") {
    if (!have_test_device()) return;
    for (const char* name : {"gpt2-base", "llama-gqa"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      BatchOptions options{.rows = 3, .capacity = 48, .step_tokens = 9};
      GenerationBatch plain = make_batch(model, options);
      options.draft = model;
      GenerationBatch drafts = make_batch(model, options);
      std::vector<BatchRequest> requests;
      Stories stories;
      for (uint32_t i = 0; i < 6; ++i) {
        requests.push_back(request_for(plain, random_tokens(model, 2 + 3 * i, 60 + i), 20));
        GenerateOptions& o = requests.back().options;
        o.choice = i == 5 ? TokenChoice::kBest : TokenChoice::kSampled;
        o.sampling = {.temperature = 1.0 + 0.3 * i, .seed = i};
        if (i == 1) o.sampling.top_k = 5;
        if (i == 2) o.sampling.top_p = 0.8;
        if (i == 3) o.penalties = {.repetition = 1.4, .frequency = 0.3, .no_repeat_ngram = 2};
        if (i >= 4) o.penalties.biases = {{{7}, 2.0}, {{7, 9}, 50.0}};
        if (i >= 4) o.penalties.bad_words = {{9, 9}, {11}};
        submit(drafts, requests.back());
      }
      while (!drafts.idle()) take_step(drafts, stories);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        const Told told = run_alone(plain, requests[i]);
        check_same(stories.at(i + 1), told);
        CHECK(joined(requests[i].prompt, told.tokens) == plain_text(model, requests[i]));
      }
      // The same random numbers: the model itself drafts right, by chance too.
      const BatchWork work = drafts.counters().work;
      CHECK(work.accepted_tokens == work.draft_tokens);
      CHECK(work.accepted_tokens > 0);
    }
  }
}

}  // namespace vkformer::testing
