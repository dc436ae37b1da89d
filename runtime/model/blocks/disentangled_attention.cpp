#include "model/blocks/disentangled_attention.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/stack_attention.h"
#include "model/blocks/text_embedding.h"
#include "model/weight_rows.h"
#include "ops/activation.h"
#include "ops/gather_rows.h"
#include "ops/matmul.h"
#include "ops/move_columns.h"
#include "ops/unfold.h"

namespace vkformer {
namespace {

using Term = DisentangledConfig::Term;

// Distances up to half of the buckets have their own; those above share one by
//
//   mid + ceil(ln(n / mid) / ln((farthest - 1) / mid) (mid - 1)),   mid = buckets / 2
//
// The logarithms are those of floats, as in the reference implementation: at bounds of buckets
// other ones would round to a neighbor.
int64_t distance_bucket(const DistanceRowsConfig& c, int64_t distance) {
  const int64_t mid = c.buckets / 2;
  const int64_t n = std::abs(distance);
  if (c.buckets == 0 || n <= mid) return distance;
  const auto half = static_cast<float>(mid);
  const float step =
      std::log(static_cast<float>(n) / half) / std::log(static_cast<float>(c.farthest - 1) / half);
  const float above = std::ceil(step * static_cast<float>(mid - 1));
  // What is no number, or none of an integer, comes of buckets that check_distance_rows refuses.
  const auto most = static_cast<float>(c.span);
  const int64_t bucket =
      (above < most ? static_cast<int64_t>(std::max(above, -most)) : c.span) + mid;
  return distance < 0 ? -bucket : bucket;
}

// The smallest distance from which on all share a row, in both directions.
int64_t reach_of_rows(const DistanceRowsConfig& c, int64_t tokens) {
  int64_t reach = std::max<int64_t>(tokens - 1, 1);
  while (reach > 1 && distance_row(c, reach - 1) == distance_row(c, reach) &&
         distance_row(c, 1 - reach) == distance_row(c, -reach)) {
    --reach;
  }
  return reach;
}

// What the layers of one pass share.
struct DistancePass {
  DisentangledConfig config;
  int64_t reach = 0;
  TensorId rows = kNoTensor;     // (2 S, D), or (2 reach + 1, D) where these are fewer
  TensorId indices = kNoTensor;  // of every distance j - i from -reach on, where rows are (2 S, D)
};

Result<DistancePass> begin_distances(ModelBuilder& b, const StackConfig& stack,
                                     const DisentangledConfig& config, int64_t tokens) {
  DistancePass pass{.config = config, .reach = reach_of_rows(config.rows, tokens)};
  std::vector<uint32_t> indices;
  for (int64_t d = -pass.reach; d <= pass.reach; ++d) {
    indices.push_back(u32(distance_row(config.rows, -d)));
  }
  const auto distances = static_cast<int64_t>(indices.size());
  const std::string name = stack.rows + ".positions";
  b.graph().set_scope(name);
  const TensorId list = b.host_tensor(name + ".rows", DType::kU32, {distances}, std::move(indices));
  VKF_ASSIGN(pass.rows, b.table(name));
  if (config.norm == DisentangledConfig::Norm::kYes) {
    VKF_ASSIGN(pass.rows, add_named_norm(b, stack, name + ".norm", pass.rows));
  }
  if (distances <= 2 * config.rows.span) {
    VKF_ASSIGN(pass.rows, add_gather_rows(b.graph(), {.x = pass.rows, .indices = list}));
  } else {
    pass.indices = list;
  }
  return pass;
}

// Columns [column, column + width) of every distance's row of x (rows, any) -> (distances, width).
Result<TensorId> rows_by_distance(Graph& g, const DistancePass& pass, TensorId x, int64_t column,
                                  int64_t width) {
  if (pass.indices != kNoTensor) {
    VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = pass.indices}));
  }
  const Shape shape = g.tensor(x).shape;
  if (shape.back() == width) return x;
  return add_columns(g, x, {.offset = u32(column), .stride = u32(shape.back())},
                     {shape.front(), width});
}

// Most products (B, H, T, distances) that a pass makes. That is 64 MiB, beside which queries, keys
// and values fit the smallest binding that a device may have, 128 MiB.
constexpr int64_t kMostProducts = int64_t{1} << 24;

// A buffer whose parts follow each other, as rows of a head's width E.
struct JoinedRows {
  Graph& g;
  int64_t width = 0;  // E
  TensorId tensor = kNoTensor;
  int64_t used = 0;  // elements

  Status allocate(int64_t elements) {
    VKF_ASSIGN(tensor, add_columns(g, kNoTensor, {}, {(elements + width - 1) / width, width}));
    return {};
  }
  Status add(TensorId part) {
    const Shape shape = g.tensor(part).shape;
    const RowPlace place{.offset = u32(used), .stride = u32(shape.back())};
    used += element_count(shape);
    return add_place_columns(g, part, tensor, place);
  }
};

// What the positions of one layer are: keys and queries by distance (distances, H E), or absent.
struct LayerPositions {
  TensorId keys = kNoTensor;
  TensorId queries = kNoTensor;
};

Result<LayerPositions> project_positions(const LayerSite& site, const DistancePass& pass) {
  Graph& g = site.b.graph();
  const int64_t inner = site.c.heads * site.c.head();
  const bool shared = pass.config.projection == DisentangledConfig::Projection::kContent;
  TensorId both = kNoTensor;
  if (shared) {
    VKF_ASSIGN(both, add_named_linear(site.b, site.rows() + ".self.qkv", pass.rows));
  }
  // `column` is that of a merged projection.
  const auto project = [&](const char* name, int64_t column) -> Result<TensorId> {
    if (shared) return rows_by_distance(g, pass, both, column, inner);
    VKF_ASSIGN(const TensorId own, add_named_linear(site.b, site.rows() + name, pass.rows));
    return rows_by_distance(g, pass, own, 0, inner);
  };
  LayerPositions positions;
  if (pass.config.keys == Term::kYes) {
    VKF_ASSIGN(positions.keys, project(".positions.key", inner));
  }
  if (pass.config.queries == Term::kYes) {
    VKF_ASSIGN(positions.queries, project(".positions.query", 0));
  }
  return positions;
}

// k . Q r of every key and distance (B, H, T, distances). `joined` begins with qkv.
Result<TensorId> multiply_queries(const LayerSite& site, TensorId joined, TensorId queries) {
  Graph& g = site.b.graph();
  const int64_t heads = site.c.heads;
  const int64_t tokens = site.run.tokens;
  const int64_t distances = g.tensor(queries).shape.front();
  std::vector<uint32_t> of_keys, of_queries;
  for (int64_t b = 0; b < site.run.batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t t = 0; t < tokens; ++t) {
        of_keys.push_back(u32((b * tokens + t) * 3 * heads + heads + h));
      }
    }
  }
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t d = 0; d < distances; ++d) of_queries.push_back(u32(d * heads + h));
  }
  const std::string name = site.c.rows + ".positions.";
  const TensorId key_rows = site.b.host_tensor(name + "keys", DType::kU32,
                                               {site.run.batch, heads, tokens}, std::move(of_keys));
  const TensorId query_rows =
      site.b.host_tensor(name + "queries", DType::kU32, {heads, distances}, std::move(of_queries));
  JoinedRows split{g, site.c.head()};
  VKF_CHECK(split.allocate(element_count(g.tensor(queries).shape)));
  VKF_CHECK(split.add(queries));
  VKF_ASSIGN(const TensorId k, add_gather_rows(g, {.x = joined, .indices = key_rows}));
  VKF_ASSIGN(const TensorId u, add_gather_rows(g, {.x = split.tensor, .indices = query_rows}));
  return add_matmul(g, k, u, kNoTensor, {.trans_b = true});
}

Result<TensorId> attend_disentangled(const LayerSite& site, const DistancePass& pass,
                                     TensorId qkv) {
  Graph& g = site.b.graph();
  const int64_t distances = 2 * pass.reach + 1;
  const int64_t rows = distances * site.c.heads * site.c.head();
  const int64_t products = site.run.batch * site.c.heads * site.run.tokens * distances;
  VKF_ASSIGN(const LayerPositions positions, project_positions(site, pass));
  g.set_scope(site.rows() + ".self");
  AttentionAttrs attrs = own_attrs(site);
  attrs.relative = {.kinds = VKF_RELATIVE_KEYS,
                    .offset = u32(element_count(g.tensor(qkv).shape)),
                    .reach = u32(pass.reach)};
  const bool queries = positions.queries != kNoTensor;
  const bool multiplied = queries && products <= kMostProducts;
  JoinedRows joined{g, site.c.head()};
  VKF_CHECK(joined.allocate(attrs.relative.offset + rows + (multiplied ? products : 0) +
                            (queries && !multiplied ? rows : 0)));
  VKF_CHECK(joined.add(qkv));
  // The kernels know nothing by distance without keys: absent ones are zeros.
  if (positions.keys != kNoTensor) {
    VKF_CHECK(joined.add(positions.keys));
  } else {
    joined.used += rows;
  }
  if (multiplied) {
    attrs.relative.kinds |= VKF_RELATIVE_PRODUCTS;
    VKF_ASSIGN(const TensorId made, multiply_queries(site, joined.tensor, positions.queries));
    VKF_CHECK(joined.add(made));
  } else if (queries) {
    attrs.relative.kinds |= VKF_RELATIVE_QUERIES;
    VKF_CHECK(joined.add(positions.queries));
  }
  return attend(site, {.q = joined.tensor, .kv = joined.tensor, .terms = site.run.terms.words},
                attrs, tap_of(site, site.c.taps));
}

}  // namespace

Status check_distance_rows(const DistanceRowsConfig& c, int64_t tokens) {
  const int64_t mid = c.buckets / 2;
  if (c.buckets == 0 || tokens - 1 <= mid) return {};
  if (c.buckets >= 2 && c.farthest - 1 > mid) return {};
  return invalid_argument(
      message({"[position_buckets] is ", c.buckets, " and [max_relative_positions] ", c.farthest,
               ", which do not tell the distances of ", tokens, " tokens apart; give at most ",
               mid + 1, " tokens"}));
}

int64_t distance_row(const DistanceRowsConfig& c, int64_t distance) {
  return std::clamp<int64_t>(distance_bucket(c, distance) + c.span, 0, 2 * c.span - 1);
}

void DisentangledForm::add_layer_rows(const std::string& to, const std::string& from, int64_t width,
                                      WeightTable& table) const {
  if (config_.projection == DisentangledConfig::Projection::kContent) return;
  const std::string self = from + "attention.self.";
  if (config_.keys == Term::kYes) {
    table.rows.push_back(linear_row(to + ".positions.key", {self + "pos_key_proj"}, width, width));
  }
  if (config_.queries == Term::kYes) {
    table.rows.push_back(
        linear_row(to + ".positions.query", {self + "pos_query_proj"}, width, width));
  }
}

void DisentangledForm::add_rows(const std::string& prefix, WeightTable& table) const {
  const std::string from = prefix + "encoder.";
  if (relates()) {
    table.rows.push_back(table_row("encoder.positions", {from + "rel_embeddings.weight"},
                                   {2 * config_.rows.span}, width_));
    if (config_.norm == DisentangledConfig::Norm::kYes) {
      table.rows.push_back(norm_row("encoder.positions.norm", from + "LayerNorm", width_));
    }
  }
  if (config_.kernel > 0) {
    table.rows.push_back(
        linear_row("encoder.conv", {from + "conv.conv"}, width_, width_ * config_.kernel));
    table.rows.push_back(norm_row("encoder.conv.norm", from + "conv.LayerNorm", width_));
  }
}

Result<StackRun::Attend> DisentangledForm::begin_pass(ModelBuilder& b, const StackConfig& stack,
                                                      const ForwardShape& shape, TensorId) const {
  if (!relates()) return StackRun::Attend();
  VKF_CHECK(check_distance_rows(config_.rows, shape.source));
  VKF_ASSIGN(DistancePass pass, begin_distances(b, stack, config_, shape.source));
  return StackRun::Attend([pass](const LayerSite& site, TensorId, TensorId qkv) {
    return attend_disentangled(site, pass, qkv);
  });
}

Result<TensorId> DisentangledForm::after_layer(ModelBuilder& b, const StackConfig& stack,
                                               const LayerStates& states) const {
  if (states.layer > 0 || config_.kernel == 0) return states.output;
  UnfoldAttrs unfold{.source = {.order = ChannelOrder::kLast}};
  unfold.window.kernel_width = u32(config_.kernel);
  unfold.window.pad_left = u32(config_.kernel / 2);
  b.graph().set_scope(stack.rows + ".conv");
  VKF_ASSIGN(TensorId h, add_unfold(b.graph(), states.input, unfold));
  VKF_ASSIGN(h, add_named_linear(b, stack.rows + ".conv", h, {.activation = config_.activation}));
  VKF_ASSIGN(h, add_named_norm(b, stack, stack.rows + ".conv.norm", h, states.output));
  return hide_masked_rows(b, "", h);
}

}  // namespace vkformer
