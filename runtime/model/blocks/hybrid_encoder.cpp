#include "model/blocks/hybrid_encoder.h"

#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/concat_columns.h"
#include "ops/gather_rows.h"

namespace vkformer {
namespace {

constexpr int64_t kRepBlocks = 3;
constexpr float kInputEpsilon = 1e-5f;  // of the batch norms after input projections

std::string level_name(const std::string& part, size_t level) {
  return "hybrid." + part + "." + std::to_string(level);
}

// The layers of the attending features number `index`.
StackConfig stack_of(const HybridEncoder& e, size_t index) {
  StackConfig stack = e.stack;
  stack.rows = e.stack.rows + "." + std::to_string(index);
  stack.first_tap = static_cast<int64_t>(index) * e.stack.layers;
  return stack;
}

WeightRow fusing_row(const HybridEncoder& e, const std::string& row, const std::string& module,
                     int64_t out, int64_t in) {
  WeightRow made = conv_norm_row(row, module + ".conv", module + ".norm", out, in);
  made.batch_norm_epsilon = e.epsilon;
  return made;
}

void add_fusion_rows(const HybridEncoder& e, const std::string& row, const std::string& module,
                     WeightTable& table) {
  const int64_t d = e.stack.width, c = e.inner;
  for (const char* conv : {"1", "2"}) {
    table.rows.push_back(fusing_row(e, row + "." + conv, module + ".conv" + conv, c, 2 * d));
  }
  for (int64_t i = 0; i < kRepBlocks; ++i) {
    const std::string number = std::to_string(i);
    const std::string from = module + ".bottlenecks." + number;
    table.rows.push_back(fusing_row(e, row + ".rep." + number + ".3", from + ".conv1", c, 9 * c));
    table.rows.push_back(fusing_row(e, row + ".rep." + number + ".1", from + ".conv2", c, c));
  }
  if (c != d) table.rows.push_back(fusing_row(e, row + ".3", module + ".conv3", d, c));
}

void add_attending_rows(const HybridEncoder& e, const Checkpoint& checkpoint,
                        const std::string& prefix, size_t index, WeightTable& table) {
  const StackConfig stack = stack_of(e, index);
  const int64_t d = stack.width;
  const std::string number = std::to_string(index) + ".layers.";
  const std::string now = prefix + "encoder.aifi." + number;
  const bool is_new = checkpoint.find(now + "0.self_attn.q_proj.weight") != nullptr;
  const std::string from = is_new ? now : prefix + "encoder.encoder." + number;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const std::string to = stack.layer_rows(i);
    const std::string layer = from + std::to_string(i) + ".";
    const std::string own = layer + "self_attn.";
    const auto module = [&](const std::string& old, const std::string& renamed) {
      return renamed_module(checkpoint, layer + old, layer + renamed);
    };
    table.rows.push_back(norm_row(to + ".self.norm", layer + "self_attn_layer_norm", d));
    if (e.placed) {
      table.rows.push_back(linear_row(to + ".self.qk", {own + "q_proj", own + "k_proj"}, 2 * d, d));
      table.rows.push_back(linear_row(to + ".self.v", {own + "v_proj"}, d, d));
    } else {
      table.rows.push_back(
          linear_row(to + ".self.qkv", {own + "q_proj", own + "k_proj", own + "v_proj"}, 3 * d, d));
    }
    table.rows.push_back(
        linear_row(to + ".self.out", {module("self_attn.out_proj", "self_attn.o_proj")}, d, d));
    table.rows.push_back(norm_row(to + ".ffn.norm", layer + "final_layer_norm", d));
    table.rows.push_back(linear_row(to + ".ffn.up", {module("fc1", "mlp.fc1")}, stack.ffn, d));
    table.rows.push_back(linear_row(to + ".ffn.down", {module("fc2", "mlp.fc2")}, d, stack.ffn));
  }
}

// (S, D): [sin y | cos y | sin x | cos x] of a grid.
std::vector<float> sine_positions(const HybridEncoder& e, const GridSize& grid) {
  const int64_t quarter = e.stack.width / 4;
  std::vector<float> values;
  for (int64_t p = 0; p < grid.count(); ++p) {
    for (const int64_t place : {p / grid.width, p % grid.width}) {
      const auto angle = [&](int64_t i) {
        const double power = static_cast<double>(i) / static_cast<double>(quarter);
        return static_cast<double>(place) / std::pow(e.temperature, power);
      };
      for (int64_t i = 0; i < quarter; ++i)
        values.push_back(static_cast<float>(std::sin(angle(i))));
      for (int64_t i = 0; i < quarter; ++i)
        values.push_back(static_cast<float>(std::cos(angle(i))));
    }
  }
  return values;
}

Result<FeatureMap> attend_within(ModelBuilder& b, const HybridEncoder& e, size_t index,
                                 const FeatureMap& x, const ForwardTaps& taps) {
  const int64_t batch = b.graph().tensor(x.states).shape[0];
  StackRun run{.batch = batch, .tokens = x.grid.count(), .taps = taps};
  if (e.placed) {
    const std::vector<float> own = sine_positions(e, x.grid);
    std::vector<float> all;
    for (int64_t i = 0; i < batch; ++i) all.insert(all.end(), own.begin(), own.end());
    run.placed =
        b.host_floats(level_name("positions", index), {batch, x.grid.count(), e.stack.width}, all);
  }
  VKF_ASSIGN(const TensorId y, add_stack(b, stack_of(e, index), run, x.states));
  return FeatureMap{y, x.grid};
}

// Every feature four times: torch's interpolate by 2 with the nearest one.
Result<FeatureMap> add_doubled(ModelBuilder& b, const std::string& name, const FeatureMap& x) {
  const int64_t batch = b.graph().tensor(x.states).shape[0];
  const GridSize to = {2 * x.grid.height, 2 * x.grid.width};
  std::vector<uint32_t> rows;
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t p = 0; p < to.count(); ++p) {
      const int64_t row = p / to.width / 2, column = p % to.width / 2;
      rows.push_back(u32((i * x.grid.height + row) * x.grid.width + column));
    }
  }
  b.graph().set_scope(name);
  const TensorId indices = b.host_tensor(name, DType::kU32, {batch, to.count()}, std::move(rows));
  VKF_ASSIGN(const TensorId y, add_gather_rows(b.graph(), {.x = x.states, .indices = indices}));
  return FeatureMap{y, to};
}

// RepVGG (Ding et al., 2021): act(conv3x3(x) + conv1x1(x)).
Result<FeatureMap> add_rep_block(ModelBuilder& b, const HybridEncoder& e, const std::string& row,
                                 const FeatureMap& x) {
  VKF_ASSIGN(const FeatureMap narrow, add_feature_conv(b, {row + ".1"}, x));
  VKF_ASSIGN(FeatureMap y, add_feature_conv(b, {row + ".3", 3}, x, {.residual = narrow.states}));
  VKF_ASSIGN(y.states, add_activation(b.graph(), y.states, {.kind = e.activation}));
  return y;
}

// Cross-stage partial layer of both features' channels.
Result<FeatureMap> fuse_features(ModelBuilder& b, const HybridEncoder& e, const std::string& row,
                                 const FeatureMap& first, const FeatureMap& second) {
  b.graph().set_scope(row + ".channels");
  VKF_ASSIGN(const TensorId both, add_concat_columns(b.graph(), first.states, second.states));
  const FeatureMap x{both, first.grid};
  const LinearAttrs act{.activation = e.activation};
  VKF_ASSIGN(FeatureMap deep, add_feature_conv(b, {row + ".1"}, x, act));
  for (int64_t i = 0; i < kRepBlocks; ++i) {
    VKF_ASSIGN(deep, add_rep_block(b, e, row + ".rep." + std::to_string(i), deep));
  }
  VKF_ASSIGN(
      const FeatureMap sum,
      add_feature_conv(b, {row + ".2"}, x, {.activation = e.activation, .residual = deep.states}));
  if (e.inner == e.stack.width) return sum;
  return add_feature_conv(b, {row + ".3"}, sum, act);
}

Status check_doubles(const std::vector<FeatureMap>& features) {
  for (size_t i = 0; i + 1 < features.size(); ++i) {
    const GridSize& large = features[i].grid;
    const GridSize& small = features[i + 1].grid;
    if (large.height == 2 * small.height && large.width == 2 * small.width) continue;
    return invalid_argument(
        message({"[pixel_values] make features of ", large.height, " x ", large.width, ", then of ",
                 small.height, " x ", small.width,
                 ", but each must be twice as large as the next; give pictures whose sides are "
                 "multiples of 32."}));
  }
  return {};
}

}  // namespace

std::string renamed_module(const Checkpoint& checkpoint, const std::string& old,
                           const std::string& now) {
  return checkpoint.find(now + ".weight") != nullptr ? now : old;
}

void add_hybrid_rows(const HybridEncoder& e, const Checkpoint& checkpoint,
                     const std::string& prefix, WeightTable& table) {
  const int64_t d = e.stack.width;
  for (size_t i = 0; i < e.levels(); ++i) {
    const std::string from = prefix + "encoder_input_proj." + std::to_string(i) + ".";
    WeightRow row = conv_norm_row(level_name("input", i), from + "0", from + "1", d, e.channels[i]);
    row.batch_norm_epsilon = kInputEpsilon;
    table.rows.push_back(std::move(row));
  }
  for (size_t i = 0; i < e.attending.size() && e.stack.layers > 0; ++i) {
    add_attending_rows(e, checkpoint, prefix, i, table);
  }
  const std::string from = prefix + "encoder.";
  for (size_t i = 0; i + 1 < e.levels(); ++i) {
    const std::string number = std::to_string(i);
    table.rows.push_back(
        fusing_row(e, level_name("lateral", i), from + "lateral_convs." + number, d, d));
    add_fusion_rows(e, level_name("down", i), from + "fpn_blocks." + number, table);
    table.rows.push_back(
        fusing_row(e, level_name("halve", i), from + "downsample_convs." + number, d, 9 * d));
    add_fusion_rows(e, level_name("up", i), from + "pan_blocks." + number, table);
  }
}

Result<std::vector<FeatureMap>> add_hybrid_encoder(ModelBuilder& b, const HybridEncoder& e,
                                                   const std::vector<FeatureMap>& features,
                                                   const ForwardTaps& taps) {
  VKF_CHECK(check_doubles(features));
  std::vector<FeatureMap> maps;
  for (size_t i = 0; i < features.size(); ++i) {
    VKF_ASSIGN(const FeatureMap own, add_feature_conv(b, {level_name("input", i)}, features[i]));
    maps.push_back(own);
  }
  for (size_t i = 0; i < e.attending.size() && e.stack.layers > 0; ++i) {
    FeatureMap& own = maps[e.attending[i]];
    VKF_ASSIGN(own, attend_within(b, e, i, own, taps));
  }
  const size_t last = maps.size() - 1;
  const LinearAttrs act{.activation = e.activation};
  // From the smallest to the largest: `maps` becomes what each size passes on.
  for (size_t i = 0; i < last; ++i) {
    FeatureMap& small = maps[last - i];
    FeatureMap& large = maps[last - i - 1];
    VKF_ASSIGN(small, add_feature_conv(b, {level_name("lateral", i)}, small, act));
    VKF_ASSIGN(const FeatureMap doubled, add_doubled(b, level_name("double", i), small));
    VKF_ASSIGN(large, fuse_features(b, e, level_name("down", i), doubled, large));
  }
  for (size_t i = 0; i < last; ++i) {
    VKF_ASSIGN(const FeatureMap halved,
               add_feature_conv(b, {level_name("halve", i), 3, 2}, maps[i], act));
    VKF_ASSIGN(maps[i + 1], fuse_features(b, e, level_name("up", i), halved, maps[i + 1]));
  }
  return maps;
}

}  // namespace vkformer
