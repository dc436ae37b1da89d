#include "model/blocks/resnet.h"

#include <algorithm>

#include "base/message.h"
#include "base/name_list.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/max_pool.h"
#include "ops/resize_grid.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

constexpr size_t kMostStages = 16;
constexpr int64_t kMostDepth = 1024;
constexpr int64_t kReduction = 4;  // of a bottleneck's inner channels
constexpr int64_t kStemKernel = 7;
constexpr int64_t kPoolKernel = 3;

// One convolution with its batch norm, padded by half its kernel.
struct NetConv {
  std::string row;
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
};

// One layer: a run of convolutions beside a shortcut, which is one or nothing.
struct NetLayer {
  std::vector<NetConv> convs;
  bool projects = false;
  bool pools = false;  // means of 2 x 2 pixels, before the shortcut's convolution
  NetConv shortcut;
};

std::vector<NetConv> stem_of(const ResNet& net) {
  const std::string row = net.rows + ".stem";
  if (net.form == ResNet::Form::kStrided) return {{row, net.channels, net.stem, kStemKernel, 2}};
  const int64_t half = net.stem / 2;
  return {{row + ".0", net.channels, half, 3, 2},
          {row + ".1", half, half, 3, 1},
          {row + ".2", half, net.stem, 3, 1}};
}

NetLayer layer_of(const ResNet& net, size_t stage, int64_t index) {
  const bool first = index == 0;
  const int64_t out = net.widths[stage];
  const int64_t in = !first ? out : stage == 0 ? net.stem : net.widths[stage - 1];
  const bool halves = stage > 0 || net.halves_first == ResNet::HalvesFirst::kYes;
  const int64_t stride = first && halves ? 2 : 1;
  const std::string row =
      net.rows + "." + std::to_string(stage) + "." + std::to_string(index) + ".";
  NetLayer layer;
  if (net.layer == ResNet::Layer::kBasic) {
    layer.convs = {{row + "0", in, out, 3, stride}, {row + "1", out, out, 3, 1}};
  } else {
    const int64_t inner = out / kReduction;
    const bool at_first = net.halves == ResNet::Halves::kFirst;
    layer.convs = {{row + "0", in, inner, 1, at_first ? stride : 1},
                   {row + "1", inner, inner, 3, at_first ? 1 : stride},
                   {row + "2", inner, out, 1, 1}};
  }
  layer.projects = in != out || stride != 1;
  if (net.form == ResNet::Form::kPooled) {
    // As the reference implementation has it: basic layers project at every stage's begin, and
    // pool where they change the channels.
    const bool basic = net.layer == ResNet::Layer::kBasic;
    layer.projects = layer.projects || (basic && first);
    layer.pools = stride == 2 && (!basic || in != out);
  }
  layer.shortcut = {row + "shortcut", in, out, 1, layer.pools ? 1 : stride};
  return layer;
}

// Names in files of the library, or of timm.
struct NetNames {
  std::string prefix;
  bool timm = false;

  // Convolution and batch norm.
  using Pair = std::pair<std::string, std::string>;
  Pair stem(size_t index, bool several) const {
    const std::string number = several ? std::to_string(index) + "." : std::string();
    const std::string stem = prefix + "embedder.embedder." + number;
    return timm ? Pair{prefix + "conv1", prefix + "bn1"}
                : Pair{stem + "convolution", stem + "normalization"};
  }
  std::string layer(size_t stage, int64_t index) const {
    const std::string number = std::to_string(index);
    return timm ? prefix + "layer" + std::to_string(stage + 1) + "." + number + "."
                : prefix + "encoder.stages." + std::to_string(stage) + ".layers." + number + ".";
  }
  Pair conv(const std::string& layer, size_t index) const {
    const std::string number = std::to_string(timm ? index + 1 : index);
    return timm ? Pair{layer + "conv" + number, layer + "bn" + number}
                : Pair{layer + "layer." + number + ".convolution",
                       layer + "layer." + number + ".normalization"};
  }
  Pair shortcut(const std::string& layer, bool pools) const {
    const std::string shortcut = layer + (pools ? "shortcut.1." : "shortcut.");
    return timm ? Pair{layer + "downsample.0", layer + "downsample.1"}
                : Pair{shortcut + "convolution", shortcut + "normalization"};
  }
};

void add_conv_row(const NetConv& conv, const NetNames::Pair& names, WeightTable& table) {
  table.rows.push_back(conv_norm_row(conv.row, names.first, names.second, conv.out,
                                     conv.in * conv.kernel * conv.kernel));
}

FeatureConv feature_conv(const NetConv& conv) {
  return {conv.row, conv.kernel, conv.stride};
}

// Means of 2 x 2 features.
Result<FeatureMap> add_halved(ModelBuilder& b, const std::string& row, const FeatureMap& x) {
  const GridSize to = {(x.grid.height + 1) / 2, (x.grid.width + 1) / 2};
  b.graph().set_scope(row + ".means");
  ResizeGridAttrs attrs{u32(x.grid.height), u32(x.grid.width), u32(to.height), u32(to.width)};
  attrs.corners = ResizeGridAttrs::Corners::kHalves;
  VKF_ASSIGN(const TensorId y, add_resize_grid(b.graph(), x.states, attrs));
  return FeatureMap{y, to};
}

// act(convolutions(x) + shortcut(x)); between convolutions there is a ReLU, whatever act is.
Result<FeatureMap> add_net_layer(ModelBuilder& b, const ResNet& net, const NetLayer& layer,
                                 const FeatureMap& x) {
  FeatureMap shortcut = x;
  if (layer.pools) {
    VKF_ASSIGN(shortcut, add_halved(b, layer.shortcut.row, shortcut));
  }
  if (layer.projects) {
    VKF_ASSIGN(shortcut, add_feature_conv(b, feature_conv(layer.shortcut), shortcut));
  }
  FeatureMap y = x;
  for (const NetConv& conv : layer.convs) {
    LinearAttrs attrs{.activation = ActivationKind::kRelu};
    if (&conv == &layer.convs.back()) attrs = {.residual = shortcut.states};
    VKF_ASSIGN(y, add_feature_conv(b, feature_conv(conv), y, attrs));
  }
  VKF_ASSIGN(y.states, add_activation(b.graph(), y.states, {.kind = net.activation}));
  return y;
}

Status check_widths(const JsonConfig& config, const ResNet& net) {
  for (size_t i = 0; i < net.widths.size(); ++i) {
    const int64_t width = net.widths[i];
    const bool fits = width >= 1 && width <= kMostWidth &&
                      (net.layer == ResNet::Layer::kBasic || width % kReduction == 0);
    if (!fits) {
      return invalid_file(
          message({"[hidden_sizes] of ", config.where(), " has ", width, " channels in stage ",
                   i + 1, ", but there must be 1 to ", kMostWidth, ", and a multiple of ",
                   kReduction, " in bottleneck layers."}));
    }
    if (net.depths[i] < 1 || net.depths[i] > kMostDepth) {
      return invalid_file(
          message({"[depths] of ", config.where(), " has ", net.depths[i], " layers in stage ",
                   i + 1, ", but there must be 1 to ", kMostDepth, "."}));
    }
  }
  return {};
}

// The stages that are read, in ascending order.
Result<std::vector<int64_t>> read_stages(const JsonConfig& config, int64_t stages,
                                         const std::vector<int64_t>& fallback) {
  VKF_ASSIGN(const auto features, config.get_string_list_or("out_features", {}));
  std::vector<int64_t> read;
  for (const std::string& name : features) {
    int64_t stage = name == "stem" ? 0 : -1;
    for (int64_t i = 1; i <= stages; ++i) {
      if (name == "stage" + std::to_string(i)) stage = i;
    }
    if (stage < 0) {
      return invalid_file(message({"[out_features] of ", config.where(), " has '", name,
                                   "'; the stages are stem and stage1 to stage", stages, "."}));
    }
    read.push_back(stage);
  }
  if (read.empty()) {
    const std::vector<int64_t> last = {stages};
    VKF_ASSIGN(const auto indices,
               config.get_int_list_or("out_indices", fallback.empty() ? last : fallback));
    for (const int64_t index : indices) {
      const int64_t stage = index < 0 ? index + stages + 1 : index;
      if (stage < 0 || stage > stages) {
        return invalid_file(message({"[out_indices] of ", config.where(), " has ", index,
                                     "; the stages are 0 to ", stages, "."}));
      }
      read.push_back(stage);
    }
    if (read.empty()) read = last;
  }
  std::sort(read.begin(), read.end());
  read.erase(std::unique(read.begin(), read.end()), read.end());
  return read;
}

// A first stage of basic layers that keeps its size cannot change its channels: its shortcut would
// be pooled.
Status check_pooled_stem(const JsonConfig& config, const ResNet& net) {
  const bool odd = net.stem < 2;
  const bool pools = net.layer == ResNet::Layer::kBasic && !net.widths.empty() &&
                     net.widths[0] != net.stem && net.halves_first == ResNet::HalvesFirst::kNo;
  if (!odd && !pools) return {};
  return invalid_file(
      message({"[embedding_size] of ", config.where(), " is ", net.stem,
               ", but must be at least 2, and with basic layers the width of the first stage, "
               "whose shortcut would halve the features."}));
}

}  // namespace

Result<ResNet> read_resnet(const JsonConfig& config, ResNet::Form form,
                           const std::vector<int64_t>& fallback) {
  ResNet net{.form = form};
  VKF_ASSIGN(net.channels, get_size_or(config, "num_channels", 3, kMostWidth));
  VKF_ASSIGN(net.stem, get_size_or(config, "embedding_size", 64, kMostWidth));
  VKF_ASSIGN(net.widths, config.get_int_list_or("hidden_sizes", {256, 512, 1024, 2048}));
  VKF_ASSIGN(net.depths, config.get_int_list_or("depths", {3, 4, 6, 3}));
  if (net.widths.empty() || net.widths.size() > kMostStages ||
      net.depths.size() != net.widths.size()) {
    return invalid_file(message({"[hidden_sizes] and [depths] of ", config.where(), " have ",
                                 net.widths.size(), " and ", net.depths.size(),
                                 " stages, but must have as many, 1 to ", kMostStages, "."}));
  }
  VKF_ASSIGN(const std::string layer, config.get_string_or("layer_type", "bottleneck"));
  if (layer != "bottleneck" && layer != "basic") {
    return invalid_file(message({"[layer_type] of ", config.where(), " is '", layer,
                                 "', but must be basic or bottleneck."}));
  }
  net.layer = layer == "basic" ? ResNet::Layer::kBasic : ResNet::Layer::kBottleneck;
  VKF_ASSIGN(const bool at_first, config.get_bool_or("downsample_in_bottleneck", false));
  if (at_first) net.halves = ResNet::Halves::kFirst;
  VKF_ASSIGN(const bool first_stage, config.get_bool_or("downsample_in_first_stage", false));
  if (first_stage) net.halves_first = ResNet::HalvesFirst::kYes;
  VKF_ASSIGN(net.activation, get_activation(config, "hidden_act", "relu"));
  VKF_CHECK(check_widths(config, net));
  if (form == ResNet::Form::kPooled) VKF_CHECK(check_pooled_stem(config, net));
  VKF_ASSIGN(net.read, read_stages(config, static_cast<int64_t>(net.widths.size()), fallback));
  net.widths.resize(static_cast<size_t>(net.read.back()));
  net.depths.resize(static_cast<size_t>(net.read.back()));
  return net;
}

Result<ResNet> named_resnet(const std::string& name, int64_t channels) {
  const struct {
    const char* name;
    std::vector<int64_t> depths;
    ResNet::Layer layer;
  } rows[] = {{"resnet18", {2, 2, 2, 2}, ResNet::Layer::kBasic},
              {"resnet34", {3, 4, 6, 3}, ResNet::Layer::kBasic},
              {"resnet50", {3, 4, 6, 3}, ResNet::Layer::kBottleneck},
              {"resnet101", {3, 4, 23, 3}, ResNet::Layer::kBottleneck},
              {"resnet152", {3, 8, 36, 3}, ResNet::Layer::kBottleneck}};
  std::vector<std::string> names;
  for (const auto& row : rows) {
    names.emplace_back(row.name);
    if (name != row.name) continue;
    ResNet net{.channels = channels, .depths = row.depths, .layer = row.layer};
    const int64_t widest = row.layer == ResNet::Layer::kBasic ? 64 : 256;
    net.widths = {widest, 2 * widest, 4 * widest, 8 * widest};
    net.read = {static_cast<int64_t>(net.widths.size())};
    return net;
  }
  return unsupported(message(
      {"The backbone '", name, "' is not supported; supported are ", name_list(names), "."}));
}

GridSize feature_grid(const ResNet& net, const GridSize& picture) {
  GridSize grid = picture;
  const auto go = [&](const std::vector<NetConv>& convs) {
    for (const NetConv& conv : convs) grid = grid_after(grid, conv.kernel, conv.stride);
  };
  go(stem_of(net));
  grid = grid_after(grid, kPoolKernel, 2);
  for (size_t stage = 0; stage < net.widths.size(); ++stage) go(layer_of(net, stage, 0).convs);
  return grid;
}

void add_resnet_rows(const ResNet& net, const Checkpoint& checkpoint, const std::string& prefix,
                     WeightTable& table) {
  const NetNames names{prefix, checkpoint.find(prefix + "conv1.weight") != nullptr};
  const std::vector<NetConv> stem = stem_of(net);
  for (size_t i = 0; i < stem.size(); ++i) {
    add_conv_row(stem[i], names.stem(i, stem.size() > 1), table);
  }
  for (size_t stage = 0; stage < net.widths.size(); ++stage) {
    for (int64_t i = 0; i < net.depths[stage]; ++i) {
      const NetLayer layer = layer_of(net, stage, i);
      const std::string from = names.layer(stage, i);
      for (size_t c = 0; c < layer.convs.size(); ++c) {
        add_conv_row(layer.convs[c], names.conv(from, c), table);
      }
      if (layer.projects) add_conv_row(layer.shortcut, names.shortcut(from, layer.pools), table);
    }
  }
  table.ignored.push_back(prefix + "*num_batches_tracked");
  for (size_t stage = net.widths.size(); stage < kMostStages; ++stage) {
    table.ignored.push_back(prefix + "encoder.stages." + std::to_string(stage) + ".*");
  }
}

Result<std::vector<FeatureMap>> add_resnet_stages(ModelBuilder& b, const ResNet& net,
                                                  TensorId pixels) {
  Graph& g = b.graph();
  const Shape shape = g.tensor(pixels).shape;
  const std::vector<NetConv> stem = stem_of(net);
  const NetConv& first = stem.front();
  g.set_scope(first.row + ".windows");
  VKF_ASSIGN(const TensorId windows,
             add_unfold(g, pixels, {.window = feature_window(first.kernel, first.stride)}));
  FeatureMap x{kNoTensor, grid_after({shape[2], shape[3]}, first.kernel, first.stride)};
  VKF_ASSIGN(x.states, add_named_linear(b, first.row, windows, {.activation = net.activation}));
  for (size_t i = 1; i < stem.size(); ++i) {
    VKF_ASSIGN(x, add_feature_conv(b, feature_conv(stem[i]), x, {.activation = net.activation}));
  }
  g.set_scope(net.rows + ".pool");
  VKF_ASSIGN(x.states, add_max_pool(g, x.states,
                                    {.source = feature_source(x.grid),
                                     .window = feature_window(kPoolKernel, 2)}));
  x.grid = grid_after(x.grid, kPoolKernel, 2);
  std::vector<FeatureMap> stages = {x};
  for (size_t stage = 0; stage < net.widths.size(); ++stage) {
    for (int64_t i = 0; i < net.depths[stage]; ++i) {
      VKF_ASSIGN(x, add_net_layer(b, net, layer_of(net, stage, i), x));
    }
    stages.push_back(x);
  }
  std::vector<FeatureMap> read;
  for (const int64_t stage : net.read) read.push_back(stages[static_cast<size_t>(stage)]);
  return read;
}

Result<FeatureMap> add_resnet(ModelBuilder& b, const ResNet& net, TensorId pixels) {
  VKF_ASSIGN(const std::vector<FeatureMap> read, add_resnet_stages(b, net, pixels));
  return read.back();
}

}  // namespace vkformer
