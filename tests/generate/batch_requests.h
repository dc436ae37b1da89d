// Requests of a GenerationBatch on small golden models, and what is told of them: what its tests
// share.
#pragma once

#include "generate/generation_case.h"
#include "vkformer/generation_batch.h"

namespace vkformer::testing {

using Tokens = std::vector<int64_t>;
using State = BatchUpdate::State;

inline GenerationBatch make_batch(const Model& model, const BatchOptions& options) {
  auto batch = GenerationBatch::create(model, options);
  REQUIRE_MESSAGE(batch.ok(), batch.error().message);
  return std::move(batch).value();
}

// The same without keys of earlier requests, to run them alone in.
inline GenerationBatch make_forgetting_batch(const Model& model, BatchOptions options) {
  options.prefix_reuse = false;
  return make_batch(model, options);
}

inline Tokens random_tokens(const Model& model, size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> token(3, model.info().target_vocab - 1);
  Tokens tokens(count);
  for (int64_t& id : tokens) id = token(engine);
  return tokens;
}

inline BatchRequest request_for(const GenerationBatch& batch, Tokens prompt, int max_new_tokens) {
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

inline void take_step(GenerationBatch& batch, Stories& stories) {
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

inline uint64_t submit(GenerationBatch& batch, const BatchRequest& request) {
  const auto id = batch.submit(request);
  REQUIRE_MESSAGE(id.ok(), id.error().message);
  return *id;
}

inline Told run_alone(GenerationBatch& batch, const BatchRequest& request) {
  const uint64_t id = submit(batch, request);
  Stories stories;
  while (!batch.idle()) take_step(batch, stories);
  return stories.at(id);
}

inline void check_same(const Told& a, const Told& b) {
  CHECK(a.state == State::kFinished);
  CHECK(a.state == b.state);
  CHECK(a.tokens == b.tokens);
  CHECK(a.score == b.score);
}

// On GPUs the kernels that multiply a prompt and a step sum in different orders. Kernels with
// literal tiles attend in another one (docs/numerics.md).
inline bool have_one_order() {
  if (!have_test_device()) return false;
  const DeviceCaps& caps = vulkan_of(*test_device())->caps();
  return caps.device_class == DeviceClass::kSoftware && !caps.literal_tiles();
}

inline Tokens joined(Tokens first, const Tokens& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

// Prompt, or what a decoder starts with, and what was generated.
inline Tokens plain_text(const Model& model, const BatchRequest& request) {
  auto session = Session::create(model);
  REQUIRE(session.ok());
  auto generation = session->generate({request.prompt}, request.options);
  REQUIRE_MESSAGE(generation.ok(), generation.error().message);
  return (*generation)[0][0].ids;
}

inline void check_refused(GenerationBatch& batch, const BatchRequest& request,
                          const std::string& part) {
  const auto id = batch.submit(request);
  REQUIRE_FALSE(id.ok());
  CHECK_MESSAGE(id.error().message.find(part) != std::string::npos, id.error().message);
}

}  // namespace vkformer::testing
