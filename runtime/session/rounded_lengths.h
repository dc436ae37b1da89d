// Passes whose texts are padded to a rounded length, so that texts of near lengths share a
// recording (SessionOptions::round_lengths).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"

namespace vkformer {

// Whether passes run on the tokens that are given, or on more.
enum class Lengths : uint8_t { kGiven, kRounded };

// Tokens a row that the caller gave, where the pass runs on more; else 0.
struct GivenLengths {
  int64_t source = 0;
  int64_t target = 0;
  bool any() const { return source > 0 || target > 0; }
};

// The length that a pass of `length` tokens runs on: at most a quarter more, or 16 tokens in all.
int64_t rounded_length(int64_t tokens, int64_t most);

// Pads token ids, masks and types on the right. Nothing: the lengths stay, since the family sees
// what a mask omits (ModelFacts::padding), or an input holds more by token, such as positions.
// Inputs that a reader refuses stay as they are, too.
Result<std::optional<GivenLengths>> round_lengths(const ModelFacts& facts, TensorMap& inputs);

// What an axis of an output counts.
enum class OutputAxis : uint8_t { kOther, kSource, kTarget };
using OutputAxes = std::map<std::string, std::vector<OutputAxis>>;
// Of `outputs` of a graph, made of a shape as `build` makes it: the axes that grow as the lengths
// do.
Result<OutputAxes> output_axes(
    const Graph& whole, const std::vector<std::string>& outputs, const ForwardShape& shape,
    const std::function<Result<Graph>(const ForwardShape& shape)>& build);

// Cuts outputs back to the given lengths.
void cut_outputs(const OutputAxes& axes, const GivenLengths& given, TensorMap& outputs);

}  // namespace vkformer
