// Examples of many generations at once.
#include <vkformer/generation_batch.h>

#include <cstdio>

#include "examples.h"

vkformer::Status show_batches(const Setting& setting) {
  const auto model = vkformer::Model::load(setting.device, setting.models + "/shakespeare");
  if (!model) return model.error();
  const std::vector<vkformer::TokenId> prompt = {10, 11, 12, 13};
  //! [GenerationBatch::create GenerationBatch::generation_defaults GenerationBatch::submit]
  // Makes a batch of up to 4 sequences at a time, and asks for two continuations of 4 tokens.
  vkformer::BatchOptions options;
  options.rows = 4;
  options.capacity = 64;
  auto batch = vkformer::GenerationBatch::create(*model, options);
  if (!batch) return batch.error();
  vkformer::BatchRequest request;
  request.prompt = prompt;
  request.options = batch->generation_defaults();
  request.options.max_new_tokens = 4;
  const auto first = batch->submit(request);
  if (!first) return first.error();
  const auto second = batch->submit(request);
  if (!second) return second.error();
  //! [end]

  //! [GenerationBatch::cancel GenerationBatch::step GenerationBatch::idle]
  //! [GenerationBatch::counters]
  // Gives up the second request, and takes steps until the first one has ended.
  const auto canceled = batch->cancel(*second);
  if (!canceled) return canceled.error();
  size_t tokens = 0;
  while (!batch->idle()) {
    const auto updates = batch->step();
    if (!updates) return updates.error();
    for (const vkformer::BatchUpdate& update : *updates) {
      if (update.request == *first) tokens += update.tokens.size();
    }
  }
  std::printf("%zu tokens in %lld steps\n", tokens,
              static_cast<long long>(batch->counters().work.steps));
  //! [end]
  return expect(tokens == 4, "four tokens");
}
