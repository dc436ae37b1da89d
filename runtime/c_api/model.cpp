#include "vkformer/model.h"
#include "c_api/support.h"
#include "vkformer/tasks.h"

struct vkf_families {
  std::vector<vkformer::ModelFamilyFacts> facts;
  std::vector<std::vector<const char*>> heads;
};

struct vkf_load {
  vkformer::BackgroundLoad load;
};

namespace vkformer {

SessionSizes session_sizes(const vkf_session_sizes* sizes) {
  const vkf_session_sizes given = read_struct(sizes, "session sizes");
  SessionSizes read;
  if (given.batch != 0) read.batch = given.batch;
  if (given.tokens != 0) read.tokens = given.tokens;
  if (given.beams != 0) read.beams = given.beams == -1 ? 0 : given.beams;
  read.new_tokens = given.new_tokens;
  if (given.inputs != nullptr) read.inputs = given.inputs->map;
  return read;
}

namespace {

// Names, which are static.
template <class Choice>
std::vector<const char*> names_of(const std::vector<Choice>& values) {
  std::vector<const char*> names;
  for (const Choice value : values) names.push_back(choice_name(value));
  return names;
}

PlanOptions plan_options(const vkf_plan_options* options) {
  const vkf_plan_options given = read_struct(options, "plan options");
  PlanOptions made;
  if (given.batch != 0) made.batch = given.batch;
  if (given.source != 0) made.source = given.source;
  if (given.target != 0) made.target = given.target;
  if (given.beams != 0) made.beams = given.beams;
  made.pass = choice_or(given.pass, PassKind::kForward);
  return made;
}

}  // namespace

ModelOptions model_options(const vkf_model_options* options) {
  const vkf_model_options given = read_struct(options, "model options");
  ModelOptions made;
  made.weights = choice_or(given.weights, WeightFormat::kAsStored);
  made.precision = choice_or(given.precision, Precision::kF32);
  made.most_weight_bytes = given.most_weight_bytes;
  made.device_memory = given.device_memory;
  if (given.progress != nullptr) {
    made.progress = [call = given.progress, data = given.progress_data](const LoadProgress& p) {
      return call(data, p.loaded_bytes, p.total_bytes) != 0;
    };
  }
  made.paced = given.paced != 0;
  made.copy_weights = given.copy_weights != 0;
  if (given.first_use != nullptr) made.first_use = session_sizes(given.first_use);
  made.adapters = adapters_of(given);
  for (size_t i = 0; i < given.request_adapter_count; ++i) {
    need_all({{given.request_adapters, "request_adapters"},
              {given.request_adapter_names, "request_adapter_names"}});
    need_all({{given.request_adapters[i], "request_adapters"},
              {given.request_adapter_names[i], "request_adapter_names"}});
    made.request_adapters.push_back({given.request_adapter_names[i], given.request_adapters[i]});
  }
  if (given.group != nullptr) made.group = given.group->group;
  return made;
}

std::unique_ptr<vkf_description> describe(const ModelInfo& info) {
  auto self = std::make_unique<vkf_description>(vkf_description{info, {}, {}});
  self->label_pointers = pointers_to(self->info.labels);
  self->task_pointers = names_of(model_tasks(info));
  return self;
}

}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_describe_directory(const char* path, vkf_description** description,
                                  vkf_error* error) {
  return make_handle(description, error, [&] {
    need(path, "path");
    const ModelInfo info = take(inspect_model(path));
    return describe(info);
  });
}

vkf_status vkf_description_get(const vkf_description* description, vkf_model_info* info,
                               vkf_error* error) {
  return guard(error, [&] {
    need(description, "description");
    const ModelInfo& from = description->info;
    vkf_model_info c{};
    c.family = from.family.c_str();
    c.kind = choice_name(from.kind);
    c.source = choice_name(from.source);
    c.head = choice_name(from.head);
    c.architecture = from.architecture.c_str();
    c.labels = description->label_pointers.data();
    c.label_count = description->label_pointers.size();
    c.tasks = description->task_pointers.data();
    c.task_count = description->task_pointers.size();
    c.tensor_count = from.tensors.size();
    c.prompt_token_count = from.prompt_tokens.size();
    c.parameters = from.parameters;
    c.width = from.width;
    c.encoder_layers = from.encoder_layers;
    c.decoder_layers = from.decoder_layers;
    c.encoder_heads = from.encoder_heads;
    c.decoder_heads = from.decoder_heads;
    c.source_vocab = from.source_vocab;
    c.target_vocab = from.target_vocab;
    c.max_source = from.max_source;
    c.max_target = from.max_target;
    return write_struct(info, c, "model info");
  });
}

vkf_status vkf_description_get_tensor(const vkf_description* description, size_t index,
                                      vkf_tensor_info* info, vkf_error* error) {
  return guard(error, [&] {
    need(description, "description");
    check_index(index, description->info.tensors.size(), "tensor");
    const TensorInfo& from = description->info.tensors[index];
    vkf_tensor_info c{};
    c.name = from.name.c_str();
    c.dtype = dtype_name(from.dtype);
    c.file = from.file.c_str();
    c.shape = from.shape.data();
    c.rank = from.shape.size();
    return write_struct(info, c, "tensor info");
  });
}

vkf_status vkf_description_get_prompt_token(const vkf_description* description, size_t index,
                                            const char** name, int64_t* id, vkf_error* error) {
  return guard(error, [&] {
    need_all({{description, "description"}, {name, "name"}, {id, "id"}});
    const auto& tokens = description->info.prompt_tokens;
    check_index(index, tokens.size(), "prompt token");
    const auto found = std::next(tokens.begin(), static_cast<std::ptrdiff_t>(index));
    *name = found->first.c_str();
    *id = found->second;
  });
}

void vkf_description_free(vkf_description* description) {
  delete description;
}

vkf_status vkf_families_list(vkf_families** families, vkf_error* error) {
  return make_handle(families, error, [] {
    vkf_families self{model_family_facts(), {}};
    for (const ModelFamilyFacts& facts : self.facts) self.heads.push_back(names_of(facts.heads));
    return handle(std::move(self));
  });
}

size_t vkf_families_count(const vkf_families* families) {
  return families != nullptr ? families->facts.size() : 0;
}

vkf_status vkf_families_get(const vkf_families* families, size_t index, vkf_family* family,
                            vkf_error* error) {
  return guard(error, [&] {
    need(families, "families");
    check_index(index, families->facts.size(), "family");
    const ModelFamilyFacts& from = families->facts[index];
    vkf_family c{};
    c.generates = from.generates ? 1 : 0;
    c.family = from.family.c_str();
    c.kind = choice_name(from.kind);
    c.source = choice_name(from.source);
    c.heads = families->heads[index].data();
    c.head_count = families->heads[index].size();
    c.attention_maps = choice_name(from.attention_maps);
    c.inputs = from.inputs.c_str();
    return write_struct(family, c, "family");
  });
}

void vkf_families_free(vkf_families* families) {
  delete families;
}

vkf_status vkf_model_load(const vkf_device* device, const char* directory,
                          const vkf_model_options* options, vkf_model** model, vkf_error* error) {
  return make_handle(model, error, [&] {
    need_all({{device, "device"}, {directory, "directory"}});
    const ModelOptions read = model_options(options);
    Model made = take(Model::load(device->device, directory, read));
    return handle(vkf_model{std::move(made)});
  });
}

vkf_status vkf_model_load_from(const vkf_device* device, const vkf_source* source,
                               const vkf_model_options* options, vkf_model** model,
                               vkf_error* error) {
  return make_handle(model, error, [&] {
    need_all({{device, "device"}, {source, "source"}});
    const ModelOptions read = model_options(options);
    Model made = take(Model::load_from(device->device, source->source, read));
    return handle(vkf_model{std::move(made)});
  });
}

void vkf_model_free(vkf_model* model) {
  delete model;
}

vkf_status vkf_model_describe(const vkf_model* model, vkf_description** description,
                              vkf_error* error) {
  return make_handle(description, error, [&] {
    need(model, "model");
    return describe(model->model.info());
  });
}

uint64_t vkf_model_weight_bytes(const vkf_model* model) {
  return model != nullptr ? model->model.weight_bytes() : 0;
}

vkf_status vkf_model_group_plan(const vkf_model* model, vkf_bytes** text, vkf_error* error) {
  return make_handle(text, error, [&] {
    need(model, "model");
    return bytes_of(group_plan_text(model->model.group_plan()));
  });
}

vkf_status vkf_model_set_adapter_scales(vkf_model* model, const float* scales, size_t count,
                                        vkf_error* error) {
  return guard(error, [&] {
    need(model, "model");
    if (count > 0) need(scales, "scales");
    take(model->model.set_adapter_scales(std::vector<float>(scales, scales + count)));
  });
}

vkf_status vkf_model_plan(const vkf_model* model, const vkf_plan_options* options, vkf_bytes** text,
                          vkf_error* error) {
  return make_handle(text, error, [&] {
    need(model, "model");
    const PlanOptions read = plan_options(options);
    return bytes_of(model->model.plan_text(read));
  });
}

vkf_status vkf_model_memory_needs(const vkf_device* device, const vkf_source* source,
                                  const vkf_model_options* options, const vkf_session_sizes* sizes,
                                  vkf_memory_needs* needs, vkf_error* error) {
  return guard(error, [&] {
    need_all({{device, "device"}, {source, "source"}, {needs, "needs"}});
    const MemoryNeeds found = take(
        memory_needs(device->device, source->source, model_options(options), session_sizes(sizes)));
    vkf_memory_needs c{};
    c.weights = found.weights;
    c.arena = found.arena;
    c.cache = found.cache;
    c.tensors = found.tensors;
    c.staging = found.staging;
    c.total = found.total;
    c.arena_bound = found.arena_bound;
    write_struct(needs, c, "memory needs");
  });
}

vkf_status vkf_load_start(const vkf_device* device, const vkf_source* source,
                          const vkf_model_options* options, vkf_load** load, vkf_error* error) {
  return make_handle(load, error, [&] {
    need_all({{device, "device"}, {source, "source"}});
    const ModelOptions read = model_options(options);
    return handle(vkf_load{BackgroundLoad::start(device->device, source->source, read)});
  });
}

vkf_status vkf_load_progress(const vkf_load* load, uint64_t* loaded, uint64_t* total,
                             vkf_error* error) {
  return guard(error, [&] {
    need_all({{load, "load"}, {loaded, "loaded"}, {total, "total"}});
    const LoadProgress progress = load->load.progress();
    *loaded = progress.loaded_bytes;
    *total = progress.total_bytes;
  });
}

int vkf_load_done(const vkf_load* load) {
  return load != nullptr && load->load.done() ? 1 : 0;
}

void vkf_load_cancel(vkf_load* load) {
  if (load != nullptr) load->load.cancel();
}

void vkf_load_advance(vkf_load* load, double microseconds) {
  if (load != nullptr) load->load.advance(microseconds);
}

vkf_status vkf_load_wait(vkf_load* load, vkf_model** model, vkf_error* error) {
  return make_handle(model, error, [&] {
    need(load, "load");
    Model made = take(load->load.wait());
    return handle(vkf_model{std::move(made)});
  });
}

void vkf_load_free(vkf_load* load) {
  delete load;
}
