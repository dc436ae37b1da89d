// Pictures in: files, memory or camera frames to RGB, and RGB to the pixel values of a vision
// model.
//
// Threading: pictures and processors are immutable; any thread may read and process.
// Lifetime: a Picture is move-only and owns its pixels, a PictureProcessor its settings; neither
// keeps what it was made from. What Picture::rgb gives stays valid as long as the picture, and a
// PixelView does not own its bytes. Nothing throws.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "vkformer/export.h"
#include "vkformer/result.h"
#include "vkformer/tensor.h"

namespace vkformer {

struct RgbPicture;

// Order of the bytes of one pixel of a raw frame. Alpha is dropped, gray becomes three equal parts.
enum class PixelFormat : uint8_t { kRgb8, kBgr8, kRgba8, kBgra8, kGray8 };

// A raw frame that the caller owns, such as one of a video or a camera.
struct PixelView {
  // The rows, from the top; the last one need not be padded to the stride.
  std::span<const uint8_t> bytes;
  // Pixels a row.
  int width = 0;
  // Rows.
  int height = 0;
  // Bytes from one row to the next; 0 means that rows follow each other without a gap.
  int64_t stride = 0;
  // What a pixel's bytes are.
  PixelFormat format = PixelFormat::kRgba8;
};

// A picture of 8-bit RGB pixels, at most 16,384 a side and 67,108,864 in all. Pixels are as stored:
// neither an orientation tag nor a color profile is applied, and of animations the first frame is
// read.
class VKFORMER_API Picture {
 public:
  // Reads a PNG, JPEG, BMP, GIF or PNM file of at most 512 MiB; the content tells which.
  static Result<Picture> load(const std::string& path);
  // Decodes such a file from memory; `name` stands for the path in messages. A picture of more than
  // `most_pixels` is refused before a pixel is decoded, as one over the limits above always is.
  static Result<Picture> decode(std::span<const std::byte> bytes, const std::string& name,
                                int64_t most_pixels = int64_t{1} << 26);
  // Copies width * height * 3 bytes of RGB, row by row from the top.
  static Result<Picture> from_rgb(int width, int height, std::span<const uint8_t> rgb);
  // Copies a raw frame.
  static Result<Picture> from_pixels(const PixelView& frame);

  Picture(Picture&& other) noexcept;
  Picture& operator=(Picture&& other) noexcept;
  ~Picture();

  int width() const;
  int height() const;
  // Height rows of width pixels of three bytes.
  std::span<const uint8_t> rgb() const;

 private:
  friend struct HandleAccess;
  explicit Picture(std::unique_ptr<const RgbPicture> impl);

  std::unique_ptr<const RgbPicture> impl_;
};

// Resampling filters, numbered as in Pillow and in preprocessor_config.json. All but kNearest are
// widened when they shrink a picture (antialiasing).
enum class Resampling : uint8_t {
  kNearest = 0,
  kLanczos = 1,
  kBilinear = 2,
  kBicubic = 3,
  kBox = 4,
  kHamming = 5,
};

// How a picture gets the size that a model reads.
enum class PictureFit : uint8_t {
  kAsIs,          // not resized
  kStretch,       // to width x height, whatever the proportions were
  kShortestEdge,  // the shorter side to shortest_edge, the other in proportion; see longest_edge
  kMostPatches,   // as large as max_patches allows, in proportion, both sides of whole patches
  kLeastChange,   // in proportion, to width or to height, whichever changes the picture less; both
                  // sides then to the nearest multiple of side_multiple
  kLongestEdge,  // the longer side to longest_edge, the other in proportion; zeros at the right and
                 // at the bottom make it width x height
};

// What happens to each picture, in this order: resize, crop, value * rescale, and
// (value - image_mean) / image_std.
struct PictureSettings {
  // Whether and how the picture is resized.
  PictureFit fit = PictureFit::kStretch;
  // Width of kStretch, kLeastChange and kLongestEdge, in pixels.
  int width = 224;
  // Height of the same, in pixels.
  int height = 224;
  // Shorter side of kShortestEdge, in pixels.
  int shortest_edge = 224;
  // Most pixels of the longer side of kShortestEdge: where the proportions make more, both sides
  // shrink; 0: no limit. Of kLongestEdge the longer side itself.
  int longest_edge = 0;
  // Both sides of kShortestEdge become multiples of this, rounded down; at least 1. Of
  // kMostPatches it is the side of a patch, and sides are rounded up, of kLeastChange to the
  // nearest one.
  int side_multiple = 1;
  // Most patches of side_multiple x side_multiple pixels of kMostPatches.
  int max_patches = 256;
  // The filter that resizes.
  Resampling resampling = Resampling::kBilinear;
  // Width of the center crop in pixels, 0 for none; a smaller picture gets a black margin.
  int crop_width = 0;
  // Height of the center crop in pixels, 0 for none; both are 0 or neither.
  int crop_height = 0;
  // Factor of every byte; 1/255 makes 0..255 to 0..1.
  double rescale = 1.0 / 255.0;
  // Subtracted from red, green and blue after the factor.
  std::array<double, 3> image_mean = {0.5, 0.5, 0.5};
  // What red, green and blue are divided by then; not 0.
  std::array<double, 3> image_std = {0.5, 0.5, 0.5};
};

// Makes a vision model's input of pictures.
class VKFORMER_API PictureProcessor {
 public:
  // Reads preprocessor_config.json of a model directory. It takes the image processors of ViT,
  // DeiT, Beit, ConvNext, CLIP, Llava, Bit (DINOv2), DINOv3ViT, Siglip, Siglip2 and Gemma3. It
  // takes those of Detr, Yolos, RTDetr, DPT (Depth Anything) and Sam, too. Swin and CvT checkpoints
  // use one of these. Old and new names work. DINOv3's own processor resizes without rounding to
  // bytes; the values here differ from its by one step of a byte at most.
  static Result<PictureProcessor> load(const std::string& model_dir);
  // For models without that file.
  static Result<PictureProcessor> from_settings(const PictureSettings& settings);

  const PictureSettings& settings() const { return settings_; }

  // The `pixel_values` of a batch in f32, channels red, green, blue: (B, 3, height, width). All
  // pictures must come to one size, which they do unless settings leave their proportions.
  Result<Tensor> process(std::span<const Picture> pictures) const;

 private:
  explicit PictureProcessor(const PictureSettings& settings) : settings_(settings) {}

  PictureSettings settings_;
};

}  // namespace vkformer
