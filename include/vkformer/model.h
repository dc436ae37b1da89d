// Model: a Hugging Face model directory, loaded onto a device.
//
// Threading: immutable once loaded; any number of sessions on any threads may share one Model.
// Lifetime: a Model is a shared handle: copies are the same model, which sessions, batches and
// tasks keep alive, as it does its Device. The directory is not needed after load(). A
// BackgroundLoad is move-only and owns its thread; the Model that it gives is independent of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/device.h"
#include "vkformer/device_group.h"
#include "vkformer/export.h"
#include "vkformer/model_source.h"
#include "vkformer/tensor.h"
#include "vkformer/token.h"

namespace vkformer {

class BackgroundLoadState;
class LoadedModel;

// How far loading has come.
struct LoadProgress {
  uint64_t loaded_bytes = 0;  // of weights in device memory
  uint64_t total_bytes = 0;
  // Of those that ModelOptions::first_use asks for; the total is 0 until it is known.
  uint64_t made_pipelines = 0;
  uint64_t total_pipelines = 0;
};

// Sizes of what a session shall run.
struct SessionSizes {
  int64_t batch = 1;    // inputs at once
  int64_t tokens = 32;  // S of each, or of each prompt; pictures and sound have sizes of their own
  int64_t new_tokens = 0;  // of a generation; frames of a second pass (vits); 0: one pass
  int64_t beams = 1;       // 0: all that the model's own settings of a generation say
  CacheFormat cache = CacheFormat::kF32;  // of the session: SessionOptions::cache
  // As Session::run or generate takes them, instead of batch and tokens; values do not matter.
  // Models that read arrays (ModelInfo::source) need them: no number of tokens says their sizes.
  TensorMap inputs;
};

// An adapter of low rank (LoRA, rsLoRA, DoRA): a directory in PEFT's layout, or a GGUF file.
struct AdapterChoice {
  std::string directory;
  float scale = 1.0f;  // multiplies what it adds to the weights; 0 leaves it out
};

// An adapter that requests choose (GenerateOptions::adapters): LoRA or rsLoRA of linear layers,
// in a directory or a GGUF file.
struct RequestAdapter {
  std::string name;  // by which requests call it
  std::string directory;
};

// How weights lie in device memory.
struct ModelOptions {
  // All but kAsStored convert; what is too small for groups of 32 weights is f32 then.
  WeightFormat weights = WeightFormat::kAsStored;
  Precision precision = Precision::kF32;
  // A matrix of more bytes is stored in slices of whole columns; 0: the device's limit alone
  // counts.
  uint64_t most_weight_bytes = 0;
  // The most bytes of weights in device memory, on each device of a group; 0: what has room there.
  // The others lie in host memory: experts first, then the last layers. memory_budget counts both.
  uint64_t device_memory = 0;
  // Copies weights that a pack has as GPUs read them even if the device can read the file's pages.
  bool copy_weights = false;
  // Called from the loading thread after every weight, then while pipelines of first_use are being
  // made; false stops loading with kCancelled.
  std::function<bool(const LoadProgress&)> progress = nullptr;
  // Called from the loading thread before each piece of the weights, of at most a MiB, is copied to
  // device memory; may wait.
  std::function<void(uint64_t bytes)> before_copy = nullptr;
  // Of a BackgroundLoad: these copies go by the budget of frames, which BackgroundLoad::advance
  // hands out; else they go as fast as they can.
  bool paced = false;
  // What the first session will run: its pipelines are made while the weights go up. Other sizes
  // mostly share them. The log says what sizes the model cannot run.
  std::optional<SessionSizes> first_use = std::nullopt;
  // They add up in the weights that they change, which are stored as f32, or as f16 where the
  // model's are. There is no second copy of any in device memory. The model's files stay mapped.
  std::vector<AdapterChoice> adapters = {};
  // Beside the weights, which stay as they are: every sequence of a generation has its own scales
  // of them. Generations alone have adapters; other passes are the model's own.
  std::vector<RequestAdapter> request_adapters = {};
  // Devices that hold the model together, each some of its layers, in place of the one that it is
  // loaded onto. Slices, warm_up, a batch of an encoder-decoder and benchmarks need one device.
  std::optional<DeviceGroup> group = std::nullopt;
  // Called from the loading thread once it is known what each member of the group does, before any
  // weight is read.
  std::function<void(const GroupPlan&)> planned = nullptr;
};

// One tensor of a checkpoint.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::string file;
  std::string packing;  // of blocks, whose dtype is the one of their bytes: "Q4_K"; else empty
};

// What a model directory holds, without a device.
struct ModelInfo {
  std::string family;  // model_type of config.json
  ModelKind kind = ModelKind::kEncoder;
  SourceKind source = SourceKind::kTokens;
  HeadKind head = HeadKind::kNone;
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
  // Of a model that speaks: samples a second of its waveforms, and voices that a speaker_id chooses
  // from; 0: there is one.
  int64_t sampling_rate = 0;
  int64_t speakers = 0;
  // Whether a decoder reads images in its prompts: TextGenerator::generate_with_pictures.
  bool reads_images = false;
  // Tokens that GenerateOptions::decoder_prompt can hold, by name, of models that have such:
  // languages ("<|en|>"), tasks ("transcribe"), "notimestamps".
  std::map<std::string, TokenId> prompt_tokens;
  std::vector<TensorInfo> tensors;
};

// Reads and checks a model directory or a GGUF file: configuration, file structure, every tensor's
// shape.
VKFORMER_API Result<ModelInfo> inspect_model(const std::string& directory);
// The model_type values that can be loaded.
VKFORMER_API std::vector<std::string> model_families();

// What the models of a family can do; each claim is shown by a test.
struct ModelFamilyFacts {
  std::string family;  // model_type of config.json
  ModelKind kind = ModelKind::kEncoder;
  SourceKind source = SourceKind::kTokens;
  std::vector<HeadKind> heads;  // of the models that load
  bool generates = false;       // greedily and with beams
  MapCoverage attention_maps = MapCoverage::kNone;
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
  PassKind pass = PassKind::kForward;
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
  // Bytes that the weights take, on the devices of this process.
  uint64_t weight_bytes() const;
  // Of these, in host memory (ModelOptions::device_memory).
  uint64_t host_weight_bytes() const;
  // Of a model that a group holds: what each member does of it; else without stages.
  GroupPlan group_plan() const;
  // Other scales for the adapters that it was loaded with, in their order. The weights that they
  // change are computed anew from the model's own. They are uploaded in the place of the old ones.
  // Passes after it have the new scales, in all sessions. No session of the model may run at the
  // same time, and a generation that was started must be over. Cached prefixes are of the old
  // scales. After an error the weights are of neither: set scales again.
  Status set_adapter_scales(const std::vector<float>& scales);
  // The plan of a pass in text: tensors, memory offsets, dispatches, barriers, costs.
  Result<std::string> plan_text(const PlanOptions& options) const;

 private:
  friend struct HandleAccess;
  explicit Model(std::shared_ptr<const LoadedModel> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const LoadedModel> impl_;
};

// Loads a model on its own thread. Its functions may be called from any thread.
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
  // Of ModelOptions::paced, once a frame: for how long weights may be copied, by the speed of
  // earlier copies. The loading thread submits them, so an application whose queue is shared gives
  // queue_lock. wait() lets all that is left go.
  void advance(double microseconds);
  // Whether wait() would return at once.
  bool done() const;
  // Asks to stop; wait() then gives kCancelled, unless loading was over already.
  void cancel();
  // The model, or why there is none. Waits; may be called again, and gives the same.
  Result<Model> wait();

 private:
  friend struct HandleAccess;
  explicit BackgroundLoad(std::shared_ptr<BackgroundLoadState> impl);
  std::shared_ptr<BackgroundLoadState> impl_;
};

}  // namespace vkformer
