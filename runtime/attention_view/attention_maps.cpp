#include "attention_view/attention_maps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

using std::to_string;

size_t map_size(const AttentionMaps& maps) {
  return static_cast<size_t>(maps.rows) * static_cast<size_t>(maps.columns);
}

Status check_labels(const char* name, const std::vector<std::string>& labels, int count) {
  if (labels.empty() || labels.size() == static_cast<size_t>(count)) return {};
  return invalid_argument(
      message({"The attention maps' [", name, "] has ", labels.size(), " entries for ", count,
               " of them; give one for each, or none for numbers."}));
}

// What outputs of a kind are called, without the layer's number.
std::string output_prefix(MapKind kind) {
  const std::string stack = kind == MapKind::kSelf ? "" : std::string(choice_name(kind)) + "_";
  return stack + "attentions.";
}

// The layer in the name of an output, or -1 where it is another output.
int layer_of(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix)) return -1;
  int layer = -1;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + prefix.size(), end, layer);
  return parsed.ec == std::errc() && parsed.ptr == end ? layer : -1;
}

// Takes over one item of an output. The first one sets the sizes.
Status add_layer(const std::string& name, const Tensor& tensor, int64_t item, int layer,
                 AttentionMaps& maps) {
  const Shape& shape = tensor.shape;
  const bool usable = shape.size() == 4 && element_count(shape) > 0 &&
                      *std::max_element(shape.begin(), shape.end()) <= INT32_MAX;
  if (!usable) {
    return invalid_argument(message({"[", name, "] has shape ", shape_text(shape),
                                     ", but a map needs (B,H,T,S) with at least one of each."}));
  }
  if (item < 0 || item >= shape[0]) {
    return invalid_argument(
        message({"[", name, "] has maps of ", shape[0], " items, but that of item ", item,
                 " was asked for, counted from 0."}));
  }
  const auto [heads, rows, columns] = std::array{
      static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(shape[3])};
  if (maps.layers.empty()) {
    maps.heads = heads;
    maps.rows = rows;
    maps.columns = columns;
  } else if (heads != maps.heads || rows != maps.rows || columns != maps.columns) {
    return unsupported(message({"[", name, "] has shape ", shape_text(shape),
                                ", but the layer before ", maps.heads, " heads of ", maps.rows,
                                " x ", maps.columns, "; show one layer at a time."}));
  }
  VKF_ASSIGN(const std::vector<float> values, tensor.to_floats());
  const size_t size = map_size(maps) * static_cast<size_t>(heads);
  const auto first = values.begin() + static_cast<ptrdiff_t>(size * static_cast<size_t>(item));
  maps.layers.push_back(
      {.layer = layer, .values = std::vector<float>(first, first + static_cast<ptrdiff_t>(size))});
  return {};
}

// The mean over heads of one layer, in double. (T,S)
std::vector<double> mean_map(const AttentionMaps& maps, size_t index) {
  std::vector<double> mean(map_size(maps), 0.0);
  for (int h = 0; h < maps.heads; ++h) {
    const std::span<const float> values = head_values(maps, index, h);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += static_cast<double>(values[i]);
  }
  for (double& value : mean) value /= maps.heads;
  return mean;
}

// N(0.5 A + 0.5 I), in place. (T,T)
void add_residual(std::vector<double>& a, size_t tokens) {
  for (size_t i = 0; i < tokens; ++i) {
    double* row = &a[i * tokens];
    double sum = 0;
    for (size_t j = 0; j < tokens; ++j) {
      row[j] = 0.5 * row[j] + (i == j ? 0.5 : 0.0);
      sum += row[j];
    }
    // Weights are not negative, so that a sum of at least 0.5 is there to divide by.
    for (size_t j = 0; j < tokens; ++j) row[j] /= sum;
  }
}

// a b, of square matrices; zeros of a (causal attention) cost nothing. (T,T)
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            size_t tokens) {
  std::vector<double> result(tokens * tokens, 0.0);
  for (size_t i = 0; i < tokens; ++i) {
    double* to = &result[i * tokens];
    for (size_t k = 0; k < tokens; ++k) {
      const double factor = a[i * tokens + k];
      if (factor == 0.0) continue;
      const double* from = &b[k * tokens];
      for (size_t j = 0; j < tokens; ++j) to[j] += factor * from[j];
    }
  }
  return result;
}

// Sums over the rows of a head that have two keys or more.
struct RowSums {
  int64_t rows = 0;
  double entropy = 0, most = 0, variance = 0, predicted = 0;
};

// Why ln n - v / (2 t^2) is the entropy to second order: with p = softmax(s / t),
//   H = -sum p ln p = ln Z - sum p s / t,  Z = sum exp(s / t).
// The cumulant expansion of ln (Z / n) in 1/t, for n keys whose scores have mean m and variance v.
// It gives ln Z = ln n + m/t + v/(2t^2) + O(t^-3). Its derivative by 1/t is the mean of s under p,
//   sum p s = m + v/t + O(t^-2).
// So H = ln n + m/t + v/(2t^2) - m/t - v/t^2 + O(t^-3) = ln n - v/(2t^2) + O(t^-3). For scores that
// are Gaussian all higher cumulants vanish, and the first terms omitted come from finite n only.
void add_row(std::span<const float> scores, double entropy, double temperature, RowSums& sums) {
  int64_t keys = 0;
  double mean = 0, squares = 0;
  for (float score : scores) {
    if (score == -INFINITY) continue;
    // Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
    ++keys;
    const double off = static_cast<double>(score) - mean;
    mean += off / static_cast<double>(keys);
    squares += off * (static_cast<double>(score) - mean);
  }
  if (keys < 2) return;
  const double divided = squares / static_cast<double>(keys);
  const double most = std::log(static_cast<double>(keys));
  ++sums.rows;
  sums.entropy += entropy;
  sums.most += most;
  sums.variance += divided * temperature * temperature;
  sums.predicted += most - divided / 2;
}

Status check_measurements(std::span<const AttentionMeasurements> passes) {
  if (passes.empty()) {
    return invalid_argument("There are no [passes] to measure heads of; give one or more.");
  }
  const AttentionMaps& first = passes.front().scores;
  for (const AttentionMeasurements& pass : passes) {
    VKF_CHECK(check_attention_maps(pass.scores));
    const AttentionMaps& maps = pass.scores;
    const bool same = maps.kind == first.kind && maps.heads == first.heads &&
                      maps.first_head == first.first_head &&
                      maps.layers.size() == first.layers.size();
    if (!same || pass.entropies.size() != maps.layers.size()) {
      return invalid_argument(message(
          {"The [passes] have ", maps.layers.size(), " and ", first.layers.size(), " layers of ",
           maps.heads, " and ", first.heads, " heads and entropies of ", pass.entropies.size(),
           " layers; give passes of the same kind, layers and heads."}));
    }
    const size_t size = static_cast<size_t>(maps.heads) * static_cast<size_t>(maps.rows);
    for (const std::vector<float>& entropy : pass.entropies) {
      if (entropy.size() == size) continue;
      return invalid_argument(message({"The [entropies] of a layer are ", entropy.size(),
                                       " numbers, but its scores have ", maps.heads, " heads of ",
                                       maps.rows, " rows; give one a row."}));
    }
  }
  return {};
}

Status check_thresholds(const AttentionHeadOptions& options) {
  if (!(options.temperature > 0) || !std::isfinite(options.temperature)) {
    return invalid_argument(
        message({"The [temperature] is ", options.temperature, ", but must be above 0."}));
  }
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  if (share(options.collapsed) && share(options.saturated) &&
      options.saturated < options.collapsed) {
    return {};
  }
  return invalid_argument(
      message({"The thresholds [saturated] and [collapsed] are ", options.saturated, " and ",
               options.collapsed, ", but must be shares from 0 to 1, the first one the smaller."}));
}

AttentionHead judge(const RowSums& sums, const AttentionHeadOptions& options) {
  AttentionHead head;
  head.rows = sums.rows;
  if (sums.rows == 0) return head;
  const auto rows = static_cast<double>(sums.rows);
  head.entropy = sums.entropy / rows;
  head.most_entropy = sums.most / rows;
  head.score_variance = sums.variance / rows;
  head.predicted_entropy = sums.predicted / rows;
  const double share = sums.entropy / sums.most;
  if (share > options.collapsed) head.state = AttentionHead::State::kCollapsed;
  if (share < options.saturated) head.state = AttentionHead::State::kSaturated;
  return head;
}

}  // namespace

Status check_attention_maps(const AttentionMaps& maps) {
  if (maps.heads < 1 || maps.rows < 1 || maps.columns < 1 || maps.layers.empty()) {
    return invalid_argument(
        message({"The attention maps [", maps.kind, "] are empty: they have ", maps.layers.size(),
                 " layers, ", maps.heads, " heads, ", maps.rows, " rows and ", maps.columns,
                 " columns; give at least one of each."}));
  }
  for (const AttentionLayer& layer : maps.layers) {
    // Divided, since three sizes may be more than 64 bits hold.
    const size_t size = layer.values.size();
    const auto heads = static_cast<size_t>(maps.heads);
    if (size % heads == 0 && size / heads == map_size(maps)) continue;
    return invalid_argument(
        message({"The attention maps' layer [", layer.layer, "] has ", size, " values, but ",
                 maps.heads, " heads of ", maps.rows, " rows and ", maps.columns,
                 " columns are another number; make the sizes agree."}));
  }
  VKF_CHECK(check_labels("row_labels", maps.row_labels, maps.rows));
  return check_labels("column_labels", maps.column_labels, maps.columns);
}

std::span<const float> head_values(const AttentionMaps& maps, size_t index, int head) {
  const size_t size = map_size(maps);
  return std::span(maps.layers[index].values).subspan(static_cast<size_t>(head) * size, size);
}

std::string head_name(const AttentionMaps& maps, size_t index, int head) {
  const std::string layer = "layer " + to_string(maps.layers[index].layer);
  if (maps.first_head < 0) return layer + ", mean over heads";
  return layer + ", head " + to_string(maps.first_head + head);
}

Result<AttentionMaps> collect_maps(const TensorMap& outputs, MapKind kind, int64_t item) {
  const std::string prefix = output_prefix(kind);
  std::vector<std::pair<int, const std::string*>> found;
  for (const auto& [name, tensor] : outputs) {
    if (const int layer = layer_of(name, prefix); layer >= 0) found.emplace_back(layer, &name);
  }
  if (found.empty()) {
    return not_found(
        message({"There is no output [", prefix,
                 "l]; run with attentions on, and ask for a kind that the model has."}));
  }
  std::sort(found.begin(), found.end());
  AttentionMaps maps{.kind = choice_name(kind)};
  for (const auto& [layer, name] : found) {
    VKF_CHECK(add_layer(*name, outputs.find(*name)->second, item, layer, maps));
  }
  return maps;
}

Result<AttentionMaps> average_heads(const AttentionMaps& maps) {
  VKF_CHECK(check_attention_maps(maps));
  AttentionMaps mean = {.kind = maps.kind,
                        .heads = 1,
                        .first_head = -1,
                        .rows = maps.rows,
                        .columns = maps.columns,
                        .layers = {},
                        .row_labels = maps.row_labels,
                        .column_labels = maps.column_labels};
  for (size_t i = 0; i < maps.layers.size(); ++i) {
    const std::vector<double> values = mean_map(maps, i);
    mean.layers.push_back(
        {.layer = maps.layers[i].layer, .values = {values.begin(), values.end()}});
  }
  return mean;
}

Result<AttentionMaps> roll_out(const AttentionMaps& maps) {
  VKF_CHECK(check_attention_maps(maps));
  if (maps.rows != maps.columns) {
    return invalid_argument(
        message({"[rollout] needs self-attention, but the maps [", maps.kind, "] have ", maps.rows,
                 " rows and ", maps.columns, " columns."}));
  }
  for (size_t i = 1; i < maps.layers.size(); ++i) {
    if (maps.layers[i].layer == maps.layers[i - 1].layer + 1) continue;
    return invalid_argument(
        message({"[rollout] needs layers that follow each other, but layer ", maps.layers[i].layer,
                 " follows layer ", maps.layers[i - 1].layer, "; give all of them."}));
  }
  const auto tokens = static_cast<size_t>(maps.rows);
  std::vector<double> flow;
  for (size_t i = 0; i < maps.layers.size(); ++i) {
    std::vector<double> layer = mean_map(maps, i);
    add_residual(layer, tokens);
    flow = i == 0 ? std::move(layer) : product(layer, flow, tokens);
  }
  AttentionMaps result = {.kind = "rollout",
                          .heads = 1,
                          .first_head = -1,
                          .rows = maps.rows,
                          .columns = maps.columns,
                          .layers = {},
                          .row_labels = maps.row_labels,
                          .column_labels = maps.column_labels};
  result.layers.push_back(
      {.layer = maps.layers.back().layer, .values = {flow.begin(), flow.end()}});
  return result;
}

Result<std::vector<AttentionHead>> measure_heads(std::span<const AttentionMeasurements> passes,
                                                 const AttentionHeadOptions& options) {
  VKF_CHECK(check_thresholds(options));
  VKF_CHECK(check_measurements(passes));
  const AttentionMaps& first = passes.front().scores;
  std::vector<AttentionHead> heads;
  for (size_t l = 0; l < first.layers.size(); ++l) {
    for (int h = 0; h < first.heads; ++h) {
      RowSums sums;
      for (const AttentionMeasurements& pass : passes) {
        const auto columns = static_cast<size_t>(pass.scores.columns);
        const auto rows = static_cast<size_t>(pass.scores.rows);
        const std::span<const float> scores = head_values(pass.scores, l, h);
        const float* entropy = &pass.entropies[l][static_cast<size_t>(h) * rows];
        for (size_t r = 0; r < rows; ++r) {
          add_row(scores.subspan(r * columns, columns), static_cast<double>(entropy[r]),
                  options.temperature, sums);
        }
      }
      heads.push_back(judge(sums, options));
      heads.back().kind = first.kind;
      heads.back().layer = first.layers[l].layer;
      heads.back().head = std::max(first.first_head, 0) + h;
    }
  }
  return heads;
}

}  // namespace vkformer
