// Examples of where models come from, and of writing them.
#include <vkformer/model.h>
#include <vkformer/model_pack.h>
#include <vkformer/model_source.h>
#include <vkformer/quantize.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "examples.h"

using vkformer::ModelSource;

namespace {

vkformer::Status show_memory(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::vector<std::byte> config = read_file(setting.models + "/shakespeare/config.json");
  const std::vector<std::byte> weights =
      read_file(setting.models + "/shakespeare/model.safetensors");
  //! [ModelSource::memory Model::load_from]
  // Loads a model from files in memory.
  const auto source = ModelSource::memory({{"config.json", config}, {"model.safetensors", weights}},
                                          "archive/shakespeare");
  const auto model = vkformer::Model::load_from(device, source);
  if (!model) return model.error();
  std::printf("%s from memory\n", model->info().family.c_str());
  //! [end]
  return {};
}

vkformer::Status show_reader(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string folder = setting.models + "/shakespeare/";
  //! [ModelSource::reader]
  // Lets vkformer read a model's files through functions of the application.
  vkformer::FileReader reader;
  reader.size = [folder](const std::string& name) -> std::optional<uint64_t> {
    std::error_code error;
    const auto size = std::filesystem::file_size(folder + name, error);
    return error ? std::nullopt : std::optional<uint64_t>(size);
  };
  reader.read = [folder](const std::string& name, uint64_t offset, std::span<std::byte> out) {
    std::ifstream file(folder + name, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return file.good();
  };
  const auto model = vkformer::Model::load_from(device, ModelSource::reader(reader, "assets"));
  if (!model) return model.error();
  //! [end]
  return {};
}

vkformer::Status show_writing(const Setting& setting) {
  const std::string directory = setting.models + "/shakespeare";
  const std::string target = setting.scratch + "/quantized";
  //! [ModelSource::directory quantize_model]
  // Writes a copy of a model with matrices in 8 bits, which loads as the model did.
  const auto report = vkformer::quantize_model(directory, target);
  if (!report) return report.error();
  std::printf("%llu bytes became %llu\n", static_cast<unsigned long long>(report->bytes_before),
              static_cast<unsigned long long>(report->bytes_after));
  const auto source = ModelSource::directory(target);
  //! [end]

  const std::string llama = setting.goldens + "/llama-gqa/model";
  const std::string gguf = setting.scratch + "/model.gguf";
  //! [write_gguf]
  // Writes a Llama as a GGUF file with matrices in half precision.
  vkformer::GgufOptions options;
  options.weights = vkformer::WeightFormat::kF16;
  const auto written = vkformer::write_gguf(llama, gguf, options);
  if (!written) return written.error();
  //! [end]
  const auto model = vkformer::Model::load_from(setting.device, source);
  if (!model) return model.error();
  return expect(report->bytes_after < report->bytes_before && written->matrices > 0,
                "smaller matrices");
}

vkformer::Status show_packs(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string directory = setting.models + "/shakespeare";
  const std::string pack = setting.scratch + "/model.vkfpack";
  //! [pack_model read_pack_info ModelSource::pack]
  // Packs a model into one file, lists what is in it, and loads it from there.
  const auto packed = vkformer::pack_model(directory, pack);
  if (!packed) return packed.error();
  const auto info = vkformer::read_pack_info(pack);
  if (!info) return info.error();
  for (const vkformer::PackInfo::File& file : info->files) std::puts(file.name.c_str());
  const auto model = vkformer::Model::load_from(device, ModelSource::pack(pack));
  if (!model) return model.error();
  //! [end]
  return expect(packed->sha256 == info->sha256, "the pack that was written");
}

vkformer::Status show_adapters(const Setting& setting) {
  const vkformer::Device& device = setting.device;
  const std::string base = setting.goldens + "/adapter-gpt2/base";
  const std::string adapter = setting.goldens + "/adapter-gpt2/adapter";
  //! [Model::set_adapter_scales]
  // Loads a model with a LoRA adapter, then gives the adapter half of its weight.
  vkformer::ModelOptions options;
  options.adapters = {{adapter}};
  auto model = vkformer::Model::load(device, base, options);
  if (!model) return model.error();
  const auto scaled = model->set_adapter_scales({0.5F});
  if (!scaled) return scaled.error();
  //! [end]
  return {};
}

}  // namespace

vkformer::Status show_sources(const Setting& setting) {
  for (const auto show : {show_memory, show_reader, show_writing, show_packs, show_adapters}) {
    const auto shown = show(setting);
    if (!shown) return shown;
  }
  return {};
}
