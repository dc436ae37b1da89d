// Runs all examples of the headers' reference:
//   reference_examples PROJECT
// PROJECT is the folder of the source tree. Without a Vulkan device it exits with 77.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "examples.h"

vkformer::Status expect(bool holds, const std::string& what) {
  if (holds) return {};
  return vkformer::Error{vkformer::ErrorCode::kInternal, "This was expected: " + what + "."};
}

vkformer::Status timed(const std::string& name, const std::function<vkformer::Status()>& show) {
  const auto begin = std::chrono::steady_clock::now();
  vkformer::Status shown = show();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  std::printf("-- %s: %.2f s\n", name.c_str(), taken.count());
  if (!shown) {
    std::fprintf(stderr, "reference_examples: %s: %s\n", name.c_str(),
                 shown.error().message.c_str());
  }
  return shown;
}

namespace {

using Show = vkformer::Status (*)(const Setting& setting);

const std::vector<std::pair<const char*, Show>> kSubjects = {
    {"values", show_values}, {"tensor", show_tensor},     {"device", show_device},
    {"model", show_model},   {"pictures", show_pictures}, {"session", show_session},
    {"slices", show_slices}, {"tasks", show_tasks},       {"tokenizer", show_tokenizer},
    {"c", show_in_c},
};

int run(const Setting& setting) {
  int failed = 0;
  for (const auto& [name, show] : kSubjects) {
    if (!timed(name, [&, show = show] { return show(setting); })) ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: reference_examples PROJECT\n");
    return 2;
  }
  const auto device = vkformer::Device::create();
  if (!device) {
    std::fprintf(stderr, "reference_examples: %s\n", device.error().message.c_str());
    return 77;
  }
  const std::string project = argv[1];
  const auto stamp = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::filesystem::path scratch =
      std::filesystem::temp_directory_path() / ("vkformer_reference_" + std::to_string(stamp));
  std::error_code error;
  std::filesystem::create_directories(scratch, error);
  if (error) {
    std::fprintf(stderr, "reference_examples: %s: %s\n", scratch.string().c_str(),
                 error.message().c_str());
    return 1;
  }
  const int code = run({*device, project + "/models", project + "/tests/golden",
                        project + "/tests/tasks/golden", scratch.string()});
  std::filesystem::remove_all(scratch, error);
  return code;
}
