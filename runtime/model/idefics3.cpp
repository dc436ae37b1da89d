// Idefics3 (Laurencon et al., 2024) and SmolVLM (Marafioti et al., 2025): patches of a SigLIP tower
// for images of any size. Squares of them side by side (pixel shuffle) go through one linear layer
// into a decoder with LLaMA's layers.
#include <algorithm>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/towers.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/mask_input.h"
#include "model/picture_language.h"
#include "model/weight_rows.h"
#include "ops/gather_rows.h"
#include "ops/move_columns.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

constexpr int64_t kMostImages = 4096;  // of a pass

// `more` is the number of pictures, their height and their width in pixels.
class Idefics3Pictures : public PicturePrompt {
 public:
  Idefics3Pictures(Settings settings, PictureTower tower, int64_t width, int64_t scale)
      : PicturePrompt(std::move(settings)),
        tower_(std::move(tower)),
        width_(width),
        scale_(scale) {}

  std::vector<std::string> input_names() const override {
    return {"pixel_values", "pixel_attention_mask"};
  }
  Status read(const TensorMap& inputs, std::vector<int64_t>& more, FeedWords& words) const override;
  Result<int64_t> image_tokens(int64_t height, int64_t width) const override;
  int64_t features(std::span<const int64_t> more) const override {
    return more.empty() ? 0 : more[0] * patches(more) / (scale_ * scale_);
  }
  Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const override;
  Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const override;

 private:
  const GridSize& patch() const { return tower_.embedding.patch; }
  int64_t rows(std::span<const int64_t> more) const { return more[1] / patch().height; }
  int64_t columns(std::span<const int64_t> more) const { return more[2] / patch().width; }
  int64_t patches(std::span<const int64_t> more) const { return rows(more) * columns(more); }
  Status check_pixels(const Shape& shape) const;
  // Of one picture: which of its patches have a pixel that counts, and their positions.
  void add_patches(std::span<const uint8_t> pixels, std::span<const int64_t> more,
                   std::vector<uint8_t>& kept, std::vector<uint32_t>& positions) const;
  // Patches in the order in which squares of them are side by side.
  std::vector<uint32_t> shuffled(std::span<const int64_t> more) const;

  PictureTower tower_;
  int64_t width_;  // D of the decoder
  int64_t scale_;  // patches along a side of a square
};

Status Idefics3Pictures::check_pixels(const Shape& shape) const {
  const GridFacts& grid = tower_.embedding.picture;
  const bool fits = shape.size() == 5 && shape[0] >= 1 && shape[1] >= 1 &&
                    shape[0] <= kMostImages && shape[1] <= kMostImages &&
                    shape[2] == grid.channels && shape[3] >= 1 && shape[4] >= 1;
  if (!fits) {
    return invalid_argument(
        message({"[pixel_values] has shape ", shape_text(shape),
                 ", but this model takes (B, images, ", grid.channels, ", height, width)."}));
  }
  const int64_t more[] = {1, shape[3], shape[4]};
  if (shape[3] % patch().height == 0 && shape[4] % patch().width == 0 &&
      rows(more) == columns(more) && rows(more) % scale_ == 0 && patches(more) <= kMostPositions) {
    return {};
  }
  return unsupported(
      message({"[pixel_values] holds images of ", shape[3], " x ", shape[4],
               " pixels, but they must be squares of patches of ", patch().height,
               " pixels, as many as a multiple of ", scale_, " along a side; resize them."}));
}

Result<int64_t> Idefics3Pictures::image_tokens(int64_t height, int64_t width) const {
  VKF_CHECK(check_pixels({1, 1, tower_.embedding.picture.channels, height, width}));
  const int64_t more[] = {1, height, width};
  return features(more);
}

void Idefics3Pictures::add_patches(std::span<const uint8_t> pixels, std::span<const int64_t> more,
                                   std::vector<uint8_t>& kept,
                                   std::vector<uint32_t>& positions) const {
  const int64_t high = rows(more), wide = columns(more);
  std::vector<uint8_t> own(static_cast<size_t>(high * wide), pixels.empty() ? 1 : 0);
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (pixels[i] == 0) continue;
    const auto y = static_cast<int64_t>(i) / more[2], x = static_cast<int64_t>(i) % more[2];
    own[static_cast<size_t>(y / patch().height * wide + x / patch().width)] = 1;
  }
  int64_t kept_rows = 0, kept_columns = 0;  // of the first column and the first row
  for (int64_t i = 0; i < high; ++i) kept_rows += own[static_cast<size_t>(i * wide)];
  for (int64_t i = 0; i < wide; ++i) kept_columns += own[static_cast<size_t>(i)];
  const GridSize side = tower_.embedding.grid();
  for (int64_t i = 0; i < high * wide; ++i) {
    const bool counts = own[static_cast<size_t>(i)] != 0;
    kept.push_back(counts ? 1 : 0);
    // Where the patch begins, in the grid that the table of positions has.
    const int64_t y =
        kept_rows == 0 ? 0 : std::min(i / wide * side.height / kept_rows, side.height - 1);
    const int64_t x =
        kept_columns == 0 ? 0 : std::min(i % wide * side.width / kept_columns, side.width - 1);
    positions.push_back(counts ? u32(y * side.width + x) : 0u);
  }
}

Status Idefics3Pictures::read(const TensorMap& inputs, std::vector<int64_t>& more,
                              FeedWords& words) const {
  const auto found = inputs.find("pixel_values");
  if (found == inputs.end()) return {};
  const Shape& shape = found->second.shape;
  VKF_CHECK(check_pixels(shape));
  VKF_ASSIGN(const std::vector<float> values, found->second.to_floats());
  std::vector<uint8_t> pixels;
  const auto mask = inputs.find("pixel_attention_mask");
  if (mask != inputs.end()) {
    if (mask->second.shape != Shape{shape[0], shape[1], shape[3], shape[4]}) {
      return invalid_argument(message({"[pixel_attention_mask] has shape ",
                                       shape_text(mask->second.shape), ", but pixel_values has ",
                                       shape_text(shape), "; it must be that without channels."}));
    }
    VKF_ASSIGN(pixels, mask_flags("pixel_attention_mask", mask->second));
  }
  // Images of zeros alone fill up rows with fewer images than others.
  const auto each = static_cast<size_t>(shape[2] * shape[3] * shape[4]);
  const auto flat = static_cast<size_t>(shape[3] * shape[4]);
  const size_t images = values.size() / each;
  std::vector<size_t> real;
  for (size_t i = 0; i < images; ++i) {
    const auto first = values.begin() + static_cast<ptrdiff_t>(i * each);
    if (std::any_of(first, first + static_cast<ptrdiff_t>(each), [](float v) { return v != 0; })) {
      real.push_back(i);
    }
  }
  if (real.empty()) real.push_back(0);
  more = {static_cast<int64_t>(real.size()), shape[3], shape[4]};
  std::vector<float> taken;
  std::vector<uint8_t> kept;
  std::vector<uint32_t> positions;
  for (const size_t i : real) {
    const auto first = values.begin() + static_cast<ptrdiff_t>(i * each);
    taken.insert(taken.end(), first, first + static_cast<ptrdiff_t>(each));
    const auto own = pixels.empty() ? std::span<const uint8_t>()
                                    : std::span<const uint8_t>(pixels).subspan(i * flat, flat);
    add_patches(own, more, kept, positions);
  }
  words["pixel_values"] = float_words(taken);
  words["picture_positions"] = std::move(positions);
  words["picture_mask"] = pack_key_mask(kept, more[0], patches(more));
  return {};
}

Status Idefics3Pictures::add_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const std::string from = present_prefix(checkpoint, {"model.vision_model.", "vision_model."},
                                          "embeddings.patch_embedding.weight");
  VKF_CHECK(tower_.add_rows(checkpoint, from, table));
  const std::string connector = present_prefix(checkpoint, {"model.connector.", "connector."},
                                               "modality_projection.proj.weight");
  table.rows.push_back(plain_linear_row("picture.projection",
                                        {connector + "modality_projection.proj"}, width_,
                                        tower_.stack.width * scale_ * scale_));
  return {};
}

std::vector<uint32_t> Idefics3Pictures::shuffled(std::span<const int64_t> more) const {
  const int64_t wide = columns(more);
  std::vector<uint32_t> order;
  for (int64_t n = 0; n < more[0]; ++n) {
    for (int64_t y = 0; y < rows(more); y += scale_) {
      for (int64_t x = 0; x < wide; x += scale_) {
        for (int64_t p = 0; p < scale_ * scale_; ++p) {
          order.push_back(u32(n * patches(more) + (y + p / scale_) * wide + x + p % scale_));
        }
      }
    }
  }
  return order;
}

Result<PicturePrompt::Features> Idefics3Pictures::build(ModelBuilder& b,
                                                        std::span<const int64_t> more) const {
  Graph& g = b.graph();
  const PictureEmbedding& e = tower_.embedding;
  const StackConfig& s = tower_.stack;
  const int64_t n = more[0], tokens = patches(more), d = s.width;
  const TensorId pixels =
      add_pixel_values(b, e.picture.channels, {.batch = n, .height = more[1], .width = more[2]});
  PatchConv conv{.rows = e.patches};
  conv.window.kernel_height = conv.window.stride_height = u32(patch().height);
  conv.window.kernel_width = conv.window.stride_width = u32(patch().width);
  VKF_ASSIGN(TensorId x, add_patch_conv(b, pixels, {}, conv));
  const TensorId places = g.add_external("picture_positions", DType::kU32, {n, tokens});
  b.feed("picture_positions", places);
  g.set_scope(e.positions);
  VKF_ASSIGN(const TensorId table, b.table(e.positions));
  VKF_ASSIGN(x, add_gather_rows(g, {.x = table, .indices = places, .addend = as_rows(g, x)}));
  StackRun run{.batch = n, .tokens = tokens};
  run.terms = add_stack_terms(b, s, "picture_mask", n, tokens);
  VKF_ASSIGN(x, add_stack(b, s, run, x));
  VKF_ASSIGN(x, add_named_norm(b, s, "picture.last_norm", x));
  const int64_t square = scale_ * scale_;
  const TensorId order = b.host_tensor("picture.shuffle", DType::kU32, {n, tokens}, shuffled(more));
  g.set_scope("picture.shuffle");
  VKF_ASSIGN(x, add_gather_rows(g, {.x = x, .indices = order}));
  const int64_t wide = d * square;
  VKF_ASSIGN(x, add_columns(g, x, {.stride = u32(wide)}, {n, tokens / square, wide}));
  VKF_ASSIGN(x, add_named_linear(b, "picture.projection", x));
  return Features{.rows = x, .deep = {}};
}

Result<std::unique_ptr<ModelFamily>> load(const ModelFiles& files, const char* family,
                                          const char* architecture) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(const JsonConfig text, nested_config(config, "text_config"));
  VKF_ASSIGN(const JsonConfig vision, nested_config(config, "vision_config"));
  VKF_ASSIGN(LlamaKind kind, llama_kind_of(text, "llama"));
  VKF_ASSIGN(PictureTower tower, read_state_tower(vision, "idefics3"));
  VKF_ASSIGN(const int64_t width, get_size_or(text, "hidden_size", kind.width, kMostWidth));
  VKF_ASSIGN(const int64_t scale, get_size_or(config, "scale_factor", 2, 64));
  PicturePrompt::Settings settings{.prompts = {.kind = ImagePromptFacts::Kind::kTiles}};
  VKF_ASSIGN(settings.image_token,
             read_image_token(config, "image_token_id", "image_token_index", 128257));
  kind.family = family;
  kind.architecture = architecture;
  return load_picture_language(files, {.kind = kind,
                                       .pictures = std::make_shared<Idefics3Pictures>(
                                           std::move(settings), std::move(tower), width, scale),
                                       .prefixes = {"model.text_model.", "text_model."}});
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_idefics3(const ModelFiles& files) {
  return load(files, "idefics3", "Idefics3ForConditionalGeneration");
}

Result<std::unique_ptr<ModelFamily>> load_smolvlm(const ModelFiles& files) {
  return load(files, "smolvlm", "SmolVLMForConditionalGeneration");
}

}  // namespace vkformer
