#include "conformance/failure_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/guarded.h"
#include "conformance/content.h"
#include "conformance/kernels.h"
#include "measure/conformance_support.h"

namespace vkformer {
namespace conformance {
namespace {

namespace fs = std::filesystem;

std::string_view bytes_of(const std::vector<uint32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * 4};
}

std::string readme(const Failure& f) {
  std::string text = "A check of vkformer's conformance that failed.\n\n";
  text += "Check:   " + f.check.name + "\nOutcome: " + f.check.message + "\n";
  const DeviceInfo info = f.device.info();
  text += "Device:  " + info.name + ", " + info.driver + ", Vulkan " + info.api_version + "\n";
  text += "Again:   " + f.check.reproduce + "\n\n";
  text +=
      "inputs.safetensors    what the operator was given\n"
      "expected.safetensors  what the reference in double makes of it, rounded to f32\n"
      "actual.safetensors    what the device gave, where it gave anything\n"
      "graph.txt             the operator with its attributes\n"
      "*.spv                 the kernels that ran, as this device was given them\n";
  return text;
}

}  // namespace

Status write_file(const std::string& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) return {};
  return not_found("[" + path + "] cannot be written; give a folder that can.");
}

Status write_failure(const Failure& f) {
  std::string name = f.check.name;
  std::replace(name.begin(), name.end(), '/', '.');
  const fs::path folder = fs::path(f.folder) / name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return not_found("[" + folder.string() + "] cannot be made; give another folder.");
  const auto path = [&](const std::string& file) { return (folder / file).string(); };
  VKF_CHECK(write_file(path("README.txt"), readme(f)));
  VKF_CHECK(write_file(path("graph.txt"), f.made.op.graph.dump()));
  VKF_CHECK(write_tensor_file(path("inputs.safetensors"), f.made.op.inputs));
  TensorMap expected;
  for (const auto& [output, e] : f.made.expected) expected.emplace(output, floats(e.values));
  VKF_CHECK(write_tensor_file(path("expected.safetensors"), expected));
  if (!f.outputs.empty()) VKF_CHECK(write_tensor_file(path("actual.safetensors"), f.outputs));
  for (const KernelId id : all_kernels()) {
    const std::string kernel = name_of(id);
    const auto& ran = f.check.kernels;
    if (std::find(ran.begin(), ran.end(), kernel) == ran.end()) continue;
    VKF_CHECK(write_file(path(kernel + ".spv"), bytes_of(spirv_on(f.device, id))));
  }
  return {};
}

}  // namespace conformance

Status dump_shaders(const Device& device, const std::string& folder) {
  return guarded([&]() -> Status {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return not_found("[" + folder + "] cannot be made; give another folder.");
    for (const KernelId id : conformance::all_kernels()) {
      const std::string path =
          (std::filesystem::path(folder) / (std::string(conformance::name_of(id)) + ".spv"))
              .string();
      const std::vector<uint32_t> words = spirv_on(device, id);
      if (words.empty()) continue;  // omitted from this build
      VKF_CHECK(conformance::write_file(path, conformance::bytes_of(words)));
    }
    return {};
  });
}

}  // namespace vkformer
