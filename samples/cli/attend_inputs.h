// What a model is shown so that its attention can be seen: a text, token ids, a picture, a sound or
// tensors. It also has what the model generates of it, and the names of all tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "output.h"
#include "vkformer/attention_view.h"
#include "vkformer/audio.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

// More tokens beside the patches than any picture model has.
inline constexpr int kMostExtraTokens = 8;

// One input of a model.
struct AttendInput {
  // A text, or the path of a picture, a WAV file or a .safetensors file of inputs by name. Empty
  // and without ids: something built in.
  std::string input;
  std::vector<TokenId> ids;           // instead of a text
  std::optional<std::string> target;  // what the decoder shall produce, instead of a generation
  bool generate = true;
  std::optional<int> max_new_tokens;
  std::string language;  // of speech
};

// One pass, ready to run.
struct AttendPass {
  TensorMap inputs;
  std::vector<std::string> source;  // tokens that the first stack reads; empty: numbers
  std::vector<std::string> fed;     // what the decoder of an encoder-decoder reads
  std::vector<std::string> output;  // what it produces at each of these
  std::string text;                 // what was generated
  double seconds = 0;               // of the sound that the first stack reads
  std::optional<Picture> picture;
  PictureRegion region;  // what the patches cover of it
  int patch_rows = 0;    // 0: there are no patches
  int patch_columns = 0;
  bool writes = false;  // whether a decoder writes its tokens one by one
};

inline constexpr int64_t kAllLayers = -1, kLastLayer = -2;

// Which maps to compute.
struct AttendChoice {
  std::vector<MapKind> kinds;
  int64_t layer = kAllLayers;
  int64_t head = -1;            // -1: all
  std::optional<int64_t> item;  // of layers with several maps: windows, prompts, a batch
  // Maps of layers of different sizes, the last layer's first. kRefused: they are an error.
  enum class Sizes : uint8_t { kRefused, kApart } sizes = Sizes::kRefused;
  double temperature = 1.0;
};

// Whether the model has an encoder and a decoder, as detectors and segmenters have them, too.
bool has_two_stacks(const ModelInfo& info);
// The kinds of attention of such a model, the most telling one first.
std::vector<MapKind> attention_kinds(const ModelInfo& info);
// Layers of a kind; 0: only a pass tells.
int64_t attention_layers(const ModelInfo& info, MapKind kind);
int64_t attention_heads(const ModelInfo& info, MapKind kind);
// An error for a family that gives no map of all tokens on all tokens.
Status check_has_maps(const ModelInfo& info);

// A loaded model with what makes its inputs.
class AttendModel {
 public:
  static Result<AttendModel> create(const Model& model, const std::string& directory);

  const ModelInfo& info() const { return model_.info(); }
  // Reads the input and, where asked for, generates.
  Result<AttendPass> prepare(const AttendInput& input);
  // Runs once and gives the maps of every kind, with labels.
  Result<std::vector<AttentionMaps>> maps(const AttendPass& pass, const AttendChoice& choice);
  // Runs twice and gives the scores of all layers and heads of a kind and their entropies, by the
  // sizes of maps. Each has one entry for every window, prompt or item of a batch.
  Result<std::vector<std::vector<AttentionMeasurements>>> measurements(const AttendPass& pass,
                                                                       MapKind kind,
                                                                       double temperature);

 private:
  AttendModel(const Model& model, Session session, std::string directory)
      : model_(model), session_(std::move(session)), directory_(std::move(directory)) {}

  Result<const Tokenizer*> tokenizer();
  std::string label(TokenId id);
  std::vector<std::string> labels(const std::vector<TokenId>& ids);
  Result<std::vector<TokenId>> token_ids(const std::string& text, SpecialTokens special_tokens);

  Status read_source(const AttendInput& input, AttendPass& pass);
  Status read_tokens(const AttendInput& input, AttendPass& pass);
  Status read_picture(const AttendInput& input, AttendPass& pass);
  Status read_sound(const AttendInput& input, AttendPass& pass);
  Status read_file(const std::string& path, AttendPass& pass);
  Result<PictureProcessor> picture_processor();
  Status add_target(const AttendInput& input, AttendPass& pass);
  Status continue_prompt(const AttendInput& input, AttendPass& pass);
  Result<std::vector<TokenId>> generated(const AttendInput& input, const AttendPass& pass);
  GenerateOptions settings(const AttendInput& input, const AttendPass& pass) const;
  void name_tokens(const AttendPass& pass, AttentionMaps& maps) const;
  Result<TensorMap> take_kind(TensorMap& outputs, MapKind kind, int64_t layer) const;
  Result<AttentionMaps> one_item(const AttendPass& pass, const AttendChoice& choice, MapKind kind,
                                 const TensorMap& outputs) const;

  Model model_;
  Session session_;
  std::string directory_;
  std::optional<Tokenizer> tokenizer_;
  Json config_;
};

}  // namespace vkformer::cli
