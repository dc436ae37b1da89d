// Seeing attention: maps of whole models as grids of heat maps, over pictures and as pages for a
// browser. It also has rollout, and what entropy and scores say about each head.
//
// Threading: plain functions without shared state; call them from any thread.
// Lifetime: nothing is kept after a call. Nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/export.h"
#include "vkformer/heat_map.h"
#include "vkformer/picture.h"
#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

// The maps of one layer.
struct AttentionLayer {
  // Which layer, counted from 0.
  int layer = 0;
  // Weights, row-major; rows are queries. A NaN or an infinity is drawn as such. (H,T,S)
  std::vector<float> values;
};

// Maps of one kind of attention, all of the same sizes, with the names of their tokens.
struct AttentionMaps {
  // The name of an MapKind, "rollout", or what the caller calls it.
  std::string kind = "self";
  // H, the number of heads that there are maps of.
  int heads = 0;
  // The number of the first of them, counted from 0; -1: the only one is a mean over heads.
  int first_head = 0;
  // T, the number of query tokens.
  int rows = 0;
  // S, the number of key tokens.
  int columns = 0;
  std::vector<AttentionLayer> layers;
  // One UTF-8 label for each query, or empty for numbers from 0.
  std::vector<std::string> row_labels;
  // One UTF-8 label for each key, or empty for numbers from 0.
  std::vector<std::string> column_labels;
};

// The maps that Session::run handed out, without labels: attentions.l of kSelf,
// encoder_attentions.l of kEncoder and so on. `item` is one of the batch,
// counted from 0. Maps of single windows (Swin) count as items of their own.
VKFORMER_API Result<AttentionMaps> attention_maps_from(const TensorMap& outputs, MapKind kind,
                                                       int64_t item = 0);

// The same maps with the mean over their heads in the place of the heads.
VKFORMER_API Result<AttentionMaps> mean_over_heads(const AttentionMaps& maps);

// Attention rollout (Abnar and Zuidema, "Quantifying Attention Flow in Transformers", 2020). It is
// how much of each input token is in each token of the last layer's output. It assumes that
// attention moves information and that the residual connection keeps half of it. With A_l the mean
// over heads,
//   R = N(0.5 A_L + 0.5 I) ... N(0.5 A_1 + 0.5 I),  N: every row divided by its sum.
// Takes self-attention (T = S) of layers that follow each other, lowest first; gives one layer and
// one head, of kind "rollout".
VKFORMER_API Result<AttentionMaps> attention_rollout(const AttentionMaps& maps);

struct AttentionGridOptions {
  // Side of one cell of a map in pixels; 0 makes each map about 160 pixels wide.
  int cell_size = 0;
  // The weights at the ends of the colors; kZeroToMax means the largest of all maps.
  HeatMapRange range = HeatMapRange::kZeroToOne;
  // One line above the picture; empty for none.
  std::string title;
};

// All maps as one picture of small heat maps, each with its layer and head above it. It has a row
// of maps for each layer. A single layer has its heads in about as many rows as columns. The bytes
// of an 8-bit RGB PNG file; limits are those of render_heat_map_png.
VKFORMER_API Result<std::vector<std::byte>> render_attention_grid_png(
    const AttentionMaps& maps, const AttentionGridOptions& options = {});

// A rectangle of a picture, in its pixels; it may reach beyond the picture's edges.
struct PictureRegion {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

// Which part of a picture a model sees: all of it, or less where its processor crops. A processor
// that adds black margins sees more than the picture.
VKFORMER_API Result<PictureRegion> seen_region(const PictureSettings& settings, int width,
                                               int height);

// Weights on the patches of a picture.
struct PatchMap {
  // Patches from top to bottom.
  int rows = 0;
  // Patches from left to right.
  int columns = 0;
  // One weight a patch, row-major: (rows * columns)
  std::vector<float> values;
};

struct AttentionOverlayOptions {
  // What the patches cover; a width of 0 means the whole picture.
  PictureRegion region;
  // How much of a pixel the color takes where the weight is highest, 0 to 1.
  double strength = 0.75;
  // The weight of the full color. Weights spread over many patches are small, so that the largest
  // is the default.
  HeatMapRange range = HeatMapRange::kZeroToMax;
};

// The picture with red where the weights are high. Weights are interpolated bilinearly between the
// middles of patches and blended over the pixels. What no patch covers stays as it is. The bytes of
// an 8-bit RGB PNG file of the picture's own size. Weights that are not finite are an error.
VKFORMER_API Result<std::vector<std::byte>> render_attention_overlay_png(
    const Picture& picture, const PatchMap& map, const AttentionOverlayOptions& options = {});

struct AttentionPageOptions {
  // The page's title and first heading.
  std::string title = "Attention";
  // A page of more bytes is refused: browsers get slow.
  size_t most_bytes = 10'000'000;
};

// A page for a browser, complete in itself. It has a choice of kind, layer and head (or the mean
// over heads), and tokens along both axes. Pointing at a token, or moving to it with the arrow
// keys, shows what it attends to. It fills its window, and opens on the first of `maps`, its last
// layer, and the mean over heads. Weights travel as bytes, 255 steps between 0 and the largest of
// each head. Labels and titles are data, never markup: they cannot bring scripts with them.
VKFORMER_API Result<std::string> render_attention_html(std::span<const AttentionMaps> maps,
                                                       const AttentionPageOptions& options = {});

// What one pass says about its heads.
struct AttentionMeasurements {
  // Scores as RunOptions::AttentionValues::kScores hands them out: scaled, divided by the
  // temperature, -inf where masked.
  AttentionMaps scores;
  // Entropies as RunOptions::entropy hands them out, one entry for each layer of `scores`: (H,T)
  std::vector<std::vector<float>> entropies;
};

struct AttentionHeadOptions {
  // The temperature of the passes.
  double temperature = 1.0;
  // A head whose mean entropy is above this share of ln n attends to everything alike.
  double collapsed = 0.98;
  // A head whose mean entropy is below this share of ln n attends to single keys.
  double saturated = 0.05;
};

// One head, in means over its query rows. n is the number of keys that a row may attend to; rows of
// one key or none say nothing and do not count.
struct AttentionHead {
  std::string kind;
  int layer = 0;
  int head = 0;
  int64_t rows = 0;              // rows that count
  double entropy = 0;            // measured, in nats
  double most_entropy = 0;       // ln n, the entropy of equal weights
  double score_variance = 0;     // v, of a row's scaled scores before the temperature
  double predicted_entropy = 0;  // ln n - v / (2 temperature^2), in nats
  enum class State : uint8_t { kUsual, kCollapsed, kSaturated } state = State::kUsual;
};

// Judges every head over all passes, which must have the same kind, layers and heads. The
// prediction is the entropy's expansion to second order in the scores. Far below the measured
// entropy, or negative, it says that scores are too far apart for it.
VKFORMER_API Result<std::vector<AttentionHead>> measure_attention_heads(
    std::span<const AttentionMeasurements> passes, const AttentionHeadOptions& options = {});

}  // namespace vkformer
