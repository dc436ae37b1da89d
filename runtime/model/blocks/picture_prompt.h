// Pictures inside a decoder's prompt: image tokens whose embeddings are replaced by features that a
// tower makes of pictures (LLaVA; Liu et al., 2023). A DecoderFamily with one in its configuration
// splices the features into full passes and prompts; steps, which feed text alone, stay as they
// are.
//
// `more` is ForwardShape::more: what the pictures add to the sizes of a pass; empty where a pass
// has tokens alone.
#pragma once

#include <array>

#include "model/blocks/stack.h"

namespace vkformer {

class PicturePrompt {
 public:
  // Which tokens see each other both ways, in layers with windows, too. kImages: those of one run
  // of type 1 (Gemma 3); kPrompts: those of type 0, which are the prompt (PaliGemma).
  enum class Spans : uint8_t { kNone, kImages, kPrompts };
  struct Settings {
    int64_t image_token = 0;
    Spans spans = Spans::kNone;
    // The input with the types of tokens; empty: a token is an image's where its id says so.
    std::string types;
    // How prompts name images; its token is `image_token`.
    ImagePromptFacts prompts = {.kind = ImagePromptFacts::Kind::kRepeated};
    // Rotary positions of three components: the frequencies that rotate by time, row and column;
    // empty: one position by token. kInterleaved: frequency i belongs to component i % 3, as long
    // as that has any. Else the components' frequencies follow each other.
    std::vector<int64_t> sections;
    enum class Sections : uint8_t { kAfter, kInterleaved } order = Sections::kAfter;
  };
  // What a tower makes of all pictures of a pass.
  struct Features {
    TensorId rows = kNoTensor;  // (N, D), or by pictures (pictures, tokens, D)
    // (N, D) each, added to image tokens after layer 0, 1, ... (DeepStack; Meng et al., 2024).
    std::vector<TensorId> deep;
  };

  explicit PicturePrompt(Settings settings) : settings_(std::move(settings)) {}
  virtual ~PicturePrompt() = default;

  const Settings& settings() const { return settings_; }
  Spans spans() const { return settings_.spans; }

  virtual Status prepare(const Checkpoint& checkpoint);
  virtual Status add_rows(const Checkpoint& checkpoint, WeightTable& table) const = 0;
  // Beside the types.
  virtual std::vector<std::string> input_names() const = 0;
  // Pictures -> more, and the words of feeds; without pictures nothing.
  virtual Status read(const TensorMap& inputs, std::vector<int64_t>& more,
                      FeedWords& words) const = 0;
  // N of one image of height x width pixels; an error where the tower reads none of that size.
  virtual Result<int64_t> image_tokens(int64_t height, int64_t width) const = 0;
  // N.
  virtual int64_t features(std::span<const int64_t> more) const = 0;
  // Where there are features.
  virtual Result<Features> build(ModelBuilder& builder, std::span<const int64_t> more) const = 0;
  // With sections: rows and columns of features of the picture whose first feature is number
  // `first`, and how many there are.
  struct Grid {
    int64_t features = 0;
    int64_t rows = 0;
    int64_t columns = 0;
  };
  virtual Grid grid_of(std::span<const int64_t> more, int64_t first) const;

  // The types of tokens (B, T), from the inputs or the ids; an error where they are not 0 or 1.
  Result<std::vector<uint8_t>> token_types(const TensorMap& inputs,
                                           const PromptTokens& tokens) const;
  // The first feature of each row, or an error where tokens and features differ in number.
  Result<std::vector<uint32_t>> first_features(const PromptTokens& tokens,
                                               std::span<const int64_t> more) const;
  // Words of text_rows and picture_rows (B, T): the row of the words or the features for each
  // token, none for the others.
  void add_rows_words(const PromptTokens& tokens, std::span<const PromptPictures::Row> rows,
                      FeedWords& words) const;
  // Words of span_masks: by kind of attention (B, T, ceil(T/32)), which keys each query sees.
  void add_span_words(const PromptTokens& tokens, std::span<const PromptPictures::Row> rows,
                      const StackConfig& stack, FeedWords& words) const;
  // Words of turning_rows (B T, r): cosines and sines of each token's three positions. kLast: so
  // that the position of a row's last token is its index, from which steps go on; only differences
  // of positions count.
  enum class Shift : uint8_t { kNone, kLast };
  Status add_turning_words(const PromptTokens& tokens, std::span<const PromptPictures::Row> rows,
                           std::span<const int64_t> more, const RotarySetup& rotary, Shift shift,
                           FeedWords& words) const;

 private:
  bool is_image(uint32_t id) const { return static_cast<int64_t>(id) == settings_.image_token; }
  std::vector<std::array<int64_t, 3>> positions_of(std::span<const uint32_t> ids,
                                                   const PromptPictures::Row& row,
                                                   std::span<const int64_t> more,
                                                   Shift shift) const;

  Settings settings_;
};

// pixel_values (N, C, H, W) of a size, as words of that feed -> N; 0 where they are not given.
Result<int64_t> read_pictures(const TensorMap& inputs, const GridFacts& grid, FeedWords& words);

}  // namespace vkformer
