#include "model/blocks/picture_layers.h"

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"
#include "ops/attention_weights.h"

namespace vkformer {
namespace {

bool has_new_names(const Checkpoint& checkpoint, const PictureLayer& layer) {
  return checkpoint.find(layer.from + ".mlp.fc1.weight") != nullptr;
}

}  // namespace

Status read_picture_head(const JsonConfig& config, const std::string& bare_class,
                         ModelFacts& facts) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, bare_class));
  if (facts.architecture.ends_with("Model")) return {};
  facts.head = head_of(facts.architecture);
  if (facts.architecture.find("ForImageClassification") == std::string::npos ||
      facts.head != HeadKind::kSequence) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported are the bare model and image "
                 "classification"}));
  }
  VKF_ASSIGN(facts.labels, get_labels(config));
  return {};
}

void add_picture_layer_rows(WeightTable& table, const Checkpoint& checkpoint,
                            const PictureLayer& layer) {
  const bool now = has_new_names(checkpoint, layer);
  const auto module = [&](const char* new_name, const char* old_name) {
    return layer.from + (now ? new_name : old_name);
  };
  const auto scale = [&](const std::string& name) {
    return name.empty() ? name : layer.from + "." + name;
  };
  const int64_t d = layer.width;
  const int64_t f = layer.ffn;
  const std::string out = module(".attention.o_proj", ".attention.output.dense");
  table.rows.push_back(norm_row(layer.to + ".self.norm", layer.from + ".layernorm_before", d));
  table.rows.push_back(linear_row(layer.to + ".self.out", {out}, d, layer.inner));
  table.rows.back().row_scale = scale(layer.attention_scale);
  table.rows.push_back(norm_row(layer.to + ".ffn.norm", layer.from + ".layernorm_after", d));
  table.rows.push_back(
      linear_row(layer.to + ".ffn.up", {module(".mlp.fc1", ".intermediate.dense")}, f, d));
  table.rows.push_back(
      linear_row(layer.to + ".ffn.down", {module(".mlp.fc2", ".output.dense")}, d, f));
  table.rows.back().row_scale = scale(layer.ffn_scale);
}

void add_picture_projection_row(WeightTable& table, const Checkpoint& checkpoint,
                                const PictureLayer& layer) {
  const bool now = has_new_names(checkpoint, layer);
  const std::string old = layer.from + "." + layer.projection + ".";
  const std::string attention = layer.from + ".attention.";
  std::vector<std::string> modules;
  for (const auto& [new_name, old_name] :
       {std::pair{"q_proj", "query"}, std::pair{"k_proj", "key"}, std::pair{"v_proj", "value"}}) {
    modules.push_back(now ? attention + new_name : old + old_name);
  }
  const std::string to = layer.to + ".self.qkv";
  table.rows.push_back(
      biased_row(layer.bias != ProjectionBias::kNo, to, modules, 3 * layer.inner, layer.width));
  if (layer.bias == ProjectionBias::kNotKeys) table.rows.back().biases[1].clear();
}

Result<TensorId> add_picture_feed_forward(ModelBuilder& b, const StackConfig& c,
                                          const std::string& rows, TensorId x) {
  VKF_ASSIGN(TensorId h, add_named_norm(b, c, rows + ".ffn.norm", x));
  VKF_ASSIGN(h, add_named_linear(b, rows + ".ffn.up", h, {.activation = c.activation}));
  return add_named_linear(b, rows + ".ffn.down", h, {.residual = x});
}

Result<TensorId> add_seen_attention(ModelBuilder& b, const AttentionInputs& inputs,
                                    const AttentionAttrs& attrs, const ForwardTaps& taps,
                                    int64_t map, const std::string& prefix) {
  const bool chosen = taps.attention_layer < 0 || taps.attention_layer == map;
  if (map >= 0 && chosen && taps.attentions == ForwardTaps::Tap::kOn) {
    if (taps.attention_head >= static_cast<int64_t>(attrs.heads)) {
      return invalid_argument(message(
          {"[", prefix, "attentions.", map, "] has ", attrs.heads, " heads, but head ",
           taps.attention_head, " was asked for; ask for one that it has or for another layer"}));
    }
    AttentionWeightsAttrs weights{.attention = attrs};
    if (taps.attention_head >= 0) {
      weights.first_head = static_cast<uint32_t>(taps.attention_head);
      weights.head_count = 1;
    }
    if (taps.raw_scores == ForwardTaps::Tap::kOn) {
      weights.result = AttentionWeightsAttrs::Result::kScores;
    }
    VKF_ASSIGN(TensorId seen, add_attention_weights(b.graph(), inputs, weights));
    b.mark_output(seen, prefix + "attentions." + std::to_string(map));
  }
  return add_attention(b.graph(), inputs, attrs);
}

}  // namespace vkformer
