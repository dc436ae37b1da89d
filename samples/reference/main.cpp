// Runs the examples of the headers' reference:
//   reference_examples PROJECT [--measure]
// PROJECT is the folder of the source tree. With --measure the examples run that measure the
// device, which takes a minute or more on a processor; else all others run. Without a Vulkan device
// it exits with 77.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
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

std::vector<std::byte> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
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

using Subjects = std::vector<std::pair<const char*, Show>>;

const Subjects kSubjects = {
    {"values", show_values},
    {"tensor", show_tensor},
    {"device", show_device},
    {"model", show_model},
    {"sources", show_sources},
    {"groups", show_groups},
    {"pictures", show_pictures},
    {"picture_tasks", show_picture_tasks},
    {"sounds", show_sounds},
    {"session", show_session},
    {"slices", show_slices},
    {"batches", show_batches},
    {"tasks", show_tasks},
    {"tokenizer", show_tokenizer},
    {"grammars", show_grammars},
    {"guest", show_guest},
    {"attention_view", show_attention_view},
    {"operators", show_operators},
    {"conformance", show_conformance},
    {"c", show_in_c},
};
const Subjects kMeasurements = {
    {"measurements", show_measurements},
    {"c", show_measurements_in_c},
};

int run(const Subjects& subjects, const Setting& setting) {
  int failed = 0;
  for (const auto& [name, show] : subjects) {
    if (!timed(name, [&, show = show] { return show(setting); })) ++failed;
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool measure = argc == 3 && std::string(argv[2]) == "--measure";
  if (argc != 2 && !measure) {
    std::fprintf(stderr, "usage: reference_examples PROJECT [--measure]\n");
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
  const int code = run(measure ? kMeasurements : kSubjects,
                       {*device, project + "/models", project + "/tests/golden",
                        project + "/tests/tasks/golden", scratch.string()});
  std::filesystem::remove_all(scratch, error);
  return code;
}
