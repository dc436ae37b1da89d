// ResNet (He et al., 2016) without its classifier: a convolutional backbone whose batch norms are
// folded into the convolutions.
#pragma once

#include "model/blocks/feature_map.h"

namespace vkformer {

struct ResNet {
  std::string rows = "backbone";  // prefix of its weight rows
  int64_t channels = 3;           // of pictures
  int64_t stem = 64;              // channels after the first convolution
  // One for each stage whose features are read or that comes before it.
  std::vector<int64_t> widths;  // channels
  std::vector<int64_t> depths;  // layers
  // kBottleneck: three convolutions a layer, of which the outer ones are 1 x 1.
  enum class Layer : uint8_t { kBasic, kBottleneck } layer = Layer::kBottleneck;
  // Which convolution of a bottleneck takes every second pixel: the second, or the first.
  enum class Halves : uint8_t { kSecond, kFirst } halves = Halves::kSecond;
  // Whether the first stage halves its pictures, as the others do.
  enum class HalvesFirst : uint8_t { kNo, kYes } halves_first = HalvesFirst::kNo;
  // kPooled: "ResNet-D" (He et al., 2019), with three small convolutions in the place of the first.
  // Its shortcuts take means of 2 x 2 pixels where others take every second one.
  enum class Form : uint8_t { kStrided, kPooled } form = Form::kStrided;
  ActivationKind activation = ActivationKind::kRelu;  // of the stem and of whole layers
  // The stages whose features are read, in ascending order; 0 is the stem.
  std::vector<int64_t> read;

  // Channels of the features.
  int64_t width() const { return widths.empty() ? stem : widths.back(); }
};

// A configuration of model_type "resnet", up to the last stage of its out_features or out_indices.
// With neither, `fallback` says which stages are read, where it is not empty.
Result<ResNet> read_resnet(const JsonConfig& config, ResNet::Form form = ResNet::Form::kStrided,
                           const std::vector<int64_t>& fallback = {});
// The one that timm calls by this name ("resnet50"), all stages; an error where it is not known.
Result<ResNet> named_resnet(const std::string& name, int64_t channels);

// The size of the features of a picture.
GridSize feature_grid(const ResNet& net, const GridSize& picture);

// Its rows, of tensors whose names begin with `prefix`, by the library's names or timm's. What
// stages that are not read have is ignored.
void add_resnet_rows(const ResNet& net, const Checkpoint& checkpoint, const std::string& prefix,
                     WeightTable& table);

// Of pixels (B, C, height, width): the features of the stages that are read, or of the last one.
Result<std::vector<FeatureMap>> add_resnet_stages(ModelBuilder& builder, const ResNet& net,
                                                  TensorId pixels);
Result<FeatureMap> add_resnet(ModelBuilder& builder, const ResNet& net, TensorId pixels);

}  // namespace vkformer
