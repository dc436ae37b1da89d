#include "weights/device_weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Raised whenever the bytes of a packed weight change (tests/weights/device_weights_test.cpp).
constexpr int kLayoutVersion = 1;
// Of each weight's place: what Vulkan asks of the offset of a storage buffer at most.
constexpr size_t kAlignment = 256;

std::vector<ByteRange> places_of(const std::vector<PackedWeight>& weights) {
  std::vector<ByteRange> places;
  size_t at = 0;
  for (const PackedWeight& weight : weights) {
    at = (at + kAlignment - 1) / kAlignment * kAlignment;
    places.push_back({at, at + static_cast<size_t>(weight.bytes)});
    at = places.back().end;
  }
  return places;
}

// A line of the index.
std::string entry_of(const PackedWeight& weight, const ByteRange& place) {
  const nlohmann::ordered_json entry = {{"name", weight.row.name},
                                        {"format", format_name(weight.format)},
                                        {"column", weight.first_column},
                                        {"columns", weight.columns},
                                        {"width", weight.row.width},
                                        {"bias", int64_t{static_cast<int32_t>(weight.bias_offset)}},
                                        {"at", place.begin},
                                        {"bytes", weight.bytes}};
  return entry.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string first_line() {
  return "{\"layout\":" + std::to_string(kLayoutVersion) + ",\"weights\":[";
}

}  // namespace

std::string device_weights_index(const std::vector<PackedWeight>& weights) {
  const std::vector<ByteRange> places = places_of(weights);
  std::string text = first_line();
  for (size_t i = 0; i < weights.size(); ++i) {
    text += (i == 0 ? "\n" : ",\n") + entry_of(weights[i], places[i]);
  }
  return text + "\n]}\n";
}

Result<std::vector<std::byte>> make_device_weights(const std::vector<PackedWeight>& weights,
                                                   const Checkpoint& checkpoint,
                                                   const Helpers& helpers) {
  const std::vector<ByteRange> places = places_of(weights);
  std::vector<std::byte> bytes(places.empty() ? 0 : places.back().end);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto out = std::span(bytes).subspan(places[i].begin, places[i].end - places[i].begin);
    VKF_CHECK(pack_weight(weights[i], checkpoint, out, helpers));
  }
  return bytes;
}

Result<DeviceWeights> DeviceWeights::open(const FileStore& files,
                                          const std::vector<PackedWeight>& weights) {
  VKF_ASSIGN(const MappedFile index, files.open(kDeviceWeightsIndex));
  const std::string_view stored(reinterpret_cast<const char*>(index.bytes().data()),
                                index.bytes().size());
  if (!stored.starts_with(first_line())) {
    return unsupported(message({"File [", files.label_of(kDeviceWeightsIndex),
                                "] has weights in another layout than this version of vkformer "
                                "reads, which is layout ",
                                kLayoutVersion, ". Pack the model again with this version."}));
  }
  const std::string expected = device_weights_index(weights);
  if (stored != expected) {
    const auto differs =
        std::mismatch(stored.begin(), stored.end(), expected.begin(), expected.end());
    // The first line comes before all weights.
    const auto line = static_cast<size_t>(std::count(stored.begin(), differs.first, '\n'));
    const std::string name = line > 0 && line <= weights.size() ? weights[line - 1].row.name : "";
    return invalid_file(
        message({"Line ", line + 1, " of the file [", files.label_of(kDeviceWeightsIndex),
                 "] is not what the model's configuration and tensors ask for of [", name,
                 "]. Pack the model again."}));
  }
  std::vector<ByteRange> places = places_of(weights);
  VKF_ASSIGN(MappedFile file, files.open(kDeviceWeightsName));
  const size_t needed = places.empty() ? 0 : places.back().end;
  if (file.bytes().size() != needed) {
    return invalid_file(
        message({"File [", files.label_of(kDeviceWeightsName), "] has ", file.bytes().size(),
                 " bytes, but the index asks for ", needed, ". Pack the model again."}));
  }
  return DeviceWeights(std::move(file), std::move(places));
}

std::vector<PageRun> DeviceWeights::page_runs(const std::vector<bool>& wanted, uint64_t alignment,
                                              uint64_t most_bytes) const {
  const std::span<const std::byte> pages = file_->pages();
  const auto address = reinterpret_cast<uintptr_t>(pages.data());
  if (pages.empty() || alignment == 0 || address % alignment != 0) return {};
  // Places count from the map's first byte from here on.
  const auto start = static_cast<size_t>(file_->bytes().data() - pages.data());
  if (start % kAlignment != 0) return {};
  const auto multiple = static_cast<size_t>(alignment);
  std::vector<PageRun> runs;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!wanted[i]) continue;
    const size_t begin = (start + places_[i].begin) / multiple * multiple;
    const size_t end = (start + places_[i].end + multiple - 1) / multiple * multiple;
    if (end > pages.size()) return {};
    if (!runs.empty() && runs.back().end == i) {
      PageRun& last = runs.back();
      const auto first = static_cast<size_t>(last.pages.data() - pages.data());
      if (end - first <= most_bytes) {
        last = {pages.subspan(first, end - first), last.first, i + 1};
        continue;
      }
    }
    runs.push_back({pages.subspan(begin, end - begin), i, i + 1});
  }
  return runs;
}

Status check_stores_values(const FileStore& files, const std::string& who) {
  if (!files.has(kDeviceWeightsIndex)) return {};
  return unsupported(message({who, " needs the values of weights, but ", files.label(),
                              " has them only as GPUs read them. Give the model that it was packed "
                              "of, or pack that without the layout of devices."}));
}

}  // namespace vkformer
