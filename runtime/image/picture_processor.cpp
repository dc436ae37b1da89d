#include "image/picture_processor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/message.h"
#include "base/name_list.h"
#include "checkpoint/file_store.h"
#include "checkpoint/message_text.h"
#include "checkpoint/pack_file.h"
#include "image/processor_reading.h"
#include "image/resize.h"

namespace vkformer {
namespace {

using std::to_string;

constexpr int kMostPatches = 1 << 20;  // of a picture
// ConvNext crops only below this shortest edge; from here on it stretches.
constexpr int kConvNextWholeFrom = 384;
constexpr double kConvNextCropPart = 224.0 / 256.0;

// A processor class of Hugging Face transformers and the defaults of its missing keys. All have a
// factor of 1/255.
struct ProcessorClass {
  std::string_view name;                        // without ImageProcessor or FeatureExtractor
  std::array<std::string_view, 4> model_types;  // config.json's, where no class is named
  Resampling resampling;
  int size;       // square, the shortest edge, or most patches
  int crop_size;  // square; 0: no crop unless asked for
  enum class Size : uint8_t {
    kSquare,
    kEdge,
    kPatches,
    kLeastChange,
    kLongest
  } kind = Size::kSquare;
  std::array<double, 3> mean = {0.5, 0.5, 0.5};
  std::array<double, 3> deviation = {0.5, 0.5, 0.5};
  int longest_edge = 0;   // of detectors, whose pictures have any size; 0: no limit
  int side_multiple = 1;  // of both sides; of kPatches the side of a patch
  bool normalizes = true;
};
using ModelTypes = std::array<std::string_view, 4>;
constexpr std::array kImageNetMean = {0.485, 0.456, 0.406};
constexpr std::array kImageNetDeviation = {0.229, 0.224, 0.225};

// Stretches to 256 and crops the middle 224.
constexpr ProcessorClass stretch_and_crop(std::string_view name, const ModelTypes& types) {
  return {name, types, Resampling::kBicubic, 256, 224};
}

// CLIP's: the shortest edge to 224, and the middle of that.
constexpr ProcessorClass clip_like(std::string_view name, const ModelTypes& types) {
  return {name,      types,         Resampling::kBicubic, 224, 224, ProcessorClass::Size::kEdge,
          kClipMean, kClipDeviation};
}

// DETR's: the shortest edge to 800, the longest to 1333 at most.
constexpr ProcessorClass detector(std::string_view name, const ModelTypes& types,
                                  int side_multiple) {
  return {name,
          types,
          Resampling::kBilinear,
          800,
          0,
          ProcessorClass::Size::kEdge,
          kImageNetMean,
          kImageNetDeviation,
          1333,
          side_multiple};
}

constexpr std::array kClasses = {
    ProcessorClass{"ViT", {"vit", "swin", "vit_mae", "vit_msn"}, Resampling::kBilinear, 224, 0},
    stretch_and_crop("DeiT", {"deit"}),
    stretch_and_crop("Beit", {"beit"}),
    ProcessorClass{"ConvNext",
                   {"convnext", "cvt", "convnextv2"},
                   Resampling::kBicubic,
                   384,
                   0,
                   ProcessorClass::Size::kEdge},
    clip_like("CLIP", {"clip", "clip_vision_model"}),
    clip_like("Llava", {"llava"}),
    clip_like("Bit", {"bit", "dinov2", "dinov2_with_registers"}),
    detector("Detr", {"detr"}, 1),
    detector("Yolos", {"yolos"}, 16),
    // Whose pictures are not normalized unless the file says so.
    ProcessorClass{.name = "RTDetr",
                   .model_types = {"rt_detr"},
                   .resampling = Resampling::kBilinear,
                   .size = 640,
                   .crop_size = 0,
                   .mean = kImageNetMean,
                   .deviation = kImageNetDeviation,
                   .normalizes = false},
    ProcessorClass{.name = "DPT",
                   .model_types = {"dpt", "depth_anything"},
                   .resampling = Resampling::kBicubic,
                   .size = 384,
                   .crop_size = 0,
                   .kind = ProcessorClass::Size::kLeastChange},
    ProcessorClass{.name = "Sam",
                   .model_types = {"sam"},
                   .resampling = Resampling::kBilinear,
                   .size = 1024,
                   .crop_size = 0,
                   .kind = ProcessorClass::Size::kLongest,
                   .mean = kImageNetMean,
                   .deviation = kImageNetDeviation},
    ProcessorClass{
        "Siglip", {"siglip", "siglip_vision_model", "paligemma"}, Resampling::kBicubic, 224, 0},
    ProcessorClass{"Blip",
                   {"blip"},
                   Resampling::kBicubic,
                   384,
                   0,
                   ProcessorClass::Size::kSquare,
                   kClipMean,
                   kClipDeviation},
    ProcessorClass{"Gemma3", {"gemma3"}, Resampling::kBilinear, 224, 0},
    ProcessorClass{.name = "Siglip2",
                   .model_types = {"siglip2", "siglip2_vision_model"},
                   .resampling = Resampling::kBilinear,
                   .size = 256,
                   .crop_size = 0,
                   .kind = ProcessorClass::Size::kPatches,
                   .side_multiple = 16},
    ProcessorClass{"DINOv3ViT",
                   {"dinov3_vit"},
                   Resampling::kBilinear,
                   224,
                   0,
                   ProcessorClass::Size::kSquare,
                   kImageNetMean,
                   kImageNetDeviation},
};
constexpr std::string_view kConvNext = "ConvNext";

Result<ProcessorClass> find_class(const JsonConfig& config, const std::string& model_type) {
  VKF_ASSIGN(const std::string type, processor_class(config));
  for (const ProcessorClass& candidate : kClasses) {
    const auto& types = candidate.model_types;
    const bool fits = !type.empty() ? class_stem(type) == candidate.name
                                    : !model_type.empty() && std::find(types.begin(), types.end(),
                                                                       model_type) != types.end();
    if (fits) return candidate;
  }
  std::vector<std::string_view> names;
  for (const ProcessorClass& candidate : kClasses) names.push_back(candidate.name);
  const std::string known = message(
      {"the image processors that can be read are ", name_list(names),
       "; give PictureSettings instead. (Idefics3, SmolVLM and Qwen2VL make several images of a "
       "picture; only prompts of a TextGenerator take them. Donut's pages are for models that "
       "describe a picture.)"});
  if (!type.empty()) {
    return not_supported(config, "image_processor_type", "is " + bracketed(type) + "; " + known);
  }
  return not_supported(
      config, "image_processor_type",
      "is missing, and none is known for model type " + bracketed(model_type) + "; " + known);
}

struct Extent {
  int width = 0, height = 0, shortest_edge = 0, longest_edge = 0;  // pixels; 0: not given
};

Result<Extent> read_extent_object(const JsonConfig& config, const std::string& key) {
  const JsonConfig object = config.object(key);
  Extent extent;
  for (const std::string& name : object.keys()) {
    const std::string path = key + "." + name;
    int* const side = name == "width"           ? &extent.width
                      : name == "height"        ? &extent.height
                      : name == "shortest_edge" ? &extent.shortest_edge
                      : name == "longest_edge"  ? &extent.longest_edge
                                                : nullptr;
    if (side == nullptr) {
      return not_supported(config, path,
                           "is a size that is not supported; use height and width, or "
                           "shortest_edge and longest_edge.");
    }
    VKF_ASSIGN(const int64_t value, object.get_int(name));
    VKF_ASSIGN(*side, to_side(config, path, value));
  }
  const bool square_sides = extent.width > 0 && extent.height > 0;
  const bool no_sides = extent.width == 0 && extent.height == 0;
  const bool edge = extent.shortest_edge > 0;
  if (extent.longest_edge > 0 && !edge) {
    return not_supported(config, key + ".longest_edge",
                         "is a size that is not supported alone; use height and width, or "
                         "shortest_edge and longest_edge.");
  }
  if (square_sides == edge || !(square_sides || no_sides)) {
    return wrong_value(config, key,
                       "needs height and width, or shortest_edge, perhaps with longest_edge.");
  }
  return extent;
}

// A number (a square, or the shortest edge), [height, width], or an object.
Result<Extent> read_extent(const JsonConfig& config, const std::string& key, bool number_is_edge) {
  if (config.object(key).status().ok()) return read_extent_object(config, key);
  VKF_ASSIGN(const std::vector<int64_t> sides, config.get_int_list_or(key, {}));
  if (sides.empty() || sides.size() > 2) {
    return wrong_value(
        config, key,
        "is a list of " + to_string(sides.size()) + "; give one number, or height and width.");
  }
  Extent extent;
  VKF_ASSIGN(extent.height, to_side(config, key, sides.front()));
  VKF_ASSIGN(extent.width, to_side(config, key, sides.back()));
  if (sides.size() == 1 && number_is_edge) return Extent{0, 0, extent.height};
  return extent;
}

// Below 384, ConvNext resizes to more than it needs and crops the middle.
Status set_conv_next_size(const JsonConfig& config, int edge, PictureSettings& settings) {
  if (edge >= kConvNextWholeFrom) {
    settings.fit = PictureFit::kStretch;
    settings.width = settings.height = edge;
    return {};
  }
  VKF_ASSIGN(const double part, config.get_double_or("crop_pct", kConvNextCropPart));
  const double resized = edge / part;
  if (!(part > 0.0) || !(resized >= 1.0 && resized <= kMaxPictureSide)) {
    return wrong_value(config, "crop_pct",
                       "is " + to_string(part) + ", which makes a size of " + to_string(edge) +
                           " no size of a picture; it is a part such as 0.875.");
  }
  settings.fit = PictureFit::kShortestEdge;
  settings.shortest_edge = static_cast<int>(resized);
  settings.crop_width = settings.crop_height = edge;
  return {};
}

// Of two that are as near, the even multiple, as Python rounds.
int nearest_multiple(double value, int multiple) {
  return static_cast<int>(std::nearbyint(value / multiple)) * multiple;
}

// Of pictures that keep their proportions, in patches.
Status read_patches(const JsonConfig& config, const ProcessorClass& type,
                    PictureSettings& settings) {
  VKF_ASSIGN(const int64_t most, config.get_int_or("max_num_patches", type.size));
  if (most < 1 || most > kMostPatches) {
    return wrong_value(
        config, "max_num_patches",
        "is " + to_string(most) + "; a picture has 1 to " + to_string(kMostPatches) + " patches.");
  }
  VKF_ASSIGN(const int64_t patch, config.get_int_or("patch_size", type.side_multiple));
  settings.fit = PictureFit::kMostPatches;
  settings.max_patches = static_cast<int>(most);
  VKF_ASSIGN(settings.side_multiple, to_side(config, "patch_size", patch));
  return {};
}

// Sides as multiples of a number, with the picture's proportions or without.
Status read_least_change(const JsonConfig& config, const Extent& extent,
                         PictureSettings& settings) {
  VKF_ASSIGN(const bool keeps, config.get_bool_or("keep_aspect_ratio", false));
  VKF_ASSIGN(const int64_t multiple, config.get_int_or("ensure_multiple_of", 1));
  VKF_ASSIGN(settings.side_multiple, to_side(config, "ensure_multiple_of", multiple));
  settings.fit = keeps ? PictureFit::kLeastChange : PictureFit::kStretch;
  settings.width = extent.width;
  settings.height = extent.height;
  if (keeps) return {};
  settings.width = nearest_multiple(extent.width, settings.side_multiple);
  settings.height = nearest_multiple(extent.height, settings.side_multiple);
  settings.side_multiple = 1;
  return {};
}

// The longer side of SAM's pictures, and what they are padded to.
Status read_longest(const JsonConfig& config, const ProcessorClass& type,
                    PictureSettings& settings) {
  const JsonConfig size = config.object("size");
  VKF_CHECK(size.status());
  VKF_ASSIGN(const int64_t longest, size.get_int_or("longest_edge", type.size));
  VKF_ASSIGN(settings.longest_edge, to_side(config, "size.longest_edge", longest));
  const JsonConfig padded = config.object("pad_size");
  VKF_CHECK(padded.status());
  VKF_ASSIGN(const int64_t height, padded.get_int_or("height", type.size));
  VKF_ASSIGN(const int64_t width, padded.get_int_or("width", type.size));
  VKF_ASSIGN(settings.height, to_side(config, "pad_size.height", height));
  VKF_ASSIGN(settings.width, to_side(config, "pad_size.width", width));
  VKF_ASSIGN(const bool pads, config.get_bool_or("do_pad", true));
  settings.fit = PictureFit::kLongestEdge;
  if (pads && settings.longest_edge <= settings.width && settings.longest_edge <= settings.height) {
    return {};
  }
  return not_supported(config, "pad_size",
                       "is " + to_string(width) + " x " + to_string(height) +
                           " pixels, but pictures must be padded, to at least the longest_edge, " +
                           to_string(longest) + ".");
}

Status read_size(const JsonConfig& config, const ProcessorClass& type, PictureSettings& settings) {
  const bool conv_next = type.name == kConvNext;
  VKF_ASSIGN(const bool resizes, config.get_bool_or("do_resize", true));
  settings.fit = PictureFit::kAsIs;
  if (!resizes) return {};
  if (type.kind == ProcessorClass::Size::kPatches) return read_patches(config, type, settings);
  if (type.kind == ProcessorClass::Size::kLongest) return read_longest(config, type, settings);
  const bool edge = type.kind == ProcessorClass::Size::kEdge;
  Extent extent =
      edge ? Extent{0, 0, type.size, type.longest_edge} : Extent{type.size, type.size, 0};
  if (config.has("size")) {
    VKF_ASSIGN(extent, read_extent(config, "size", edge));
    // Older files of detectors have the limit beside the size.
    if (type.longest_edge > 0 && extent.shortest_edge > 0 && extent.longest_edge == 0) {
      VKF_ASSIGN(const int64_t most, config.get_int_or("max_size", type.longest_edge));
      VKF_ASSIGN(extent.longest_edge, to_side(config, "max_size", most));
    }
  }
  if (conv_next) {
    if (extent.shortest_edge > 0) return set_conv_next_size(config, extent.shortest_edge, settings);
    return not_supported(config, "size",
                         "has height and width; this processor needs a "
                         "shortest_edge.");
  }
  const bool adapts = type.kind == ProcessorClass::Size::kLeastChange;
  if (adapts && extent.shortest_edge == 0) return read_least_change(config, extent, settings);
  if (extent.shortest_edge > 0) {
    settings.fit = PictureFit::kShortestEdge;
    settings.shortest_edge = extent.shortest_edge;
    settings.longest_edge = extent.longest_edge;
    settings.side_multiple = type.side_multiple;
  } else {
    settings.fit = PictureFit::kStretch;
    settings.width = extent.width;
    settings.height = extent.height;
  }
  return {};
}

Status read_crop(const JsonConfig& config, const ProcessorClass& type, PictureSettings& settings) {
  VKF_ASSIGN(const bool crops, config.get_bool_or("do_center_crop", type.crop_size > 0));
  if (!crops) return {};
  if (settings.crop_width > 0) {
    return not_supported(config, "do_center_crop",
                         "asks for a second crop after the one that crop_pct makes; set it to "
                         "false.");
  }
  Extent extent = {type.crop_size, type.crop_size, 0};
  if (config.has("crop_size")) {
    VKF_ASSIGN(extent, read_extent(config, "crop_size", false));
  }
  if (extent.width == 0) {
    return wrong_value(config, "crop_size",
                       "must have a height and a width, because "
                       "do_center_crop is true.");
  }
  settings.crop_width = extent.width;
  settings.crop_height = extent.height;
  return {};
}

std::string text_of(const PictureSize& size) {
  return to_string(size.width) + " x " + to_string(size.height);
}

// The largest scale whose sides, rounded up to whole patches, have no more patches than allowed, as
// Siglip2's processor searches for it.
PictureSize size_in_patches(const PictureSize& picture, const PictureSettings& settings) {
  constexpr double kStep = 1e-5;
  constexpr double kMostScale = 100.0;
  const double patch = settings.side_multiple;
  const auto patches = [patch](int64_t side, double scale) {
    return std::max(1.0, std::ceil(static_cast<double>(side) * scale / patch));
  };
  double least = kStep / 10.0;
  double most = kMostScale;
  while (most - least >= kStep) {
    const double scale = (least + most) / 2.0;
    const double count = patches(picture.width, scale) * patches(picture.height, scale);
    (count <= settings.max_patches ? least : most) = scale;
  }
  return {static_cast<int64_t>(patches(picture.width, least) * patch),
          static_cast<int64_t>(patches(picture.height, least) * patch)};
}

// DPT's: the scale of the side that changes less.
PictureSize least_changed_size(const PictureSize& picture, const PictureSettings& settings) {
  const auto width = static_cast<double>(picture.width);
  const auto height = static_cast<double>(picture.height);
  const double across = settings.width / width, down = settings.height / height;
  const double scale = std::abs(1.0 - across) < std::abs(1.0 - down) ? across : down;
  return {nearest_multiple(scale * width, settings.side_multiple),
          nearest_multiple(scale * height, settings.side_multiple)};
}

// SAM's, before it is padded.
PictureSize longest_edge_size(const PictureSize& picture, const PictureSettings& settings) {
  const double scale =
      settings.longest_edge * 1.0 / static_cast<double>(std::max(picture.width, picture.height));
  return {static_cast<int64_t>(static_cast<double>(picture.width) * scale + 0.5),
          static_cast<int64_t>(static_cast<double>(picture.height) * scale + 0.5)};
}

// Zeros at the right and at the bottom of planes (3, height, width).
void clear_padding(const PictureSize& picture, const PictureSize& padded, std::byte* out) {
  for (int64_t row = 0; row < 3 * padded.height; ++row) {
    const bool below = row % padded.height >= picture.height;
    const int64_t from = below ? 0 : picture.width;
    std::memset(out + (row * padded.width + from) * 4, 0,
                static_cast<size_t>(padded.width - from) * 4);
  }
}

}  // namespace

Status check_picture_size(int64_t width, int64_t height, const std::string& what,
                          int64_t most_pixels) {
  const std::string size = to_string(width) + " x " + to_string(height) + " pixels";
  if (width < 1 || height < 1) {
    return invalid_argument(
        message({"Picture ", what, " has ", size, "; give one of at least one pixel each way."}));
  }
  if (width > kMaxPictureSide || height > kMaxPictureSide || width * height > most_pixels) {
    return invalid_argument(
        message({"Picture ", what, " has ", size, ", over the limit of ", kMaxPictureSide,
                 " a side and ", most_pixels, " in all; make it smaller."}));
  }
  return {};
}

PictureSize resized_size(const PictureSize& picture, const PictureSettings& settings) {
  if (settings.fit == PictureFit::kAsIs) return picture;
  if (settings.fit == PictureFit::kMostPatches) return size_in_patches(picture, settings);
  if (settings.fit == PictureFit::kStretch) return {settings.width, settings.height};
  if (settings.fit == PictureFit::kLeastChange) return least_changed_size(picture, settings);
  if (settings.fit == PictureFit::kLongestEdge) return longest_edge_size(picture, settings);
  int64_t edge = settings.shortest_edge;
  const auto [shorter, longer] = std::minmax({picture.width, picture.height});
  int64_t other = edge * longer / shorter;
  const int64_t most = settings.longest_edge;
  // As DETR's processor rounds: the shorter side to even, the longer one down.
  if (most > 0 && edge * longer > most * shorter) {
    const double exact =
        static_cast<double>(most) * static_cast<double>(shorter) / static_cast<double>(longer);
    edge = static_cast<int64_t>(std::nearbyint(exact));
    other =
        static_cast<int64_t>(exact * static_cast<double>(longer) / static_cast<double>(shorter));
  }
  edge -= edge % settings.side_multiple;
  other -= other % settings.side_multiple;
  return picture.width <= picture.height ? PictureSize{edge, other} : PictureSize{other, edge};
}

void write_planes(const RgbPicture& picture, const PictureRect& part,
                  const PictureValueTable& values, std::byte* out) {
  const int64_t first = std::clamp<int64_t>(-part.left, 0, part.width);
  const int64_t end = std::clamp<int64_t>(picture.width - part.left, first, part.width);
  std::vector<float> row(static_cast<size_t>(part.width));
  for (size_t channel = 0; channel < 3; ++channel) {
    const auto& value = values[channel];
    for (int64_t y = 0; y < part.height; ++y) {
      const int64_t source = y + part.top;
      std::fill(row.begin(), row.end(), value[0]);
      if (source >= 0 && source < picture.height) {
        const uint8_t* in = picture.row(static_cast<int>(source)) + (first + part.left) * 3;
        for (int64_t x = first; x < end; ++x, in += 3)
          row[static_cast<size_t>(x)] = value[in[channel]];
      }
      std::memcpy(out, row.data(), row.size() * sizeof(float));
      out += row.size() * sizeof(float);
    }
  }
}

bool keeps_proportions(const PictureSettings& settings) {
  return settings.fit != PictureFit::kStretch && settings.fit != PictureFit::kLongestEdge &&
         settings.crop_width == 0;
}

PictureValueTable make_values(const PictureSettings& settings) {
  PictureValueTable table = {};
  for (size_t channel = 0; channel < 3; ++channel) {
    const auto mean = static_cast<float>(settings.image_mean[channel]);
    const auto deviation = static_cast<float>(settings.image_std[channel]);
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto scaled = static_cast<float>(static_cast<double>(byte) * settings.rescale);
      table[channel][byte] = (scaled - mean) / deviation;
    }
  }
  return table;
}

int64_t crop_shift(int64_t from, int64_t to) {
  const int64_t surplus = from - to;
  return surplus >= 0 ? surplus / 2 : -((1 - surplus) / 2);
}

Result<PictureSize> common_size(std::span<const PictureSize> pictures,
                                const PictureSettings& settings) {
  PictureSize common;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::string name = "[" + to_string(i) + "] of the batch";
    const PictureSize resized = resized_size(pictures[i], settings);
    VKF_CHECK(check_picture_size(resized.width, resized.height, name + ", resized,"));
    PictureSize size = resized;
    if (settings.crop_width > 0) size = {settings.crop_width, settings.crop_height};
    if (settings.fit == PictureFit::kLongestEdge) size = {settings.width, settings.height};
    if (i == 0) common = size;
    if (size != common) {
      return invalid_argument(message(
          {"Picture ", name, " comes to ", text_of(size), " pixels and the first one to ",
           text_of(common), "; process pictures of other proportions apart, or crop them."}));
    }
  }
  return common;
}

PictureRegion region_of_interest(const PictureSettings& settings, int width, int height) {
  PictureRegion region = {.width = static_cast<double>(width),
                          .height = static_cast<double>(height)};
  if (settings.crop_width == 0) return region;
  const PictureSize resized = resized_size(PictureSize{width, height}, settings);
  const double across = region.width / static_cast<double>(resized.width);
  const double down = region.height / static_cast<double>(resized.height);
  region.left = across * static_cast<double>(crop_shift(resized.width, settings.crop_width));
  region.top = down * static_cast<double>(crop_shift(resized.height, settings.crop_height));
  region.width = across * settings.crop_width;
  region.height = down * settings.crop_height;
  return region;
}

Result<PictureSettings> parse_picture_settings(const JsonConfig& config,
                                               const std::string& model_type) {
  VKF_ASSIGN(const ProcessorClass type, find_class(config, model_type));
  for (const char* key :
       {"do_pad", "do_flip_channel_order", "do_reduce_labels", "do_pan_and_scan"}) {
    VKF_ASSIGN(const bool asked, config.get_bool_or(key, false));
    // Detectors pad pictures of a batch to one size; here each runs in its own.
    const bool pads_batches =
        std::string_view(key) == "do_pad" &&
        (type.longest_edge > 0 || type.kind == ProcessorClass::Size::kLongest);
    if (asked && !pads_batches)
      return not_supported(config, key, "is true, which is not supported.");
  }
  PictureSettings settings;
  VKF_CHECK(read_resampling(config, type.resampling, settings));
  VKF_CHECK(read_size(config, type, settings));
  VKF_CHECK(read_crop(config, type, settings));
  if (type.normalizes || config.has("do_normalize")) {
    VKF_CHECK(read_values(config, type.mean, type.deviation, settings));
  } else {
    VKF_CHECK(read_factor(config, settings));
  }
  VKF_CHECK(check_read_settings(config, settings));
  return settings;
}

Result<PictureSettings> load_picture_settings(const std::string& model_dir) {
  const auto directory = make_plain_store(model_dir);
  const auto file = load_processor_config(*directory);
  if (!file && file.error().code == ErrorCode::kNotFound) {
    return not_found(message({"Model directory ", bracketed(model_dir),
                              " has no [preprocessor_config.json], which says how pictures are "
                              "resized and scaled; add it, or give PictureSettings."}));
  }
  if (!file) return file.error();
  std::string model_type;
  VKF_ASSIGN(const std::string type, processor_class(*file));
  if (type.empty()) {
    const auto model = JsonConfig::load_from(*directory, "config.json");
    if (model) {
      VKF_ASSIGN(model_type, model->get_string_or("model_type", ""));
    }
  }
  return parse_picture_settings(*file, model_type);
}

Status check_picture_settings(const PictureSettings& settings) {
  if (settings.fit > PictureFit::kLongestEdge || settings.resampling > Resampling::kHamming) {
    return invalid_argument(
        message({"The picture settings' [fit] is ", static_cast<int>(settings.fit),
                 " and [resampling] ", static_cast<int>(settings.resampling),
                 "; give one of PictureFit and one of Resampling."}));
  }
  const bool sized = settings.fit == PictureFit::kStretch ||
                     settings.fit == PictureFit::kLeastChange ||
                     settings.fit == PictureFit::kLongestEdge;
  if (sized) {
    VKF_CHECK(check_picture_size(settings.width, settings.height, "settings' [width, height]"));
  }
  if (settings.fit == PictureFit::kShortestEdge) {
    VKF_CHECK(check_picture_size(settings.shortest_edge, 1, "settings' [shortest_edge]"));
    if (settings.longest_edge < 0 || settings.longest_edge > kMaxPictureSide ||
        settings.side_multiple < 1 || settings.side_multiple > kMaxPictureSide) {
      return invalid_argument(
          message({"The picture settings' [longest_edge] is ", settings.longest_edge,
                   " and [side_multiple] ", settings.side_multiple, "; they are 0 and 1 to ",
                   kMaxPictureSide, "."}));
    }
  }
  if (settings.fit == PictureFit::kMostPatches &&
      (settings.max_patches < 1 || settings.max_patches > kMostPatches ||
       settings.side_multiple < 1 || settings.side_multiple > kMaxPictureSide)) {
    return invalid_argument(
        message({"The picture settings' [max_patches] is ", settings.max_patches,
                 " and [side_multiple] ", settings.side_multiple, "; give 1 to ", kMostPatches,
                 " patches of a side of 1 to ", kMaxPictureSide, " pixels."}));
  }
  if (settings.fit == PictureFit::kLeastChange &&
      (settings.side_multiple < 1 || settings.side_multiple > kMaxPictureSide)) {
    return invalid_argument(
        message({"The picture settings' [side_multiple] is ", settings.side_multiple,
                 "; it is 1 to ", kMaxPictureSide, "."}));
  }
  if (settings.fit == PictureFit::kLongestEdge &&
      (settings.longest_edge < 1 || settings.longest_edge > settings.width ||
       settings.longest_edge > settings.height || settings.crop_width != 0)) {
    return invalid_argument(message({"The picture settings' [longest_edge] is ",
                                     settings.longest_edge, " and [crop_width] ",
                                     settings.crop_width, "; they are 1 to [width] and [height], ",
                                     settings.width, " and ", settings.height, ", and 0."}));
  }
  if (settings.crop_width != 0 || settings.crop_height != 0) {
    VKF_CHECK(check_picture_size(settings.crop_width, settings.crop_height,
                                 "settings' [crop_width, crop_height]"));
  }
  for (size_t i = 0; i < 3; ++i) {
    const auto deviation = static_cast<float>(settings.image_std[i]);
    if (!std::isfinite(settings.image_mean[i]) || !std::isfinite(deviation) || deviation == 0.0f) {
      return invalid_argument(
          message({"The picture settings' [image_mean, image_std] of channel ", i, " are ",
                   settings.image_mean[i], " and ", settings.image_std[i],
                   "; give finite numbers, and an image_std other than 0."}));
    }
  }
  if (std::isfinite(settings.rescale)) return {};
  return invalid_argument(message({"The picture settings' [rescale] is ", settings.rescale,
                                   "; give a finite number such as 1/255."}));
}

Result<Tensor> make_pixel_values(std::span<const RgbPicture* const> pictures,
                                 const PictureSettings& settings) {
  if (pictures.empty()) {
    return invalid_argument("The batch of [pictures] is empty; give at least one.");
  }
  std::vector<PictureSize> sizes;
  for (const RgbPicture* picture : pictures) sizes.push_back({picture->width, picture->height});
  VKF_ASSIGN(const PictureSize size, common_size(sizes, settings));
  const int64_t each = size.width * size.height * 3;
  const auto count = static_cast<int64_t>(pictures.size());
  if (count > kMaxPixelValues / each) {
    return invalid_argument(message({"The batch of [pictures] has ", count, " of ", text_of(size),
                                     " pixels, over the limit of ", kMaxPixelValues,
                                     " values; process fewer at a time."}));
  }
  Tensor tensor = Tensor::zeros(DType::kF32, {count, 3, size.height, size.width});
  std::byte* out = tensor.bytes.data();
  const PictureValueTable values = make_values(settings);
  // The middle of a picture, or all of it and zeros.
  const bool pads = settings.fit == PictureFit::kLongestEdge;
  const auto write = [&](const RgbPicture& from) {
    const int64_t left = pads ? 0 : crop_shift(from.width, size.width);
    const int64_t top = pads ? 0 : crop_shift(from.height, size.height);
    write_planes(from, {left, top, size.width, size.height}, values, out);
    if (pads) clear_padding({from.width, from.height}, size, out);
  };
  for (const RgbPicture* picture : pictures) {
    const PictureSize resized =
        resized_size(PictureSize{picture->width, picture->height}, settings);
    if (resized == PictureSize{picture->width, picture->height}) {
      write(*picture);
    } else {
      VKF_ASSIGN(const RgbPicture other,
                 resize_picture(*picture, static_cast<int>(resized.width),
                                static_cast<int>(resized.height), settings.resampling));
      write(other);
    }
    out += static_cast<size_t>(each) * sizeof(float);
  }
  return tensor;
}

}  // namespace vkformer
