// CLIP (Radford et al., 2021), SigLIP (Zhai et al., 2023) and SigLIP 2 with pictures of any
// proportions (Tschannen et al., 2025). They have texts and pictures in one space, both towers
// together or each alone. SigLIP 2's checkpoints for pictures of one size are SigLIPs.
#include <cmath>

#include "base/message.h"
#include "model/blocks/towers.h"
#include "model/config_reading.h"
#include "model/family_list.h"

namespace vkformer {
namespace {

// What the two differ in, by the library's defaults where a key may be missing.
struct ClipKind {
  const char* family;   // of both towers
  const char* classes;  // that its class names begin with
  int64_t vocabulary;
  int64_t text_width;
  int64_t text_ffn;
  int64_t text_heads;
  int64_t text_tokens;
  int64_t picture_width;
  int64_t picture_heads;
  int64_t patch;
  const char* activation;
  double epsilon;
  bool sigmoid;          // SigLIP: a learned query, a bias of logits, texts that see both ways
  bool patches = false;  // SigLIP 2: pictures of any proportions, in patches
};

constexpr ClipKind siglip_kind(const char* family, const char* classes, bool patches) {
  return {family, classes, 32000,  768, 3072, 12, 64, 768, 12, 16, "gelu_pytorch_tanh",
          1e-6,   true,    patches};
}

constexpr ClipKind kClip = {"clip", "CLIP", 49408, 512,          2048, 8,    77,
                            768,    12,     32,    "quick_gelu", 1e-5, false};
constexpr ClipKind kSiglip = siglip_kind("siglip", "Siglip", false);
constexpr ClipKind kSiglip2 = siglip_kind("siglip2", "Siglip2", true);
// SigLIP's tower in Idefics3 and SmolVLM, which have other defaults.
constexpr ClipKind kIdefics3 = {"idefics3", "Idefics3",          32000, 768, 3072, 12, 64, 1152, 16,
                                32,         "gelu_pytorch_tanh", 1e-6,  true};
constexpr int64_t kOldEnd = 2;  // eos_token_id of configurations before it was right

Status read_tower_stack(const JsonConfig& config, const ClipKind& kind, StackConfig& stack) {
  stack.order = StackConfig::Order::kPre;
  VKF_CHECK(head_width(config, stack.width, stack.heads));
  VKF_ASSIGN(stack.layers, get_size_or(config, "num_hidden_layers", 12, kMostLayers));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", kind.epsilon));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", kind.activation));
  return {};
}

Result<TextTower> read_text_tower(const JsonConfig& config, const ClipKind& kind) {
  TextTower tower;
  StackConfig& stack = tower.stack;
  stack.rows = "text";
  stack.final_norm = StackConfig::FinalNorm::kYes;
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", kind.text_width, kMostWidth));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", kind.text_heads, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", kind.text_ffn, kMostWidth));
  VKF_CHECK(read_tower_stack(config, kind, stack));
  VKF_ASSIGN(tower.vocabulary, get_size_or(config, "vocab_size", kind.vocabulary, kMostVocabulary));
  VKF_ASSIGN(tower.tokens,
             get_size_or(config, "max_position_embeddings", kind.text_tokens, kMostPositions));
  tower.embedding = {.words = "text.words", .positions = "text.positions"};
  if (kind.sigmoid) {
    tower.pool = TextTower::Pool::kLast;
    VKF_ASSIGN(tower.projection, get_size_or(config, "projection_size", stack.width, kMostWidth));
    tower.head_bias = TextTower::HeadBias::kYes;
    return tower;
  }
  stack.causal = StackConfig::Causal::kYes;
  VKF_ASSIGN(tower.end, config.get_int_or("eos_token_id", 49407));
  if (tower.end == kOldEnd) tower.pool = TextTower::Pool::kHighestId;
  return tower;
}

// Of pictures in patches: positions are a square of `num_patches`.
Result<PictureEmbedding> read_patch_embedding(const JsonConfig& config, int64_t patch) {
  VKF_ASSIGN(const int64_t count, get_size_or(config, "num_patches", 256, kMostPositions));
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(count)));
  if (side * side != count) {
    return invalid_file(message({"[num_patches] in ", config.where(), " is ", count,
                                 ", but positions are a square grid; it must be a square number "
                                 "such as ",
                                 side * side, "."}));
  }
  // A picture of one patch; its size is that of the positions below.
  const PictureKeys keys{.size = "patch_size", .patch = patch, .class_tokens = 0};
  VKF_ASSIGN(PictureEmbedding e, read_picture_embedding(config, keys));
  e.picture.height = side * e.patch.height;
  e.picture.width = side * e.patch.width;
  return e;
}

Result<PictureTower> read_picture_tower(const JsonConfig& config, const ClipKind& kind) {
  PictureTower tower;
  StackConfig& stack = tower.stack;
  stack.rows = "picture";
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", kind.picture_width, kMostWidth));
  VKF_ASSIGN(stack.heads,
             get_size_or(config, "num_attention_heads", kind.picture_heads, kMostWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "intermediate_size", 3072, kMostWidth));
  VKF_CHECK(read_tower_stack(config, kind, stack));
  if (kind.patches) {
    tower.input = PictureTower::Input::kPatches;
    VKF_ASSIGN(tower.embedding, read_patch_embedding(config, kind.patch));
  } else {
    VKF_ASSIGN(tower.embedding,
               read_picture_embedding(config,
                                      {.patch = kind.patch, .class_tokens = kind.sigmoid ? 0 : 1}));
  }
  tower.embedding.patches = "picture.patches";
  tower.embedding.positions = "picture.positions";
  if (kind.sigmoid) {
    tower.pool = PictureTower::Pool::kAttention;
    tower.last_norm = PictureTower::LastNorm::kYes;
  }
  return tower;
}

// The pictures that a tower takes.
GridFacts grid_facts(const PictureTower& tower) {
  if (tower.input == PictureTower::Input::kPictures) return tower.embedding.picture;
  return {.channels = tower.embedding.picture.channels};
}

void set_tower_facts(const StackConfig& stack, ModelFacts& facts) {
  facts.kind = ModelKind::kEncoder;
  facts.width = stack.width;
  facts.encoder_layers = stack.layers;
  facts.encoder_heads = stack.heads;
}

// Whether the class has a projection after its tower.
Result<bool> read_tower_class(const JsonConfig& config, const std::string& bare,
                              ModelFacts& facts) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, bare));
  if (facts.architecture == bare) return false;
  if (facts.architecture == bare + "WithProjection") return true;
  return unsupported(message({"[architectures] in ", config.where(), " names '", facts.architecture,
                              "', whose head this family does not have; "
                              "supported are ",
                              bare, " and ", bare, "WithProjection"}));
}

Result<std::unique_ptr<ModelFamily>> load_text(const JsonConfig& config, const ClipKind& kind) {
  TowerFacts tower_facts;
  ModelFacts& facts = tower_facts.facts;
  facts.family = std::string(kind.family) + "_text_model";
  VKF_ASSIGN(const bool projects,
             read_tower_class(config, std::string(kind.classes) + "TextModel", facts));
  VKF_ASSIGN(TextTower tower, read_text_tower(config, kind));
  if (kind.sigmoid) {
    tower.head = "head";
    tower_facts.projected = TowerFacts::Projected::kPooled;
    facts.padding = ModelFacts::Padding::kSeen;  // the last token is pooled, whatever it is
  } else if (projects) {
    tower.head = "text_projection";
    VKF_ASSIGN(tower.projection, get_size_or(config, "projection_dim", 512, kMostWidth));
  }
  set_tower_facts(tower.stack, facts);
  facts.source_vocab = tower.vocabulary;
  facts.max_source = tower.tokens;
  return make_text_tower(std::move(tower_facts), std::move(tower));
}

Result<std::unique_ptr<ModelFamily>> load_pictures(const JsonConfig& config, const ClipKind& kind) {
  TowerFacts tower_facts;
  ModelFacts& facts = tower_facts.facts;
  facts.family = std::string(kind.family) + "_vision_model";
  facts.source = kind.patches ? SourceKind::kArrays : SourceKind::kPictures;
  VKF_ASSIGN(const bool projects,
             read_tower_class(config, std::string(kind.classes) + "VisionModel", facts));
  VKF_ASSIGN(PictureTower tower, read_picture_tower(config, kind));
  if (projects) {
    tower.head = "visual_projection";
    VKF_ASSIGN(tower.projection, get_size_or(config, "projection_dim", 512, kMostWidth));
  }
  set_tower_facts(tower.stack, facts);
  facts.max_source = tower.embedding.tokens();
  facts.grid = grid_facts(tower);
  return make_picture_tower(std::move(tower_facts), std::move(tower));
}

Result<std::unique_ptr<ModelFamily>> load_pair(const JsonConfig& config, const ClipKind& kind) {
  ModelFacts facts{.family = kind.family, .source = SourceKind::kArrays};
  facts.head = HeadKind::kSimilarity;
  if (kind.sigmoid) facts.similarity = ModelFacts::Similarity::kSigmoid;
  if (kind.sigmoid) facts.padding = ModelFacts::Padding::kSeen;
  const std::string bare = std::string(kind.classes) + "Model";
  VKF_ASSIGN(facts.architecture, get_architecture(config, bare));
  if (facts.architecture != bare) {
    return unsupported(
        message({"[architectures] in ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; "
                 "supported is ",
                 bare}));
  }
  const JsonConfig texts = config.object("text_config");
  const JsonConfig pictures = config.object("vision_config");
  VKF_CHECK(texts.status());
  VKF_CHECK(pictures.status());
  TowerPair pair;
  VKF_ASSIGN(pair.text, read_text_tower(texts, kind));
  VKF_ASSIGN(pair.picture, read_picture_tower(pictures, kind));
  if (kind.sigmoid) {
    pair.text.head = "text_model.head";
    pair.bias = TowerPair::Bias::kYes;
    pair.scale_shape = {1};
    if (pair.text.projection != pair.picture.stack.width) {
      return invalid_file(message({"[text_config.projection_size] in ", config.where(), " is ",
                                   pair.text.projection, ", but must be the pictures' width of ",
                                   pair.picture.stack.width}));
    }
  } else {
    VKF_ASSIGN(pair.text.projection, get_size_or(config, "projection_dim", 512, kMostWidth));
    pair.picture.projection = pair.text.projection;
    pair.text.head = "text_projection";
    pair.picture.head = "visual_projection";
  }
  set_tower_facts(pair.picture.stack, facts);
  facts.width = pair.text.projection;
  facts.source_vocab = pair.text.vocabulary;
  facts.max_source = pair.text.tokens;
  facts.grid = grid_facts(pair.picture);
  return make_tower_pair(std::move(facts), std::move(pair));
}

}  // namespace

Result<PictureTower> read_state_tower(const JsonConfig& config, const std::string& fallback) {
  VKF_ASSIGN(const std::string type, config.get_string_or("model_type", fallback));
  const bool idefics3 = fallback == "idefics3";
  if (!idefics3 && type != "clip_vision_model" && type != "siglip_vision_model") {
    return unsupported(message({"[vision_config.model_type] in ", config.where(), " is '", type,
                                "'; supported are clip_vision_model and siglip_vision_model."}));
  }
  const ClipKind& kind = idefics3 ? kIdefics3 : type == "clip_vision_model" ? kClip : kSiglip;
  VKF_ASSIGN(PictureTower tower, read_picture_tower(config, kind));
  tower.pool = PictureTower::Pool::kNone;
  tower.file_layers = tower.stack.layers;
  return tower;
}

Result<std::unique_ptr<ModelFamily>> load_clip(const ModelFiles& files) {
  return load_pair(files.config, kClip);
}

Result<std::unique_ptr<ModelFamily>> load_clip_text_model(const ModelFiles& files) {
  return load_text(files.config, kClip);
}

Result<std::unique_ptr<ModelFamily>> load_clip_vision_model(const ModelFiles& files) {
  return load_pictures(files.config, kClip);
}

Result<std::unique_ptr<ModelFamily>> load_siglip(const ModelFiles& files) {
  return load_pair(files.config, kSiglip);
}

Result<std::unique_ptr<ModelFamily>> load_siglip_text_model(const ModelFiles& files) {
  return load_text(files.config, kSiglip);
}

Result<std::unique_ptr<ModelFamily>> load_siglip_vision_model(const ModelFiles& files) {
  return load_pictures(files.config, kSiglip);
}

Result<std::unique_ptr<ModelFamily>> load_siglip2(const ModelFiles& files) {
  return load_pair(files.config, kSiglip2);
}

Result<std::unique_ptr<ModelFamily>> load_siglip2_text_model(const ModelFiles& files) {
  return load_text(files.config, kSiglip2);
}

Result<std::unique_ptr<ModelFamily>> load_siglip2_vision_model(const ModelFiles& files) {
  return load_pictures(files.config, kSiglip2);
}

}  // namespace vkformer
