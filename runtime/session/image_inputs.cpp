#include "session/image_inputs.h"

#include <tuple>

#include "base/check.h"
#include "base/message.h"
#include "ops/picture_values.h"

namespace vkformer {
namespace {

// As many as one picture may have.
constexpr uint64_t kMostPixels = uint64_t{1} << 26;
constexpr uint64_t kWordBytes = 4;
constexpr const char* kPixelsName = "images";
constexpr const char* kTablesName = "picture tables";
constexpr const char* kValuesName = "pixel_values";

auto fields(const PictureSettings& s) {
  return std::tie(s.fit, s.width, s.height, s.shortest_edge, s.longest_edge, s.side_multiple,
                  s.max_patches, s.resampling, s.crop_width, s.crop_height, s.rescale, s.image_mean,
                  s.image_std);
}

uint64_t pixels_of(const std::vector<PictureSize>& sizes) {
  uint64_t sum = 0;
  for (const PictureSize& size : sizes) sum += static_cast<uint64_t>(size.width * size.height);
  return sum;
}

}  // namespace

bool ImageInputsKey::operator==(const ImageInputsKey& other) const {
  return fields(settings) == fields(other.settings) && sizes == other.sizes &&
         swapped == other.swapped;
}

Result<ImageInputsKey> image_inputs_key(const std::vector<SourceImage>& images,
                                        const PictureSettings& settings) {
  if (images.empty()) {
    return invalid_argument("[images] is empty; give one image for each picture of the batch");
  }
  ImageInputsKey key{settings, {}, {}};
  for (const SourceImage& source : images) {
    key.sizes.push_back({source.image.width, source.image.height});
    key.swapped.push_back(source.swapped);
    VKF_CHECK(check_picture_size(key.sizes.back().width, key.sizes.back().height,
                                 "[" + std::to_string(key.sizes.size() - 1) + "] of the images"));
  }
  const uint64_t pixels = pixels_of(key.sizes);
  if (pixels <= kMostPixels) return key;
  return invalid_argument(message({"[images] have ", pixels, " pixels together, but at most ",
                                   kMostPixels, " are copied; give fewer at a time"}));
}

Result<std::shared_ptr<ImageInputs>> ImageInputs::create(
    const std::shared_ptr<VulkanDevice>& device, const ImageInputsKey& key) {
  std::shared_ptr<ImageInputs> made(new ImageInputs(device, key));
  VKF_ASSIGN(made->tables_, make_picture_tables(key.sizes, key.settings));
  const PictureTables& tables = made->tables_;
  made->pixel_count_ = pixels_of(key.sizes);
  made->shape_ = {static_cast<int64_t>(key.sizes.size()), 3, tables.size.height, tables.size.width};
  VKF_CHECK(made->make_values());
  return made;
}

Status ImageInputs::make_values() {
  const auto& device = memory_.device();
  const auto values = static_cast<uint64_t>(element_count(shape_));
  const uint64_t range = device->caps().limits.max_storage_range;
  if (std::max(pixel_count_, values) * kWordBytes > range) {
    return unsupported(message({"[images] have ", pixel_count_, " pixels and come to ", values,
                                " values of 4 bytes, but this device binds ", range,
                                " bytes at once; give fewer or smaller images"}));
  }
  VKF_ASSIGN(Buffer made,
             device->make_buffer(values * kWordBytes, MemoryUse::kDevice, kValuesName));
  values_ = std::make_shared<Buffer>(std::move(made));
  return {};
}

Status ImageInputs::plan() {
  PictureValuesAttrs attrs{
      static_cast<uint32_t>(tables_.size.width), static_cast<uint32_t>(tables_.size.height), {}};
  uint32_t first = 0;
  for (size_t i = 0; i < key_.sizes.size(); ++i) {
    const PictureTapPlace& place = tables_.places[i];
    attrs.pictures.push_back({.first_pixel = first,
                              .width = static_cast<uint32_t>(key_.sizes[i].width),
                              .height = static_cast<uint32_t>(key_.sizes[i].height),
                              .columns = place.columns,
                              .rows = place.rows,
                              .same_columns = place.same_columns,
                              .swapped = key_.swapped[i]});
    first += static_cast<uint32_t>(key_.sizes[i].width * key_.sizes[i].height);
  }
  Graph graph;
  graph.set_scope(kValuesName);
  const auto words = static_cast<int64_t>(tables_.words.size());
  const TensorId x =
      graph.add_external(kPixelsName, DType::kU32, {static_cast<int64_t>(pixel_count_)});
  const TensorId t = graph.add_external(kTablesName, DType::kU32, {words});
  VKF_ASSIGN(const TensorId y, add_picture_values(graph, x, t, attrs));
  graph.tensor(y).kind = TensorKind::kExternal;
  memory_.place({{graph.tensor(y).name, place()}});
  RecordedGraphOptions options{.commands = RecordedGraphOptions::Commands::kPieces};
  options.host.writes = {kTablesName};
  VKF_ASSIGN(planned_, plan_graph(*memory_.device(), std::move(graph), std::move(options)));
  return {};
}

Status ImageInputs::record() {
  VKF_ASSIGN(graph_, RecordedGraph::record(memory_, std::move(*planned_)));
  planned_.reset();
  costs_.emplace(costs_of(*memory_.device(), graph_->plan()));
  return {};
}

Status ImageInputs::finish() {
  VKF_CHECK(memory_.write(kTablesName, 0, tables_.words));
  tables_ = {};
  return memory_.send();
}

std::vector<SliceImage> ImageInputs::copies(const std::vector<SourceImage>& images) const {
  std::vector<SliceImage> list;
  uint64_t offset = 0;
  for (const SourceImage& source : images) {
    list.push_back(source.image);
    list.back().to = &memory_.buffer(kPixelsName);
    list.back().offset = offset;
    offset += kWordBytes * source.image.width * source.image.height;
  }
  return list;
}

TensorPlace ImageInputs::place() const {
  // The address tells it from other buffers as a handle does: recordings on it keep it alive.
  return {values_, reinterpret_cast<uintptr_t>(values_.get()), 0, values_->bytes()};
}

}  // namespace vkformer
