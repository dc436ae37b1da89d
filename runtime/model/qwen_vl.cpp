// Qwen2.5-VL (Bai et al., 2025) and Qwen3-VL (Qwen Team, 2025). A tower reads patches of pictures
// of any size, with rotary positions by row and column. Its squares of patches become tokens. The
// decoder has positions of three components (mRoPE). Qwen2.5-VL's tower has windows; Qwen3-VL's has
// a table of positions, and hands features on to the first layers of the decoder (DeepStack).
//
// Patches come in the order of the library's processor: squares of them row by row, and row by row
// inside. `more` is (time, rows, columns) of each picture, in patches.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/narrow.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/picture_language.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

constexpr int64_t kMostImages = 4096;  // of a pass
const std::vector<std::string> kTowers = {"visual.", "model.visual."};

struct QwenTower {
  enum class Kind : uint8_t { kWindows, kDeepStack } kind = Kind::kWindows;
  StackConfig stack;
  int64_t channels = 3;
  int64_t patch = 14;         // pixels along a side
  int64_t frames = 2;         // of a patch
  int64_t merge = 2;          // patches along a side of a token
  int64_t out = 0;            // D of the decoder
  int64_t window = 0;         // tokens along a side of a window; kWindows
  int64_t side = 0;           // of the table of positions; kDeepStack
  std::vector<int64_t> deep;  // layers whose states are handed on; kDeepStack

  int64_t patch_width() const { return channels * frames * patch * patch; }
  int64_t unit() const { return merge * merge; }
};

struct Image {
  int64_t frames = 0, rows = 0, columns = 0;  // patches
  int64_t patches() const { return frames * rows * columns; }
};

std::vector<Image> images_of(std::span<const int64_t> more) {
  std::vector<Image> images;
  for (size_t i = 0; i + 2 < more.size(); i += 3) {
    images.push_back({more[i], more[i + 1], more[i + 2]});
  }
  return images;
}

int64_t patches_of(std::span<const int64_t> more) {
  int64_t patches = 0;
  for (const Image& image : images_of(more)) patches += image.patches();
  return patches;
}

// A word list of documents of these lengths in tokens (score_terms.h).
std::vector<uint32_t> document_words(const std::vector<int64_t>& lengths) {
  std::vector<uint32_t> first, end;
  uint32_t at = 0;
  for (const int64_t length : lengths) {
    first.insert(first.end(), static_cast<size_t>(length), at);
    at += u32(length);
    end.insert(end.end(), static_cast<size_t>(length), at);
  }
  first.insert(first.end(), end.begin(), end.end());
  return first;
}

class QwenPictures : public PicturePrompt {
 public:
  QwenPictures(Settings settings, QwenTower tower)
      : PicturePrompt(std::move(settings)), t_(std::move(tower)) {}

  Status prepare(const Checkpoint& checkpoint) override;
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override;
  std::vector<std::string> input_names() const override {
    return {"pixel_values", "image_grid_thw"};
  }
  Status read(const TensorMap& inputs, std::vector<int64_t>& more, FeedWords& words) const override;
  Result<int64_t> image_tokens(int64_t height, int64_t width) const override;
  int64_t features(std::span<const int64_t> more) const override {
    return patches_of(more) / t_.unit();
  }
  Grid grid_of(std::span<const int64_t> more, int64_t first) const override;
  Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const override;

 private:
  bool deep() const { return t_.kind == QwenTower::Kind::kDeepStack; }
  // Calls visit(row, column) for all patches of a picture in their order.
  template <class Visit>
  void for_patches(const Image& image, Visit visit) const;
  // Tokens in the order of windows, and tokens of each window.
  std::vector<uint32_t> window_order(std::span<const int64_t> more,
                                     std::vector<int64_t>& lengths) const;
  // Cosines and sines (L, E) of patches, tokens in that order.
  std::vector<float> turning_rows(std::span<const int64_t> more,
                                  const std::vector<uint32_t>& order) const;
  std::vector<float> positions(std::span<const int64_t> more) const;
  StackTerms terms(ModelBuilder& b, std::span<const int64_t> more,
                   const std::vector<int64_t>& windows) const;
  // Rows of a merger: norm, two linear layers.
  void add_merger(const std::string& to, const std::string& from, WeightTable& table) const;
  Result<TensorId> merge(ModelBuilder& b, const std::string& rows, TensorId x) const;
  Result<TensorId> merge_deep(ModelBuilder& b, const std::string& rows, TensorId x) const;

  QwenTower t_;
  std::vector<float> table_;  // of positions (side side, D)
};

Status QwenPictures::prepare(const Checkpoint& checkpoint) {
  if (!deep()) return {};
  const std::string name = "pos_embed.weight";
  VKF_ASSIGN(table_, read_floats(checkpoint, present_prefix(checkpoint, kTowers, name) + name,
                                 {t_.side * t_.side, t_.stack.width}));
  return {};
}

void QwenPictures::add_merger(const std::string& to, const std::string& from,
                              WeightTable& table) const {
  const int64_t d = t_.stack.width, wide = d * t_.unit();
  if (!deep()) {
    table.rows.push_back(gain_row(to + ".norm", from + "ln_q", d));
    table.rows.push_back(linear_row(to + ".up", {from + "mlp.0"}, wide, wide));
    table.rows.push_back(linear_row(to + ".down", {from + "mlp.2"}, t_.out, wide));
    return;
  }
  const bool after = to != "picture.merger";
  table.rows.push_back(norm_row(to + ".norm", from + "norm", after ? wide : d));
  table.rows.push_back(linear_row(to + ".up", {from + "linear_fc1"}, wide, wide));
  table.rows.push_back(linear_row(to + ".down", {from + "linear_fc2"}, t_.out, wide));
}

Status QwenPictures::add_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const StackConfig& s = t_.stack;
  const int64_t d = s.width;
  const std::string from = present_prefix(checkpoint, kTowers, "patch_embed.proj.weight");
  const auto norm = deep() ? norm_row : gain_row;
  const auto patches = deep() ? linear_row : plain_linear_row;
  table.rows.push_back(
      patches("picture.patches", {from + "patch_embed.proj"}, d, t_.patch_width()));
  for (int64_t i = 0; i < s.layers; ++i) {
    const std::string to = s.layer_rows(i);
    const std::string layer = from + "blocks." + std::to_string(i) + ".";
    const std::string mlp = layer + "mlp.";
    table.rows.push_back(norm(to + ".self.norm", layer + "norm1", d));
    table.rows.push_back(linear_row(to + ".self.qkv", {layer + "attn.qkv"}, 3 * d, d));
    table.rows.push_back(linear_row(to + ".self.out", {layer + "attn.proj"}, d, d));
    table.rows.push_back(norm(to + ".ffn.norm", layer + "norm2", d));
    if (deep()) {
      table.rows.push_back(linear_row(to + ".ffn.up", {mlp + "linear_fc1"}, s.ffn, d));
      table.rows.push_back(linear_row(to + ".ffn.down", {mlp + "linear_fc2"}, d, s.ffn));
    } else {
      table.rows.push_back(in_gate_pairs(
          linear_row(to + ".ffn.up", {mlp + "gate_proj", mlp + "up_proj"}, 2 * s.ffn, d)));
      table.rows.push_back(linear_row(to + ".ffn.down", {mlp + "down_proj"}, d, s.ffn));
    }
  }
  add_merger("picture.merger", from + "merger.", table);
  for (size_t i = 0; i < t_.deep.size(); ++i) {
    const std::string number = std::to_string(i);
    add_merger("picture.deep." + number, from + "deepstack_merger_list." + number + ".", table);
  }
  table.ignored.push_back(from + "pos_embed.weight");
  table.ignored.push_back(from + "rotary_pos_emb.inv_freq");
  return {};
}

Status QwenPictures::read(const TensorMap& inputs, std::vector<int64_t>& more,
                          FeedWords& words) const {
  const auto pixels = inputs.find("pixel_values"), grids = inputs.find("image_grid_thw");
  if (pixels == inputs.end() && grids == inputs.end()) return {};
  if (pixels == inputs.end() || grids == inputs.end()) {
    return invalid_argument(
        "[pixel_values] and [image_grid_thw] belong together, but one is missing; give both.");
  }
  const Shape& shape = grids->second.shape;
  if (shape.size() != 2 || shape[0] < 1 || shape[0] > kMostImages || shape[1] != 3) {
    return invalid_argument(message({"[image_grid_thw] has shape ", shape_text(shape),
                                     ", but it must be (images, 3): time, rows and columns of "
                                     "patches, of up to ",
                                     kMostImages, " images."}));
  }
  VKF_ASSIGN(const std::vector<int64_t> values, grids->second.to_ints());
  int64_t patches = 0;
  for (size_t i = 0; i < values.size(); i += 3) {
    const Image image{values[i], values[i + 1], values[i + 2]};
    const bool sane = image.frames >= 1 && image.rows >= 1 && image.columns >= 1 &&
                      image.frames <= kMostPositions && image.rows <= kMostPositions &&
                      image.columns <= kMostPositions && image.rows % t_.merge == 0 &&
                      image.columns % t_.merge == 0;
    if (sane && image.frames * image.rows <= kMostPositions) patches += image.patches();
    if (sane && image.frames * image.rows <= kMostPositions && patches <= kMostPositions) continue;
    return invalid_argument(
        message({"[image_grid_thw] holds an image of ", image.frames, " x ", image.rows, " x ",
                 image.columns, " patches, but rows and columns must be multiples of ", t_.merge,
                 ", and all patches up to ", kMostPositions, "."}));
  }
  if (pixels->second.shape != Shape{patches, t_.patch_width()}) {
    return invalid_argument(message({"[pixel_values] has shape ", shape_text(pixels->second.shape),
                                     ", but by image_grid_thw it must be ",
                                     shape_text({patches, t_.patch_width()}), "."}));
  }
  VKF_ASSIGN(const std::vector<float> floats, pixels->second.to_floats());
  words["pixel_values"] = float_words(floats);
  more = values;
  return {};
}

Result<int64_t> QwenPictures::image_tokens(int64_t height, int64_t width) const {
  const int64_t unit = t_.patch * t_.merge;
  if (height % unit == 0 && width % unit == 0) return height / unit * (width / unit);
  return invalid_file(message({"[patch_size] of the image processor makes images of ", height,
                               " x ", width, " pixels, but this model's tower reads multiples of ",
                               unit, "; the files belong to different models."}));
}

PicturePrompt::Grid QwenPictures::grid_of(std::span<const int64_t> more, int64_t first) const {
  int64_t begin = 0;
  for (const Image& image : images_of(more)) {
    const int64_t tokens = image.patches() / t_.unit();
    if (begin == first) return {tokens, image.rows / t_.merge, image.columns / t_.merge};
    begin += tokens;
  }
  return {};
}

template <class Visit>
void QwenPictures::for_patches(const Image& image, Visit visit) const {
  const int64_t m = t_.merge;
  for (int64_t frame = 0; frame < image.frames; ++frame) {
    for (int64_t y = 0; y < image.rows; y += m) {
      for (int64_t x = 0; x < image.columns; x += m) {
        for (int64_t p = 0; p < m * m; ++p) visit(y + p / m, x + p % m);
      }
    }
  }
}

std::vector<uint32_t> QwenPictures::window_order(std::span<const int64_t> more,
                                                 std::vector<int64_t>& lengths) const {
  std::vector<uint32_t> order;
  int64_t first = 0;
  for (const Image& image : images_of(more)) {
    const int64_t high = image.rows / t_.merge, wide = image.columns / t_.merge;
    for (int64_t frame = 0; frame < image.frames; ++frame, first += high * wide) {
      for (int64_t top = 0; top < high; top += t_.window) {
        for (int64_t left = 0; left < wide; left += t_.window) {
          const int64_t bottom = std::min(top + t_.window, high);
          const int64_t right = std::min(left + t_.window, wide);
          for (int64_t y = top; y < bottom; ++y) {
            for (int64_t x = left; x < right; ++x) order.push_back(u32(first + y * wide + x));
          }
          lengths.push_back((bottom - top) * (right - left) * t_.unit());
        }
      }
    }
  }
  return order;
}

std::vector<float> QwenPictures::turning_rows(std::span<const int64_t> more,
                                              const std::vector<uint32_t>& order) const {
  const auto e = static_cast<size_t>(t_.stack.head());
  const size_t quarter = e / 4, unit = static_cast<size_t>(t_.unit());
  std::vector<float> rows;
  const auto add_angles = [&](const std::array<int64_t, 2>& place, bool sine) {
    for (const int64_t p : place) {
      for (size_t i = 0; i < quarter; ++i) {
        const double turn = static_cast<double>(p) * std::pow(1e4, -2.0 * static_cast<double>(i) /
                                                                       static_cast<double>(e / 2));
        rows.push_back(static_cast<float>(sine ? std::sin(turn) : std::cos(turn)));
      }
    }
  };
  std::vector<std::array<int64_t, 2>> places;
  for (const Image& image : images_of(more)) {
    for_patches(image, [&](int64_t y, int64_t x) { places.push_back({y, x}); });
  }
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t from = order.empty() ? i : order[i / unit] * unit + i % unit;
    add_angles(places[from], false);
    add_angles(places[from], true);
  }
  return rows;
}

// The table of positions, stretched over each picture by two straight lines; its ends are the
// picture's.
std::vector<float> QwenPictures::positions(std::span<const int64_t> more) const {
  const auto d = static_cast<size_t>(t_.stack.width);
  const int64_t last = t_.side - 1;
  std::vector<float> rows;
  const auto split = [&](int64_t i, int64_t count, int64_t& low, double& part) {
    const double at = count == 1 ? 0.0
                                 : static_cast<double>(i) * static_cast<double>(last) /
                                       static_cast<double>(count - 1);
    low = static_cast<int64_t>(at);
    part = at - static_cast<double>(low);
  };
  for (const Image& image : images_of(more)) {
    for_patches(image, [&](int64_t y, int64_t x) {
      int64_t top = 0, left = 0;
      double down = 0, right = 0;
      split(y, image.rows, top, down);
      split(x, image.columns, left, right);
      const int64_t bottom = std::min(top + 1, last), other = std::min(left + 1, last);
      const auto row = [&](int64_t r, int64_t c) {
        return table_.begin() + static_cast<ptrdiff_t>(r * t_.side + c) * static_cast<ptrdiff_t>(d);
      };
      const auto a = row(top, left), b = row(top, other), c = row(bottom, left),
                 e = row(bottom, other);
      for (size_t i = 0; i < d; ++i) {
        const auto k = static_cast<ptrdiff_t>(i);
        const double upper = (1 - right) * double{a[k]} + right * double{b[k]};
        const double lower = (1 - right) * double{c[k]} + right * double{e[k]};
        rows.push_back(static_cast<float>((1 - down) * upper + down * lower));
      }
    });
  }
  return rows;
}

// A frame of a picture sees itself; in layers with windows a window does.
StackTerms QwenPictures::terms(ModelBuilder& b, std::span<const int64_t> more,
                               const std::vector<int64_t>& windows) const {
  std::vector<int64_t> frames;
  for (const Image& image : images_of(more)) {
    frames.insert(frames.end(), static_cast<size_t>(image.frames), image.rows * image.columns);
  }
  StackTerms terms;
  std::vector<uint32_t> words;
  std::vector<const std::vector<int64_t>*> kinds = {&frames};
  if (!windows.empty()) kinds.push_back(&windows);
  for (const std::vector<int64_t>* lengths : kinds) {
    ScoreTermsParams params = no_score_terms();
    params.flags = VKF_TERM_DOCUMENTS;
    params.sparse_offset = u32(static_cast<int64_t>(words.size()));
    const auto begin = static_cast<uint32_t>(words.size() + VKF_SPARSE_WORDS);
    words.insert(words.end(), VKF_SPARSE_WORDS, begin);
    const std::vector<uint32_t> list = document_words(*lengths);
    words.insert(words.end(), list.begin(), list.end());
    terms.by_kind.push_back(params);
  }
  const auto count = static_cast<int64_t>(words.size());
  terms.words = b.host_tensor("picture.terms", DType::kU32, {count}, std::move(words));
  return terms;
}

// Squares of patches side by side, after the norm, as one token each.
Result<TensorId> QwenPictures::merge(ModelBuilder& b, const std::string& rows, TensorId x) const {
  VKF_ASSIGN(x, add_named_norm(b, t_.stack, rows + ".norm", x));
  Shape& shape = b.graph().tensor(x).shape;
  shape = {element_count(shape) / (t_.stack.width * t_.unit()), t_.stack.width * t_.unit()};
  VKF_ASSIGN(x, add_named_linear(b, rows + ".up", x, {.activation = ActivationKind::kGelu}));
  return add_named_linear(b, rows + ".down", x);
}

// The same with the norm of what is side by side; x goes on as it is.
Result<TensorId> QwenPictures::merge_deep(ModelBuilder& b, const std::string& rows,
                                          TensorId x) const {
  const int64_t wide = t_.stack.width * t_.unit();
  const int64_t tokens = element_count(b.graph().tensor(x).shape) / wide;
  b.graph().set_scope(rows);
  VKF_ASSIGN(TensorId y, add_columns(b.graph(), x, {.stride = u32(wide)}, {tokens, wide}));
  VKF_ASSIGN(y, add_named_norm(b, t_.stack, rows + ".norm", y));
  VKF_ASSIGN(y, add_named_linear(b, rows + ".up", y, {.activation = ActivationKind::kGelu}));
  return add_named_linear(b, rows + ".down", y);
}

Result<PicturePrompt::Features> QwenPictures::build(ModelBuilder& b,
                                                    std::span<const int64_t> more) const {
  Graph& g = b.graph();
  const int64_t patches = patches_of(more), d = t_.stack.width;
  const TensorId pixels =
      g.add_external("pixel_values", DType::kF32, {1, patches, t_.patch_width()});
  b.feed("pixel_values", pixels);
  LinearAttrs attrs;
  if (deep()) {
    attrs.residual = b.host_floats("picture.positions", {1, patches, d}, positions(more));
  }
  VKF_ASSIGN(TensorId x, add_named_linear(b, "picture.patches", pixels, attrs));
  std::vector<int64_t> windows;
  std::vector<uint32_t> order;
  const int64_t tokens = patches / t_.unit();
  if (!deep()) {
    order = window_order(more, windows);
    std::vector<uint32_t> rows;
    for (int64_t i = 0; i < patches; ++i) {
      const auto token = order[static_cast<size_t>(i / t_.unit())];
      rows.push_back(u32(token * t_.unit() + i % t_.unit()));
    }
    g.set_scope("picture.windows");
    const TensorId to =
        b.host_tensor("picture.windows", DType::kU32, {1, patches}, std::move(rows));
    VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = to}));
  }
  StackRun run{.batch = 1, .tokens = patches};
  run.terms = terms(b, more, windows);
  run.turning =
      b.host_floats("picture.turning", {patches, t_.stack.head()}, turning_rows(more, order));
  Features features;
  run.after = [&](int64_t layer, TensorId, TensorId y) -> Result<TensorId> {
    const auto found = std::find(t_.deep.begin(), t_.deep.end(), layer);
    if (found == t_.deep.end()) return y;
    const std::string rows = "picture.deep." + std::to_string(found - t_.deep.begin());
    VKF_ASSIGN(const TensorId made, merge_deep(b, rows, y));
    features.deep.push_back(made);
    return y;
  };
  VKF_ASSIGN(x, add_stack(b, t_.stack, run, x));
  VKF_ASSIGN(features.rows, merge(b, "picture.merger", x));
  if (deep()) return features;
  std::vector<uint32_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<uint32_t>(i);
  g.set_scope("picture.back");
  const TensorId from = b.host_tensor("picture.back", DType::kU32, {tokens}, std::move(back));
  VKF_ASSIGN(features.rows, add_gather_rows(g, {.x = features.rows, .indices = from}));
  return features;
}

// Sizes that both towers have; `defaults` are a tower's own.
struct TowerDefaults {
  int64_t depth, width, ffn, patch;
  const char* activation;
};
Status read_tower(const JsonConfig& config, const TowerDefaults& defaults, QwenTower& t) {
  StackConfig& s = t.stack;
  s.rows = "picture";
  s.order = StackConfig::Order::kPre;
  s.epsilon = 1e-6f;
  VKF_ASSIGN(s.layers, get_size_or(config, "depth", defaults.depth, kMostLayers));
  VKF_ASSIGN(s.width, get_size_or(config, "hidden_size", defaults.width, kMostWidth));
  VKF_ASSIGN(s.heads, get_size_or(config, "num_heads", 16, kMostWidth));
  VKF_ASSIGN(const int64_t head, head_width(config, s.width, s.heads));
  if (head % 4 != 0) {
    return invalid_file(message({"[vision_config.hidden_size] in ", config.where(), " is ", s.width,
                                 " for ", s.heads,
                                 " heads; each must be a multiple of 4 wide, for positions by row "
                                 "and column."}));
  }
  VKF_ASSIGN(s.ffn, get_size_or(config, "intermediate_size", defaults.ffn, kMostWidth));
  VKF_ASSIGN(s.activation, get_activation(config, "hidden_act", defaults.activation));
  VKF_ASSIGN(t.channels,
             get_size_or(config, config.has("in_channels") ? "in_channels" : "in_chans", 3, 4096));
  VKF_ASSIGN(t.patch, get_size_or(config, "patch_size", defaults.patch, 1024));
  VKF_ASSIGN(t.frames, get_size_or(config, "temporal_patch_size", 2, 64));
  VKF_ASSIGN(t.merge, get_size_or(config, "spatial_merge_size", 2, 64));
  VKF_ASSIGN(t.out, get_size_or(config, "out_hidden_size", 3584, kMostWidth));
  s.rotaries = {RotarySetup{.width = u32(head)}};
  s.kinds = {AttentionKind{.rotary = 0}};
  return {};
}

Status read_windows(const JsonConfig& config, QwenTower& t) {
  StackConfig& s = t.stack;
  s.norm = StackConfig::Norm::kRms;
  s.gate = StackConfig::Gate::kYes;
  s.kinds.push_back(AttentionKind{.rotary = 0});
  VKF_ASSIGN(const int64_t pixels, get_size_or(config, "window_size", 112, 1 << 20));
  t.window = pixels / t.merge / t.patch;
  if (t.window < 1) {
    return invalid_file(message({"[vision_config.window_size] in ", config.where(), " is ", pixels,
                                 " pixels, but must be ", t.merge * t.patch, " at least."}));
  }
  VKF_ASSIGN(const std::vector<int64_t> full,
             config.get_int_list_or("fullatt_block_indexes", {7, 15, 23, 31}));
  for (int64_t i = 0; i < s.layers; ++i) {
    s.kind_of.push_back(std::find(full.begin(), full.end(), i) == full.end() ? 1 : 0);
  }
  return {};
}

Status read_deep_stack(const JsonConfig& config, int64_t decoder_layers, QwenTower& t) {
  t.kind = QwenTower::Kind::kDeepStack;
  VKF_ASSIGN(const int64_t places,
             get_size_or(config, "num_position_embeddings", 2304, kMostPositions));
  t.side = static_cast<int64_t>(std::sqrt(static_cast<double>(places)));
  if (t.side * t.side != places) {
    return invalid_file(message({"[vision_config.num_position_embeddings] in ", config.where(),
                                 " is ", places, ", but must be a square."}));
  }
  VKF_ASSIGN(t.deep, config.get_int_list_or("deepstack_visual_indexes", {8, 16, 24}));
  for (size_t i = 0; i < t.deep.size(); ++i) {
    const bool rises = i == 0 || t.deep[i] > t.deep[i - 1];
    if (rises && t.deep[i] >= 0 && t.deep[i] < t.stack.layers) continue;
    return unsupported(
        message({"[vision_config.deepstack_visual_indexes] in ", config.where(), " holds ",
                 t.deep[i], ", but must be ascending, 0 to ", t.stack.layers - 1, "."}));
  }
  if (static_cast<int64_t>(t.deep.size()) <= decoder_layers) return {};
  return invalid_file(
      message({"[vision_config.deepstack_visual_indexes] in ", config.where(), " has ",
               t.deep.size(), " entries, but the text model has ", decoder_layers, " layers."}));
}

// mRoPE's parameters: those of the default rotary positions, and sections of three components.
Status read_mrope(const JsonConfig& config, const LlamaKind& kind, int64_t max_positions,
                  StackConfig& stack) {
  const JsonConfig scope = rotary_scope(config);
  VKF_CHECK(scope.status());
  VKF_ASSIGN(const std::string old, scope.get_string_or("type", "default"));
  VKF_ASSIGN(const std::string type, scope.get_string_or("rope_type", old));
  RotaryDefaults defaults = kind.rotary;
  defaults.max_positions = max_positions;
  RotarySetup setup;
  if (type == "mrope") {
    VKF_ASSIGN(const double theta, config.get_double_or("rope_theta", defaults.theta));
    VKF_ASSIGN(setup.scaling.theta, scope.get_double_or("rope_theta", theta));
    setup.scaling.max_positions = max_positions;
  } else {
    VKF_ASSIGN(setup.scaling, read_model_rotary(config, defaults));
  }
  VKF_ASSIGN(setup.width, read_rotary_width(config, stack.head(), 1.0));
  VKF_CHECK(check_rotary_scaling(setup.scaling, setup.width, config.where()));
  stack.rotaries = {setup};
  stack.kinds = {AttentionKind{.rotary = 0}};
  return {};
}

Status read_sections(const JsonConfig& config, int64_t head, bool interleaved,
                     PicturePrompt::Settings& settings) {
  const JsonConfig scope = rotary_scope(config);
  const std::vector<int64_t> none =
      interleaved ? std::vector<int64_t>{24, 20, 20} : std::vector<int64_t>{};
  VKF_ASSIGN(settings.sections, scope.get_int_list_or("mrope_section", none));
  int64_t sum = 0;
  bool sane = settings.sections.size() == 3;
  for (const int64_t section : settings.sections) {
    sane = sane && section >= 0 && section <= head / 2;
    sum += sane ? section : 0;
  }
  if (!sane || (!interleaved && sum != head / 2)) {
    return invalid_file(message({"[mrope_section] in ", config.where(),
                                 " must hold three numbers of frequencies, for time, rows and "
                                 "columns, which sum to ",
                                 head / 2, ", half the width of a head."}));
  }
  if (interleaved) settings.order = PicturePrompt::Settings::Sections::kInterleaved;
  return {};
}

Status read_qwen3_norms(const JsonConfig&, DecoderConfig& block) {
  block.stack.qk_norm = StackConfig::QueryKeyNorm::kAlike;
  return {};
}

// `kind` is the decoder's.
Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files, const JsonConfig& text,
                                          const LlamaKind& kind, QwenTower tower,
                                          bool interleaved) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const int64_t width, get_size_or(text, "hidden_size", kind.width, kMostWidth));
  VKF_ASSIGN(const int64_t heads, get_size_or(text, "num_attention_heads", kind.heads, kMostWidth));
  VKF_ASSIGN(int64_t head, get_size_or(text, "head_dim", kind.head_width, kMostHeadWidth));
  if (head == 0) head = width / heads;
  if (tower.out != width) {
    return invalid_file(
        message({"[vision_config.out_hidden_size] in ", config.where(), " is ", tower.out,
                 ", but must be the text model's width of ", width, "."}));
  }
  PicturePrompt::Settings settings{.types = "mm_token_type_ids"};
  VKF_CHECK(read_sections(text, head, interleaved, settings));
  VKF_ASSIGN(settings.prompts.begin, config.get_int_or("vision_start_token_id", 151652));
  VKF_ASSIGN(settings.prompts.end, config.get_int_or("vision_end_token_id", 151653));
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_id", "image_token_index", 151655));
  return load_picture_language(
      files, {.kind = kind,
              .pictures = std::make_shared<QwenPictures>(std::move(settings), std::move(tower)),
              .prefixes = {"model.language_model.", "model.", "language_model."}});
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_qwen2_5_vl(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  // Older files have the text's keys beside the vision's.
  const JsonConfig text = text_config_of(config);
  VKF_CHECK(text.status());
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  LlamaKind kind = qwen2_kind();
  kind.family = "qwen2_5_vl";
  kind.architecture = "Qwen2_5_VLForConditionalGeneration";
  kind.vocabulary = 152064;
  kind.width = 8192;
  kind.layers = 80;
  kind.heads = 64;
  kind.kv_heads = 8;
  kind.ffn = 29568;
  kind.epsilon = 1e-5;
  kind.rotary.theta = 1e6;
  kind.read_positions = read_mrope;
  QwenTower tower;
  VKF_CHECK(read_tower(vision, {32, 3584, 3420, 14, "silu"}, tower));
  VKF_CHECK(read_windows(vision, tower));
  return load(files, text, kind, std::move(tower), false);
}

Result<std::unique_ptr<ModelFamily>> load_qwen3_vl(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const JsonConfig text, nested_config(config, "text_config"));
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  LlamaKind kind{.family = "qwen3_vl", .architecture = "Qwen3VLForConditionalGeneration"};
  kind.vocabulary = 151936;
  kind.kv_heads = 32;
  kind.head_width = 128;
  kind.ffn = 22016;
  kind.max_positions = 128000;
  kind.rotary.theta = 5e5;
  VKF_ASSIGN(kind.biases, read_attention_biases(text));
  kind.read_positions = read_mrope;
  kind.read_rest = read_qwen3_norms;
  QwenTower tower;
  VKF_CHECK(read_tower(vision, {27, 1152, 4304, 16, "gelu_pytorch_tanh"}, tower));
  VKF_ASSIGN(const int64_t layers,
             get_size_or(text, "num_hidden_layers", kind.layers, kMostLayers));
  VKF_CHECK(read_deep_stack(vision, layers, tower));
  return load(files, text, kind, std::move(tower), true);
}

}  // namespace vkformer
