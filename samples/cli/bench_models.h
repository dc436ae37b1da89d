// Whole models of `vkformer bench`: where they come from and what they are fed.
#pragma once

#include <optional>

#include "bench.h"
#include "model_shapes.h"
#include "vkformer/session.h"

namespace vkformer::cli {

// A shape by name, or a model directory.
struct BenchModel {
  std::string name;
  ModelSource source;
  Json config;
  std::vector<ModelRun> runs;
  CacheFormat cache = CacheFormat::kF32;  // of generations
};
Result<BenchModel> open_bench_model(const std::string& name);
// With the sizes and the cache that the options ask for.
struct ModelBenchOptions;
Result<BenchModel> open_bench_model(const std::string& name, const ModelBenchOptions& options);
// The models that the options name, or every shape.
std::vector<std::string> bench_model_names(const ModelBenchOptions& options);
// Random inputs of that run, from a fixed seed; `decoder` adds decoder_input_ids (B,1) where the
// model is an encoder-decoder.
enum class DecoderInput : uint8_t { kNo, kYes };
Result<TensorMap> bench_inputs(const BenchModel& model, const ModelInfo& info, const ModelRun& run,
                               DecoderInput decoder);
// Settings of a greedy generation of exactly that many tokens.
GenerateOptions fixed_length(const Session& session, int64_t new_tokens);

struct ModelBenchOptions {
  std::vector<std::string> names;  // shapes or directories; empty: every shape
  ModelOptions load;
  CacheFormat cache = CacheFormat::kF32;  // of generations
  int64_t batch = 0;  // with any of these set, one run of these sizes instead of the model's own
  int64_t tokens = 0;
  int64_t new_tokens = 0;
  int rounds = 5;
  bool in_process = false;  // else each model in its own process, for its peak of memory
};
Status add_model_rows(const CommonOptions& common, const Device& device, const Roofline& roofline,
                      const ModelBenchOptions& options, std::vector<BenchRow>& rows);

}  // namespace vkformer::cli
