// What drivers say of compiled kernels: read by the extension's calls, and brought to one name
// each.
#include "measure/kernel_statistics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "support/test_device.h"
#include "vulkan/device_impl.h"
#include "vulkan/fill_plan.h"

using namespace vkformer;

namespace {

Executable executable(std::initializer_list<std::pair<const char*, StatisticValue>> statistics) {
  Executable one;
  one.name = "compute";
  one.subgroup_size = 16;
  for (const auto& [name, value] : statistics) one.statistics.push_back({name, "", value});
  return one;
}

// A driver of two executables. The first has names as long as the arrays for them, the second a
// text.
template <class T, size_t kSize>
VkResult hand_out(const T (&made)[kSize], uint32_t* count, T* list) {
  if (list == nullptr) {
    *count = kSize;
    return VK_SUCCESS;
  }
  *count = std::min<uint32_t>(*count, kSize);
  std::copy_n(made, *count, list);
  return *count < kSize ? VK_INCOMPLETE : VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL give_properties(VkDevice, const VkPipelineInfoKHR*, uint32_t* count,
                                               VkPipelineExecutablePropertiesKHR* list) {
  VkPipelineExecutablePropertiesKHR made[2] = {};
  std::fill(std::begin(made[0].name), std::end(made[0].name), 'x');
  std::strcpy(made[1].name, "SIMD16");
  made[1].subgroupSize = 16;
  return hand_out(made, count, list);
}

VKAPI_ATTR VkResult VKAPI_CALL give_statistics(VkDevice, const VkPipelineExecutableInfoKHR* which,
                                               uint32_t* count,
                                               VkPipelineExecutableStatisticKHR* list) {
  VkPipelineExecutableStatisticKHR made[4] = {};
  const VkPipelineExecutableStatisticFormatKHR formats[] = {
      VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR,
      VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR,
      VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR,
      VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR};
  for (size_t i = 0; i < 4; ++i) made[i].format = formats[i];
  made[0].value.b32 = 1;
  made[1].value.i64 = -3;
  made[2].value.u64 = UINT64_MAX;
  made[3].value.f64 = 0.5;
  std::strcpy(made[3].name, "Cycles");
  if (which->executableIndex > 1) return VK_ERROR_UNKNOWN;
  return hand_out(made, count, list);
}

VKAPI_ATTR VkResult VKAPI_CALL give_texts(VkDevice, const VkPipelineExecutableInfoKHR*,
                                          uint32_t* count,
                                          VkPipelineExecutableInternalRepresentationKHR* list) {
  constexpr char kText[] = "v_fma";
  if (list == nullptr) {
    *count = 2;
    return VK_SUCCESS;
  }
  for (uint32_t i = 0; i < 2; ++i) {
    std::strcpy(list[i].name, i == 0 ? "Assembly" : "Binary");
    list[i].isText = i == 0;
    if (list[i].pData == nullptr) {
      list[i].dataSize = sizeof(kText);
    } else {
      std::memcpy(list[i].pData, kText, std::min(list[i].dataSize, sizeof(kText)));
    }
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL fail_statistics(VkDevice, const VkPipelineExecutableInfoKHR*,
                                               uint32_t*, VkPipelineExecutableStatisticKHR*) {
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

DeviceApi driver() {
  DeviceApi api;
  api.GetPipelineExecutablePropertiesKHR = give_properties;
  api.GetPipelineExecutableStatisticsKHR = give_statistics;
  api.GetPipelineExecutableInternalRepresentationsKHR = give_texts;
  return api;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("each driver's names become one name") {
    const auto nvk = normalize(executable({{"Instruction count", uint64_t{3311}},
                                           {"Number of GPRs", uint64_t{128}},
                                           {"SLM size", uint64_t{64}},
                                           {"Max warps/SM", uint64_t{16}},
                                           {"Spills to memory", uint64_t{2}},
                                           {"Spills to reg", uint64_t{9}}}),
                               "NVK Mesa 26.2.6");
    CHECK(nvk.instructions == 3311);
    CHECK(nvk.registers == 128);
    CHECK(nvk.scratch_bytes == 64);
    CHECK(nvk.occupancy == 16);
    CHECK(nvk.occupancy_unit == "warps per SM");
    CHECK(nvk.spills == 2);
    CHECK_FALSE(nvk.shared_bytes);

    // It states local memory from 2^36 on, and no instructions.
    for (const uint64_t bytes : {0u, 288u}) {
      const auto nvidia = normalize(executable({{"Register Count", uint64_t{96}},
                                                {"Binary Size", uint64_t{7936}},
                                                {"Stack Size", uint64_t{16}},
                                                {"Local Memory Size", (uint64_t{1} << 36) + bytes},
                                                {"Shared Memory Size", uint64_t{4096}}}),
                                    "NVIDIA 580.159.04");
      CHECK(nvidia.registers == 96);
      CHECK(nvidia.register_unit == "32-bit registers");
      CHECK(nvidia.code_bytes == 7936);
      CHECK(nvidia.scratch_bytes == bytes);
      CHECK(nvidia.shared_bytes == 4096);
      CHECK_FALSE(nvidia.instructions);
      CHECK_FALSE(nvidia.spills);
    }

    const auto radv = normalize(executable({{"VGPRs", uint64_t{120}},
                                            {"Spilled VGPRs", uint64_t{0}},
                                            {"Spilled SGPRs", uint64_t{5}},
                                            {"LDS size", uint64_t{16384}},
                                            {"Scratch size", uint64_t{0}},
                                            {"Subgroups per SIMD", uint64_t{12}},
                                            {"Latency", uint64_t{12460}},
                                            {"Code size", uint64_t{13876}}}),
                                "radv Mesa 22.3.6");
    CHECK(radv.registers == 120);
    CHECK(radv.spills == 0);
    CHECK(radv.shared_bytes == 16384);
    CHECK(radv.cycles == 12460);
    CHECK(radv.code_bytes == 13876);

    // It counts words of code, and stores to private memory in place of spills.
    const auto turnip = normalize(
        executable(
            {{"Code size", uint64_t{100}}, {"STP Count", uint64_t{5}}, {"LDP Count", uint64_t{4}}}),
        "turnip Mesa driver Mesa 26.2.6");
    CHECK(turnip.code_bytes == 400);
    CHECK(turnip.spills == 5);
    CHECK(turnip.fills == 4);

    // The busiest of its units.
    const auto apple = normalize(executable({{"ALU", uint64_t{20}},
                                             {"IC", uint64_t{30}},
                                             {"FSCIB", uint64_t{10}},
                                             {"Threads", uint64_t{384}}}),
                                 "Honeykrisp Mesa 26.2.6");
    CHECK(apple.cycles == 30);
    CHECK(apple.occupancy_unit == "threads per core");

    const auto intel = normalize(executable({{"Spill count", uint64_t{150}}, {"Cycles", 157124.0}}),
                                 "Intel open-source Mesa driver Mesa 26.2.6");
    CHECK(intel.spills == 150);
    CHECK(intel.cycles == 157124);
    CHECK(intel.occupancy == 16);
    CHECK(intel.occupancy_unit == "invocations per thread");
  }

  TEST_CASE("an unknown driver's names stay raw") {
    const auto other = normalize(executable({{"VGPRs", uint64_t{120}}, {"Instrs", uint64_t{7}}}),
                                 "Somebody's driver");
    CHECK_FALSE(other.registers);
    CHECK_FALSE(other.occupancy);
    CHECK(other.instructions == 7);
  }

  TEST_CASE("executables are read whole, whatever the driver fills") {
    const auto read =
        read_executables(driver(), VK_NULL_HANDLE, VK_NULL_HANDLE, Capture::kRepresentations);
    REQUIRE(read);
    REQUIRE(read->size() == 2);
    CHECK(read->at(0).name == std::string(VK_MAX_DESCRIPTION_SIZE, 'x'));
    CHECK(read->at(1).name == "SIMD16");
    CHECK(read->at(1).subgroup_size == 16);
    const auto& statistics = read->at(1).statistics;
    REQUIRE(statistics.size() == 4);
    CHECK(std::get<bool>(statistics[0].value));
    CHECK(std::get<int64_t>(statistics[1].value) == -3);
    CHECK(std::get<uint64_t>(statistics[2].value) == UINT64_MAX);
    CHECK(number_of(statistics[3].value) == 0.5);
    // The text, without the byte after it; not what is no text.
    REQUIRE(read->at(1).representations.size() == 1);
    CHECK(read->at(1).representations[0].name == "Assembly");
    CHECK(read->at(1).representations[0].text == "v_fma");

    const auto without =
        read_executables(driver(), VK_NULL_HANDLE, VK_NULL_HANDLE, Capture::kStatistics);
    REQUIRE(without);
    CHECK(without->at(1).representations.empty());
  }

  TEST_CASE("a call that fails is an error that names it") {
    DeviceApi api = driver();
    api.GetPipelineExecutableStatisticsKHR = fail_statistics;
    const auto read = read_executables(api, VK_NULL_HANDLE, VK_NULL_HANDLE, Capture::kStatistics);
    REQUIRE_FALSE(read);
    CHECK(read.error().message.find("vkGetPipelineExecutableStatisticsKHR") != std::string::npos);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("statistics are there where the driver has the extension, else a sentence says why") {
    if (!have_test_device()) return;
    const auto plain = make_test_device(test_device_options(), test_device_tweaks());
    REQUIRE(plain);
    const auto none = kernel_statistics(*plain);
    REQUIRE_FALSE(none);
    CHECK(none.error().code == ErrorCode::kUnsupported);
    CHECK(none.error().message.find("DeviceOptions::statistics") != std::string::npos);

    DeviceOptions options = test_device_options();
    options.statistics = true;
    const auto device = make_test_device(options, test_device_tweaks());
    REQUIRE(device);
    const auto vulkan = vulkan_of(*device);
    const uint32_t workgroup[] = {64};
    REQUIRE(vulkan->impl().pipelines->get(KernelId::fill_words__u32, workgroup));
    const auto statistics = kernel_statistics(*device);
    if (vulkan->impl().context.capture == Capture::kNone) {
      REQUIRE_FALSE(statistics);
      CHECK(statistics.error().code == ErrorCode::kUnsupported);
      CHECK(statistics.error().message.find(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME) !=
            std::string::npos);
      return;
    }
    REQUIRE_MESSAGE(statistics.ok(), statistics.error().message);
    REQUIRE_FALSE(statistics->empty());
    CHECK(statistics->front().kernel == "fill_words__u32");
    CHECK(statistics->front().constants == std::vector<uint32_t>{64});
    CHECK_FALSE(statistics->front().raw.empty());
  }
}
