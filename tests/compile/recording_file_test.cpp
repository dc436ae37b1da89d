// Files of pipelines (compile/recording_file.h): what is written is read back, and nothing else is
// believed.
#include "compile/recording_file.h"

#include <cstdio>
#include <filesystem>

#include "compile/statistics_report.h"
#include "conformance/kernels.h"
#include "support/test_device.h"
#include "vulkan/device_impl.h"

using namespace vkformer;
using namespace vkformer::compile;

namespace {

constexpr KernelId kKernel = KernelId::fill_words__u32;

Json good_file() {
  Json file;
  file["format"] = "vkformer pipelines 2";
  file["device"] = {{"name", "a GPU"}};
  file["kernels"][conformance::name_of(kKernel)] = {{"subgroup_size", 0},
                                                    {"spirv", kernel_spirv(kKernel)}};
  file["pipelines"] = Json::array({{{"kernel", conformance::name_of(kKernel)},
                                    {"constants", {64}},
                                    {"for", "fill, a check"},
                                    {"groups", {2, 1, 1}},
                                    {"flops", 4.5e9},
                                    {"benchmark", true},
                                    {"chosen", true}}});
  return file;
}

std::string complaint_about(const Json& file) {
  const auto read = parse_recording(file.dump(), "file");
  return read ? "" : read.error().message;
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a recording is read") {
    const auto read = parse_recording(good_file().dump(), "file");
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(read->device["name"] == "a GPU");
    CHECK(read->kernels.at(kKernel) == kernel_spirv(kKernel));
    REQUIRE(read->pipelines.size() == 1);
    CHECK(read->pipelines[0].spec == std::vector<uint32_t>{64});
    CHECK(read->pipelines[0].groups == std::array<uint32_t, 3>{2, 1, 1});
    CHECK(read->pipelines[0].flops == 4.5e9);
    CHECK(read->pipelines[0].what == "fill, a check");
    CHECK(read->pipelines[0].constants() == "local_size=64");
  }

  TEST_CASE("what is wrong in a recording is named") {
    Json file = good_file();
    file["format"] = "vkformer pipelines 9";
    CHECK(has(complaint_about(file), "vkformer pipelines 9"));
    file = good_file();
    file["kernels"]["no_such_kernel"] = Json::object();
    CHECK(has(complaint_about(file), "no_such_kernel"));
    file = good_file();
    Json& spirv = file["kernels"][conformance::name_of(kKernel)]["spirv"];
    spirv[4] = -1;
    CHECK(has(complaint_about(file), "spirv"));
    spirv[4] = 1LL << 32;
    CHECK(has(complaint_about(file), "spirv"));
    spirv = {1, 2, 3};
    CHECK(has(complaint_about(file), "SPIR-V"));
    spirv = "text";
    CHECK(has(complaint_about(file), "spirv"));
    file = good_file();
    file["pipelines"][0]["kernel"] = conformance::name_of(KernelId::kv_append_slot__f32_none_f32);
    CHECK(has(complaint_about(file), "lacks"));
    file = good_file();
    file["pipelines"][0]["constants"] = std::vector<int>(65, 1);
    CHECK(has(complaint_about(file), "at most 64"));
    file = good_file();
    file["pipelines"][0]["groups"] = {1, 1, 1, 1};
    CHECK(has(complaint_about(file), "groups"));
    file = good_file();
    file["pipelines"][0]["flops"] = "many";
    CHECK(has(complaint_about(file), "is of JSON type string; it must be a number"));
    for (const char* member : {"format", "device", "kernels", "pipelines"}) {
      file = good_file();
      file.erase(member);
      CHECK(has(complaint_about(file), member));
    }
  }

  TEST_CASE("a recording that ends early is an error") {
    const std::string whole = good_file().dump();
    for (size_t i = 0; i < whole.size(); i += 97) {
      CHECK_FALSE(parse_recording(whole.substr(0, i), "file"));
    }
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("pipelines that a device is given are recorded and read back") {
    VKF_TEST_DEVICE(device);
    PlannedPipelines planned("layer_norm");
    planned.add_rows(device->caps());
    REQUIRE_FALSE(planned.list().empty());
    const std::string path =
        (std::filesystem::temp_directory_path() / "vkformer_recording_test.json").string();
    REQUIRE(write_recording(path, *device, planned.list()));
    const auto read = read_recording(path);
    std::remove(path.c_str());
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    CHECK(nlohmann::json(read->device) == nlohmann::json(device_json(*device)));
    REQUIRE(read->pipelines.size() == planned.list().size());
    for (size_t i = 0; i < read->pipelines.size(); ++i) {
      CHECK(read->pipelines[i].kernel == planned.list()[i].kernel);
      CHECK(read->pipelines[i].spec == planned.list()[i].spec);
      CHECK(read->kernels.count(read->pipelines[i].kernel) == 1);
    }
  }
}
