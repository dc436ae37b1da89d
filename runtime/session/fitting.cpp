#include "session/fitting.h"

#include <algorithm>
#include <functional>

#include "session/forward_pass.h"
#include "session/memory_needs.h"
#include "vulkan/memory_left.h"

namespace vkformer {
namespace {

using BytesOfBatch = std::function<Result<uint64_t>(int64_t batch)>;

std::string bytes_text(uint64_t bytes) {
  return std::to_string(bytes) + " bytes";
}

// The largest smaller batch whose bytes fit. More items never need less, so halving finds it.
int64_t largest_batch(int64_t batch, uint64_t left, const BytesOfBatch& bytes_of) {
  int64_t fits = 0;
  int64_t too_many = batch;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    const auto bytes = bytes_of(middle);
    (bytes.ok() && *bytes <= left ? fits : too_many) = middle;
  }
  return fits;
}

Error with_batch(const Error& error, const VulkanDevice& device, int64_t batch,
                 const BytesOfBatch& bytes_of) {
  if (error.code != ErrorCode::kOutOfMemory) return error;
  const uint64_t left = memory_left(device);
  const int64_t fits = largest_batch(batch, left, bytes_of);
  std::string advice = "; " + bytes_text(left) + " are left, into which ";
  if (fits > 0) {
    advice +=
        "a batch of " + std::to_string(fits) + " would fit instead of " + std::to_string(batch);
  } else {
    advice += "not even a batch of 1 fits; use fewer tokens, or a smaller format of the weights";
  }
  return {error.code, error.message + advice};
}

}  // namespace

Result<uint64_t> forward_bytes(const LoadedModel& model, const ForwardShape& shape,
                               const ForwardTaps& taps) {
  SizedGraph sized;
  ModelBuilder builder(sized.graph, model.weights());
  VKF_CHECK(model.family().build_forward(builder, shape, taps));
  sized.host = forward_access(builder, {});
  MemoryTally tally(*model.device(), model.precision());
  VKF_CHECK(tally.add(sized));
  return tally.needs().total;
}

Result<uint64_t> generation_bytes(const LoadedModel& model, const GenerationKey& key) {
  MemoryTally tally(*model.device(), model.precision());
  VKF_CHECK(tally.add_generation(model.family(), model.weights(), key));
  return tally.needs().total;
}

bool fits_alone(const LoadedModel& model, uint64_t bytes) {
  const uint64_t others = model.device()->memory_in_use() -
                          std::min(model.device()->memory_in_use(), model.weight_bytes());
  return bytes <= memory_left(*model.device()) + others;
}

Error forward_error(const Error& error, const LoadedModel& model, const ForwardShape& shape,
                    const ForwardTaps& taps) {
  if (model.split() != nullptr) return error;  // what is left where, the error says
  return with_batch(error, *model.device(), shape.batch, [&](int64_t batch) {
    ForwardShape smaller = shape;
    smaller.batch = batch;
    return forward_bytes(model, smaller, taps);
  });
}

Error generation_error(const Error& error, const LoadedModel& model, const GenerationKey& key) {
  if (model.split() != nullptr) return error;
  return with_batch(error, *model.device(), key.shape.batch, [&](int64_t batch) {
    GenerationKey smaller = key;
    smaller.shape.batch = batch;
    return generation_bytes(model, smaller);
  });
}

Error load_error(const Error& error, VulkanDevice& device, const FileStore& files,
                 const ModelOptions& options) {
  if (error.code != ErrorCode::kOutOfMemory) return error;
  const uint64_t left = memory_left(device);
  std::string advice = "; " + bytes_text(left) + " are left";
  // Formats that this build does not have are passed over.
  for (const WeightFormat format : {WeightFormat::kF16, WeightFormat::kQ8, WeightFormat::kQ4}) {
    ModelOptions smaller = options;
    smaller.weights = format;
    const auto read = read_model_weights(device.caps(), files, smaller);
    if (options.weights == format || !read.ok()) continue;
    uint64_t bytes = 0;
    for (const uint64_t chunk : plan_chunks(device, *read, {}).chunks) {
      bytes += device.placed_bytes(chunk);
    }
    if (bytes > left) continue;
    return {error.code, error.message + advice + ", into which the weights would fit as '" +
                            choice_name(format) + "' with " + bytes_text(bytes) +
                            " (ModelOptions::weights)"};
  }
  return {error.code, error.message + advice + ", which no smaller format of the weights fits"};
}

}  // namespace vkformer
