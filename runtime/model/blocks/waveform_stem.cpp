#include "model/blocks/waveform_stem.h"

#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/stack.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/conv.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/unfold.h"
#include "weights/fold_batch_norm.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostKernel = 1024;
constexpr size_t kMostConvolutions = 64;
constexpr float kStemEpsilon = 1e-5f;  // which layer_norm_eps does not set

}  // namespace

Status read_waveform_stem(const JsonConfig& config, WaveformStem& stem) {
  VKF_ASSIGN(const auto widths, config.get_int_list_or("conv_dim", std::vector<int64_t>(7, 512)));
  VKF_ASSIGN(const auto kernels, config.get_int_list_or("conv_kernel", {10, 3, 3, 3, 3, 2, 2}));
  VKF_ASSIGN(const auto strides, config.get_int_list_or("conv_stride", {5, 2, 2, 2, 2, 2, 2}));
  if (widths.empty() || widths.size() > kMostConvolutions || kernels.size() != widths.size() ||
      strides.size() != widths.size()) {
    return invalid_file(
        message({"[conv_dim] in ", config.where(), " has ", widths.size(),
                 " values, [conv_kernel] ", kernels.size(), " and [conv_stride] ", strides.size(),
                 ", but there must be as many of each, from 1 to ", kMostConvolutions}));
  }
  int64_t in = 1;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool fits = widths[i] >= 1 && widths[i] <= kMostWidth && kernels[i] >= 1 &&
                      kernels[i] <= kMostKernel && strides[i] >= 1 && strides[i] <= kMostKernel;
    if (!fits) {
      return invalid_file(message({"[conv_dim] in ", config.where(), " has a convolution of ",
                                   widths[i], " channels with a kernel of ", kernels[i],
                                   " and a stride of ", strides[i], ", but must lie between 1 and ",
                                   kMostWidth, " channels and ", kMostKernel, " samples"}));
    }
    stem.convs.push_back({in, widths[i], kernels[i], strides[i]});
    in = widths[i];
  }
  VKF_ASSIGN(const bool bias, config.get_bool_or("conv_bias", false));
  if (bias) stem.bias = WaveformStem::Bias::kYes;
  VKF_ASSIGN(stem.activation, get_activation(config, "feat_extract_activation", "gelu"));
  VKF_ASSIGN(const std::string norm, config.get_string_or("feat_extract_norm", "group"));
  if (norm == "layer") stem.norm = WaveformStem::Norm::kLayer;
  if (norm == "layer" || norm == "group") return {};
  return invalid_file(message(
      {"[feat_extract_norm] in ", config.where(), " is '", norm, "', but must be group or layer"}));
}

void add_stem_rows(const WaveformStem& stem, const std::string& from, WeightTable& table) {
  for (size_t i = 0; i < stem.convs.size(); ++i) {
    const SoundConv& conv = stem.convs[i];
    const std::string to = "conv." + std::to_string(i);
    const std::string layer = from + std::to_string(i) + ".";
    const int64_t taps = conv.in * conv.kernel;
    table.rows.push_back(
        biased_row(stem.bias == WaveformStem::Bias::kYes, to, {layer + "conv"}, conv.out, taps));
    if (stem.norm == WaveformStem::Norm::kLayer || i == 0) {
      table.rows.push_back(norm_row(to + ".norm", layer + "layer_norm", conv.out));
    }
  }
}

Result<TensorId> add_stem(ModelBuilder& b, const WaveformStem& stem, TensorId x) {
  for (size_t i = 0; i < stem.convs.size(); ++i) {
    const std::string name = "conv." + std::to_string(i);
    const bool layer_norm = stem.norm == WaveformStem::Norm::kLayer;
    const bool normed = layer_norm || i == 0;
    UnfoldAttrs unfold{.source = {.order = i == 0 ? ChannelOrder::kFirst : ChannelOrder::kLast}};
    unfold.window.kernel_width = u32(stem.convs[i].kernel);
    unfold.window.stride_width = u32(stem.convs[i].stride);
    b.graph().set_scope(name);
    VKF_ASSIGN(x, add_unfold(b.graph(), x, unfold));
    const ActivationKind fused = normed ? ActivationKind::kNone : stem.activation;
    VKF_ASSIGN(x, add_named_linear(b, name, x, {.activation = fused}));
    if (!normed) continue;
    VKF_ASSIGN(const TensorId gain, b.norm(name + ".norm"));
    if (layer_norm) {
      VKF_ASSIGN(x,
                 add_layer_norm(b.graph(), {.x = x, .gain_bias = gain}, {.epsilon = kStemEpsilon}));
    } else {
      VKF_ASSIGN(x, add_group_norm(b.graph(), x, gain,
                                   {.groups = u32(stem.convs[i].out), .epsilon = kStemEpsilon}));
    }
    VKF_ASSIGN(x, add_activation(b.graph(), x, {.kind = stem.activation}));
  }
  return x;
}

Status read_position_conv(const JsonConfig& config, PositionConv& conv) {
  VKF_ASSIGN(conv.kernel, get_size_or(config, "num_conv_pos_embeddings", 128, kMostKernel));
  VKF_ASSIGN(conv.groups, get_size_or(config, "num_conv_pos_embedding_groups", 16, kMostWidth));
  if (conv.width % conv.groups == 0) return {};
  return invalid_file(
      message({"[num_conv_pos_embedding_groups] in ", config.where(), " is ", conv.groups,
               ", but must divide the hidden_size of ", conv.width, "."}));
}

// Files hold the weight as a direction and, for each tap of the kernel, a length (Salimans and
// Kingma, 2016), under two pairs of names.
Result<WeightRow> position_conv_row(const Checkpoint& checkpoint, const std::string& from,
                                    const PositionConv& conv) {
  const std::string older = from + "weight_v";
  const bool old = checkpoint.find(older) != nullptr;
  const std::string newer = from + "parametrizations.weight.original";
  const int64_t d = conv.width, inputs = d / conv.groups;
  const auto taps = static_cast<size_t>(conv.kernel);
  VKF_ASSIGN(const std::vector<float> length,
             read_floats(checkpoint, old ? from + "weight_g" : newer + "0", {1, 1, conv.kernel}));
  VKF_ASSIGN(std::vector<float> weight,
             read_floats(checkpoint, old ? older : newer + "1", {d, inputs, conv.kernel}));
  VKF_ASSIGN(const std::vector<float> bias, read_floats(checkpoint, from + "bias", {d}));
  std::vector<double> squares(taps, 0.0);
  for (size_t i = 0; i < weight.size(); ++i) {
    squares[i % taps] += static_cast<double>(weight[i]) * static_cast<double>(weight[i]);
  }
  for (size_t i = 0; i < weight.size(); ++i) {
    const double scale = static_cast<double>(length[i % taps]) / std::sqrt(squares[i % taps]);
    weight[i] = static_cast<float>(static_cast<double>(weight[i]) * scale);
  }
  VKF_ASSIGN(std::vector<float> table,
             pack_conv({.name = from, .out = d, .weight = weight, .bias = bias}));
  return computed_row("positions", std::move(table), d, inputs * conv.kernel + 1);
}

Result<TensorId> add_position_conv(ModelBuilder& b, const PositionConv& c, TensorId x) {
  Graph& g = b.graph();
  g.set_scope("positions");
  VKF_ASSIGN(const TensorId table, b.table("positions"));
  ConvAttrs conv{.groups = u32(c.groups)};
  conv.window.kernel_width = u32(c.kernel);
  conv.window.pad_left = u32(c.kernel / 2);
  conv.window.out_height = 1;
  conv.window.out_width = u32(g.tensor(x).shape[1]);  // an even kernel has one more position
  VKF_ASSIGN(const TensorId h, add_conv(g, x, table, conv));
  return add_activation(g, h, {c.activation});
}

}  // namespace vkformer
