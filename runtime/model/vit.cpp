#include "model/vit.h"

#include "base/check.h"
#include "base/message.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"

namespace vkformer {
namespace {

HeadConfig classifier(const std::string& module, int64_t token, const std::string& output) {
  return {.input = HeadConfig::Input::kToken, .token = token, .output = module, .name = output};
}

Result<std::vector<HeadConfig>> read_heads(const JsonConfig& config, const ModelFacts& facts) {
  if (facts.architecture.ends_with("WithTeacher")) {
    return std::vector<HeadConfig>{classifier("cls_classifier", 0, "cls_logits"),
                                   classifier("distillation_classifier", 1, "distillation_logits")};
  }
  if (facts.head == HeadKind::kSequence) {
    return std::vector<HeadConfig>{classifier("classifier", 0, "logits")};
  }
  HeadConfig pooler{.input = HeadConfig::Input::kToken, .dense = "pooler", .name = "pooler_output"};
  VKF_ASSIGN(pooler.activation, get_activation(config, "pooler_act", "tanh"));
  return std::vector<HeadConfig>{pooler};
}

Status check_tokens(const JsonConfig& config, const ModelFacts& facts, int64_t class_tokens) {
  const bool teacher = facts.architecture.ends_with("WithTeacher");
  if (!teacher || class_tokens == kDeitTokens) return {};
  return unsupported(message({"[architectures] in ", config.where(), " is ", facts.architecture,
                              ", but a ", facts.family, " has no token for a teacher; use deit"}));
}

}  // namespace

Result<VitEncoder> read_vit_encoder(const JsonConfig& config, const PictureKeys& keys,
                                    const std::string& rows, const std::string& taps) {
  VitEncoder encoder;
  VKF_ASSIGN(encoder.picture, read_picture_embedding(config, keys));
  encoder.picture.patches = rows + ".patches";
  encoder.picture.positions = rows + ".positions";
  StackConfig& stack = encoder.stack;
  stack.rows = rows;
  stack.taps = taps;
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 768, kMostWidth));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 3072, kMostWidth));
  if (config.has("head_dim")) {
    VKF_ASSIGN(stack.head_width, get_size(config, "head_dim", kMostHeadWidth));
  } else {
    VKF_CHECK(head_width(config, stack.width, stack.heads));
  }
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-12));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "gelu"));
  stack.order = StackConfig::Order::kPre;
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_ASSIGN(encoder.pooled, get_size_or(config, "pooler_output_size", stack.width, kMostWidth));
  VKF_ASSIGN(bool bias, config.get_bool_or("qkv_bias", true));
  encoder.bias = bias ? ProjectionBias::kYes : ProjectionBias::kNo;
  return encoder;
}

// Version 5 of the library calls them "layers".
std::string vit_layers(const Checkpoint& checkpoint, const std::string& prefix) {
  const bool now = checkpoint.find(prefix + "layers.0.mlp.fc1.weight") != nullptr;
  return prefix + (now ? "layers." : "encoder.layer.");
}

void add_vit_layer_rows(WeightTable& table, const Checkpoint& checkpoint, const VitEncoder& encoder,
                        const std::string& prefix) {
  const PictureEmbedding& e = encoder.picture;
  const StackConfig& stack = encoder.stack;
  table.rows.push_back(linear_row(e.patches, {prefix + "embeddings.patch_embeddings.projection"},
                                  stack.width, e.picture.channels * e.patch.count()));
  const std::string layers = vit_layers(checkpoint, prefix);
  for (int64_t i = 0; i < stack.layers; ++i) {
    const PictureLayer layer{.to = stack.layer_rows(i),
                             .from = layers + std::to_string(i),
                             .projection = "attention.attention",
                             .width = stack.width,
                             .inner = stack.heads * stack.head(),
                             .ffn = stack.ffn,
                             .bias = encoder.bias,
                             .attention_scale = encoder.attention_scale,
                             .ffn_scale = encoder.ffn_scale};
    add_picture_projection_row(table, checkpoint, layer);
    add_picture_layer_rows(table, checkpoint, layer);
  }
  if (stack.final_norm == StackConfig::FinalNorm::kNo) return;
  table.rows.push_back(norm_row(stack.rows + ".norm", prefix + "layernorm", stack.width));
}

Status add_vit_rows(WeightTable& table, const Checkpoint& checkpoint, const VitEncoder& encoder,
                    const std::string& prefix) {
  const PictureEmbedding& e = encoder.picture;
  const std::string from = prefix + "embeddings.";
  std::vector<std::string> tokens = {from + "cls_token"};
  if (e.class_tokens > 1) tokens.push_back(from + "distillation_token");
  VKF_ASSIGN(WeightRow positions, position_row(checkpoint, e, from + "position_embeddings", tokens,
                                               encoder.stack.width));
  table.rows.push_back(std::move(positions));
  add_vit_layer_rows(table, checkpoint, encoder, prefix);
  // The first two are in the row of positions.
  table.ignored.insert(table.ignored.end(),
                       {from + "*_token", from + "position_embeddings", prefix + "pooler.dense.*"});
  return {};
}

VitFamily::VitFamily(ModelFacts facts, VitEncoder encoder, std::vector<HeadConfig> heads)
    : facts_(std::move(facts)), encoder_(std::move(encoder)), heads_(std::move(heads)) {}

void VitFamily::add_head_rows(WeightTable& table, const Checkpoint& checkpoint,
                              const std::string& prefix) const {
  const auto classes = static_cast<int64_t>(facts_.labels.size());
  for (const HeadConfig& head : heads_) {
    if (!head.output.empty()) {
      table.rows.push_back(linear_row(head.output, {head.output}, classes, facts_.width));
      continue;
    }
    // Bare models are saved with a pooler and without.
    if (checkpoint.find(prefix + "pooler.dense.weight") == nullptr) continue;
    table.rows.push_back(
        linear_row(head.dense, {prefix + "pooler.dense"}, encoder_.pooled, facts_.width));
  }
  // Heads that the file has and this architecture does not use.
  table.ignored.insert(table.ignored.end(), {"*classifier.weight", "*classifier.bias",
                                             "decoder.0.weight", "decoder.0.bias"});
}

Result<WeightTable> VitFamily::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const std::string prefix = name_prefix(checkpoint, facts_.family + ".", "embeddings.cls_token");
  VKF_CHECK(add_vit_rows(table, checkpoint, encoder_, prefix));
  add_head_rows(table, checkpoint, prefix);
  return table;
}

Status VitFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                const ForwardTaps& taps) const {
  VKF_ASSIGN(TensorId x, add_picture_embedding(b, encoder_.picture, shape.batch));
  const StackRun run{.batch = shape.batch, .tokens = encoder_.picture.tokens(), .taps = taps};
  VKF_ASSIGN(TensorId states, add_stack(b, encoder_.stack, run, x));
  b.mark_output(states, "last_hidden_state");
  std::vector<TensorId> outputs;
  for (const HeadConfig& head : heads_) {
    if (head.output.empty() && !b.has(head.dense)) continue;
    VKF_ASSIGN(TensorId y, add_head(b, encoder_.stack, head, {.states = states}));
    outputs.push_back(y);
  }
  if (outputs.size() < 2) return {};
  // Of a student with a teacher, the mean of what both tokens say.
  b.graph().set_scope("logits");
  VKF_ASSIGN(TensorId mean,
             add_combine(b.graph(), outputs[0], outputs[1], {.alpha = 0.5f, .beta = 0.5f}));
  b.mark_output(mean, "logits");
  return {};
}

Result<std::unique_ptr<ModelFamily>> load_vit_family(const JsonConfig& config,
                                                     int64_t class_tokens) {
  VKF_ASSIGN(VitEncoder encoder,
             read_vit_encoder(config, {.class_tokens = class_tokens}, "encoder", ""));
  const bool deit = class_tokens == kDeitTokens;
  ModelFacts facts{.family = deit ? "deit" : "vit",
                   .kind = ModelKind::kEncoder,
                   .source = SourceKind::kPictures};
  VKF_CHECK(read_picture_head(config, deit ? "DeiTModel" : "ViTModel", facts));
  facts.width = encoder.stack.width;
  facts.encoder_layers = encoder.stack.layers;
  facts.encoder_heads = encoder.stack.heads;
  facts.max_source = encoder.picture.tokens();
  facts.grid = encoder.picture.picture;
  VKF_CHECK(check_tokens(config, facts, class_tokens));
  VKF_ASSIGN(std::vector<HeadConfig> heads, read_heads(config, facts));
  return std::unique_ptr<ModelFamily>(
      new VitFamily(std::move(facts), std::move(encoder), std::move(heads)));
}

Result<std::unique_ptr<ModelFamily>> load_vit(const ModelFiles& files) {
  return load_vit_family(files.config, kVitTokens);
}

}  // namespace vkformer
