// What would fit, said where something did not: a smaller batch of a pass, smaller weights of a
// model.
#pragma once

#include "generate/generation_sizes.h"
#include "load/loaded_model.h"

namespace vkformer {

// Bytes that the recording of a pass takes, by its plans.
Result<uint64_t> forward_bytes(const LoadedModel& model, const ForwardShape& shape,
                               const ForwardTaps& taps);
Result<uint64_t> generation_bytes(const LoadedModel& model, const GenerationKey& key);
// Whether `bytes` bytes would fit if nothing but the model were on the device.
bool fits_alone(const LoadedModel& model, uint64_t bytes);

// The error of a pass that could not be made. Where memory was the reason, it has the largest batch
// that would fit into what is left, by its plans.
Error forward_error(const Error& error, const LoadedModel& model, const ForwardShape& shape,
                    const ForwardTaps& taps);
Error generation_error(const Error& error, const LoadedModel& model, const GenerationKey& key);

// The same of a model's weights, with the first of the smaller formats that would fit.
Error load_error(const Error& error, VulkanDevice& device, const FileStore& files,
                 const ModelOptions& options);

}  // namespace vkformer
