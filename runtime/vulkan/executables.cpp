#include "vulkan/executables.h"

#include <algorithm>
#include <cstring>

#include "vulkan/context.h"

namespace vkformer {
namespace {

// Text of an array that a driver may fill to its end.
template <size_t kSize>
std::string text_of(const char (&field)[kSize]) {
  return {field, std::find(field, field + kSize, '\0')};
}

StatisticValue value_of(const VkPipelineExecutableStatisticKHR& s) {
  switch (s.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return s.value.b32 != VK_FALSE;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return s.value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return s.value.f64;
    default:
      return s.value.u64;
  }
}

// Calls get(count, list) once for the count and once for the elements, which begin as `empty`.
template <class T, class Get>
Result<std::vector<T>> list_of(const char* name, const T& empty, const Get& get) {
  uint32_t count = 0;
  VkResult result = get(&count, static_cast<T*>(nullptr));
  if (result < 0) return vk_error(result, name);
  std::vector<T> list(count, empty);
  result = get(&count, list.data());
  if (result < 0) return vk_error(result, name);
  list.resize(std::min<size_t>(count, list.size()));
  return list;
}

Result<std::vector<Statistic>> read_statistics(const DeviceApi& api, VkDevice device,
                                               const VkPipelineExecutableInfoKHR& which) {
  const VkPipelineExecutableStatisticKHR empty{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
  VKF_ASSIGN(const auto list, list_of("[pipelines] vkGetPipelineExecutableStatisticsKHR", empty,
                                      [&](uint32_t* count, auto* into) {
                                        return api.GetPipelineExecutableStatisticsKHR(
                                            device, &which, count, into);
                                      }));
  std::vector<Statistic> statistics;
  for (const VkPipelineExecutableStatisticKHR& s : list) {
    statistics.push_back({text_of(s.name), text_of(s.description), value_of(s)});
  }
  return statistics;
}

Result<std::vector<Representation>> read_representations(const DeviceApi& api, VkDevice device,
                                                         const VkPipelineExecutableInfoKHR& which) {
  const VkPipelineExecutableInternalRepresentationKHR empty{
      VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR};
  const char* const call = "[pipelines] vkGetPipelineExecutableInternalRepresentationsKHR";
  // Sizes first, then the same call with memory for the texts.
  VKF_ASSIGN(auto list, list_of(call, empty, [&](uint32_t* count, auto* into) {
               return api.GetPipelineExecutableInternalRepresentationsKHR(device, &which, count,
                                                                          into);
             }));
  std::vector<std::string> texts;
  for (auto& one : list) texts.emplace_back(one.dataSize, '\0');
  for (size_t i = 0; i < list.size(); ++i) list[i].pData = texts[i].data();
  auto count = static_cast<uint32_t>(list.size());
  const VkResult result =
      api.GetPipelineExecutableInternalRepresentationsKHR(device, &which, &count, list.data());
  if (result < 0) return vk_error(result, call);
  std::vector<Representation> found;
  for (size_t i = 0; i < std::min<size_t>(count, list.size()); ++i) {
    if (!list[i].isText) continue;
    std::string& text = texts[i];
    text.resize(std::min(text.size(), list[i].dataSize));
    text.resize(std::strlen(text.c_str()));
    found.push_back({text_of(list[i].name), std::move(text)});
  }
  return found;
}

}  // namespace

double number_of(const StatisticValue& value) {
  return std::visit([](const auto v) { return static_cast<double>(v); }, value);
}

VkPipelineCreateFlags capture_flags(Capture capture) {
  switch (capture) {
    case Capture::kNone:
      return 0;
    case Capture::kStatistics:
      return VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    case Capture::kRepresentations:
      return VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
             VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  }
  return 0;
}

Result<std::vector<Executable>> read_executables(const DeviceApi& api, VkDevice device,
                                                 VkPipeline pipeline, Capture capture) {
  VkPipelineInfoKHR info{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR};
  info.pipeline = pipeline;
  const VkPipelineExecutablePropertiesKHR empty{
      VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
  VKF_ASSIGN(const auto list, list_of("[pipelines] vkGetPipelineExecutablePropertiesKHR", empty,
                                      [&](uint32_t* count, auto* into) {
                                        return api.GetPipelineExecutablePropertiesKHR(device, &info,
                                                                                      count, into);
                                      }));
  std::vector<Executable> executables;
  for (uint32_t i = 0; i < list.size(); ++i) {
    VkPipelineExecutableInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR};
    which.pipeline = pipeline;
    which.executableIndex = i;
    Executable one;
    one.name = text_of(list[i].name);
    one.description = text_of(list[i].description);
    one.subgroup_size = list[i].subgroupSize;
    VKF_ASSIGN(one.statistics, read_statistics(api, device, which));
    if (capture == Capture::kRepresentations) {
      VKF_ASSIGN(one.representations, read_representations(api, device, which));
    }
    executables.push_back(std::move(one));
  }
  return executables;
}

}  // namespace vkformer
