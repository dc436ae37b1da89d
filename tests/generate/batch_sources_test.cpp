// Encoder-decoders in a batch: what a request gets must not depend on the others, on what its row
// held before, or on drafts.
#include "generate/batch_requests.h"

namespace vkformer::testing {
namespace {

Tokens random_source(const Model& model, size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> token(3, model.info().source_vocab - 1);
  Tokens tokens(count);
  for (int64_t& id : tokens) id = token(engine);
  return tokens;
}

// What the decoder starts with, and what came.
Tokens whole(const BatchRequest& request, const Tokens& told) {
  const GenerateOptions& o = request.options;
  return joined(o.decoder_prompt.empty() ? Tokens{o.decoder_start} : o.decoder_prompt, told);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("inputs of encoder-decoders that join and leave a batch get the bits of each alone") {
    if (!have_test_device()) return;
    for (const char* name : {"marian-base", "bart-base", "mt5-base", "m2m100-base", "led-base"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      const BatchOptions options{.rows = 3, .capacity = 24, .source = 30, .step_tokens = 5};
      GenerationBatch together = make_batch(model, options);
      GenerationBatch alone = make_forgetting_batch(model, options);
      std::vector<BatchRequest> requests;
      std::vector<uint64_t> ids;
      Stories stories;
      for (uint32_t i = 0; i < 7; ++i) {
        const size_t tokens = 1 + (i * 11) % 30;
        requests.push_back(request_for(together, random_source(model, tokens, 70 + i),
                                       3 + static_cast<int>(i * 5) % 9));
        ids.push_back(submit(together, requests.back()));
        if (i % 3 != 0) take_step(together, stories);
      }
      while (!together.idle()) take_step(together, stories);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        const Told lonely = run_alone(alone, requests[i]);
        check_same(stories.at(ids[i]), lonely);
        CHECK(whole(requests[i], lonely.tokens) == plain_text(model, requests[i]));
      }
      CHECK(alone.counters().work.steps > together.counters().work.steps);
    }
  }

  TEST_CASE("an input that comes again is not encoded again, and a decoder's prompt is reused") {
    if (!have_test_device()) return;
    const Model& model = golden_model("bart-base");
    const BatchOptions options{.rows = 2, .capacity = 32, .source = 20, .step_tokens = 6};
    GenerationBatch batch = make_batch(model, options);
    GenerationBatch forgets = make_forgetting_batch(model, options);
    BatchRequest request = request_for(batch, random_source(model, 13, 1), 8);
    request.options.forced_bos = -1;
    const Told first = run_alone(batch, request);
    CHECK(first.work.prompt_tokens == 13 + 1);
    request.options.decoder_prompt = whole(request, first.tokens);
    const Told second = run_alone(batch, request);
    CHECK(second.work.reused_tokens == 8);
    CHECK(second.work.prompt_tokens == 1);
    check_same(second, run_alone(forgets, request));
    CHECK(whole(request, second.tokens) == plain_text(model, request));
    // The same beginning after another input is another text.
    BatchRequest other = request;
    other.prompt[3] = other.prompt[3] == 5 ? 6 : 5;
    const Told third = run_alone(batch, other);
    CHECK(third.work.reused_tokens == 0);
    CHECK(third.work.prompt_tokens == 13 + 9);
    check_same(third, run_alone(forgets, other));
    CHECK(forgets.counters().work.reused_tokens == 0);
  }

  TEST_CASE("drafts and draws behind an encoder are those alone") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    BatchOptions options{.rows = 3, .capacity = 40, .source = 16, .step_tokens = 9};
    GenerationBatch plain = make_batch(model, options);
    options.lookup = 2;
    GenerationBatch looks = make_batch(model, options);
    Stories stories;
    std::vector<BatchRequest> requests;
    for (uint32_t i = 0; i < 5; ++i) {
      requests.push_back(request_for(plain, random_source(model, 2 + 3 * i, 20 + i), 25));
      if (i % 2 == 1) requests.back().options.choice = TokenChoice::kSampled;
      requests.back().options.sampling = {.temperature = 1.2, .seed = i};
      submit(looks, requests.back());
    }
    while (!looks.idle()) take_step(looks, stories);
    for (size_t i = 0; i < requests.size(); ++i) {
      const Told told = run_alone(plain, requests[i]);
      check_same(stories.at(i + 1), told);
      CHECK(whole(requests[i], told.tokens) == plain_text(model, requests[i]));
    }
    CHECK(looks.counters().work.draft_tokens > 0);
  }

  TEST_CASE("inputs that a batch of an encoder-decoder cannot take are refused") {
    if (!have_test_device()) return;
    const Model& model = golden_model("marian-base");
    GenerationBatch batch =
        make_batch(model, {.rows = 1, .capacity = 16, .source = 16, .step_tokens = 2});
    check_refused(batch, request_for(batch, {}, 4), "[prompt] has no token");
    check_refused(batch, request_for(batch, random_source(model, 17, 1), 4), "room for 16");
    check_refused(batch, request_for(batch, {3, model.info().source_vocab}, 4), "[input_ids]");
    check_refused(batch, request_for(batch, {3}, 16), "and 16 more");
    BatchRequest bad = request_for(batch, {3, 4}, 4);
    bad.options.decoder_prompt = {model.info().target_vocab};
    check_refused(batch, bad, "[decoder_prompt] names the token");
    CHECK(run_alone(batch, request_for(batch, {3}, 15)).tokens.size() == 15);
  }
}

}  // namespace vkformer::testing
