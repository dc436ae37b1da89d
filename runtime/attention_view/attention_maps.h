// Attention maps: out of a session's outputs, checked, averaged, multiplied, measured.
// Needs: vkformer/attention_view.h for the values that callers hand in.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkformer/attention_view.h"

namespace vkformer {

// An error that names the first part of the maps that does not fit the others.
Status check_attention_maps(const AttentionMaps& maps);

// The weights of head `head` (of those that there are) of the layer at `index`. Precondition:
// checked. (T,S)
std::span<const float> head_values(const AttentionMaps& maps, size_t index, int head);

// "layer 3, head 0", "layer 3, mean over heads". `index` counts the layers that there are.
std::string head_name(const AttentionMaps& maps, size_t index, int head);

Result<AttentionMaps> collect_maps(const TensorMap& outputs, MapKind kind, int64_t item);
Result<AttentionMaps> average_heads(const AttentionMaps& maps);
Result<AttentionMaps> roll_out(const AttentionMaps& maps);
Result<std::vector<AttentionHead>> measure_heads(std::span<const AttentionMeasurements> passes,
                                                 const AttentionHeadOptions& options);

}  // namespace vkformer
