// Pictures that encoder-decoders describe, in a batch. What a request gets must be what
// Session::generate gives. It must not depend on other requests, on what its row held before, or on
// the sizes of other pictures.
#include <limits>

#include "generate/batch_requests.h"

namespace vkformer::testing {
namespace {

constexpr const char* kDescribers[] = {"blip-base", "blip-untied", "vision-encoder-decoder-donut",
                                       "vision-encoder-decoder-projected",
                                       "vision-encoder-decoder-trocr"};
// Its pictures may have any size.
constexpr const char* kAnySize = "vision-encoder-decoder-donut";

// The golden case's picture size.
Shape picture_shape(const std::string& name) {
  Shape shape = golden_case(name).tensors("inputs.safetensors").at("pixel_values").shape;
  shape[0] = 1;
  return shape;
}

Tensor random_picture(const Shape& shape, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> value;
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  std::vector<float> values(count);
  for (float& v : values) v = value(engine);
  return Tensor::from_floats(shape, values);
}

BatchRequest picture_request(const GenerationBatch& batch, Tensor picture, Tokens begins,
                             int max_new_tokens) {
  BatchRequest request = request_for(batch, std::move(begins), max_new_tokens);
  request.inputs.emplace("pixel_values", std::move(picture));
  return request;
}

// What the decoder starts with.
Tokens begun_text(const BatchRequest& request) {
  const GenerateOptions& o = request.options;
  return joined(o.decoder_prompt.empty() ? Tokens{o.decoder_start} : o.decoder_prompt,
                request.prompt);
}

// What Session::generate makes of a request, its start included.
Generation described_by_session(const Model& model, const BatchRequest& request) {
  Session session = make_session(model);
  GenerateOptions options = request.options;
  options.decoder_prompt = begun_text(request);
  auto found = session.generate_masked(request.inputs, options);
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  return std::move(found).value();
}

void check_as_described(const Model& model, const BatchRequest& request, const Told& told) {
  const Hypothesis found = described_by_session(model, request)[0][0];
  CHECK(joined(begun_text(request), told.tokens) == found.ids);
  CHECK(told.score == doctest::Approx(found.score).epsilon(1e-5));
}

BatchOptions picture_batch() {
  return {.rows = 3, .capacity = 20, .step_tokens = 5};
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("pictures that join and leave a batch get the bits of each alone") {
    if (!have_test_device()) return;
    for (const std::string name : kDescribers) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      GenerationBatch together = make_batch(model, picture_batch());
      GenerationBatch alone = make_forgetting_batch(model, picture_batch());
      const Shape shape = picture_shape(name);
      std::vector<BatchRequest> requests;
      std::vector<uint64_t> ids;
      Stories stories;
      for (uint32_t i = 0; i < 7; ++i) {
        Tensor picture = random_picture(shape, 40 + i % 5);
        requests.push_back(picture_request(together, std::move(picture),
                                           random_tokens(model, i % 4, i),
                                           3 + static_cast<int>(i * 5) % 9));
        ids.push_back(submit(together, requests.back()));
        if (i % 3 != 0) take_step(together, stories);
      }
      while (!together.idle()) take_step(together, stories);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        const Told lonely = run_alone(alone, requests[i]);
        check_same(stories.at(ids[i]), lonely);
        check_as_described(model, requests[i], lonely);
      }
      CHECK(alone.counters().work.reused_tokens == 0);
    }
  }

  TEST_CASE("pictures of any size share a batch, and a small one does not see a large one's keys") {
    if (!have_test_device()) return;
    const Model& model = golden_model(kAnySize);
    GenerationBatch together = make_batch(model, picture_batch());
    GenerationBatch alone = make_forgetting_batch(model, picture_batch());
    std::vector<BatchRequest> requests;
    std::vector<uint64_t> ids;
    Stories stories;
    const Shape sizes[] = {{1, 3, 28, 20}, {1, 3, 24, 21}, {1, 3, 21, 31}, {1, 3, 28, 20},
                           {1, 3, 21, 21}, {1, 3, 31, 22}, {1, 3, 24, 21}};
    for (const Shape& size : sizes) {
      const auto seed = static_cast<uint32_t>(requests.size());
      requests.push_back(picture_request(together, random_picture(size, seed), {}, 6));
      ids.push_back(submit(together, requests.back()));
    }
    while (!together.idle()) take_step(together, stories);
    for (size_t i = 0; i < requests.size(); ++i) {
      CAPTURE(i);
      const Told lonely = run_alone(alone, requests[i]);
      check_same(stories.at(ids[i]), lonely);
      check_as_described(model, requests[i], lonely);
    }
    check_refused(together, picture_request(together, random_picture({1, 3, 40, 40}, 1), {}, 4),
                  "picture of 40 x 40 pixels");
    // The encoder makes nothing of a picture that is smaller than its windows.
    const uint64_t small_id =
        submit(together, picture_request(together, random_picture({1, 3, 5, 5}, 1), {}, 4));
    const uint64_t good_id = submit(together, requests[1]);
    while (!together.idle()) take_step(together, stories);
    CHECK(stories.at(small_id).state == State::kFailed);
    CHECK(stories.at(small_id).error.find("give a larger picture") != std::string::npos);
    check_same(stories.at(good_id), stories.at(ids[1]));
  }

  TEST_CASE(
      "a picture that comes again is not encoded again, and what its text begins with is kept") {
    if (!have_test_device()) return;
    for (const std::string name : kDescribers) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      BatchOptions options = picture_batch();
      options.rows = 1;
      GenerationBatch batch = make_batch(model, options);
      GenerationBatch forgets = make_forgetting_batch(model, options);
      const Shape shape = picture_shape(name);
      BatchRequest request = picture_request(batch, random_picture(shape, 1), {5, 9}, 4);
      const auto start = static_cast<int64_t>(begun_text(request).size());
      const Told first = run_alone(batch, request);
      const int64_t source = first.work.prompt_tokens - start;
      CHECK(source > 0);
      check_same(first, run_alone(forgets, request));
      // A longer text of the same picture begins with what is there.
      request.prompt = joined(request.prompt, first.tokens);
      const Told second = run_alone(batch, request);
      CHECK(second.work.reused_tokens == start + 3);
      CHECK(second.work.prompt_tokens == 1);
      check_as_described(model, request, second);
      CHECK(second.tokens == run_alone(forgets, request).tokens);
      // The same text of another picture is another one.
      BatchRequest other = request;
      other.inputs.insert_or_assign("pixel_values", random_picture(shape, 2));
      const Told third = run_alone(batch, other);
      CHECK(third.work.reused_tokens == 0);
      CHECK(third.work.prompt_tokens == source + static_cast<int64_t>(begun_text(other).size()));
      check_same(third, run_alone(forgets, other));
      CHECK(forgets.counters().work.reused_tokens == 0);
    }
  }

  TEST_CASE("draft tokens and sampled sequences of a picture are those alone") {
    if (!have_test_device()) return;
    for (const std::string name : {"blip-base", "vision-encoder-decoder-trocr"}) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      BatchOptions options{.rows = 4, .capacity = 20, .step_tokens = 9};
      GenerationBatch plain = make_forgetting_batch(model, options);
      options.lookup = 1;
      GenerationBatch looks = make_batch(model, options);
      BatchRequest request = picture_request(plain, random_picture(picture_shape(name), 3), {}, 15);
      request.options.choice = TokenChoice::kSampled;
      request.options.sampling = {.temperature = 1.1, .seed = 5};
      request.options.return_sequences = 2;
      std::map<size_t, Tokens> texts[2];
      for (GenerationBatch* batch : {&plain, &looks}) {
        submit(*batch, request);
        while (!batch->idle()) {
          const auto updates = batch->step();
          REQUIRE_MESSAGE(updates.ok(), updates.error().message);
          for (const BatchUpdate& u : *updates) {
            Tokens& text = texts[batch == &looks][u.sequence];
            text.insert(text.end(), u.tokens.begin(), u.tokens.end());
          }
        }
      }
      CHECK(texts[0] == texts[1]);
      const Generation found = described_by_session(model, request);
      for (size_t i = 0; i < 2; ++i) {
        CHECK(joined(begun_text(request), texts[0][i]) == found[0][i].ids);
      }
    }
  }

  TEST_CASE("a picture that is NaN fails its request alone, and leaves nothing in its row") {
    if (!have_test_device()) return;
    for (const std::string name : kDescribers) {
      CAPTURE(name);
      const Model& model = golden_model(name);
      GenerationBatch batch = make_batch(model, {.rows = 2, .capacity = 20, .step_tokens = 4});
      GenerationBatch alone = make_forgetting_batch(model, picture_batch());
      const Shape shape = picture_shape(name);
      Tensor poison = random_picture(shape, 1);
      const std::vector<float> nan(static_cast<size_t>(poison.count()),
                                   std::numeric_limits<float>::quiet_NaN());
      poison = Tensor::from_floats(shape, nan);
      const BatchRequest good = picture_request(batch, random_picture(shape, 2), {}, 6);
      const uint64_t bad_id = submit(batch, picture_request(batch, poison, {7}, 6));
      const uint64_t good_id = submit(batch, good);
      Stories stories;
      while (!batch.idle()) take_step(batch, stories);
      CHECK(stories.at(bad_id).state == State::kFailed);
      CHECK(stories.at(bad_id).error.find("NaN") != std::string::npos);
      CHECK(stories.at(good_id).tokens == run_alone(alone, good).tokens);
      // Both rows are used again, and the poisoned picture fails again.
      for (uint32_t i = 0; i < 3; ++i) {
        Shape small = shape;
        if (name == kAnySize) small[2] = small[3] = 21;
        const BatchRequest again = picture_request(batch, random_picture(small, 9 + i), {7}, 4);
        CHECK(run_alone(batch, again).tokens == run_alone(alone, again).tokens);
      }
      CHECK(run_alone(batch, picture_request(batch, poison, {7}, 6)).state == State::kFailed);
    }
  }

  TEST_CASE("a request with a picture that is canceled before it was encoded leaves its row free") {
    if (!have_test_device()) return;
    const Model& model = golden_model("blip-base");
    BatchOptions options = picture_batch();
    options.rows = 2;
    GenerationBatch batch = make_batch(model, options);
    GenerationBatch alone = make_forgetting_batch(model, options);
    const Shape shape = picture_shape("blip-base");
    const BatchRequest request = picture_request(batch, random_picture(shape, 1), {}, 6);
    const BatchRequest late = picture_request(batch, random_picture(shape, 2), {4}, 6);
    Stories stories;
    const uint64_t first = submit(batch, request), second = submit(batch, late);
    take_step(batch, stories);
    // One picture a step: the second one is still to come.
    CHECK(stories.at(first).tokens.size() == 1);
    CHECK(stories.count(second) == 0);
    REQUIRE(batch.cancel(second).ok());
    while (!batch.idle()) take_step(batch, stories);
    CHECK(stories.at(second).state == State::kCancelled);
    check_same(stories.at(first), run_alone(alone, request));
    check_same(run_alone(batch, late), run_alone(alone, late));
  }

  TEST_CASE("what a batch of a model that describes pictures cannot take is refused") {
    if (!have_test_device()) return;
    const Model& model = golden_model("vision-encoder-decoder-trocr");
    GenerationBatch batch = make_batch(model, {.rows = 1, .capacity = 12, .step_tokens = 2});
    const Shape shape = picture_shape("vision-encoder-decoder-trocr");
    const Tensor picture = random_picture(shape, 1);
    check_refused(batch, request_for(batch, {3, 4}, 4), "[pixel_values] is missing");
    Shape pair = shape;
    pair[0] = 2;
    check_refused(batch, picture_request(batch, random_picture(pair, 1), {}, 4),
                  "holds 2 pictures");
    Shape small = shape;
    small[2] -= 5;
    check_refused(batch, picture_request(batch, random_picture(small, 1), {}, 4), "[pixel_values]");
    check_refused(batch, picture_request(batch, picture, {3, 4}, 10), "and 10 more");
    check_refused(batch, picture_request(batch, picture, {model.info().target_vocab}, 4),
                  "[prompt] names the token");
    BatchRequest bad = picture_request(batch, picture, {3}, 4);
    bad.options.decoder_prompt = {model.info().target_vocab};
    check_refused(batch, bad, "[decoder_prompt] names the token");
    BatchRequest named = picture_request(batch, picture, {}, 4);
    named.inputs.emplace("input_ids", Tensor::from_ints({1, 1}, Tokens{3}));
    check_refused(batch, named, "[input_ids]");
    const auto rolled =
        GenerationBatch::create(model, {.rows = 1, .capacity = 12, .step_tokens = 2, .context = 4});
    REQUIRE_FALSE(rolled.ok());
    CHECK(rolled.error().message.find("[context]") != std::string::npos);
    CHECK(run_alone(batch, picture_request(batch, picture, {}, 10)).tokens.size() == 10);
  }
}

}  // namespace vkformer::testing
