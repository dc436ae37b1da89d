#include "load/loaded_model.h"

#include <algorithm>

#include "base/message.h"
#include "gguf/gguf_adapter.h"
#include "gguf/gguf_store.h"
#include "load/weight_places.h"
#include "model/family_traits.h"
#include "model/sentence_files.h"
#include "vulkan/memory_left.h"

namespace vkformer {
namespace {

// Of a weight, what is copied at once where somebody watches (ModelOptions::before_copy).
constexpr size_t kMostPiece = size_t{1} << 20;  // bytes

// A weight of fewer bytes is packed before another thread has woken up.
constexpr size_t kSharedWeight = size_t{1} << 20;

// Weights share buffers of about this size; a larger weight has its own buffer.
constexpr uint64_t kChunkBytes = 32ull << 20;

HeadKind head_of_info(const ModelFacts& facts) {
  return facts.sentence.pools() ? HeadKind::kSentence : facts.head;
}

// What blocks of a tensor are called.
std::string packing_name(const TensorView& view) {
  if (view.blocks == nullptr) return {};
  if (view.blocks->coded != nullptr) return view.blocks->coded->name();
  if (view.blocks->ggml) return ggml_type_facts(static_cast<uint32_t>(*view.blocks->ggml))->name;
  return view.blocks->mxfp4 ? "MXFP4" : format_name(view.blocks->format);
}

ModelInfo info_of(const ModelFamily& family, const Checkpoint& checkpoint) {
  const ModelFacts& f = family.facts();
  ModelInfo info{.family = f.family,
                 .kind = f.kind,
                 .source = f.source,
                 .head = head_of_info(f),
                 .labels = f.labels,
                 .architecture = f.architecture,
                 .width = f.width,
                 .encoder_layers = f.encoder_layers,
                 .decoder_layers = f.decoder_layers,
                 .encoder_heads = f.encoder_heads,
                 .decoder_heads = f.decoder_heads,
                 .source_vocab = f.source_vocab,
                 .target_vocab = f.target_vocab,
                 .max_source = f.max_source,
                 .max_target = f.max_target,
                 .sampling_rate = f.sampling_rate,
                 .speakers = f.speakers,
                 .reads_images = f.images.kind != ImagePromptFacts::Kind::kNone,
                 .prompt_tokens = family.generation().prompt_tokens};
  for (const std::string& name : checkpoint.names()) {
    const TensorView& view = *checkpoint.find(name);
    info.parameters += element_count(view.shape);
    info.tensors.push_back(
        {name, view.dtype, view.shape, checkpoint.file_of(name), packing_name(view)});
  }
  return info;
}

// What one binding of the device holds, or less where the caller wants that.
uint64_t most_weight_bytes(const DeviceCaps& caps, const ModelOptions& options) {
  const uint64_t most = caps.limits.max_storage_range;
  return options.most_weight_bytes > 0 ? std::min(most, options.most_weight_bytes) : most;
}

// The family's rows, and those of sentence-transformers' modules, whose tensors are added.
Result<WeightTable> weight_table_of(ModelFamily& family, const FileStore& files,
                                    Checkpoint& checkpoint) {
  VKF_CHECK(family.prepare(checkpoint));
  VKF_ASSIGN(WeightTable table, family.weight_table(checkpoint));
  VKF_CHECK(add_sentence_tensors(files, family.facts().sentence, checkpoint));
  add_sentence_rows(family.facts().sentence, table);
  return table;
}

// The adapters that requests choose from, opened.
Result<std::vector<NamedAdapter>> open_request_adapters(
    const FileStore& model, const std::vector<RequestAdapter>& choices) {
  std::vector<NamedAdapter> adapters;
  for (const RequestAdapter& choice : choices) {
    if (choice.name.empty()) {
      return invalid_argument(message({"[request_adapters] The adapter in ", choice.directory,
                                       " has no name; give it one, by which requests call it."}));
    }
    for (const NamedAdapter& other : adapters) {
      if (other.name != choice.name) continue;
      return invalid_argument(message({"[request_adapters] Two adapters are called '", choice.name,
                                       "'; give each its own name."}));
    }
    VKF_ASSIGN(AdapterFiles files,
               open_adapter_for(model, *make_adapter_store(model, choice.directory)));
    if (files.modules.empty() && files.replaced.empty()) {
      return invalid_file(message({"The adapter ", files.label, " changes nothing: it is empty."}));
    }
    adapters.push_back({choice.name, std::make_shared<const AdapterFiles>(std::move(files))});
  }
  return adapters;
}

// A pack may omit tensors only if it has the weights that they make.
Status check_has_values(const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.names()) {
    if (checkpoint.has_values(name)) continue;
    return invalid_file(message({"The packed model has the tensor [", name, "] of ",
                                 checkpoint.file_of(name), " neither as it was nor as GPUs read ",
                                 "it (", kDeviceWeightsIndex, "). Pack the model again."}));
  }
  return {};
}

// Weights that lie in the files as GPUs read them are what they are.
Status check_packed_options(const FileStore& files, const ModelOptions& options) {
  if (options.weights != WeightFormat::kAsStored) {
    return check_stores_values(files, message({"[weights] ", choice_name(options.weights)}));
  }
  if (!options.adapters.empty() || !options.request_adapters.empty()) {
    return check_stores_values(files, "[adapters] merging or adding an adapter");
  }
  if (options.most_weight_bytes > 0 && options.most_weight_bytes < kDeviceWeightsSlice) {
    return check_stores_values(files, "[most_weight_bytes] a smaller slice");
  }
  return {};
}

// Builds a prompt and a step with adapters, which says what they cannot be added to.
Status check_request_adapters(const ModelFamily& family, const std::vector<PackedWeight>& weights) {
  const ModelFacts& facts = family.facts();
  const bool reads_tokens =
      facts.kind != ModelKind::kEncoderDecoder || facts.source == SourceKind::kTokens;
  if (facts.slots != ModelFacts::Slots::kYes || facts.head != HeadKind::kLanguage ||
      !reads_tokens || facts.images.kind != ImagePromptFacts::Kind::kNone) {
    return unsupported(message(
        {"[request_adapters] a ", facts.architecture,
         " does not generate from tokens alone by a decoder with a cache, which adapters of "
         "requests need; load them merged (ModelOptions::adapters, --adapter)."}));
  }
  StepShape shape{.batch = 1, .beams = 1, .source = 1};
  shape.capacity = std::min<int64_t>(16, facts.max_target);
  shape.prompt = std::min<int64_t>(8, shape.capacity);
  Graph prompt, step;
  ModelBuilder prompt_builder(prompt, weights), step_builder(step, weights);
  prompt_builder.use_adapters(1, 1);
  step_builder.use_adapters(1, 1);
  const Status prompts = family.build_prompt(prompt_builder, shape);
  const Result<StepResult> step_built = family.build_step(step_builder, shape);
  // Sizes that a family does not have are refused where it is run.
  if (!prompts && prompts.error().code == ErrorCode::kUnsupported) return prompts;
  if (!step_built && step_built.error().code == ErrorCode::kUnsupported) return step_built.error();
  return {};
}

}  // namespace

WeightLayoutPlan plan_chunks(const VulkanDevice& device, const ModelWeights& read,
                             const std::vector<bool>& held) {
  constexpr uint32_t kNone = ~0u;
  const std::vector<PackedWeight>& weights = read.weights;
  const uint64_t align = std::max<uint64_t>(256, device.caps().limits.storage_alignment);
  const std::vector<bool> host = weights_in_host_memory(
      weights, held, read.device_memory > 0 ? read.device_memory : weight_room(device));
  WeightLayoutPlan layout;
  std::vector<bool> copied = held.empty() ? std::vector<bool>(weights.size(), true) : held;
  if (read.packed && !read.copy_weights) {
    // A GPU reads device memory apart from the host more quickly than the host's pages.
    const bool shared = shares_host_memory(device);
    std::vector<bool> mapped(weights.size());
    for (size_t i = 0; i < weights.size(); ++i) mapped[i] = copied[i] && (shared || host[i]);
    layout.runs = read.packed->page_runs(mapped, device.import_alignment(), kChunkBytes);
    for (const PageRun& run : layout.runs) {
      std::fill(copied.begin() + static_cast<ptrdiff_t>(run.first),
                copied.begin() + static_cast<ptrdiff_t>(run.end), false);
    }
  }
  uint32_t open[] = {kNone, kNone};  // chunks on the device and on the host that are not full
  for (size_t i = 0; i < weights.size(); ++i) {
    const uint64_t own = copied[i] ? weights[i].bytes : 0;
    const uint64_t bytes = (own + align - 1) / align * align;
    uint32_t& chunk = open[host[i] ? 1 : 0];
    if (bytes > 0 && (chunk == kNone || layout.chunks[chunk] + bytes > kChunkBytes)) {
      chunk = static_cast<uint32_t>(layout.chunks.size());
      layout.chunks.push_back(0);
      layout.uses.push_back(host[i] ? MemoryUse::kHost : MemoryUse::kDevice);
    }
    const bool any = chunk != kNone;
    layout.offsets.push_back(any ? layout.chunks[chunk] : 0);
    layout.chunk_of.push_back(any ? chunk : 0);
    if (any) layout.chunks[chunk] += bytes;
  }
  return layout;
}

Result<ModelWeights> read_model_weights(const DeviceCaps& caps, const FileStore& files,
                                        const ModelOptions& options, int64_t parts) {
  ModelWeights model;
  model.precision = options.precision;
  model.device_memory = options.device_memory;
  model.copy_weights = options.copy_weights;
  VKF_ASSIGN(model.family, load_family(files));
  VKF_ASSIGN(model.checkpoint, Checkpoint::open_store(files));
  model.checkpoint->record_reads(model.reads);
  VKF_ASSIGN(WeightTable table, weight_table_of(*model.family, files, *model.checkpoint));
  const bool packed = files.has(kDeviceWeightsIndex);
  VKF_CHECK(packed ? check_packed_options(files, options) : check_has_values(*model.checkpoint));
  VKF_ASSIGN(model.adapters, open_adapters(files, options.adapters));
  VKF_CHECK(merge_adapters(table, model.adapters, *model.checkpoint));
  if (!options.request_adapters.empty() && options.group) {
    return unsupported(
        "[request_adapters] the layers of this model lie on several devices, where adapters are "
        "merged (ModelOptions::adapters, --adapter); or load it onto one device.");
  }
  VKF_ASSIGN(const std::vector<NamedAdapter> named,
             open_request_adapters(files, options.request_adapters));
  VKF_CHECK(add_request_adapters(named, *model.checkpoint, table));
  for (const NamedAdapter& adapter : named) model.request_adapters.push_back(adapter.name);
  if (parts > 1) {
    if (packed) VKF_CHECK(check_stores_values(files, "[group] dividing its layers among devices"));
    VKF_CHECK(model.family->divide(parts, table));
  }
  const uint64_t most = packed ? kDeviceWeightsSlice : most_weight_bytes(caps, options);
  VKF_ASSIGN(model.weights, resolve_weights(table, *model.checkpoint, options.weights, most));
  if (packed) {
    VKF_ASSIGN(model.packed, DeviceWeights::open(files, model.weights));
  }
  if (!named.empty()) VKF_CHECK(check_request_adapters(*model.family, model.weights));
  if (!model.adapters.empty()) model.table = std::move(table);
  return model;
}

Result<std::shared_ptr<LoadedModel>> LoadedModel::create(std::shared_ptr<VulkanDevice> device,
                                                         ModelWeights& read) {
  std::shared_ptr<LoadedModel> model(new LoadedModel());
  model->device_ = std::move(device);
  model->precision_ = read.precision;
  model->info_ = info_of(*read.family, *read.checkpoint);
  model->family_ = std::move(read.family);
  model->request_adapters_ = std::move(read.request_adapters);
  VKF_CHECK(model->make_chunks(read, {}));
  model->weights_ = std::move(read.weights);
  return model;
}

Result<std::shared_ptr<LoadedModel>> LoadedModel::create_split(ModelSplit split,
                                                               ModelWeights& read) {
  std::shared_ptr<LoadedModel> model(new LoadedModel());
  model->precision_ = read.precision;
  model->info_ = info_of(*read.family, *read.checkpoint);
  model->family_ = std::move(read.family);
  const std::vector<GroupMember>& members = split.group->members;
  split.parts.resize(members.size());
  for (size_t m = 0; m < members.size(); ++m) {
    if (!members[m].device) continue;
    if (!model->device_) model->device_ = members[m].device;
    if (split.plan.stages[m].first.empty()) continue;
    std::shared_ptr<LoadedModel>& part = split.parts[m];
    part.reset(new LoadedModel());
    part->device_ = members[m].device;
    part->precision_ = read.precision;
    VKF_CHECK(part->make_chunks(read, split.held[m]));
    part->weights_ = read.weights;
    model->weight_bytes_ += part->weight_bytes_;
    model->host_weight_bytes_ += part->host_weight_bytes_;
  }
  model->weights_ = std::move(read.weights);
  model->spans_.resize(model->weights_.size());
  model->split_ = std::make_unique<ModelSplit>(std::move(split));
  return model;
}

Status LoadedModel::make_chunks(ModelWeights& read, const std::vector<bool>& held) {
  WeightLayoutPlan layout = plan_chunks(*device_, read, held);
  std::vector<Buffer> pages;
  if (!layout.runs.empty()) pages = import_runs(layout.runs, *read.packed);
  if (pages.size() < layout.runs.size()) {
    read.copy_weights = true;
    layout = plan_chunks(*device_, read, held);
  }
  for (size_t i = 0; i < layout.chunks.size(); ++i) {
    const uint64_t size = layout.chunks[i];
    VKF_ASSIGN(Buffer chunk, device_->make_buffer(size, layout.uses[i], "weights"));
    chunks_.push_back(std::move(chunk));
    weight_bytes_ += size;
    if (layout.uses[i] == MemoryUse::kHost) host_weight_bytes_ += size;
  }
  if (read.device_memory == 0 && host_weight_bytes_ > 0) {
    device_->say(
        LogLevel::kWarning,
        message({"[load] ", host_weight_bytes_, " of ", weight_bytes_,
                 " bytes of weights lie in host memory, which the GPU reads over its bus, since "
                 "device memory has no room for them; choose smaller weights "
                 "(ModelOptions::weights, --weights) to have all of them there."}));
  }
  const std::vector<PackedWeight>& weights = read.weights;
  const size_t first_run = chunks_.size();
  for (Buffer& buffer : pages) chunks_.push_back(std::move(buffer));
  chunk_of_ = layout.chunk_of;
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool own = held.empty() || held[i];
    spans_.push_back(own ? BufferSpan{&chunks_[chunk_of_[i]], layout.offsets[i], weights[i].bytes}
                         : BufferSpan{});
  }
  in_pages_.resize(weights.size());
  uint64_t page_bytes = 0;
  for (size_t r = 0; r < layout.runs.size(); ++r) {
    const PageRun& run = layout.runs[r];
    for (size_t i = run.first; i < run.end; ++i) {
      const auto offset = static_cast<uint64_t>(read.packed->bytes_of(i).data() - run.pages.data());
      chunk_of_[i] = static_cast<uint32_t>(first_run + r);
      spans_[i] = {&chunks_[chunk_of_[i]], offset, weights[i].bytes};
      in_pages_[i] = true;
      page_bytes += weights[i].bytes;
    }
  }
  weight_bytes_ += page_bytes;
  host_weight_bytes_ += page_bytes;
  if (page_bytes > 0) {
    device_->say(LogLevel::kInfo,
                 message({"[load] ", page_bytes, " of ", weight_bytes_, " bytes of weights are in ",
                          "the file [", read.packed->file()->path(),
                          "], where the device reads them; nobody may write to it meanwhile."}));
  }
  return {};
}

std::vector<Buffer> LoadedModel::import_runs(const std::vector<PageRun>& runs,
                                             const DeviceWeights& packed) {
  std::vector<Buffer> buffers;
  for (const PageRun& run : runs) {
    std::optional<Buffer> buffer = device_->import_pages(run.pages, packed.file(), "weights");
    if (!buffer) {
      device_->say(
          LogLevel::kInfo,
          message({"[load] The driver does not take the pages of the file [", packed.file()->path(),
                   "] as device memory, so the weights are copied."}));
      return {};
    }
    buffers.push_back(std::move(*buffer));
  }
  return buffers;
}

Result<std::vector<ScaledAdapter>> open_adapters(const FileStore& model,
                                                 const std::vector<AdapterChoice>& choices) {
  std::vector<ScaledAdapter> adapters;
  for (const StoredAdapter& stored : model.adapters()) {
    VKF_ASSIGN(AdapterFiles files, open_adapter_for(model, *stored.files));
    adapters.push_back({std::make_shared<const AdapterFiles>(std::move(files)), stored.scale});
  }
  for (const AdapterChoice& choice : choices) {
    VKF_ASSIGN(AdapterFiles files,
               open_adapter_for(model, *make_adapter_store(model, choice.directory)));
    adapters.push_back({std::make_shared<const AdapterFiles>(std::move(files)), choice.scale});
  }
  return adapters;
}

void LoadedModel::keep_adapters(ModelWeights& read) {
  if (read.adapters.empty()) return;
  adapters_ = std::make_unique<Adapters>();
  adapters_->checkpoint = std::move(read.checkpoint);
  adapters_->adapters = std::move(read.adapters);
  adapters_->table = std::move(read.table);
}

Status LoadedModel::set_adapter_scales(const std::vector<float>& scales) const {
  if (split_) {
    return unsupported(
        "[set_adapter_scales] the layers of this model lie on several devices, where scales stay "
        "as they were loaded; load it anew with other scales, or onto one device");
  }
  const size_t count = adapters_ == nullptr ? 0 : adapters_->adapters.size();
  if (scales.size() != count) {
    return invalid_argument(message({"[set_adapter_scales] got ", scales.size(),
                                     " scales, but the model was loaded with ", count,
                                     " adapters; give one for each."}));
  }
  if (count == 0) return {};
  const std::lock_guard<std::mutex> lock(adapters_->changing);
  std::vector<ScaledAdapter> scaled = adapters_->adapters;
  for (size_t i = 0; i < count; ++i) scaled[i].scale = scales[i];
  Checkpoint& checkpoint = *adapters_->checkpoint;
  VKF_ASSIGN(const std::set<std::string> changed,
             merge_adapters(adapters_->table, scaled, checkpoint));
  adapters_->adapters = std::move(scaled);
  std::vector<std::byte> packed;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const WeightRow& row = weights_[i].row;
    const auto is_changed = [&](const std::string& name) { return changed.count(name) != 0; };
    if (std::any_of(row.sources.begin(), row.sources.end(), is_changed) ||
        std::any_of(row.biases.begin(), row.biases.end(), is_changed)) {
      VKF_CHECK(upload_weight(i, checkpoint, packed, nullptr));
    }
  }
  return {};
}

Status LoadedModel::upload_weight(size_t index, const Checkpoint& checkpoint,
                                  std::vector<std::byte>& packed,
                                  const std::function<void(uint64_t bytes)>& before_copy) const {
  packed.resize(weights_[index].bytes);
  // Who copies in portions does so beside frames, whose cores are the host's.
  const bool alone = before_copy || packed.size() < kSharedWeight;
  const Helpers helpers = alone ? Helpers{} : device_->helpers();
  VKF_CHECK(pack_weight(weights_[index], checkpoint, packed, helpers));
  return copy_weight(index, packed, before_copy);
}

Status LoadedModel::copy_weight(size_t index, std::span<const std::byte> bytes,
                                const std::function<void(uint64_t bytes)>& before_copy) const {
  const size_t piece = before_copy ? kMostPiece : bytes.size();
  for (size_t at = 0; at < bytes.size(); at += piece) {
    const auto part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    if (before_copy) before_copy(part.size());
    VKF_CHECK(device_->upload(chunks_[chunk_of_[index]], spans_[index].offset + at, part));
  }
  return {};
}

Status LoadedModel::upload_own(const ModelWeights& read, const ModelOptions& options,
                               uint64_t& done, uint64_t total) {
  std::vector<std::byte> packed;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (spans_[i].buffer == nullptr) continue;
    if (!in_pages_[i]) {
      VKF_CHECK(read.packed ? copy_weight(i, read.packed->bytes_of(i), options.before_copy)
                            : upload_weight(i, *read.checkpoint, packed, options.before_copy));
    }
    done += weights_[i].bytes;
    if (!options.progress || options.progress({done, total})) continue;
    return cancelled(
        message({"[load] was cancelled after ", done, " of ", total, " bytes of weights"}));
  }
  return {};
}

Status LoadedModel::upload(const ModelWeights& read, const ModelOptions& options) {
  uint64_t done = 0;
  if (!split_) return upload_own(read, options, done, weight_bytes_);
  for (const std::shared_ptr<LoadedModel>& part : split_->parts) {
    if (part) VKF_CHECK(part->upload_own(read, options, done, weight_bytes_));
  }
  return {};
}

Result<ModelInfo> read_model_info(const std::string& directory) {
  const auto files = make_model_store(directory);
  VKF_ASSIGN(std::unique_ptr<ModelFamily> family, load_family(*files));
  VKF_ASSIGN(Checkpoint checkpoint, Checkpoint::open_store(*files));
  VKF_ASSIGN(const WeightTable table, weight_table_of(*family, *files, checkpoint));
  VKF_CHECK(resolve_weights(table, checkpoint, WeightFormat::kAsStored));
  return info_of(*family, checkpoint);
}

}  // namespace vkformer
