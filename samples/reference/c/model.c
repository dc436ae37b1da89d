/* Examples of models: what they are, where their files come from, loading, writing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples.h"

static int show_description(const char* directory, vkf_error* error) {
  //! [vkf_describe_directory vkf_description_get vkf_description_get_tensor vkf_description_free]
  // Reads what a model is, without a device, and lists its tensors.
  vkf_description* description = NULL;
  vkf_model_info info = {.struct_size = sizeof info};
  int ok = vkf_describe_directory(directory, &description, error) == VKF_OK &&
           vkf_description_get(description, &info, error) == VKF_OK;
  if (ok) printf("%s: %lld parameters\n", info.family, (long long)info.parameters);
  for (size_t i = 0; ok && i < info.tensor_count; ++i) {
    vkf_tensor_info tensor = {.struct_size = sizeof tensor};
    ok = vkf_description_get_tensor(description, i, &tensor, error) == VKF_OK;
    if (ok) printf("%s %s\n", tensor.name, tensor.dtype);
  }
  vkf_description_free(description);
  //! [end]
  return ok;
}

static int show_prompt_tokens(const char* directory, vkf_error* error) {
  //! [vkf_description_get_prompt_token]
  // Lists what the decoder of a speech model can be told to do: languages and tasks.
  vkf_description* description = NULL;
  vkf_model_info info = {.struct_size = sizeof info};
  int ok = vkf_describe_directory(directory, &description, error) == VKF_OK &&
           vkf_description_get(description, &info, error) == VKF_OK;
  for (size_t i = 0; ok && i < info.prompt_token_count; ++i) {
    const char* name = NULL;
    int64_t id = 0;
    ok = vkf_description_get_prompt_token(description, i, &name, &id, error) == VKF_OK;
    if (ok) printf("%lld: %s\n", (long long)id, name);
  }
  vkf_description_free(description);
  //! [end]
  return ok && info.prompt_token_count > 0;
}

static int show_families(vkf_error* error) {
  //! [vkf_families_list vkf_families_count vkf_families_get vkf_families_free]
  // Lists the families that can be loaded, and which of them write texts.
  vkf_families* families = NULL;
  int ok = vkf_families_list(&families, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_families_count(families); ++i) {
    vkf_family family = {.struct_size = sizeof family};
    ok = vkf_families_get(families, i, &family, error) == VKF_OK;
    if (ok) printf("%s%s\n", family.family, family.generates ? ", generates" : "");
  }
  vkf_families_free(families);
  //! [end]
  return ok;
}

static int show_loading(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_model_load vkf_model_describe vkf_model_weight_bytes vkf_model_plan vkf_model_free]
  // Loads a model with weights in half precision, and prints the plan of a pass over 16 tokens.
  const vkf_model_options options = {.struct_size = sizeof options, .weights = "f16"};
  const vkf_plan_options pass = {.struct_size = sizeof pass, .source = 16};
  vkf_model* model = NULL;
  vkf_description* description = NULL;
  vkf_bytes* plan = NULL;
  vkf_model_info info = {.struct_size = sizeof info};
  const int ok = vkf_model_load(device, directory, &options, &model, error) == VKF_OK &&
                 vkf_model_describe(model, &description, error) == VKF_OK &&
                 vkf_description_get(description, &info, error) == VKF_OK &&
                 vkf_model_plan(model, &pass, &plan, error) == VKF_OK;
  printf("%llu bytes of weights\n", (unsigned long long)vkf_model_weight_bytes(model));
  if (ok) printf("%s\n%.200s\n", info.family, vkf_bytes_text(plan));
  vkf_bytes_free(plan);
  vkf_description_free(description);
  vkf_model_free(model);
  //! [end]
  return ok;
}

static int show_memory_needs(const vkf_device* device, const char* directory, vkf_error* error) {
  //! [vkf_source_directory vkf_model_memory_needs vkf_source_free]
  // What a model and a generation of 32 tokens will hold, before anything is loaded.
  const vkf_session_sizes sizes = {.struct_size = sizeof sizes, .new_tokens = 32};
  vkf_memory_needs needs = {.struct_size = sizeof needs};
  vkf_source* source = NULL;
  const int ok = vkf_source_directory(directory, &source, error) == VKF_OK &&
                 vkf_model_memory_needs(device, source, NULL, &sizes, &needs, error) == VKF_OK;
  printf("%llu bytes, %llu of them weights\n", (unsigned long long)needs.total,
         (unsigned long long)needs.weights);
  vkf_source_free(source);
  //! [end]
  return ok && needs.total > needs.weights;
}

static int show_memory_source(const vkf_device* device, const vkf_file files[2], vkf_error* error) {
  //! [vkf_source_memory vkf_model_load_from]
  // Loads a model from files in memory: here config.json and model.safetensors.
  vkf_source* source = NULL;
  vkf_model* model = NULL;
  const int ok = vkf_source_memory(files, 2, "archive", &source, error) == VKF_OK &&
                 vkf_model_load_from(device, source, NULL, &model, error) == VKF_OK;
  vkf_source_free(source);  // the model does not need the files
  vkf_model_free(model);
  //! [end]
  return ok;
}

//! [vkf_source_reader]
// Lets vkformer read a model's files through functions of the application; `data` is its folder.
static FILE* open_asset(const char* folder, const char* name) {
  char path[PATH_BYTES];
  return fopen(path_in(path, folder, name), "rb");
}
static int read_asset(void* data, const char* name, uint64_t offset, void* out, size_t bytes) {
  FILE* file = open_asset(data, name);
  const int done = file != NULL && fseek(file, (long)offset, SEEK_SET) == 0 &&
                   fread(out, 1, bytes, file) == bytes;
  if (file != NULL) fclose(file);
  return done;
}
static int size_of_asset(void* data, const char* name, uint64_t* size);  // 0: there is none
static vkf_status make_source(char* folder, vkf_source** source, vkf_error* error) {
  const vkf_file_reader reader = {sizeof reader, 0, size_of_asset, read_asset, folder};
  return vkf_source_reader(&reader, "assets", source, error);
}
//! [end]

static int size_of_asset(void* data, const char* name, uint64_t* size) {
  FILE* file = open_asset(data, name);
  if (file == NULL) return 0;
  fseek(file, 0, SEEK_END);
  *size = (uint64_t)ftell(file);
  fclose(file);
  return 1;
}

static int show_background(const vkf_device* device, const vkf_source* source, vkf_error* error) {
  //! [vkf_load_start vkf_load_progress vkf_load_done vkf_load_advance vkf_load_wait vkf_load_free]
  // Loads in the background; weights are copied for half a millisecond of each frame.
  const vkf_model_options options = {.struct_size = sizeof options, .paced = 1};
  vkf_load* load = NULL;
  vkf_model* model = NULL;
  uint64_t loaded = 0, total = 0;
  int ok = vkf_load_start(device, source, &options, &load, error) == VKF_OK;
  while (ok && !vkf_load_done(load)) {  // once a frame
    vkf_load_advance(load, 500);
    ok = vkf_load_progress(load, &loaded, &total, error) == VKF_OK;
  }
  ok = ok && vkf_load_wait(load, &model, error) == VKF_OK;
  vkf_model_free(model);
  vkf_load_free(load);
  //! [end]
  return ok;
}

static int show_canceled_load(const vkf_device* device, const vkf_source* source,
                              vkf_error* error) {
  //! [vkf_load_cancel]
  // Gives a load up. A load that had ended already still gives its model.
  vkf_load* load = NULL;
  vkf_model* model = NULL;
  vkf_status ended = vkf_load_start(device, source, NULL, &load, error);
  vkf_load_cancel(load);
  if (ended == VKF_OK) ended = vkf_load_wait(load, &model, error);
  const int ok = ended == VKF_OK || ended == VKF_CANCELLED;
  vkf_model_free(model);
  vkf_load_free(load);
  //! [end]
  return ok;
}

static int show_files_of_models(const char* directory, const char* llama, const char* scratch,
                                vkf_error* error) {
  char folder[PATH_BYTES], gguf[PATH_BYTES];
  path_in(folder, scratch, "c_quantized");
  path_in(gguf, scratch, "c_model.gguf");
  //! [vkf_quantize_model vkf_write_gguf]
  // Writes a copy of a model with matrices in 8 bits, and a Llama as a GGUF file.
  const vkf_quantize_options q8 = {.struct_size = sizeof q8, .weights = "q8"};
  const vkf_gguf_options f16 = {.struct_size = sizeof f16, .weights = "f16"};
  vkf_quantize_report report = {.struct_size = sizeof report};
  const int ok = vkf_quantize_model(directory, folder, &q8, &report, error) == VKF_OK &&
                 vkf_write_gguf(llama, gguf, &f16, NULL, error) == VKF_OK;
  printf("%llu bytes became %llu\n", (unsigned long long)report.bytes_before,
         (unsigned long long)report.bytes_after);
  //! [end]
  return ok && report.bytes_after < report.bytes_before;
}

static int show_pack(const vkf_device* device, const char* directory, const char* pack,
                     vkf_error* error) {
  //! [vkf_pack_model vkf_source_pack]
  // Packs a model into one file, and loads it from there.
  vkf_pack_report report = {.struct_size = sizeof report};
  vkf_source* source = NULL;
  vkf_model* model = NULL;
  const int ok = vkf_pack_model(directory, pack, NULL, &report, error) == VKF_OK &&
                 vkf_source_pack(pack, 0, &source, error) == VKF_OK &&
                 vkf_model_load_from(device, source, NULL, &model, error) == VKF_OK;
  printf("%llu files in %llu bytes\n", (unsigned long long)report.files,
         (unsigned long long)report.size);
  vkf_model_free(model);
  vkf_source_free(source);
  //! [end]
  return ok;
}

static int show_adapters(const vkf_device* device, const char* base, const char* adapter,
                         vkf_error* error) {
  //! [vkf_model_set_adapter_scales]
  // Loads a model with a LoRA adapter, then gives the adapter half of its weight.
  const float half = 0.5f;
  vkf_model_options options = {.struct_size = sizeof options};
  options.adapters = &adapter;
  options.adapter_count = 1;
  vkf_model* model = NULL;
  const int ok = vkf_model_load(device, base, &options, &model, error) == VKF_OK &&
                 vkf_model_set_adapter_scales(model, &half, 1, error) == VKF_OK;
  vkf_model_free(model);
  //! [end]
  return ok;
}

static int show_sources(const c_setting* setting, char* directory) {
  char path[PATH_BYTES];
  vkf_file files[2] = {{.name = "config.json"}, {.name = "model.safetensors"}};
  vkf_source* source = NULL;
  int ok = 1;
  for (size_t i = 0; i < 2; ++i) {
    files[i].data = read_whole_file(path_in(path, directory, files[i].name), &files[i].size);
    ok = ok && files[i].data != NULL;
  }
  ok = ok && show_memory_source(setting->device, files, setting->error) &&
       make_source(directory, &source, setting->error) == VKF_OK &&
       show_background(setting->device, source, setting->error) &&
       show_canceled_load(setting->device, source, setting->error);
  vkf_source_free(source);
  for (size_t i = 0; i < 2; ++i) free((void*)files[i].data);
  return ok;
}

int show_c_model(const c_setting* setting) {
  char directory[PATH_BYTES], path[PATH_BYTES], adapter[PATH_BYTES], llama[PATH_BYTES];
  vkf_error* error = setting->error;
  if (!show_prompt_tokens(path_in(path, setting->tasks, "speech"), error)) return 0;
  path_in(path, setting->goldens, "adapter-gpt2/base");
  path_in(adapter, setting->goldens, "adapter-gpt2/adapter");
  if (!show_adapters(setting->device, path, adapter, error)) return 0;
  path_in(directory, setting->models, "shakespeare");
  path_in(llama, setting->goldens, "llama-gqa/model");
  return show_description(directory, error) && show_families(error) &&
         show_loading(setting->device, directory, error) &&
         show_memory_needs(setting->device, directory, error) && show_sources(setting, directory) &&
         show_files_of_models(directory, llama, setting->scratch, error) &&
         show_pack(setting->device, directory, path_in(path, setting->scratch, "c.vkfpack"), error);
}
