// Donut's image processor (Kim et al., 2022, "OCR-free Document Understanding Transformer"). A page
// is shrunk to fit into a fixed size with its proportions, and black margins fill the rest. The
// steps are those of transformers' DonutImageProcessor by torch, without random padding.
//
// Threading: immutable; any thread may process.
#pragma once

#include "image/picture_processor.h"

namespace vkformer {

class DocumentPages {
 public:
  // Whether preprocessor_config.json names this processor.
  static Result<bool> named_by(const JsonConfig& config);
  // kUnsupported: the file omits a step, so that pages would have any size.
  static Result<DocumentPages> parse(const JsonConfig& config);

  // pixel_values (B, 3, height, width) in f32 of B pictures. kInvalidArgument: a picture is so
  // long that its other side vanishes, or too large. Precondition: no pointer is null.
  Result<Tensor> process(std::span<const RgbPicture* const> pictures) const;

 private:
  DocumentPages() = default;
  Result<RgbPicture> fitted(const RgbPicture& picture, size_t index) const;

  PictureSettings settings_;  // width and height of a page, filter and values
  enum class Turns : uint8_t { kNo, kYes } turns_ = Turns::kNo;
};

}  // namespace vkformer
