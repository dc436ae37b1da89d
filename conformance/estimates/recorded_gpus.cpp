#include "conformance/estimates/recorded_gpus.h"

#include <algorithm>

#include "base/message.h"
#include "conformance/estimates/caps_json.h"

namespace vkformer::estimates {
namespace {

using Json = nlohmann::ordered_json;

struct Recording {
  std::string_view target;
  std::string_view text;
};
constexpr Recording kRecordings[] = {
#include "recorded_gpus.inc"
};

size_t in_common(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  size_t count = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) count += a[i] == b[i] ? 1 : 0;
  return count;
}

}  // namespace

Result<RecordedGpu> RecordedGpu::read(std::string_view target) {
  for (const Recording& one : kRecordings) {
    if (one.target == target) return parse(one.text);
  }
  return not_found(message(
      {"[estimate] There is no recording of ", target, "; tools/record_kernels makes one."}));
}

Result<RecordedGpu> RecordedGpu::parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  RecordedGpu gpu;
  try {
    json.at("target").get_to(gpu.target_);
    VKF_ASSIGN(gpu.caps_, caps_from_json(json.at("caps")));
    for (const Json& row : json.at("kernels")) {
      Pipeline one{row.at(1).get<std::vector<uint32_t>>(),
                   {row.at(2), row.at(3), row.at(4), row.at(5), row.at(6), row.at(7)}};
      gpu.kernels_[row.at(0).get<std::string>()].push_back(std::move(one));
    }
  } catch (const nlohmann::json::exception& error) {
    return invalid_file(message({"[recording of a GPU] It cannot be read: ", error.what(), "."}));
  }
  return gpu;
}

size_t RecordedGpu::pipelines() const {
  size_t count = 0;
  for (const auto& [name, list] : kernels_) count += list.size();
  return count;
}

RecordedGpu::Found RecordedGpu::find(std::string_view kernel,
                                     std::span<const uint32_t> constants) const {
  const auto named = kernels_.find(kernel);
  if (named == kernels_.end()) return {};
  const std::vector<Pipeline>& list = named->second;
  const auto nearest =
      std::max_element(list.begin(), list.end(), [&](const Pipeline& a, const Pipeline& b) {
        return in_common(a.constants, constants) < in_common(b.constants, constants);
      });
  return {&nearest->compiled, std::equal(constants.begin(), constants.end(),
                                         nearest->constants.begin(), nearest->constants.end())};
}

std::vector<std::string_view> recorded_targets() {
  std::vector<std::string_view> list;
  for (const Recording& one : kRecordings) list.push_back(one.target);
  return list;
}

}  // namespace vkformer::estimates
