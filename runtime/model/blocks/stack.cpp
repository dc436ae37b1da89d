#include "model/blocks/stack.h"

#include <algorithm>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/adapted_linear.h"
#include "model/blocks/stack_attention.h"
#include "model/blocks/stack_parts.h"
#include "ops/combine.h"
#include "ops/layer_norm.h"
#include "ops/parent_lines.h"
#include "ops/rms_norm.h"

namespace vkformer {
namespace {

using Order = StackConfig::Order;

bool has_norm_before(const StackConfig& c, int64_t layer, bool attention) {
  using BeforeNorm = StackConfig::BeforeNorm;
  if (c.before_norm == BeforeNorm::kNotFirst) return layer > 0 || !attention;
  return c.before_norm == BeforeNorm::kYes;
}

// x -> sublayer(x) with its residual and norms in the configured order. `rows` is the sublayer's
// prefix, `before` whether it has a norm before it. `sublayer` maps the sublayer's input to its
// output; it adds the residual itself where it can (pre-norm).
template <class Sublayer>
Result<TensorId> residual_block(ModelBuilder& b, const StackConfig& c, const std::string& rows,
                                bool before, TensorId x, Sublayer sublayer) {
  if (c.order == Order::kPost) {
    VKF_ASSIGN(TensorId y, sublayer(x, LinearAttrs{}));
    return add_named_norm(b, c, rows + ".norm", y, x);
  }
  TensorId normed = x;
  if (before) {
    VKF_ASSIGN(normed, add_named_norm(b, c, rows + ".norm", x));
  }
  if (c.after_norm == StackConfig::AfterNorm::kYes) {
    VKF_ASSIGN(TensorId y, sublayer(normed, LinearAttrs{}));
    VKF_ASSIGN(y, add_named_norm(b, c, rows + ".after", y));
    return add_combine(b.graph(), x, y, {});
  }
  using Residual = StackConfig::Residual;
  const bool from_norm = c.residual == Residual::kNormed ||
                         (c.residual == Residual::kNormedFfn && rows.ends_with(".ffn"));
  return sublayer(normed, LinearAttrs{.alpha = c.branch_scale, .residual = from_norm ? normed : x});
}

Result<TensorId> feed_forward(ModelBuilder& b, const StackConfig& c, int64_t i, TensorId x,
                              LinearAttrs down) {
  const std::string layer = c.layer_rows(i);
  if (c.experts.of_layer(i)) return add_expert_layer(b, c, layer + ".ffn", x, down);
  LinearAttrs attrs{.activation = c.activation};
  if (c.gate == StackConfig::Gate::kYes) attrs.gate = GatePairs::kPairs;
  VKF_ASSIGN(TensorId up, add_named_linear(b, layer + ".ffn.up", x, attrs));
  return add_named_linear(b, layer + ".ffn.down", up, down);
}

// x + attention(norm x) + ffn(other norm x), as GPT-NeoX has it, or with one norm, as GPT-J.
Result<TensorId> parallel_layer(ModelBuilder& b, const StackConfig& c, const StackRun& run,
                                int64_t i, TensorId x) {
  const std::string layer = c.layer_rows(i);
  VKF_ASSIGN(TensorId h, add_named_norm(b, c, layer + ".self.norm", x));
  VKF_ASSIGN(TensorId attended, add_self_attention({b, c, run, i}, h, {.residual = x}));
  if (c.shared_norm == StackConfig::SharedNorm::kNo) {
    VKF_ASSIGN(h, add_named_norm(b, c, layer + ".ffn.norm", x));
  }
  return feed_forward(b, c, i, h, {.residual = attended});
}

// Attention, a state, or both, of the layer's normed input.
Result<TensorId> mixing(const LayerSite& site, TensorId h, LinearAttrs out) {
  const StateSetup& states = site.c.states;
  if (!states.of_layer(site.layer)) return add_self_attention(site, h, out);
  VKF_ASSIGN(const TensorId y, add_state_layer(site, h, out));
  if (states.replaces_attention(site.layer)) return y;
  out.residual = y;
  return add_self_attention(site, h, out);
}

Result<TensorId> sequential_layer(ModelBuilder& b, const StackConfig& c, const StackRun& run,
                                  int64_t i, TensorId x) {
  const std::string layer = c.layer_rows(i);
  const LayerSite site{b, c, run, i};
  VKF_ASSIGN(x, residual_block(b, c, layer + ".self", has_norm_before(c, i, true), x,
                               [&](TensorId h, LinearAttrs out) { return mixing(site, h, out); }));
  if (c.cross == StackConfig::Cross::kYes) {
    VKF_ASSIGN(x, residual_block(b, c, layer + ".cross", has_norm_before(c, i, false), x,
                                 [&](TensorId h, LinearAttrs out) {
                                   return add_cross_attention(site, h, out);
                                 }));
  }
  if (c.ffn == 0 && !c.experts.of_layer(i)) return x;
  return residual_block(b, c, layer + ".ffn", has_norm_before(c, i, false), x,
                        [&](TensorId h, LinearAttrs out) { return feed_forward(b, c, i, h, out); });
}

// Of a prompt's last layer only the keys, values and states are needed.
Status last_prompt_layer(ModelBuilder& b, const StackConfig& c, const StackRun& run, TensorId x) {
  const int64_t last = c.layers - 1;
  const LayerSite site{b, c, run, last};
  TensorId h = x;
  if (c.order != Order::kPost && has_norm_before(c, last, true)) {
    VKF_ASSIGN(h, add_named_norm(b, c, c.layer_rows(last) + ".self.norm", x));
  }
  if (c.states.of_layer(last)) VKF_CHECK(add_states(site, h));
  if (!c.states.replaces_attention(last)) VKF_CHECK(add_cached(site, h));
  if (c.cross == StackConfig::Cross::kYes) VKF_CHECK(add_cross_projection(site));
  return {};
}

// Layers that are divided among devices. Each device has its own x and adds to it what the parts of
// a sublayer give, all in the same order. So every device has the same x, and after a sublayer only
// the parts' sums go from device to device. A sum stands with the sublayer that reads it, as one
// piece of a device's work.
class DividedLayers {
 public:
  DividedLayers(ModelBuilder& b, const StackConfig& c, const StackRun& run, TensorId x)
      : b_(b), c_(c), run_(run), x_(static_cast<size_t>(c.parts), x), normed_(x_) {
    for (int64_t part = 0; part < c.parts; ++part) parts_.push_back(part_of_stack(c, part));
  }

  Status add_layer(int64_t layer) {
    if (c_.order == Order::kParallel) {
      return add_block(layer, ".self", true, [&](const StackConfig& own, size_t part, TensorId h) {
        return parallel_part(own, layer, x_[part], h);
      });
    }
    VKF_CHECK(add_block(layer, ".self", has_norm_before(c_, layer, true),
                        [&](const StackConfig& own, size_t, TensorId h) {
                          return add_self_attention({b_, own, run_, layer}, h, scaled());
                        }));
    if (c_.ffn == 0) return {};
    return add_block(layer, ".ffn", has_norm_before(c_, layer, false),
                     [&](const StackConfig& own, size_t, TensorId h) {
                       return feed_forward(b_, own, layer, h, scaled());
                     });
  }

  Status add_last_of_prompt() {
    for (size_t part = 0; part < parts_.size(); ++part) {
      VKF_ASSIGN(const TensorId x, value(part));
      VKF_CHECK(last_prompt_layer(b_, parts_[part], run_, x));
    }
    return {};
  }

  // x of a device, with all that was added so far.
  Result<TensorId> value(size_t part) {
    if (sums_.empty() || added_[part]) return x_[part];
    added_[part] = true;
    Graph& g = b_.graph();
    const std::string rows = parts_[part].layer_rows(layer_) + block_;
    g.set_scope(rows + ".sum");
    const bool normed_first =
        c_.order == Order::kPost || c_.after_norm == StackConfig::AfterNorm::kYes;
    TensorId y = normed_first ? sums_[0] : residual(part);
    for (size_t other = normed_first ? 1 : 0; other < sums_.size(); ++other) {
      VKF_ASSIGN(y, add_combine(g, y, sums_[other], {}));
    }
    if (c_.order == Order::kPost) {
      VKF_ASSIGN(y, add_named_norm(b_, parts_[part], rows + ".norm", y, x_[part]));
    } else if (normed_first) {
      VKF_ASSIGN(y, add_named_norm(b_, parts_[part], rows + ".after", y));
      VKF_ASSIGN(y, add_combine(g, x_[part], y, {}));
    }
    return x_[part] = y;
  }

 private:
  // A factor that a sum of all parts would have is each part's.
  LinearAttrs scaled() const {
    const bool whole = c_.order == Order::kPost || c_.after_norm == StackConfig::AfterNorm::kYes;
    return {.alpha = whole ? 1.0f : c_.branch_scale};
  }

  TensorId residual(size_t part) const {
    using Residual = StackConfig::Residual;
    const bool from_norm = c_.residual == Residual::kNormed ||
                           (c_.residual == Residual::kNormedFfn && block_ == ".ffn");
    return c_.order == Order::kPre && from_norm ? normed_[part] : x_[part];
  }

  Result<TensorId> parallel_part(const StackConfig& own, int64_t layer, TensorId x, TensorId h) {
    VKF_ASSIGN(const TensorId attended, add_self_attention({b_, own, run_, layer}, h, {}));
    if (c_.shared_norm == StackConfig::SharedNorm::kNo) {
      VKF_ASSIGN(h, add_named_norm(b_, own, own.layer_rows(layer) + ".ffn.norm", x));
    }
    return feed_forward(b_, own, layer, h, {.residual = attended});
  }

  // `sublayer` maps the part, its number and its input to its part of the sum.
  template <class Sublayer>
  Status add_block(int64_t layer, const std::string& block, bool before, Sublayer sublayer) {
    std::vector<TensorId> sums;
    std::vector<TensorId> normed;
    for (size_t part = 0; part < parts_.size(); ++part) {
      const StackConfig& own = parts_[part];
      VKF_ASSIGN(TensorId h, value(part));
      if (c_.order != Order::kPost && before) {
        VKF_ASSIGN(h, add_named_norm(b_, own, own.layer_rows(layer) + block + ".norm", h));
      }
      normed.push_back(h);
      VKF_ASSIGN(const TensorId sum, sublayer(own, part, h));
      sums.push_back(sum);
    }
    sums_ = std::move(sums);
    normed_ = std::move(normed);
    added_.assign(parts_.size(), false);
    layer_ = layer;
    block_ = block;
    return {};
  }

  ModelBuilder& b_;
  const StackConfig& c_;
  const StackRun& run_;
  std::vector<StackConfig> parts_;
  std::vector<TensorId> x_;       // by part
  std::vector<TensorId> normed_;  // the input of the last sublayer, by part
  // The last sublayer, which x_ may not have yet.
  std::vector<TensorId> sums_;  // by part; empty: there was none
  std::vector<bool> added_;     // whether x_ of a part has them
  int64_t layer_ = 0;
  std::string block_;
};

Result<TensorId> add_divided_layers(ModelBuilder& b, const StackConfig& c, const StackRun& run,
                                    TensorId x) {
  if (run.taps.attentions == ForwardTaps::Tap::kOn) {
    return unsupported(
        "[attentions] the heads of this model lie on several devices, which hand out no attention "
        "maps; load it onto one device, or split it by layers (DeviceGroupOptions::split, --split "
        "layers)");
  }
  DividedLayers layers(b, c, run, x);
  for (int64_t i = 0; i < c.layers; ++i) {
    if (run.taps.hidden_states == ForwardTaps::Tap::kOn &&
        c.tapped == StackConfig::Tapped::kReads) {
      VKF_ASSIGN(const TensorId value, layers.value(0));
      b.mark_output(value, c.taps + "hidden_states." + std::to_string(c.first_tap + i));
    }
    if (run.mode == StackRun::Mode::kPrompt && i + 1 == c.layers) {
      VKF_CHECK(layers.add_last_of_prompt());
      return x;
    }
    VKF_CHECK(layers.add_layer(i));
  }
  return layers.value(0);
}

}  // namespace

std::string StackConfig::layer_rows(int64_t layer) const {
  const int64_t of = rows_of.empty() ? layer : rows_of[static_cast<size_t>(layer)];
  return rows + "." + std::to_string(of);
}

Result<TensorId> add_named_linear(ModelBuilder& b, const std::string& name, TensorId x,
                                  LinearAttrs attrs) {
  b.graph().set_scope(name);
  VKF_ASSIGN(const std::optional<LinearAdapters> adapters, b.adapters(name));
  VKF_ASSIGN(LinearWeight weight, b.linear_without_adapters(name));
  if (adapters) return add_adapted_linear(b.graph(), x, weight, *adapters, attrs);
  return add_linear(b.graph(), x, weight, attrs);
}

Result<TensorId> add_named_norm(ModelBuilder& b, const StackConfig& c, const std::string& name,
                                TensorId x, TensorId residual) {
  b.graph().set_scope(name);
  VKF_ASSIGN(TensorId gain_bias, b.norm(name));
  if (c.norm == StackConfig::Norm::kRms) {
    if (residual != kNoTensor)
      return internal_error(message({"[", name, "] rms_norm has no residual"}));
    return add_rms_norm(b.graph(), x, gain_bias, {.epsilon = c.epsilon});
  }
  return add_layer_norm(b.graph(), {.x = x, .gain_bias = gain_bias, .residual = residual},
                        {.epsilon = c.epsilon});
}

TensorId add_decode_state(Graph& graph) {
  const TensorId known = graph.find_external("decode_state");
  return known != kNoTensor ? known : graph.add_external("decode_state", DType::kU32, {4096});
}

StepTensors add_step_tensors(ModelBuilder& b, const StackConfig& stack, const StepShape& shape) {
  Graph& g = b.graph();
  const int64_t lines = shape.batch * shape.beams * shape.capacity;
  std::vector<uint32_t> extra = distance_words(stack);
  const std::vector<uint32_t> sinks = float_words(stack.sinks);
  extra.insert(extra.end(), sinks.begin(), sinks.end());
  StepTensors t;
  t.ids = g.add_external("step_ids", DType::kU32, {shape.step_rows()});
  t.state = add_decode_state(g);
  t.ancestry =
      g.add_external("ancestry", DType::kU32, {lines + static_cast<int64_t>(extra.size())});
  if (!extra.empty()) b.host_words(t.ancestry, static_cast<uint64_t>(lines), extra);
  return t;
}

StackTerms add_stack_terms(ModelBuilder& b, const StackConfig& stack, const std::string& mask,
                           int64_t batch, int64_t keys) {
  StackTerms terms;
  if (stack.causal == StackConfig::Causal::kYes) terms.params.flags |= VKF_TERM_CAUSAL;
  const std::vector<uint32_t> extra = distance_words(stack);
  const int64_t mask_words = mask.empty() ? 0 : batch * ((keys + 31) / 32);
  const bool counted = !stack.slopes.empty() && !mask.empty();
  const int64_t before =
      mask_words + static_cast<int64_t>(extra.size()) + (counted ? batch * keys : 0);
  const int64_t words = before + static_cast<int64_t>(stack.sinks.size());
  if (words == 0) return terms;
  const std::string name = mask.empty() ? stack.rows + ".terms" : mask;
  // A mask alone keeps its shape, for the poolings that read it too.
  const Shape shape = words == mask_words ? Shape{batch, (keys + 31) / 32} : Shape{words};
  terms.words = b.graph().add_external(name, DType::kU32, shape);
  if (!mask.empty()) {
    terms.params.key_mask_offset = 0;
    b.feed(mask, terms.words);
  }
  if (!stack.sinks.empty()) {
    terms.sinks = static_cast<uint32_t>(before);
    b.host_words(terms.words, static_cast<uint64_t>(before), float_words(stack.sinks));
  }
  if (extra.empty()) return terms;
  terms.params.slopes_offset = static_cast<uint32_t>(mask_words);
  b.host_words(terms.words, static_cast<uint64_t>(mask_words), extra);
  if (stack.distance.reach > 0) terms.params.flags |= VKF_TERM_DISTANCE;
  if (counted) {
    terms.params.flags |= VKF_TERM_KEY_POSITIONS;
    b.feed("key_positions", terms.words, static_cast<uint64_t>(mask_words) + extra.size());
  }
  return terms;
}

StackTerms add_span_terms(ModelBuilder& b, const StackConfig& stack, const std::string& mask,
                          int64_t batch, int64_t tokens) {
  const int64_t line = (tokens + 31) / 32;
  const int64_t mask_words = mask.empty() ? 0 : batch * line;
  const int64_t plane = batch * tokens * line;
  const auto kinds = static_cast<int64_t>(std::max<size_t>(1, stack.kinds.size()));
  StackTerms terms;
  terms.words = b.graph().add_external("span_terms", DType::kU32, {mask_words + kinds * plane});
  if (!mask.empty()) b.feed(mask, terms.words);
  b.feed("span_masks", terms.words, static_cast<uint64_t>(mask_words));
  for (int64_t k = 0; k < kinds; ++k) {
    ScoreTermsParams params = no_score_terms();
    if (!mask.empty()) params.key_mask_offset = 0;
    params.mask_offset = static_cast<uint32_t>(mask_words + k * plane);
    params.flags = VKF_TERM_MASK_ONE_HEAD;
    terms.by_kind.push_back(params);
  }
  return terms;
}

Result<TensorId> add_stack(ModelBuilder& b, const StackConfig& c, const StackRun& given,
                           TensorId x) {
  if (c.parts > 1) {
    VKF_ASSIGN(x, add_divided_layers(b, c, given, x));
    const bool normed =
        c.final_norm == StackConfig::FinalNorm::kYes && given.mode != StackRun::Mode::kPrompt;
    return normed ? add_named_norm(b, c, c.rows + ".norm", x) : Result<TensorId>(x);
  }
  StackRun run = given;
  if (c.states.any() && run.mode == StackRun::Mode::kStep) {
    b.graph().set_scope("parent_lines");
    VKF_ASSIGN(run.parents,
               add_parent_lines(b.graph(), run.ancestry, run.state,
                                {.positions = u32(run.step.capacity),
                                 .lines = u32(state_lines({b, c, run, 0})),
                                 .beams = u32(run.step.beams),
                                 .runs = run.step.slots > 0 ? ParentLinesAttrs::Runs::kYes
                                                            : ParentLinesAttrs::Runs::kNo}));
  }
  TensorId tapped = kNoTensor;
  for (int64_t i = 0; i < c.layers; ++i) {
    if (tapped == kNoTensor) tapped = x;
    const bool taps = run.taps.hidden_states == ForwardTaps::Tap::kOn;
    const std::string tap = c.taps + "hidden_states." + std::to_string(c.first_tap + i);
    if (taps && c.tapped == StackConfig::Tapped::kReads) b.mark_output(tapped, tap);
    tapped = kNoTensor;
    if (run.mode == StackRun::Mode::kPrompt && i + 1 == c.layers) {
      VKF_CHECK(last_prompt_layer(b, c, run, x));
      return x;
    }
    const TensorId input = x;
    if (c.order == Order::kParallel) {
      VKF_ASSIGN(x, parallel_layer(b, c, run, i, x));
    } else {
      VKF_ASSIGN(x, sequential_layer(b, c, run, i, x));
    }
    if (taps && c.tapped == StackConfig::Tapped::kGives) b.mark_output(x, tap);
    if (run.after) {
      if (run.tapped == StackRun::Tapped::kOutputs) tapped = x;
      VKF_ASSIGN(x, run.after(i, input, x));
    }
  }
  if (c.final_norm == StackConfig::FinalNorm::kNo) return x;
  return add_named_norm(b, c, c.rows + ".norm", x);
}

Status add_cross_keys(ModelBuilder& b, const StackConfig& c, TensorId memory) {
  StackRun run;
  run.mode = StackRun::Mode::kPrompt;
  run.memory = memory;
  for (int64_t i = 0; i < c.layers; ++i) VKF_CHECK(add_cross_projection({b, c, run, i}));
  return {};
}

}  // namespace vkformer
