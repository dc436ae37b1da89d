#include "vkformer/attention.h"

#include <algorithm>

#include "reference/multi_head_attention.h"
#include "support/operator_check.h"

namespace vkformer::testing {
namespace {

using Options = MultiHeadAttentionOptions;
using Projection = Options::Projection;
using reference::ProjectionLayout;

struct Case {
  Options options;
  Array x;         // (B, T, D)
  Array key_mask;  // (B, T)
  std::map<std::string, Array> weights;
};

Case make_case(Projection projection, bool biases) {
  Case c;
  c.options = {.d_model = 24, .heads = 3, .projection = projection};
  c.x = random_array({2, 11, 24}, 1);
  c.key_mask = reference::filled({2, 11}, 1.0);
  for (int64_t j : {9, 10, 11, 15}) c.key_mask[j] = 0.0;
  uint32_t seed = 2;
  const auto add = [&](const std::string& name, int64_t rows, int64_t columns) {
    c.weights[name + ".weight"] = random_array({rows, columns}, seed++, 0.3);
    if (biases) c.weights[name + ".bias"] = random_array({rows}, seed++, 0.3);
  };
  const int64_t width = projection == Projection::kSharedByHeads ? 8 : 24;
  if (projection == Projection::kMerged) {
    add("qkv", 72, 24);
  } else {
    for (const char* name : {"query", "key", "value"}) add(name, width, width);
  }
  if (projection != Projection::kSharedByHeads) add("output", 24, 24);
  return c;
}

TensorMap tensors(const Case& c) {
  TensorMap map;
  for (const auto& [name, array] : c.weights) map.emplace(name, reference::to_tensor(array));
  return map;
}

reference::MultiHeadAttentionOutputs expected(const Case& c) {
  const auto layer = [&](const std::string& name) {
    const auto find = [&](const std::string& full) {
      const auto it = c.weights.find(full);
      return it == c.weights.end() ? nullptr : &it->second;
    };
    return reference::LinearWeights{find(name + ".weight"), find(name + ".bias")};
  };
  reference::MultiHeadAttentionWeights weights;
  weights.layout = c.options.projection == Projection::kMerged ? ProjectionLayout::kMerged
                   : c.options.projection == Projection::kSeparate
                       ? ProjectionLayout::kSeparate
                       : ProjectionLayout::kSharedByHeads;
  weights.query = layer("query");
  weights.key = layer("key");
  weights.value = layer("value");
  weights.merged = layer("qkv");
  weights.output = layer("output");
  reference::MultiHeadAttentionOptions options;
  options.heads = c.options.heads;
  options.attention.masks.key_mask = &c.key_mask;
  options.attention.masks.causal = c.options.causal;
  auto outputs = reference::multi_head_attention(c.x, weights, options);
  REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
  return *outputs;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE("multi-head attention in every kind of projection") {
    for (Projection projection :
         {Projection::kSeparate, Projection::kMerged, Projection::kSharedByHeads}) {
      for (bool biases : {false, true}) {
        for (const bool causal : {false, true}) {
          Case c = make_case(projection, biases);
          c.options.causal = causal;
          const auto wanted = expected(c);
          const Tensor mask = reference::to_tensor(c.key_mask);
          Tensor bits = Tensor::zeros(DType::kU8, mask.shape);
          for (int64_t i = 0; i < c.key_mask.size(); ++i) {
            bits.bytes[static_cast<size_t>(i)] = std::byte{c.key_mask[i] != 0.0};
          }
          for (const TierDevice& device : tier_devices()) {
            if (device.wide) continue;
            auto block =
                MultiHeadAttention::create(device_of(device.device), c.options, tensors(c));
            REQUIRE_MESSAGE(block.ok(), block.error().message);
            auto result = block->run(reference::to_tensor(c.x), &bits);
            REQUIRE_MESSAGE(result.ok(), result.error().message);
            const Tolerance tolerance = tolerance_for(DType::kF32, 1024);
            check_close(result->output, wanted.output, tolerance);
            check_close(result->weights, wanted.weights, tolerance);
          }
        }
      }
    }
  }

  TEST_CASE("multi-head attention without a mask and without its weights") {
    Case c = make_case(Projection::kSeparate, true);
    c.options.keep_weights = false;
    std::fill(c.key_mask.data.begin(), c.key_mask.data.end(), 1.0);
    for (const TierDevice& device : tier_devices()) {
      if (device.wide) continue;
      auto block = MultiHeadAttention::create(device_of(device.device), c.options, tensors(c));
      REQUIRE(block.ok());
      auto result = block->run(reference::to_tensor(c.x), nullptr);
      REQUIRE_MESSAGE(result.ok(), result.error().message);
      check_close(result->output, expected(c).output, tolerance_for(DType::kF32, 1024));
      CHECK(result->weights.bytes.empty());
      CHECK_FALSE(block->run(Tensor::zeros(DType::kF32, {2, 11, 23}), nullptr).ok());
      const Tensor mask = Tensor::zeros(DType::kU8, {2, 10});
      CHECK_FALSE(block->run(reference::to_tensor(c.x), &mask).ok());
    }
  }
}

TEST_SUITE("cpu") {
  TEST_CASE("multi-head attention says what is wrong with its options and weights") {
    const Device none = device_of(nullptr);
    const Case c = make_case(Projection::kSeparate, true);
    const auto create = [&](auto change) {
      Options options = c.options;
      TensorMap weights = tensors(c);
      change(options, weights);
      return MultiHeadAttention::create(none, options, weights);
    };
    using O = Options;
    using W = TensorMap;
    const std::string op = "multi_head_attention";
    CHECK(create([](O&, W&) {}).ok());
    check_error(create([](O& o, W&) { o.heads = 5; }), op, "heads 5");
    check_error(create([](O& o, W&) { o.d_model = -1; }), op, "d_model -1");
    check_error(create([](O& o, W&) {
                  o.d_model = 1024;
                  o.heads = 1;
                }),
                op, "1024 wide");
    check_error(create([](O&, W& w) { w.erase("key.weight"); }), op, "key.weight");
    check_error(create([](O&, W& w) { w.erase("output.weight"); }), op, "output.bias");
    check_error(create([](O&, W& w) { w["qkv.weight"] = w["key.weight"]; }), op, "qkv.weight");
    check_error(create([](O&, W& w) { w["key.weight"].shape = {24, 23}; }), op, "key.weight");
    check_error(create([](O&, W& w) { w["key.weight"].bytes.pop_back(); }), op, "bytes");
    check_error(create([](O& o, W&) { o.projection = Projection::kMerged; }), op, "no weight");
  }
}

}  // namespace vkformer::testing
