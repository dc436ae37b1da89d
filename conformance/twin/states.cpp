// What generations keep, and positions: embeddings, rotary positions, convolutions and scans with
// states.
#include <algorithm>

#include "conformance/twin/twin_run.h"
#include "ops/causal_conv.h"
#include "ops/embedding.h"
#include "ops/rotary.h"
#include "ops/rotary_append.h"
#include "ops/state_scan.h"
#include "params/state_scan.h"
#include "weights/pack_matrix.h"

namespace vkformer::conformance {
namespace {

// An element of a table in f32, in halves or in blocks.
Real table_element(const TwinRun& run, const Node& node, size_t id, size_t d) {
  const auto& a = attrs_of<EmbeddingAttrs>(node);
  const size_t slice = id / a.slice_rows;
  const size_t input = slice == 0 ? 1 : kEmbeddingSlices + slice - 1;
  const Memory& table = run.in(node, input);
  id -= slice * a.slice_rows;
  if (in_blocks(a.format)) return packed_weight(table, a.format, d, id, a.width);
  const bool strided = a.row_stride != 0 || a.col_stride != 0;
  const size_t row_stride = strided ? a.row_stride : a.width, step = strided ? a.col_stride : 1;
  const size_t panel = a.panel_stride != 0 ? a.panel_stride : kPanelColumns * row_stride;
  const size_t at = id / kPanelColumns * panel + id % kPanelColumns * row_stride + d * step;
  const DType stored = run.graph().tensor(node.inputs[input]).dtype;
  if (a.format != MatrixFormat::kF16 && stored != DType::kF16) return table[at];
  HostArithmetic h;
  return from_half(h, table.words[at / 2] >> (16 * (at % 2)) & 0xffffu);
}

bool twin_embedding(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<EmbeddingAttrs>(node);
  const bool step = TwinRun::has(node, 3), has_table = TwinRun::has(node, 2);
  const bool placed = has_table && a.from != EmbeddingAttrs::Positions::kNone;
  const Memory& ids = run.in(node, 0);
  Memory& y = run.out(node);
  const size_t width = a.width, rows = y.rows(), tokens = a.tokens != 0 ? a.tokens : ids.width();
  const size_t table_rows = has_table ? run.in(node, 2).words.size() / width : 0;
  const size_t positions = table_rows - (has_table ? a.types : 0);
  const bool scaled = !step && a.row_scales == EmbeddingAttrs::RowScales::kPlane;
  const size_t planes = embedding_planes(a);
  const size_t live = step ? std::min(rows, TwinSlots{run.in(node, 3)}.live()) : rows;
  for (size_t r = 0; r < live; ++r) {
    const uint32_t id = ids.words[r];
    uint32_t position = a.position_offset + static_cast<uint32_t>(r % tokens);
    if (step) {
      position = id == a.pad_id ? a.position_offset - 1
                                : a.position_offset + TwinSlots{run.in(node, 3)}.position(r);
    } else if (a.from == EmbeddingAttrs::Positions::kPlane) {
      position = a.position_offset + ids.words[rows + r];
    }
    const size_t type_plane = planes - (scaled ? 2 : 1);
    const uint32_t type = a.types > 0 && !step ? ids.words[type_plane * rows + r] : 0;
    Real scale = a.scale;
    if (scaled) scale = scale * ids[(planes - 1) * rows + r];
    const bool exists =
        id < a.vocabulary && (!placed || position < positions) && (a.types == 0 || type < a.types);
    std::vector<Real> row(width, Real::of_bits(kNanBits));
    for (size_t d = 0; exists && d < width; ++d) {
      row[d] = table_element(run, node, id, d) * scale;
      if (placed) row[d] += run.in(node, 2)[position * width + d];
      if (a.types > 0) row[d] += run.in(node, 2)[(positions + type) * width + d];
    }
    if (TwinRun::has(node, kEmbeddingNorm)) {
      const Memory& gain_bias = run.in(node, kEmbeddingNorm);
      row = normed_row(row, a.norm_epsilon);
      for (size_t d = 0; d < width; ++d) row[d] = row[d] * gain_bias[d] + gain_bias[width + d];
    }
    for (size_t d = 0; d < width; ++d) y.put(r * width + d, row[d]);
  }
  return true;
}

// A pair (u, v), turned by the angle of a position; NaN where the table has none.
struct TurnedPair {
  Real u, v;
};
TurnedPair turned(const Memory& table, uint32_t position, size_t pair, Real u, Real v) {
  const size_t pairs = table.width() / 2;
  const Real nan = Real::of_bits(kNanBits);
  if (position >= table.rows()) return {nan, nan};
  const size_t at = position * 2 * pairs + pair;
  const Real cosine = table[at], sine = table[at + pairs];
  return {u * cosine - v * sine, v * cosine + u * sine};
}

// Turns the pairs of the head that lies at `to`.
void turn_head(Memory& y, size_t to, const Memory& table, uint32_t position, RotaryPairs kind) {
  const size_t pairs = table.width() / 2;
  const bool apart = kind == RotaryPairs::kInterleaved;
  for (size_t i = 0; i < pairs; ++i) {
    const size_t u = to + (apart ? 2 * i : i), v = u + (apart ? 1 : pairs);
    const TurnedPair pair = turned(table, position, i, y[u], y[v]);
    y.put(u, pair.u);
    y.put(v, pair.v);
  }
}

bool twin_rotary(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<RotaryAttrs>(node);
  const Memory &x = run.in(node, 0), &table = run.in(node, 1);
  Memory& y = run.out(node);
  y.words = x.words;
  for (size_t r = 0; r < y.rows(); ++r) {
    const auto known = TwinRun::has(node, 2) ? run.in(node, 2).words[a.positions_at + r]
                                             : static_cast<uint32_t>(r % a.tokens);
    const uint32_t sum = known + a.position_offset, position = sum < known ? ~0u : sum;
    for (size_t h = 0; h < a.heads; ++h) {
      turn_head(y, r * y.width() + h * a.head_width, table, position, a.pairs);
    }
  }
  return true;
}

// A cache of words has no twin.
bool twin_rotary_append(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<RotaryAppendAttrs>(node);
  const Memory &x = run.in(node, 0), &table = run.in(node, 1);
  if (run.graph().tensor(node.outputs[1]).dtype != DType::kF32) return false;
  const TwinSlots slots{run.in(node, 2)};
  Memory &y = run.out(node, 0), &cache = run.out(node, 1);
  const auto lines = static_cast<size_t>(cache.shape[1]);
  const size_t positions = a.positions == 0 ? lines : a.positions, width = a.head_width;
  const size_t keys = size_t{a.kv_heads} * width, values = size_t{a.kv_heads} * a.values();
  for (size_t s = 0; s < slots.live(); ++s) {
    const uint32_t position = slots.position(s);
    const size_t from = s * x.width();
    const auto copy = [&](size_t to, size_t column, size_t count, Memory& memory) {
      std::copy_n(x.words.begin() + static_cast<ptrdiff_t>(from + column), count,
                  memory.words.begin() + static_cast<ptrdiff_t>(to));
    };
    for (size_t h = 0; h < size_t{a.heads} + a.again_heads; ++h) {
      const bool again = h >= a.heads;
      const size_t to = (s * (a.heads + a.again_heads) + h) * width;
      copy(to, (again ? h - a.heads : h) * width, width, y);
      turn_head(y, to, table, again ? std::min(position, a.again_limit) : position, a.pairs);
    }
    if (position >= positions) continue;
    const size_t line =
        position < lines ? position : a.sinks + (position - a.sinks) % (lines - a.sinks);
    const size_t to = (slots.row(s) * lines + line) * (keys + values);
    copy(to, size_t{a.heads} * width, keys + values, cache);
    for (size_t h = 0; h < a.kv_heads; ++h)
      turn_head(cache, to + h * width, table, position, a.pairs);
  }
  return true;
}

// Which slots of a step follow each other, or all tokens of an item in a full pass or a prompt.
struct TwinSequence {
  std::vector<size_t> rows;  // of x, in the order of their tokens
  uint32_t from = VKF_LINE_FRESH;
  // Of each token the line that it leaves its state in; none of full passes.
  std::vector<size_t> lines;
};

// Inputs of a node: the first of its states; the decoding state and the parents follow.
std::vector<TwinSequence> sequences_of(const TwinRun& run, const Node& node, size_t states,
                                       uint32_t beams) {
  std::vector<TwinSequence> list;
  const Shape& x = run.graph().tensor(node.inputs[0]).shape;
  const bool full = !TwinRun::has(node, states);
  const auto kept =
      full ? size_t{1} : static_cast<size_t>(run.graph().tensor(node.inputs[states]).shape[1]);
  if (run.is_step()) {
    const TwinSlots slots{run.in(node, states + 1)};
    const Memory& parents = run.in(node, states + 2);
    for (size_t first = 0; first < slots.live(); ++first) {
      TwinSequence s;
      s.from = VKF_PARENT_LINE(parents.words[first]);
      if (s.from == VKF_LINE_CONTINUED) continue;
      size_t position = slots.position(first);
      for (size_t slot = first; slot != VKF_NO_SLOT; slot = VKF_NEXT_SLOT(parents.words[slot])) {
        s.rows.push_back(slot);
        s.lines.push_back(slots.row(first) * kept + position++ % kept);
      }
      list.push_back(std::move(s));
    }
    return list;
  }
  const auto tokens = static_cast<size_t>(x[1]);
  for (size_t item = 0; item < static_cast<size_t>(x[0]); ++item) {
    TwinSequence s;
    size_t end = tokens;
    const size_t row = item * beams;
    if (!full) end = TwinSlots{run.in(node, states + 1)}.position(row);
    for (size_t t = 0; t < tokens; ++t) s.rows.push_back(item * tokens + t);
    for (size_t t = 0; !full && t < std::min(end, tokens); ++t) s.lines.push_back(row * kept);
    if (!full && end > 0) s.lines.back() += (end - 1) % kept;
    list.push_back(std::move(s));
  }
  return list;
}

bool twin_causal_conv(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<CausalConvAttrs>(node);
  const Memory &x = run.in(node, 0), &taps = run.in(node, 1);
  const bool carried = TwinRun::has(node, 3), gated = a.gates == CausalConvAttrs::Gates::kYes;
  const bool masked = !carried && TwinRun::has(node, 2);
  const size_t channels = taps.width(), count = taps.rows() - (a.bias ? 1 : 0), width = x.width();
  const std::vector<TwinSequence> sequences = sequences_of(run, node, 3, a.beams);
  Memory& y = run.out(node);
  Memory* states = carried ? &run.out(node, 1) : nullptr;
  const bool all = a.columns == CausalConvAttrs::Columns::kAll;
  const size_t to = all ? a.first : 0, out_width = y.width();
  for (size_t item = 0; item < sequences.size(); ++item) {
    const TwinSequence& s = sequences[item];
    const auto hidden = [&](size_t t) {
      const size_t words = (s.rows.size() + 31) / 32;
      return masked && !run.in(node, 2).bit(item * words, t);
    };
    for (size_t t = 0; t < s.rows.size(); ++t) {
      for (size_t c = 0; c < out_width; ++c) {
        const bool copied = c < to || c >= to + channels;
        if (hidden(t)) y.put(s.rows[t] * out_width + c, 0.0f);
        if (copied && !hidden(t))
          y.words[s.rows[t] * out_width + c] = x.words[s.rows[t] * width + c];
      }
    }
    for (size_t c = 0; c < channels; ++c) {
      // The inputs before the first token, then those of all tokens.
      std::vector<Real> past(count - 1, Real(0.0f));
      for (size_t k = 0; run.is_step() && s.from != VKF_LINE_FRESH && k + 1 < count; ++k) {
        past[k] = (*states)[(s.from * (count - 1) + k) * channels + c];
      }
      for (size_t t = 0; t < s.rows.size(); ++t) {
        const size_t at = s.rows[t] * width + c;
        past.push_back(gated ? x[at + a.first] * x[at + a.in_gate] : x[at + a.first]);
      }
      for (size_t t = 0; t < s.rows.size(); ++t) {
        if (hidden(t)) continue;
        Real sum = a.bias ? taps[count * channels + c] : Real(0.0f);
        for (size_t k = 0; k < count; ++k) {
          const bool before = t + k + 1 < count;
          if (!run.is_step() && (before || hidden(t + k + 1 - count))) continue;
          sum += taps[k * channels + c] * past[t + k];
        }
        sum = activated(sum, a.activation);
        if (gated) sum *= x[s.rows[t] * width + a.out_gate + c];
        y.put(s.rows[t] * out_width + to + c, sum);
      }
      for (size_t t = 0; t < s.lines.size(); ++t) {
        if (!run.is_step() && t + 1 < s.lines.size()) continue;
        for (size_t k = 0; k + 1 < count; ++k) {
          states->put((s.lines[t] * (count - 1) + k) * channels + c, past[t + 1 + k]);
        }
      }
    }
  }
  return true;
}

// What a token does to the state of a head.
struct ScanToken {
  Real decay, strength, key_scale = 1.0f, query_scale;
  std::vector<Real> key, query;
};
ScanToken scan_token(const StateScanAttrs& a, const Memory& x, const Memory& rates, size_t row,
                     size_t head) {
  const bool delta = a.rule == StateScanAttrs::Rule::kDelta;
  const size_t at = row * x.width(), own = head / (a.heads / a.key_heads) * a.width;
  const Real raw = softplus(x[at + a.a_offset + head] + rates[a.heads + head]);
  const Real rate = delta ? raw : between(raw, a.least_rate, a.most_rate);
  ScanToken t{exp_of(-exp_of(rates[head]) * rate), rate, 1.0f, a.q_scale, {}, {}};
  if (delta) t.strength = activated(x[at + a.b_offset + head], ActivationKind::kSigmoid);
  for (size_t e = 0; e < a.width; ++e) {
    t.key.push_back(x[at + a.k_offset + own + e]);
    t.query.push_back(x[at + a.q_offset + own + e]);
  }
  if (!(a.norm_epsilon > 0)) return t;
  const auto scale = [&](const std::vector<Real>& row_of) {
    Real squares = 0.0f;
    for (const Real v : row_of) squares += v * v;
    return inverse_root(squares + a.norm_epsilon);
  };
  t.key_scale = scale(t.key);
  t.query_scale = Real(a.q_scale) * scale(t.query);
  return t;
}

bool twin_state_scan(TwinRun& run, const Node& node) {
  const auto& a = attrs_of<StateScanAttrs>(node);
  const bool delta = a.rule == StateScanAttrs::Rule::kDelta, carried = TwinRun::has(node, 2);
  const Memory &x = run.in(node, 0), &rates = run.in(node, 1);
  const std::vector<TwinSequence> sequences = sequences_of(run, node, 2, a.beams);
  Memory& y = run.out(node);
  Memory* states = carried ? &run.out(node, 1) : nullptr;
  const size_t width = a.width, values = a.value_width;
  const auto state_at = [&](size_t line, size_t head, size_t e, size_t v) {
    return ((line * a.heads + head) * width + e) * values + v;
  };
  for (const TwinSequence& s : sequences) {
    for (size_t unit = 0; unit < a.heads * values; ++unit) {
      const size_t head = unit / values, v = unit % values;
      std::vector<Real> column(width, Real(0.0f));
      for (size_t e = 0; run.is_step() && s.from != VKF_LINE_FRESH && e < width; ++e) {
        column[e] = (*states)[state_at(s.from, head, e, v)];
      }
      const size_t tokens = carried ? s.lines.size() : s.rows.size();
      for (size_t n = 0; n < tokens; ++n) {
        const ScanToken t = scan_token(a, x, rates, s.rows[n], head);
        const Real value = x[s.rows[n] * x.width() + a.v_offset + unit];
        Real known = 0.0f, result = 0.0f;
        for (size_t e = 0; delta && e < width; ++e) {
          column[e] *= t.decay;
          known += t.key[e] * column[e];
        }
        if (delta) known = known * t.key_scale;
        const Real added = t.key_scale * t.strength * (value - known);
        for (size_t e = 0; e < width; ++e) {
          column[e] = (delta ? column[e] : t.decay * column[e]) + t.key[e] * added;
          result += t.query[e] * column[e];
        }
        result = result * t.query_scale;
        if (!delta) result += rates[2 * a.heads + head] * value;
        y.put(s.rows[n] * a.heads * values + unit, result);
        const bool stays = carried && (run.is_step() || n + 1 == tokens);
        for (size_t e = 0; stays && e < width; ++e) {
          states->put(state_at(s.lines[n], head, e, v), column[e]);
        }
      }
    }
  }
  return true;
}

constexpr TwinOp kStateTwins[] = {{"causal_conv", twin_causal_conv},
                                  {"embedding", twin_embedding},
                                  {"rotary", twin_rotary},
                                  {"rotary_append", twin_rotary_append},
                                  {"state_scan", twin_state_scan}};

}  // namespace

std::span<const TwinOp> state_twins() {
  return kStateTwins;
}

}  // namespace vkformer::conformance
