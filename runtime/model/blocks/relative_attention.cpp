#include "model/blocks/relative_attention.h"

#include <cmath>

#include "ops/gather_rows.h"
#include "ops/matmul.h"
#include "ops/move_columns.h"
#include "ops/rotary.h"
#include "ops/softmax.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;

// Sizes of one pass over heads.
struct Heads {
  ModelBuilder& b;
  int64_t batch, tokens, heads, width;  // B, T, H, E

  std::string size() const { return std::to_string(heads) + "x" + std::to_string(width); }
};

// Row r of (B, T, parts, H) heads of E columns that `part` and (h, b, t) name.
uint32_t row_of(const Heads& s, int64_t parts, int64_t part, const int64_t (&at)[3]) {
  return static_cast<uint32_t>(((at[1] * s.tokens + at[2]) * parts + part) * s.heads + at[0]);
}

// Heads first: (B, T, parts, H, E) -> (H, B, T, E) of that part.
Result<TensorId> heads_first(const Heads& s, TensorId x, int64_t parts, int64_t part) {
  std::vector<uint32_t> rows;
  for (int64_t h = 0; h < s.heads; ++h) {
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t t = 0; t < s.tokens; ++t) rows.push_back(row_of(s, parts, part, {h, b, t}));
    }
  }
  const std::string name = "heads." + s.size() + "." + std::to_string(parts * 4 + part);
  const TensorId indices =
      s.b.host_tensor(name, DType::kU32, {s.heads, s.batch, s.tokens}, std::move(rows));
  return add_gather_rows(s.b.graph(), {.x = x, .indices = indices});
}

// q + bias of (B, T, 3, H, E), heads first: (H, B, T, E).
Result<TensorId> biased_queries(const Heads& s, TensorId qkv, const std::string& bias) {
  std::vector<uint32_t> rows;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t t = 0; t < s.tokens; ++t) {
      for (int64_t h = 0; h < s.heads; ++h) rows.push_back(row_of(s, 3, 0, {h, b, t}));
    }
  }
  const TensorId indices = s.b.host_tensor("queries." + s.size(), DType::kU32,
                                           {s.batch, s.tokens, s.heads}, std::move(rows));
  VKF_ASSIGN(const TensorId table, s.b.table(bias));
  VKF_ASSIGN(const TensorId q,
             add_gather_rows(s.b.graph(), {.x = qkv, .indices = indices, .addend = table}));
  return heads_first(s, q, 1, 0);
}

// Heads last: (H, B, T, C) -> (B, T, H, C), or (B, H, T, C) for a map.
Result<TensorId> reordered(const Heads& s, TensorId x, bool map, Shape order) {
  std::vector<uint32_t> rows;
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t n = 0; n < s.tokens * s.heads; ++n) {
      const int64_t h = map ? n / s.tokens : n % s.heads;
      const int64_t t = map ? n % s.tokens : n / s.heads;
      rows.push_back(static_cast<uint32_t>((h * s.batch + b) * s.tokens + t));
    }
  }
  const TensorId indices = s.b.host_tensor((map ? "map." : "merge.") + s.size(), DType::kU32,
                                           std::move(order), std::move(rows));
  return add_gather_rows(s.b.graph(), {.x = x, .indices = indices});
}

// What is made of sines and cosines of positions times frequencies, in double.
struct PositionTables {
  std::vector<float> turns;  // (T, D): cosines, then sines
  std::vector<float> keys;   // (T, D): -sin, cos by turns
};

PositionTables position_tables(int64_t tokens, int64_t width) {
  PositionTables tables;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<float> sines;
    for (int64_t k = 0; k < width / 2; ++k) {
      const double w =
          std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(width));
      const double angle = static_cast<double>(t) * w;
      const auto sine = static_cast<float>(std::sin(angle));
      const auto cosine = static_cast<float>(std::cos(angle));
      tables.turns.push_back(cosine);
      sines.push_back(sine);
      tables.keys.push_back(-sine);
      tables.keys.push_back(cosine);
    }
    tables.turns.insert(tables.turns.end(), sines.begin(), sines.end());
  }
  return tables;
}

// The scores of positions, (H, B, T, T).
Result<TensorId> add_position_scores(const Heads& s, const RelativeAttention& a, TensorId q,
                                     float scale) {
  Graph& g = s.b.graph();
  VKF_ASSIGN(const TensorId matrix, s.b.table(a.positions));
  g.tensor(matrix).shape = {s.heads, 1, s.width, a.width};
  VKF_ASSIGN(const TensorId p, add_matmul(g, q, matrix, kNoTensor, {}));
  const std::string turns = "relative.turns." + std::to_string(a.width);
  const std::string keys = "relative.keys." + std::to_string(a.width);
  if (g.find_external(turns) == kNoTensor) {
    const PositionTables tables = position_tables(s.tokens, a.width);
    s.b.host_floats(turns, {s.tokens, a.width}, tables.turns);
    s.b.host_floats(keys, {s.tokens, a.width}, tables.keys);
  }
  VKF_ASSIGN(const TensorId turned, add_rotary(g, {.x = p, .table = g.find_external(turns)},
                                               {.heads = 1,
                                                .head_width = static_cast<uint32_t>(a.width),
                                                .pairs = RotaryPairs::kInterleaved,
                                                .tokens = static_cast<uint32_t>(s.tokens)}));
  return add_matmul(g, turned, g.find_external(keys), kNoTensor, {.trans_b = true, .alpha = scale});
}

// Scores or probabilities (H, B, T, T) as an output (B, H, T, T), or of the chosen head.
Status show_map(const Heads& s, const RelativeRun& run, TensorId x) {
  Graph& g = s.b.graph();
  const int64_t head = run.taps.attention_head;
  if (head < 0) {
    VKF_ASSIGN(const TensorId map, reordered(s, x, true, {s.batch, s.heads, s.tokens}));
    s.b.mark_output(map, run.map);
    return {};
  }
  const uint64_t matrix = static_cast<uint64_t>(s.tokens * s.tokens);
  const auto size = static_cast<uint32_t>(matrix * static_cast<uint64_t>(s.batch));
  VKF_ASSIGN(const TensorId map, add_columns(g, x,
                                             {.offset = static_cast<uint32_t>(head) * size,
                                              .stride = static_cast<uint32_t>(s.tokens)},
                                             {s.batch, 1, s.tokens, s.tokens}));
  s.b.mark_output(map, run.map);
  return {};
}

}  // namespace

Result<TensorId> add_relative_attention(ModelBuilder& b, const RelativeAttention& a,
                                        const RelativeRun& run) {
  Graph& g = b.graph();
  const Heads s{b, run.batch, run.tokens, a.heads, a.head()};
  const bool tapped = !run.map.empty() && run.taps.attentions == Tap::kOn;
  const bool raw = tapped && run.taps.raw_scores == Tap::kOn;
  if (raw && run.mask != kNoTensor) {
    return unsupported("[" + run.map + "] scores before the softmax were asked for with an " +
                       "attention mask, which relative positions do not show; ask for " +
                       "probabilities, or leave the mask out");
  }
  g.tensor(run.qkv).shape = {s.batch * s.tokens * 3 * s.heads, s.width};
  VKF_ASSIGN(const TensorId qu, biased_queries(s, run.qkv, a.u));
  VKF_ASSIGN(const TensorId qv, biased_queries(s, run.qkv, a.v));
  VKF_ASSIGN(const TensorId k, heads_first(s, run.qkv, 3, 1));
  VKF_ASSIGN(const TensorId v, heads_first(s, run.qkv, 3, 2));
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.width)));
  VKF_ASSIGN(const TensorId positions, add_position_scores(s, a, qv, scale));
  VKF_ASSIGN(const TensorId scores,
             add_matmul(g, qu, k, positions, {.trans_b = true, .alpha = scale}));
  // Heads stand where softmax counts the batch, so the key mask is a mask of "heads".
  SoftmaxAttrs softmax;
  if (run.mask != kNoTensor) {
    softmax.terms.mask_offset = 0;
    softmax.terms.flags = VKF_TERM_MASK_ONE_BATCH | VKF_TERM_MASK_ONE_QUERY;
  }
  const TensorId terms =
      run.mask != kNoTensor ? run.mask : b.host_tensor("no_terms", DType::kU32, {1}, {0u});
  VKF_ASSIGN(const TensorId map, add_softmax(g, scores, terms, softmax));
  if (tapped) VKF_CHECK(show_map(s, run, raw ? scores : map));
  VKF_ASSIGN(const TensorId y, add_matmul(g, map, v, kNoTensor, {}));
  VKF_ASSIGN(const TensorId merged, reordered(s, y, false, {s.batch, s.tokens, s.heads}));
  // Copied, because a tensor that heads were gathered into keeps their width.
  return add_columns(g, merged, {.stride = static_cast<uint32_t>(a.width)},
                     {s.batch, s.tokens, a.width});
}

}  // namespace vkformer
