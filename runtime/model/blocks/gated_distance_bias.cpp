#include "model/blocks/gated_distance_bias.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/relative_attention.h"
#include "model/blocks/stack_attention.h"
#include "model/weight_rows.h"
#include "ops/conv.h"
#include "ops/gated_activation.h"
#include "ops/move_columns.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kGateParts = 4;  // outputs whose sum is a, and as many for b

// A head with its gate, at a multiple of 4.
int64_t gated_width(const StackConfig& c) {
  return (c.head() / 4 + 1) * 4;
}

// The same linear layer for each head, as a convolution in H groups of one output.
WeightRow head_sums(std::string name, const StackConfig& c, std::span<const float> weight,
                    std::span<const float> bias) {
  const auto e = static_cast<size_t>(c.head());
  std::vector<float> row(e + 1);
  for (size_t part = 0; part < bias.size(); ++part) {
    for (size_t i = 0; i < e; ++i) row[i] += weight[part * e + i];
    row[e] += bias[part];
  }
  std::vector<float> all;
  for (int64_t h = 0; h < c.heads; ++h) all.insert(all.end(), row.begin(), row.end());
  return computed_row(std::move(name), std::move(all), c.heads, c.head() + 1);
}

// Of the pass: the keys of positions (2R + 1, H E') and the biases (2, H E').
struct GatedPositions {
  int64_t reach = 0;
  TensorId keys = kNoTensor;
  TensorId biases = kNoTensor;
};

// x (B, T, H any) -> y (B, T, H) by the convolution in H groups.
Result<TensorId> by_head(const LayerSite& site, const std::string& name, TensorId x) {
  site.b.graph().set_scope(name);
  VKF_ASSIGN(const TensorId table, site.b.table(name));
  return add_conv(site.b.graph(), x, table, {.groups = u32(site.c.heads)});
}

// a (b c - 1) of every head (B, T, H); the 2 is a bias of the kernels.
Result<TensorId> gate_of(const LayerSite& site, TensorId h) {
  Graph& g = site.b.graph();
  const std::string name = site.rows() + ".self.gate";
  const auto heads = u32(site.c.heads);
  VKF_ASSIGN(const TensorId a, by_head(site, name + ".a", h));
  VKF_ASSIGN(TensorId b, by_head(site, name + ".b", h));
  VKF_ASSIGN(b, add_activation(g, b, {.kind = ActivationKind::kSigmoid}));
  VKF_ASSIGN(b, by_head(site, name + ".scale", b));
  VKF_ASSIGN(const TensorId both,
             add_columns(g, kNoTensor, {}, {site.run.batch, site.run.tokens, 2 * site.c.heads}));
  VKF_CHECK(add_place_columns(g, a, both, {.offset = 0, .stride = 2 * heads}));
  VKF_CHECK(add_place_columns(g, b, both, {.offset = heads, .stride = 2 * heads}));
  return add_gated_activation(g, both, {.kind = ActivationKind::kSigmoid});
}

// [q | k | v] (B, T, 3 H E) with each head at E' columns. The gate follows each query, and the
// positions (1, elements) follow all rows.
Result<TensorId> join(const LayerSite& site, const GatedPositions& positions, TensorId qkv,
                      TensorId gate) {
  Graph& g = site.b.graph();
  const int64_t rows = site.run.batch * site.run.tokens * 3 * site.c.heads;
  const int64_t e = site.c.head(), wide = gated_width(site.c);
  VKF_ASSIGN(const TensorId heads, add_columns(g, qkv, {.stride = u32(e)}, {rows, e}));
  VKF_ASSIGN(const TensorId gates, add_columns(g, kNoTensor, {}, {rows, 1}));
  VKF_CHECK(add_place_columns(g, gate, gates, {.stride = u32(3 * site.c.heads)}));
  VKF_ASSIGN(const TensorId y, add_columns(g, kNoTensor, {}, {rows, wide}));
  VKF_CHECK(add_place_columns(g, heads, y, {.stride = u32(wide)}));
  VKF_CHECK(add_place_columns(g, gates, y, {.offset = u32(e), .stride = u32(wide)}));
  return add_joined(g, std::array{y, positions.keys, positions.biases});
}

Result<TensorId> attend_gated(const LayerSite& site, const GatedPositions& positions, TensorId h,
                              TensorId qkv) {
  const auto e = u32(site.c.head()), wide = u32(gated_width(site.c)), heads = u32(site.c.heads);
  VKF_ASSIGN(const TensorId gate, gate_of(site, h));
  site.b.graph().set_scope(site.rows() + ".self");
  VKF_ASSIGN(const TensorId joined, join(site, positions, qkv, gate));
  AttentionAttrs attrs = own_attrs(site);
  if (!attrs.scale) attrs.scale = 1.0f / std::sqrt(static_cast<float>(e));
  attrs.head_width = wide;
  const uint32_t row = 3 * heads * wide;
  attrs.q = merged_rows(attrs.queries, row, 0, wide);
  attrs.k = merged_rows(attrs.keys, row, heads * wide, wide);
  attrs.v = merged_rows(attrs.keys, row, 2 * heads * wide, wide);
  attrs.relative = {.kinds = VKF_RELATIVE_KEYS | VKF_RELATIVE_BIASES,
                    .offset = attrs.batch * attrs.keys * row,
                    .reach = u32(positions.reach)};
  return attend(site, {.q = joined, .kv = joined, .terms = site.run.terms.words}, attrs,
                tap_of(site, site.c.taps));
}

}  // namespace

Status add_gate_rows(const Checkpoint& checkpoint, const std::string& to, const std::string& from,
                     const StackConfig& c, WeightTable& table) {
  const std::string linear = from + "gru_rel_pos_linear.";
  const int64_t e = c.head();
  VKF_ASSIGN(const std::vector<float> weight,
             read_floats(checkpoint, linear + "weight", {2 * kGateParts, e}));
  VKF_ASSIGN(const std::vector<float> bias,
             read_floats(checkpoint, linear + "bias", {2 * kGateParts}));
  VKF_ASSIGN(const std::vector<float> constant,
             read_floats(checkpoint, from + "gru_rel_pos_const", {1, c.heads, 1, 1}));
  const auto half = static_cast<size_t>(kGateParts);
  const std::span<const float> w(weight), b(bias);
  const size_t middle = half * static_cast<size_t>(e);
  table.rows.push_back(head_sums(to + ".gate.a", c, w.first(middle), b.first(half)));
  table.rows.push_back(head_sums(to + ".gate.b", c, w.subspan(middle), b.subspan(half)));
  std::vector<float> scale;
  for (const float value : constant) scale.insert(scale.end(), {value, -1.0f});
  table.rows.push_back(computed_row(to + ".gate.scale", std::move(scale), c.heads, 2));
  return {};
}

Result<StackRun::Attend> gated_distance_attention(ModelBuilder& b, const StackConfig& c,
                                                  const DistanceBias& distance, int64_t tokens) {
  const int64_t e = c.head(), wide = gated_width(c);
  if (wide > int64_t{kMaxHeadWidth}) {
    return unsupported(message({"A head of ", e, " columns has no room for its gate; at most ",
                                kMaxHeadWidth - 1, " columns are supported."}));
  }
  GatedPositions positions{.reach = std::min(distance.reach, std::max<int64_t>(tokens - 1, 1))};
  const int64_t distances = 2 * positions.reach + 1;
  const double unscaled = std::sqrt(static_cast<double>(e));
  std::vector<float> keys(static_cast<size_t>(distances * c.heads * wide), 0.0f);
  for (int64_t d = -positions.reach; d <= positions.reach; ++d) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const int64_t from = h * (2 * distance.reach + 1) + d + distance.reach;
      const int64_t to = ((d + positions.reach) * c.heads + h) * wide + e;
      keys[static_cast<size_t>(to)] =
          static_cast<float>(distance.values[static_cast<size_t>(from)] * unscaled);
    }
  }
  std::vector<float> biases(static_cast<size_t>(2 * c.heads * wide), 0.0f);
  for (int64_t h = c.heads; h < 2 * c.heads; ++h) biases[static_cast<size_t>(h * wide + e)] = 2.0f;
  positions.keys = b.host_floats(c.rows + ".distances", {distances, c.heads * wide}, keys);
  positions.biases = b.host_floats(c.rows + ".gate.biases", {2, c.heads * wide}, biases);
  return StackRun::Attend([positions](const LayerSite& site, TensorId h, TensorId qkv) {
    return attend_gated(site, positions, h, qkv);
  });
}

}  // namespace vkformer
