// Fuzz target: config.json of every family. The first line of the input names the golden case whose
// weights lie beside it; the rest is the configuration. What loads is planned, too: its weights,
// and the graphs of a small pass and of a prompt, with their dispatches and memory.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "model/model.h"
#include "ops/op.h"

namespace {

using namespace vkformer;

// The weights of every golden case, by its name.
const std::map<std::string, MappedFile, std::less<>>& golden_weights() {
  static const auto kWeights = [] {
    std::map<std::string, MappedFile, std::less<>> found;
    const std::string folder = std::string(VKFORMER_SOURCE_DIR) + "/tests/golden";
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      auto file = MappedFile::open(entry.path().string() + "/model/model.safetensors");
      if (file) found.emplace(entry.path().filename().string(), std::move(file).value());
    }
    return found;
  }();
  return kWeights;
}

void plan_passes(const ModelFamily& family, const std::vector<PackedWeight>& weights) {
  const DeviceCaps caps;
  const ModelFacts& facts = family.facts();
  if (facts.source == SourceKind::kArrays || facts.encoder_layers + facts.decoder_layers > 64)
    return;
  ForwardShape shape{.batch = 2, .source = 7};
  shape.target = facts.kind == ModelKind::kEncoder ? 0 : 5;
  shape.height = facts.grid.height > 0 ? facts.grid.height : 32;
  shape.width = facts.grid.width > 0 ? facts.grid.width : 32;
  Graph forward;
  ModelBuilder forward_builder(forward, weights);
  if (family.build_forward(forward_builder, shape, {}).ok()) {
    (void)make_plan(forward, caps, Precision::kF32);
  }
  StepShape step{.batch = 2, .beams = 1, .source = 7, .capacity = 16, .prompt = 4};
  step.height = shape.height;
  step.width = shape.width;
  Graph prompt;
  ModelBuilder prompt_builder(prompt, weights);
  if (family.build_prompt(prompt_builder, step).ok()) {
    (void)make_plan(prompt, caps, Precision::kF32);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\n');
  if (cut == input.npos) return 0;
  const auto weights = golden_weights().find(input.substr(0, cut));
  MemoryFiles files;
  files["config.json"] = std::as_bytes(std::span(data, size).subspan(cut + 1));
  if (weights != golden_weights().end()) files["model.safetensors"] = weights->second.bytes();
  const auto store = make_memory_store(std::move(files), "fuzz");
  const auto family = load_family(*store);
  if (!family.ok()) return 0;
  const auto checkpoint = Checkpoint::open_store(*store);
  if (!checkpoint.ok() || !(*family)->prepare(*checkpoint).ok()) return 0;
  const auto table = (*family)->weight_table(*checkpoint);
  if (!table.ok()) return 0;
  const auto resolved = resolve_weights(*table, *checkpoint, WeightFormat::kAsStored);
  if (resolved.ok()) plan_passes(**family, *resolved);
  return 0;
}
