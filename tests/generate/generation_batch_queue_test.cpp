// Requests that come and go: cancelling, fair turns, threads, and what is refused.
#include <atomic>
#include <thread>

#include "generate/batch_requests.h"

namespace vkformer::testing {

TEST_SUITE("model") {
  TEST_CASE("requests are cancelled while they wait and while they run") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
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
    const Model& model = golden_model("llama-gqa");
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
    const Model& model = golden_model("llama-gqa");
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
          full += id.error().code == ErrorCode::kQueueFull ? 1 : 100000;
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
    const Model& model = golden_model("llama-gqa");
    const auto refused = [&](const Model& of, BatchOptions options, const std::string& part) {
      CAPTURE(part);
      const auto batch = GenerationBatch::create(of, options);
      REQUIRE_FALSE(batch.ok());
      CHECK_MESSAGE(batch.error().message.find(part) != std::string::npos, batch.error().message);
    };
    refused(golden_model("linear_transformer-steps"), {}, "does not continue tokens");
    refused(golden_model("whisper-base"), {}, "but a batch takes tokens or pictures");
    refused(golden_model("gpt2-bare"), {}, "no language head");
    refused(golden_model("llama-longrope"), {}, "depend on the length of a prompt");
    refused(model, {.rows = 0}, "[rows] is 0, but must lie between 1");
    refused(model, {.rows = 9, .step_tokens = 8}, "[step_tokens] is 8, but must lie between 9");
    refused(model, {.capacity = 129}, "[capacity] is 129, but must lie between 0 and 128");
    refused(model, {.waiting = 0}, "[waiting] is 0");
    refused(model, {.source = 16}, "[source] is 16, but must lie between 0 and 0");
    refused(golden_model("marian-base"), {.source = 1 << 20}, "[source] is 1048576");
    BatchOptions rolls;
    rolls.context = 8;
    refused(golden_model("marian-base"), rolls, "[context] a Marian");
    BatchOptions options;
    options.context = 8;
    options.sinks = 8;
    refused(model, options, "[sinks] is 8, but must lie between 0 and 7");
    options = {};
    options.draft = golden_model("gpt2-base");
    refused(model, options, "[draft] knows 80 tokens, but the model 90");
    options.draft = golden_model("marian-base");
    refused(model, options, "[draft] a Marian");
  }

  TEST_CASE("a request of more sequences than a queue holds is invalid, not early") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    BatchOptions options{.rows = 2, .capacity = 16, .step_tokens = 2, .waiting = 4};
    options.waiting_of_client = 2;
    GenerationBatch batch = make_batch(model, options);
    BatchRequest request = request_for(batch, {3, 4, 5}, 2);
    request.options.choice = TokenChoice::kSampled;
    request.options.return_sequences = 3;
    request.client = "one";
    const auto never = batch.submit(request);
    REQUIRE_FALSE(never.ok());
    CHECK(never.error().code == ErrorCode::kInvalidArgument);
    CHECK_MESSAGE(never.error().message.find("between 1 and 2") != std::string::npos,
                  never.error().message);
    CHECK(never.error().message.find("waiting_of_client") != std::string::npos);
    CHECK(batch.idle());
    // What fits an empty queue is only early while the queue is not empty.
    request.options.return_sequences = 2;
    submit(batch, request);
    const auto early = batch.submit(request);
    REQUIRE_FALSE(early.ok());
    CHECK(early.error().code == ErrorCode::kQueueFull);
    while (!batch.idle()) REQUIRE(batch.step().ok());
    submit(batch, request);
  }

  TEST_CASE("what a request cannot have is refused with a sentence") {
    if (!have_test_device()) return;
    const Model& model = golden_model("llama-gqa");
    const BatchOptions options{.rows = 1, .capacity = 16, .step_tokens = 2, .waiting = 1};
    GenerationBatch batch = make_batch(model, options);
    const BatchRequest good = request_for(batch, {3, 4, 5}, 4);
    check_refused(batch, request_for(batch, {}, 4), "[prompt] has no token");
    check_refused(batch, request_for(batch, {3, 90}, 4), "[prompt] names the token 90");
    check_refused(batch, request_for(batch, random_tokens(model, 16, 1), 0), "room for 16");
    check_refused(batch, request_for(batch, random_tokens(model, 10, 1), 7), "and 7 more");
    BatchRequest bad = good;
    bad.options.beams = 2;
    check_refused(batch, bad, "every sequence of a batch is one row");
    bad = good;
    bad.options.context = 5;
    check_refused(batch, bad, "belongs to the whole batch");
    bad = good;
    bad.options.suppress = {90};
    check_refused(batch, bad, "[suppress] names the token 90");
    bad = good;
    bad.options.contrastive_tokens = 4;
    check_refused(batch, bad, "contrastive_tokens 4");
    bad = good;
    bad.options.return_sequences = 2;
    bad.options.choice = TokenChoice::kSampled;
    check_refused(batch, bad, "[return_sequences] is 2, but must lie between 1 and 1");
    bad = good;
    bad.options.choice = TokenChoice::kSampled;
    bad.options.sampling.top_p = 2;
    check_refused(batch, bad, "[top_p] is 2");
    bad = good;
    bad.options.penalties.bad_words.assign(1100, {3, 4, 5});
    check_refused(batch, bad, "has room for 4096");
    const uint64_t waits = submit(batch, good);
    const auto full = batch.submit(good);
    REQUIRE_FALSE(full.ok());
    CHECK(full.error().code == ErrorCode::kQueueFull);
    check_refused(batch, good, "1 requests wait already");
    // Until it was told of, its end takes the place.
    CHECK(batch.cancel(waits).ok());
    CHECK(batch.counters().waiting == 1);
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
