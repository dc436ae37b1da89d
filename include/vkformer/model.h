// Model: a Hugging Face model directory, loaded onto a device.
//
// Threading: immutable once loaded; any number of sessions on any threads may share one Model.
// Lifetime: a Model is a shared handle and keeps its Device alive. The directory is not needed
// after load().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/model_source.h"
#include "vkformer/tensor.h"

namespace vkformer {

class LoadedModel;

// How far loading has come.
struct LoadProgress {
  uint64_t loaded_bytes = 0;  // of weights in device memory
  uint64_t total_bytes = 0;
};

// Sizes of what a session shall run.
struct SessionSizes {
  int64_t batch = 1;    // inputs at once
  int64_t tokens = 32;  // S of each, or of each prompt; pictures and sound have sizes of their own
  int64_t new_tokens = 0;     // of a generation; 0: a forward pass
  int64_t beams = 1;          // 0: all that the model's own settings of a generation say
  std::string cache = "f32";  // of the session: SessionOptions::cache
  // As Session::run or generate takes them, instead of batch and tokens; values do not matter.
  // Models that read arrays (ModelInfo::source) need them, for no number of tokens says their
  // sizes.
  TensorMap inputs;
};

// How weights lie in device memory.
struct ModelOptions {
  // "stored": f16 and quantised tensors stay so (widened in the shader), f32 and bf16 become f32.
  // "f32", "f16", "bf16", "q8", "q4" (32 weights share a scale) and "q4m" (and a minimum) convert;
  // what is too small for blocks of 32 is f32 then.
  std::string weights = "stored";
  // Arithmetic: "f32", or "f16" to multiply in half precision where the device's tier has it.
  // Sums are f32 in both.
  std::string precision = "f32";
  // A matrix of more bytes is stored in slices of whole columns, as is one that the device cannot
  // bind at once; 0: no limit but the device's. For hosts that cap the size of a buffer.
  uint64_t most_weight_bytes = 0;
  // Called from the loading thread after every weight; false stops loading with kCancelled.
  std::function<bool(const LoadProgress&)> progress = nullptr;
  // What the first session will run: its pipelines are made while the weights go up, and are there
  // when load returns. Other sizes mostly share them. Of sizes that the model cannot run the log
  // says so.
  std::optional<SessionSizes> first_use = std::nullopt;
};

// One tensor of a checkpoint.
struct TensorInfo {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string file;
};

// What a model directory holds, without a device.
struct ModelInfo {
  std::string family;  // model_type of config.json
  std::string kind;    // "encoder", "decoder" or "encoder-decoder"
  std::string source;  // what it reads: "tokens", "pictures" or "features" of sound
  // What its head is for: "none", "language", "masked", "sequence", "tokens", "spans",
  // "discriminator"; "sentence" where sentence-transformers' files say so.
  std::string head;
  std::vector<std::string> labels;  // classes of a classifying head
  std::string architecture;         // class it was saved from
  int64_t parameters = 0;           // elements in all tensors
  int64_t width = 0;                // D
  int64_t encoder_layers = 0;
  int64_t decoder_layers = 0;
  int64_t encoder_heads = 0;
  int64_t decoder_heads = 0;
  int64_t source_vocab = 0;
  int64_t target_vocab = 0;
  int64_t max_source = 0;  // tokens
  int64_t max_target = 0;  // tokens
  // Tokens that GenerateOptions::decoder_prompt can hold, by name, of models that have such:
  // languages ("<|en|>"), tasks ("transcribe"), "notimestamps".
  std::map<std::string, int64_t> prompt_tokens;
  std::vector<TensorInfo> tensors;
};

// Reads and checks a model directory: configuration, file structure, every tensor's shape.
VKFORMER_API Result<ModelInfo> inspect_model(const std::string& directory);
// The model_type values that can be loaded.
VKFORMER_API std::vector<std::string> model_families();

// What the models of a family can do; each claim is shown by a test.
struct ModelFamilyFacts {
  std::string family;              // model_type of config.json
  std::string kind;                // as ModelInfo::kind
  std::string source;              // as ModelInfo::source
  std::vector<std::string> heads;  // as ModelInfo::head, of the models that load
  bool generates = false;          // greedily and with beams
  std::string attention_maps;      // "layers", "stages" (one per stage) or "none"
  // The usual tokenizer.json's model, and where it reads more than text, what makes its inputs:
  // "Unigram", "log-mel features; BPE", "pictures".
  std::string inputs;
};
VKFORMER_API std::vector<ModelFamilyFacts> model_family_facts();

// Sizes to plan for.
struct PlanOptions {
  int64_t batch = 1;
  int64_t source = 32;  // S, tokens
  int64_t target = 32;  // T, tokens of the decoder; also the capacity of a decoding step
  int64_t beams = 1;
  // Which pass: "forward", "prompt" (what a generation does before its first step: the encoder, the
  // prompt) or "step" (one decoding step).
  std::string pass = "forward";
};

// Device memory, in bytes.
struct MemoryNeeds {
  uint64_t weights = 0;
  uint64_t arena = 0;    // activations, of all passes together
  uint64_t cache = 0;    // keys, values and states that a generation carries on
  uint64_t tensors = 0;  // inputs, outputs, masks, tables, the state of a search
  uint64_t staging = 0;  // where the host cannot see device memory
  uint64_t total = 0;
  // The largest sum of activations that are needed at one time: no arena could be smaller.
  uint64_t arena_bound = 0;
};

// What a model and one session that runs that much will hold, without loading it: what
// Device::memory_in_use then grows by.
VKFORMER_API Result<MemoryNeeds> memory_needs(const Device& device, const ModelSource& source,
                                              const ModelOptions& options,
                                              const SessionSizes& sizes);

class VKFORMER_API Model {
 public:
  // Loads config.json, weights (safetensors, sharded or not) and generation settings.
  static Result<Model> load(const Device& device, const std::string& directory,
                            const ModelOptions& options = {});

  // The same from memory or the host's own files.
  static Result<Model> load_from(const Device& device, const ModelSource& source,
                                 const ModelOptions& options = {});

  const ModelInfo& info() const;
  // Bytes of device memory that the weights take.
  uint64_t weight_bytes() const;
  // The plan of a pass in text: tensors, memory offsets, dispatches, barriers, costs.
  Result<std::string> plan_text(const PlanOptions& options) const;

  // For the library's own rooms.
  explicit Model(std::shared_ptr<const LoadedModel> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const LoadedModel>& impl() const { return impl_; }

 private:
  std::shared_ptr<const LoadedModel> impl_;
};

// Loads a model on a thread of its own. Its functions may be called from any thread.
class VKFORMER_API BackgroundLoad {
 public:
  // Starts at once; `options.progress` is called from that thread. If the thread cannot be started,
  // the loading is done, and wait() says why.
  static BackgroundLoad start(const Device& device, const ModelSource& source,
                              const ModelOptions& options = {});
  BackgroundLoad(BackgroundLoad&&) noexcept;
  BackgroundLoad& operator=(BackgroundLoad&&) noexcept;
  // Cancels and waits.
  ~BackgroundLoad();

  LoadProgress progress() const;
  // Whether wait() would return at once.
  bool done() const;
  // Asks to stop; wait() then gives kCancelled, unless loading was over already.
  void cancel();
  // The model, or why there is none. Waits; may be called again, and gives the same.
  Result<Model> wait();

 private:
  struct State;
  explicit BackgroundLoad(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace vkformer
