// Prompts with images in a batch. What a request gets must be what Session::generate gives. It must
// not depend on other requests, on what its row held before, or on the prefix cache.
#include <limits>

#include "generate/batch_requests.h"

namespace vkformer::testing {
namespace {

constexpr const char* kFamilies[] = {"llava",   "paligemma",  "gemma3",  "idefics3",
                                     "smolvlm", "qwen2_5_vl", "qwen3_vl"};
constexpr int64_t kImageToken = 39;

const Model& model_of(const std::string& family) {
  return golden_model(family + "-tiny");
}

// Rows [first, first + count) of a tensor.
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  const size_t each = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
  Tensor part{tensor.dtype, tensor.shape, {}};
  part.shape[0] = count;
  const auto begin = tensor.bytes.begin() + static_cast<ptrdiff_t>(each) * first;
  part.bytes.assign(begin, begin + static_cast<ptrdiff_t>(each) * count);
  return part;
}

// A prompt of the golden case with its image.
struct ImagePrompt {
  Tokens tokens;
  TensorMap images;
};

ImagePrompt golden_prompt(const std::string& family, int64_t row) {
  const TensorMap all = golden_case(family + "-tiny").tensors("inputs.safetensors");
  const Tensor& ids = all.at("generate.input_ids");
  const Tokens padded = rows_of(ids, row, 1).to_ints().value();
  const Tokens mask = rows_of(all.at("generate.attention_mask"), row, 1).to_ints().value();
  ImagePrompt prompt;
  for (size_t i = 0; i < padded.size(); ++i) {
    if (mask[i] != 0) prompt.tokens.push_back(padded[i]);
  }
  const Tensor& pixels = all.at("pixel_values");
  if (all.count("image_grid_thw") == 0) {
    prompt.images.emplace("pixel_values", rows_of(pixels, row, 1));
    return prompt;
  }
  const Tensor& grid = all.at("image_grid_thw");
  const Tokens sides = grid.to_ints().value();
  const auto patches = [&](int64_t image) {
    const auto at = static_cast<size_t>(3 * image);
    return sides[at] * sides[at + 1] * sides[at + 2];
  };
  prompt.images.emplace("image_grid_thw", rows_of(grid, row, 1));
  prompt.images.emplace("pixel_values", rows_of(pixels, row == 0 ? 0 : patches(0), patches(row)));
  return prompt;
}

// The same tokens with another image.
ImagePrompt with_other_image(ImagePrompt prompt) {
  Tensor& pixels = prompt.images.at("pixel_values");
  std::vector<float> values = pixels.to_floats().value();
  for (size_t i = 0; i < values.size(); ++i) values[i] = 0.75f - 1.25f * values[i];
  pixels = Tensor::from_floats(pixels.shape, values);
  return prompt;
}

// Both prompts one after the other, with both images.
ImagePrompt joined_prompts(const ImagePrompt& first, const ImagePrompt& second) {
  ImagePrompt both{joined(first.tokens, second.tokens), first.images};
  for (auto& [name, tensor] : both.images) {
    const Tensor& more = second.images.at(name);
    tensor.shape[0] += more.shape[0];
    tensor.bytes.insert(tensor.bytes.end(), more.bytes.begin(), more.bytes.end());
  }
  return both;
}

BatchRequest image_request(const GenerationBatch& batch, const ImagePrompt& prompt,
                           int max_new_tokens) {
  BatchRequest request = request_for(batch, prompt.tokens, max_new_tokens);
  request.inputs = prompt.images;
  request.options.suppress = {38, kImageToken};
  return request;
}

// What Session::generate makes of a request: prompt and text.
Generation by_session(const Model& model, const BatchRequest& request) {
  Session session = make_session(model);
  TensorMap inputs = request.inputs;
  const auto tokens = static_cast<int64_t>(request.prompt.size());
  inputs.insert_or_assign("input_ids", Tensor::from_ints({1, tokens}, request.prompt));
  auto found = session.generate_masked(inputs, request.options);
  REQUIRE_MESSAGE(found.ok(), found.error().message);
  return std::move(found).value();
}

void check_as_session(const Model& model, const BatchRequest& request, const Told& told) {
  CHECK(joined(request.prompt, told.tokens) == by_session(model, request)[0][0].ids);
}

BatchOptions small_batch() {
  return {.rows = 3, .capacity = 48, .step_tokens = 5};
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("images and texts that join and leave a batch get the bits of each alone") {
    if (!have_test_device()) return;
    for (const char* name : kFamilies) {
      CAPTURE(name);
      const Model& model = model_of(name);
      GenerationBatch together = make_batch(model, small_batch());
      GenerationBatch alone = make_forgetting_batch(model, small_batch());
      const ImagePrompt first = golden_prompt(name, 0), second = golden_prompt(name, 1);
      std::vector<BatchRequest> requests = {
          image_request(together, first, 7),
          image_request(together, {random_tokens(model, 11, 3), {}}, 9),
          image_request(together, second, 5),
          image_request(together, with_other_image(first), 7),
          image_request(together, joined_prompts(second, first), 6),
          image_request(together, {{3}, {}}, 4),
          image_request(together, first, 7),
          image_request(together, joined_prompts(first, second), 3)};
      std::vector<uint64_t> ids;
      Stories stories;
      for (size_t i = 0; i < requests.size(); ++i) {
        ids.push_back(submit(together, requests[i]));
        if (i % 3 != 0) take_step(together, stories);
      }
      while (!together.idle()) take_step(together, stories);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        const Told lonely = run_alone(alone, requests[i]);
        check_same(stories.at(ids[i]), lonely);
        check_as_session(model, requests[i], lonely);
      }
      // The image alone makes the difference.
      CHECK(stories.at(ids[0]).score != stories.at(ids[3]).score);
      CHECK(stories.at(ids[0]).score == stories.at(ids[6]).score);
      CHECK(alone.counters().work.reused_tokens == 0);
    }
  }

  TEST_CASE("keys are reused for the same images alone") {
    if (!have_test_device()) return;
    for (const char* name : kFamilies) {
      CAPTURE(name);
      const Model& model = model_of(name);
      const bool at_once = std::string(name) == "paligemma";
      BatchOptions options = small_batch();
      options.rows = 1;
      GenerationBatch batch = make_batch(model, options);
      GenerationBatch forgets = make_forgetting_batch(model, options);
      const ImagePrompt first = golden_prompt(name, 0), second = golden_prompt(name, 1);
      const auto reused = [&](const BatchRequest& request, size_t tokens) {
        const Told told = run_alone(batch, request);
        const Told anew = run_alone(forgets, request);
        CHECK(told.work.reused_tokens == static_cast<int64_t>(tokens));
        CHECK(told.work.prompt_tokens == static_cast<int64_t>(request.prompt.size() - tokens));
        CHECK(told.state == State::kFinished);
        CHECK(told.tokens == anew.tokens);
        // Where a part of the prompt is computed by steps, other kernels may round differently.
        CHECK(told.score == doctest::Approx(anew.score).epsilon(1e-6));
        check_as_session(model, request, told);
        return told;
      };
      const BatchRequest request = image_request(batch, first, 5);
      const Told answer = reused(request, 0);
      // The whole prompt again, but for the last token, which is always computed.
      reused(request, request.prompt.size() - 1);
      // A conversation goes on after the image.
      ImagePrompt longer{joined(joined(first.tokens, answer.tokens), {7, 9, 11}), first.images};
      const size_t known = first.tokens.size() + (answer.tokens.size() - 1);
      // Of tokens that attend to later ones no part can be reused.
      reused(image_request(batch, longer, 4), at_once ? 0 : known);
      // The same tokens with another image share nothing, in both orders.
      reused(image_request(batch, with_other_image(first), 5), 0);
      reused(request, 0);
      // Nor do a prompt with one image more or fewer, and the tokens as words.
      reused(image_request(batch, joined_prompts(first, second), 3), 0);
      reused(request, 0);
      ImagePrompt words = first;
      words.images.clear();
      if (!at_once) words.tokens.resize(4);
      for (int64_t& id : words.tokens) id = id == kImageToken ? 12 : id;
      reused(image_request(batch, words, 3), 0);
      reused(image_request(batch, words, 3), words.tokens.size() - 1);
      reused(request, 0);
    }
  }

  TEST_CASE("a prefix that ends before or inside an image is not reused") {
    if (!have_test_device()) return;
    for (const char* name : {"llava", "qwen2_5_vl", "gemma3"}) {
      CAPTURE(name);
      const Model& model = model_of(name);
      BatchOptions options = small_batch();
      options.rows = 1;
      GenerationBatch batch = make_batch(model, options);
      GenerationBatch forgets = make_forgetting_batch(model, options);
      const BatchRequest request = image_request(batch, golden_prompt(name, 0), 5);
      run_alone(batch, request);
      BatchRequest other = request;
      other.prompt[1] = other.prompt[1] == 8 ? 9 : 8;
      const Told told = run_alone(batch, other);
      CHECK(told.work.reused_tokens == 0);
      check_same(told, run_alone(forgets, other));
      check_as_session(model, other, told);
    }
  }

  TEST_CASE("draft tokens and sampled sequences after an image are those alone") {
    if (!have_test_device()) return;
    for (const char* name : {"smolvlm", "qwen3_vl", "paligemma"}) {
      CAPTURE(name);
      const Model& model = model_of(name);
      BatchOptions options{.rows = 4, .capacity = 48, .step_tokens = 9};
      GenerationBatch plain = make_forgetting_batch(model, options);
      options.lookup = 2;
      GenerationBatch looks = make_batch(model, options);
      BatchRequest request = image_request(plain, golden_prompt(name, 1), 14);
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
      CHECK(texts[0][0] != texts[0][1]);
      const Generation found = by_session(model, request);
      for (size_t i = 0; i < 2; ++i) {
        CHECK(joined(request.prompt, texts[0][i]) == found[0][i].ids);
      }
    }
  }

  TEST_CASE("pixels that are NaN fail their request alone, and leave nothing in its row") {
    if (!have_test_device()) return;
    for (const char* name : {"idefics3", "paligemma"}) {
      CAPTURE(name);
      const Model& model = model_of(name);
      GenerationBatch batch = make_batch(model, {.rows = 2, .capacity = 48, .step_tokens = 4});
      GenerationBatch alone = make_forgetting_batch(model, small_batch());
      ImagePrompt poisoned = golden_prompt(name, 0);
      Tensor& pixels = poisoned.images.at("pixel_values");
      const std::vector<float> nan(static_cast<size_t>(pixels.count()),
                                   std::numeric_limits<float>::quiet_NaN());
      pixels = Tensor::from_floats(pixels.shape, nan);
      const BatchRequest good = image_request(batch, golden_prompt(name, 1), 6);
      const uint64_t bad_id = submit(batch, image_request(batch, poisoned, 6));
      const uint64_t good_id = submit(batch, good);
      Stories stories;
      while (!batch.idle()) take_step(batch, stories);
      CHECK(stories.at(bad_id).state == State::kFailed);
      CHECK(stories.at(bad_id).error.find("NaN") != std::string::npos);
      check_same(stories.at(good_id), run_alone(alone, good));
      for (int i = 0; i < 2; ++i) {
        const BatchRequest again = image_request(batch, golden_prompt(name, 0), 6);
        check_same(run_alone(batch, again), run_alone(alone, again));
        // A shorter text, after which lines of the poisoned prompt stay.
        const BatchRequest text = image_request(batch, {{3, 4, 5}, {}}, 2);
        check_same(run_alone(batch, text), run_alone(alone, text));
      }
    }
  }

  TEST_CASE("a request with an image that is canceled before it was computed leaves its row free") {
    if (!have_test_device()) return;
    const Model& model = model_of("qwen2_5_vl");
    BatchOptions options = small_batch();
    options.rows = 2;
    GenerationBatch batch = make_batch(model, options);
    GenerationBatch alone = make_forgetting_batch(model, options);
    const BatchRequest request = image_request(batch, golden_prompt("qwen2_5_vl", 0), 6);
    Stories stories;
    const uint64_t first = submit(batch, request), second = submit(batch, request);
    take_step(batch, stories);
    // One prompt a step: the second one is still to come.
    CHECK(stories.at(first).tokens.size() == 1);
    CHECK(stories.count(second) == 0);
    REQUIRE(batch.cancel(second).ok());
    while (!batch.idle()) take_step(batch, stories);
    CHECK(stories.at(second).state == State::kCancelled);
    check_same(stories.at(first), run_alone(alone, request));
    BatchRequest other = request;
    other.prompt.back() = 5;
    check_same(run_alone(batch, other), run_alone(alone, other));
  }

  TEST_CASE("images that a batch cannot take are refused") {
    if (!have_test_device()) return;
    const Model& model = model_of("llava");
    GenerationBatch batch = make_batch(model, small_batch());
    const ImagePrompt prompt = golden_prompt("llava", 0);
    const BatchRequest good = image_request(batch, prompt, 4);
    BatchRequest bad = good;
    bad.prompt[4] = 5;
    check_refused(batch, bad, "8 tokens of input_ids are the image token 39");
    bad = good;
    bad.prompt.resize(13);
    check_refused(batch, bad, "[input_ids] a prompt ends with the image token 39");
    bad = good;
    bad.inputs["input_ids"] = Tensor::from_ints({1, 2}, {1, 2});
    check_refused(batch, bad, "[inputs] has input_ids");
    bad = good;
    bad.inputs["pixels"] = bad.inputs["pixel_values"];
    check_refused(batch, bad, "pixels");
    bad = good;
    bad.inputs["pixel_values"] = Tensor::zeros(DType::kF32, {1, 3, 12, 13});
    check_refused(batch, bad, "[pixel_values] has shape (1, 3, 12, 13)");
    bad = good;
    bad.options.max_new_tokens = 40;
    check_refused(batch, bad, "room for 48");
    check_same(run_alone(batch, good), run_alone(batch, good));
    BatchOptions rolling = small_batch();
    rolling.context = 8;
    GenerationBatch rolls = make_batch(model, rolling);
    check_refused(rolls, good, "[context] of this batch is 8");
    CHECK(run_alone(rolls, image_request(rolls, {{3, 4, 5}, {}}, 20)).tokens.size() == 20);
    GenerationBatch texts = make_batch(golden_model("llama-gqa"), small_batch());
    check_refused(texts, good, "[inputs] has pixel_values");
    auto drafted = GenerationBatch::create(
        model, {.rows = 1, .capacity = 32, .step_tokens = 3, .draft = model_of("paligemma")});
    REQUIRE_FALSE(drafted.ok());
    CHECK(drafted.error().message.find("prompt in one pass") != std::string::npos);
  }
}

}  // namespace vkformer::testing
