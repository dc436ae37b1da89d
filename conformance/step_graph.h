// A graph of one operator in the making, with the numbers that its row of the benchmark gives: for
// operators that run_operator does not know.
#pragma once

#include <cstring>

#include "base/check.h"
#include "base/narrow.h"
#include "conformance/benchmark_operators.h"
#include "measure/benchmark_inputs.h"
#include "params/decode_state.h"

namespace vkformer::conformance {

// A graph in the making, with the numbers that its row gives.
class StepGraph {
 public:
  StepGraph(const std::vector<RowInput>& numbers, OperatorGraph& out)
      : numbers_(numbers), out_(out) {}

  Graph& graph() { return out_.graph; }
  // The number of that name, or the fallback.
  int64_t number(const char* name, int64_t fallback = 1) const {
    for (const RowInput& input : numbers_) {
      if (input.name == name) return input.shape.front();
    }
    return fallback;
  }
  // Uniform in [-1, 1).
  TensorId floats(const char* name, Shape shape) {
    const TensorId id = graph().add_external(name, DType::kF32, std::move(shape));
    UniformNoise noise(id + 1);
    TensorContent content{id, {}};
    content.bytes.resize(static_cast<size_t>(element_count(graph().tensor(id).shape)) * 4);
    for (size_t i = 0; i < content.bytes.size(); i += 4) {
      const float value = noise.next();
      std::memcpy(content.bytes.data() + i, &value, 4);
    }
    out_.contents.push_back(std::move(content));
    return id;
  }
  TensorId words(const char* name, Shape shape, const std::vector<uint32_t>& values) {
    const TensorId id = graph().add_external(name, DType::kU32, std::move(shape));
    TensorContent content{id, std::vector<std::byte>(values.size() * 4)};
    if (!values.empty()) std::memcpy(content.bytes.data(), values.data(), content.bytes.size());
    out_.contents.push_back(std::move(content));
    return id;
  }
  // A step's state: its slots are rows 0, 1, ..., all live.
  TensorId state(int64_t slots, int64_t items, int64_t position) {
    graph().set_step(u32(slots));
    return state_words(slots, items, position);
  }
  // The same beside a prompt.
  TensorId state_words(int64_t slots, int64_t items, int64_t position) {
    std::vector<uint32_t> values(VKF_STATE_WORDS + VKF_MAX_SLOTS, 0u);
    values[0] = u32(items);
    values[1] = u32(slots);
    values[2] = u32(position);
    for (uint32_t slot = 0; slot < slots; ++slot) values[VKF_STATE_WORDS + slot] = slot;
    return words("decode_state", {static_cast<int64_t>(values.size())}, values);
  }

 private:
  const std::vector<RowInput>& numbers_;
  OperatorGraph& out_;
};

}  // namespace vkformer::conformance
