// A pass in slices within a budget: the same bits as in one go, and what may not be done meanwhile.
#include <limits>
#include <thread>

#include "generate/generation_case.h"
#include "support/patience.h"
#include "support/preparing.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

struct Loaded {
  GoldenCase golden;
  Session session;
  TensorMap inputs;
};

Loaded load(const std::string& name) {
  GoldenCase golden = golden_case(name);
  const auto model = Model::load(*test_device(), golden.path("model"));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  auto session = Session::create(*model);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  TensorMap inputs = golden.pass_inputs();
  return {std::move(golden), std::move(session).value(), std::move(inputs)};
}

void check_same_bits(const TensorMap& expected, const TensorMap& got) {
  REQUIRE(expected.size() == got.size());
  for (const auto& [bound_name, tensor] : expected) {
    const auto& name = bound_name;
    REQUIRE(got.count(name) == 1);
    CHECK_MESSAGE(tensor.bytes == got.at(name).bytes, name);
  }
}

// Slices until everything was submitted; returns how many.
int advance_to_end(Session& session, double budget) {
  const Patience patience;
  int slices = 0;
  while (patience.left()) {
    const auto advance = session.advance(budget);
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    if (still_prepares(*advance)) continue;
    ++slices;
    if (!advance->more_to_submit()) {
      CHECK(advance->fraction == 1.0);
      return slices;
    }
    CHECK(advance->fraction < 1.0);
  }
  FAIL("no end");
  return 0;
}

// Settings of a generation whose tokens are seen, and what was seen.
struct Followed {
  GenerateOptions options;
  std::vector<std::pair<size_t, int64_t>> seen = {};  // input and token
  size_t most = 1000;  // tokens of all inputs before the first input ends
  TokenVerdict verdict = TokenVerdict::kEnd;

  explicit Followed(Loaded& loaded) : options(loaded.session.generation_defaults()) {
    loaded.inputs.erase("decoder_input_ids");
    loaded.inputs.erase("decoder_attention_mask");
    options.beams = 1;
    options.max_new_tokens = 13;
    options.eos.clear();
    options.forced_bos = options.forced_eos = -1;
    options.choice = TokenChoice::kSampled;
    options.on_token = [this](const NewToken& token) {
      seen.emplace_back(token.input, token.id);
      return token.input == 0 && seen.size() >= most ? verdict : TokenVerdict::kGoOn;
    };
  }
  Followed(const Followed&) = delete;
  Followed& operator=(const Followed&) = delete;
};

Generation run_slices(Loaded& loaded, const GenerateOptions& options, double budget) {
  const Status started = loaded.session.start_generation(loaded.inputs, options);
  REQUIRE_MESSAGE(started.ok(), started.error().message);
  double fraction = 0;
  for (const Patience patience; patience.left();) {
    const auto advance = loaded.session.advance(budget);
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    if (still_prepares(*advance)) continue;
    CHECK(advance->fraction >= fraction);
    fraction = advance->fraction;
    if (advance->progress == Advance::Progress::kDone) break;
    std::this_thread::yield();
  }
  CHECK(fraction == 1.0);
  auto sliced = loaded.session.finish_generation();
  REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
  return std::move(sliced).value();
}

void check_refused(const Status& status, const char* part) {
  REQUIRE_FALSE(status.ok());
  CHECK_MESSAGE(status.error().message.find(part) != std::string::npos, status.error().message);
}

template <class T>
void check_refused(const Result<T>& result, const char* part) {
  REQUIRE_FALSE(result.ok());
  CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("a pass in slices gives the bits of a pass in one go") {
    if (!have_test_device()) return;
    for (const char* name : {"bert-base", "vit-base", "marian-base"}) {
      CAPTURE(name);
      Loaded loaded = load(name);
      const auto whole = loaded.session.run(loaded.inputs);
      REQUIRE_MESSAGE(whole.ok(), whole.error().message);
      for (double budget : {1.0, 200.0, 5000.0, std::numeric_limits<double>::infinity()}) {
        CAPTURE(budget);
        const Status started = loaded.session.start(loaded.inputs);
        REQUIRE_MESSAGE(started.ok(), started.error().message);
        const int slices = advance_to_end(loaded.session, budget);
        if (budget == 1.0) CHECK(slices > 20);
        const auto sliced = loaded.session.finish();
        REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
        check_same_bits(*whole, *sliced);
      }
    }
  }

  TEST_CASE("two passes in slices, the second as long as the first says, give the bits of run") {
    if (!have_test_device()) return;
    for (const char* name : {"vits-flows", "vits-convs"}) {
      CAPTURE(name);
      Loaded loaded = load(name);
      const auto whole = loaded.session.run(loaded.inputs);
      REQUIRE_MESSAGE(whole.ok(), whole.error().message);
      for (double budget : {1.0, 500.0, std::numeric_limits<double>::infinity()}) {
        CAPTURE(budget);
        REQUIRE(loaded.session.start(loaded.inputs).ok());
        check_refused(loaded.session.run(loaded.inputs), "finish or cancel first");
        const int slices = advance_to_end(loaded.session, budget);
        if (budget == 1.0) CHECK(slices > 40);
        const auto sliced = loaded.session.finish();
        REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
        check_same_bits(*whole, *sliced);
      }
    }
  }

  TEST_CASE("estimates and warm-ups know a second pass whose frames are given") {
    if (!have_test_device()) return;
    Loaded loaded = load("vits-flows");
    const SessionSizes first{.inputs = loaded.inputs};
    SessionSizes both = first;
    both.new_tokens = 7;  // of 6 samples, as the golden waveform has
    const auto estimated = [&](const SessionSizes& sizes) {
      const auto estimate = loaded.session.estimate(sizes, 1000);
      REQUIRE_MESSAGE(estimate.ok(), estimate.error().message);
      CHECK(estimate->first_milliseconds == doctest::Approx(estimate->milliseconds));
      return *estimate;
    };
    const auto whole = load("vits-flows").session.run(loaded.inputs);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    REQUIRE(loaded.session.warm_up(both).ok());
    REQUIRE(loaded.session.finish_warm_up().ok());
    for (int run = 0; run < 2; ++run) {
      REQUIRE(loaded.session.start(loaded.inputs).ok());
      const Patience patience;
      for (bool more = true; more && patience.left();) {
        const auto advance = loaded.session.advance(500);
        REQUIRE_MESSAGE(advance.ok(), advance.error().message);
        // Both passes are there.
        CHECK(advance->progress != Advance::Progress::kPreparing);
        more = advance->more_to_submit();
      }
      const auto sliced = loaded.session.finish();
      REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
      check_same_bits(*whole, *sliced);
    }
    CHECK(estimated(both).measured > 0.9);
    CHECK(estimated(both).milliseconds > estimated(first).milliseconds);
    SessionSizes longer = both;
    longer.new_tokens = 700;
    CHECK(estimated(longer).milliseconds > 2 * estimated(both).milliseconds);
    // Without inputs they are texts of that many tokens and no speaker.
    CHECK(loaded.session.estimate({.batch = 2, .tokens = 9, .new_tokens = 50}, 1000).ok());
    longer.new_tokens = 300000;
    check_refused(loaded.session.estimate(longer, 1000), "300000 frames of speech");
    check_refused(loaded.session.warm_up(longer), "262144");
    longer.new_tokens = -1;
    check_refused(loaded.session.estimate(longer, 1000), "new tokens -1");
  }

  TEST_CASE("two passes end where they fail, are cancelled or are not submitted yet") {
    if (!have_test_device()) return;
    Loaded loaded = load("vits-convs");
    const auto whole = loaded.session.run(loaded.inputs);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    REQUIRE(loaded.session.start(loaded.inputs).ok());
    check_refused(loaded.session.finish(), "call advance");
    const auto advance = loaded.session.advance(std::numeric_limits<double>::infinity());
    REQUIRE(advance.ok());
    CHECK(advance->more_to_submit());
    check_refused(loaded.session.finish(), "second of two passes");
    REQUIRE(loaded.session.advance(std::numeric_limits<double>::infinity()).ok());
    REQUIRE(loaded.session.cancel().ok());
    check_refused(loaded.session.advance(1), "nothing was started");
    // Frames of hours.
    TensorMap slow = loaded.inputs;
    slow["speaking_rate"] = Tensor::from_floats({1}, std::vector<float>{1e-6f});
    const auto refused = loaded.session.run(slow);
    REQUIRE_FALSE(refused.ok());
    REQUIRE(loaded.session.start(slow).ok());
    REQUIRE(loaded.session.advance(std::numeric_limits<double>::infinity()).ok());
    const auto failed = loaded.session.advance(std::numeric_limits<double>::infinity());
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().message == refused.error().message);
    check_refused(loaded.session.finish(), "nothing was started");
    const auto again = loaded.session.run(loaded.inputs);
    REQUIRE(again.ok());
    check_same_bits(*whole, *again);
    // A session may also go away between them.
    REQUIRE(loaded.session.start(loaded.inputs).ok());
    REQUIRE(loaded.session.advance(std::numeric_limits<double>::infinity()).ok());
  }

  TEST_CASE("a generation in slices gives the tokens and scores of one in one go") {
    if (!have_test_device()) return;
    for (const std::string name :
         {"marian-base", "gpt2-batch", "performer-steps", "mistral-window"}) {
      CAPTURE(name);
      Loaded loaded = load(name);
      loaded.inputs.erase("decoder_input_ids");
      loaded.inputs.erase("decoder_attention_mask");
      for (int beams : {1, 3}) {
        CAPTURE(beams);
        GenerateOptions options = loaded.session.generation_defaults();
        options.beams = beams;
        options.max_new_tokens = 7;
        const auto whole = loaded.session.generate_masked(loaded.inputs, options);
        REQUIRE_MESSAGE(whole.ok(), whole.error().message);
        // Within 1 microsecond a slice is one workgroup.
        for (double budget : {1.0, 50.0, 3000.0, std::numeric_limits<double>::infinity()}) {
          CAPTURE(budget);
          testing::check_same(run_slices(loaded, options, budget), *whole);
        }
      }
    }
  }

  TEST_CASE("who follows a generation in slices sees and does what one in one go does") {
    if (!have_test_device()) return;
    for (const std::string name : {"gpt2-batch", "marian-base"}) {
      CAPTURE(name);
      Loaded loaded = load(name);
      const int64_t vocab = golden_model(name).info().target_vocab;
      for (const char* gbnf : {"", "root ::= \"(\" [0-9A-F]+ \")\""}) {
        CAPTURE(gbnf);
        Followed followed(loaded);
        const auto constrain = [&] {
          followed.options.grammar = *gbnf == 0 ? nullptr : constraint_of(gbnf, vocab, {});
          followed.seen.clear();
        };
        for (size_t most : {size_t{1000}, size_t{4}}) {
          followed.most = most;
          constrain();
          const auto whole = loaded.session.generate_masked(loaded.inputs, followed.options);
          REQUIRE_MESSAGE(whole.ok(), whole.error().message);
          const auto told = followed.seen;
          for (double budget : {50.0, std::numeric_limits<double>::infinity()}) {
            constrain();
            testing::check_same(run_slices(loaded, followed.options, budget), *whole);
            CHECK(followed.seen == told);
          }
        }
      }
    }
  }

  TEST_CASE("who follows a generation in slices may cancel it") {
    if (!have_test_device()) return;
    Loaded loaded = load("gpt2-batch");
    Followed followed(loaded);
    followed.most = 4;
    followed.verdict = TokenVerdict::kCancel;
    REQUIRE(loaded.session.start_generation(loaded.inputs, followed.options).ok());
    Result<Advance> advance = loaded.session.advance(1000);
    for (const Patience patience; patience.left() && advance.ok();) {
      std::this_thread::yield();
      advance = loaded.session.advance(1000);
    }
    REQUIRE_FALSE(advance.ok());
    CHECK(advance.error().code == ErrorCode::kCancelled);
    check_refused(loaded.session.advance(1000), "nothing was started");
  }

  TEST_CASE("progress says when the GPU has finished, and how long slices took") {
    if (!have_test_device()) return;
    Loaded loaded = load("bert-base");
    REQUIRE(loaded.session.start(loaded.inputs).ok());
    advance_to_end(loaded.session, 500);
    auto advance = loaded.session.advance(500);
    for (const Patience patience; patience.left() && advance.ok();) {
      if (advance->progress == Advance::Progress::kDone) break;
      std::this_thread::yield();
      advance = loaded.session.advance(500);
    }
    REQUIRE(advance.ok());
    CHECK(advance->progress == Advance::Progress::kDone);
    CHECK(advance->last_microseconds > 0);
    CHECK(loaded.session.finish().ok());
  }

  TEST_CASE("without timestamps advance waits, and says so when it is done") {
    if (!have_test_device()) return;
    auto device = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(device.ok());
    vulkan_of(*device)->impl().context.timestamp_bits = 0;
    for (const char* name : {"bert-base", "vits-convs"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      const auto model = Model::load(*device, golden.path("model"));
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      auto session = Session::create(*model);
      REQUIRE(session.ok());
      const TensorMap inputs = golden.pass_inputs();
      const auto whole = session->run(inputs);
      REQUIRE(whole.ok());
      REQUIRE(session->start(inputs).ok());
      advance_to_end(*session, 300);
      const auto done = session->advance(300);
      REQUIRE(done.ok());
      CHECK(done->progress == Advance::Progress::kDone);
      CHECK(done->last_microseconds > 0);
      const auto sliced = session->finish();
      REQUIRE(sliced.ok());
      check_same_bits(*whole, *sliced);
    }
  }

  TEST_CASE("a pass that was cancelled midway leaves nothing behind") {
    if (!have_test_device()) return;
    Loaded loaded = load("bert-base");
    const auto whole = loaded.session.run(loaded.inputs);
    REQUIRE(whole.ok());
    REQUIRE(loaded.session.start(loaded.inputs).ok());
    REQUIRE(loaded.session.advance(1).ok());
    REQUIRE(loaded.session.cancel().ok());
    REQUIRE(loaded.session.cancel().ok());
    const auto again = loaded.session.run(loaded.inputs);
    REQUIRE(again.ok());
    check_same(*whole, *again);
    // A session may also go away midway.
    REQUIRE(loaded.session.start(loaded.inputs).ok());
    REQUIRE(loaded.session.advance(1).ok());
  }

  TEST_CASE("misuse is an error with a sentence") {
    if (!have_test_device()) return;
    Loaded loaded = load("bert-base");
    Session& session = loaded.session;
    const TensorMap whole = session.run(loaded.inputs).value();
    SessionSizes sizes;
    sizes.inputs = loaded.inputs;
    REQUIRE(session.warm_up(sizes).ok());
    REQUIRE(session.finish_warm_up().ok());
    check_refused(session.advance(1000), "nothing was started");
    check_refused(session.record(nullptr, 1000), "nothing was started");
    check_refused(session.finish(), "nothing was started");
    check_refused(session.start({}), "[");
    check_refused(session.advance(1000), "nothing was started");
    REQUIRE(session.start(loaded.inputs).ok());
    check_refused(session.start(loaded.inputs), "not finished");
    check_refused(session.finish_generation(), "call finish");
    check_refused(session.run(loaded.inputs), "not finished");
    check_refused(session.advance(0), "above 0");
    check_refused(session.advance(-1), "above 0");
    check_refused(session.advance(std::nan("")), "above 0");
    check_refused(session.record(nullptr, 1000), "null");
    check_refused(session.finish(), "percent are still to be submitted");
    // What was refused has not run: nothing is omitted.
    advance_to_end(session, 1e9);
    const auto outputs = session.finish();
    REQUIRE(outputs.ok());
    check_same(whole, *outputs);
    check_refused(session.finish(), "nothing was started");
  }

  TEST_CASE("a second thread in a session gets an error") {
    if (!have_test_device()) return;
    Loaded loaded = load("bert-base");
    std::atomic<int> refused{0}, passed{0}, other{0};
    const auto body = [&] {
      for (int i = 0; i < 20; ++i) {
        const auto result = loaded.session.run(loaded.inputs);
        const bool busy =
            !result.ok() && result.error().message.find("another thread") != std::string::npos;
        ++(result.ok() ? passed : busy ? refused : other);
      }
    };
    std::thread first(body), second(body);
    first.join();
    second.join();
    CHECK(passed > 0);
    CHECK(other == 0);
    CHECK(passed + refused == 40);
  }
}

}  // namespace vkformer::testing
