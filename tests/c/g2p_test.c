/* The g2p model end to end through the C header alone: loading from a directory, from memory and
 * through a reader, in the background and cancelled; passes, attention, generation, tasks,
 * operators; misuse. g2p_test MODEL_DIRECTORY
 *
 * The device is that of the other tests: VKFORMER_TEST_DEVICE, _TIER, _LIMITS. */
#include <math.h>
#include <time.h>

#include "check.h"

static vkf_error* error;
static const char* const kWords[2] = {"attention", "all"};
static const char* const kPhonemes[2] = {"AH0 T EH1 N SH AH0 N", "AO1 L"};

typedef struct heard_messages {
  int count;
  int named_device;
} heard_messages;

static void hear(void* data, vkf_log_level level, const char* message) {
  heard_messages* heard = data;
  ++heard->count;
  if (level == VKF_LOG_INFO && strncmp(message, "[device]", 8) == 0) heard->named_device = 1;
}

static vkf_device_options device_options(void) {
  vkf_device_options options = {0};
  options.struct_size = sizeof options;
  options.device = getenv("VKFORMER_TEST_DEVICE");
  options.tier = getenv("VKFORMER_TEST_TIER");
  options.limits = getenv("VKFORMER_TEST_LIMITS");
  return options;
}

static vkf_device* make_device(vkf_log_function log, void* data) {
  vkf_device_options options = device_options();
  vkf_device* device = NULL;
  options.log = log;
  options.log_data = data;
  OK(vkf_device_create(&options, &device, error));
  return device;
}

static void test_devices(void) {
  heard_messages heard = {0, 0};
  vkf_device_info info = {0};
  vkf_device_options options = {0};
  vkf_adopted_device adopted = {0};
  vkf_devices* devices = NULL;
  vkf_device* none = NULL;
  vkf_device* device = make_device(hear, &heard);
  info.struct_size = sizeof info;
  options.struct_size = sizeof options;
  adopted.struct_size = sizeof adopted;
  CHECK(heard.count > 0 && heard.named_device);
  OK(vkf_device_get_info(device, &info, error));
  CHECK(info.name[0] != '\0' && info.max_invocations >= 128 && strlen(info.uuid) == 32);
  CHECK(vkf_device_tier(device)[0] != '\0');
  OK(vkf_devices_list(&devices, error));
  CHECK(vkf_devices_count(devices) > 0);
  OK(vkf_devices_get(devices, 0, &info, error));
  CHECK(info.index == 0 && info.kind[0] != '\0');
  FAILS(vkf_devices_get(devices, vkf_devices_count(devices), &info, error), VKF_INVALID_ARGUMENT,
        "[device]");
  vkf_devices_free(devices);
  options.device = "no such device";
  FAILS(vkf_device_create(&options, &none, error), VKF_NOT_FOUND, "no such device");
  CHECK(none == NULL);
  options.device = NULL;
  options.tier = "no such tier";
  FAILS(vkf_device_create(&options, &none, error), VKF_INVALID_ARGUMENT, "no such tier");
  FAILS(vkf_device_adopt(&adopted, NULL, &none, error), VKF_INVALID_ARGUMENT,
        "get_instance_proc_addr");
  vkf_device_free(device);
}

/* The ids of kWords, as rows that point into `encodings`. */
static void encode_words(const vkf_tokenizer* tokenizer, vkf_encodings** encodings, vkf_ids* rows) {
  size_t i;
  OK(vkf_tokenizer_encode(tokenizer, kWords, 2, NULL, encodings, error));
  for (i = 0; i < 2; ++i) {
    vkf_encoding encoding = {0};
    encoding.struct_size = sizeof encoding;
    OK(vkf_encodings_get(*encodings, i, &encoding, error));
    rows[i].ids = encoding.ids;
    rows[i].count = encoding.count;
  }
}

static void check_pronounced(vkf_session* session, const vkf_tokenizer* tokenizer) {
  vkf_ids rows[2];
  vkf_encodings* encodings = NULL;
  vkf_generation* generation = NULL;
  size_t i;
  encode_words(tokenizer, &encodings, rows);
  OK(vkf_session_generate(session, rows, 2, NULL, &generation, error));
  CHECK(vkf_generation_inputs(generation) == 2 && vkf_generation_count(generation, 2) == 0);
  for (i = 0; i < 2; ++i) {
    vkf_sequence sequence = {0};
    vkf_bytes* text = NULL;
    sequence.struct_size = sizeof sequence;
    CHECK(vkf_generation_count(generation, i) == 1);
    OK(vkf_generation_get(generation, i, 0, &sequence, error));
    OK(vkf_tokenizer_decode(tokenizer, sequence.ids, 0, &text, error));
    CHECK(strcmp(vkf_bytes_text(text), kPhonemes[i]) == 0);
    vkf_bytes_free(text);
  }
  vkf_generation_free(generation);
  vkf_encodings_free(encodings);
}

static void test_generation(vkf_session* session, const vkf_tokenizer* tokenizer) {
  const int64_t forced[1] = {4};
  vkf_generate_options options = {0};
  vkf_generate_options defaults = {0};
  vkf_generation_counters counters = {0};
  vkf_sequence best = {0};
  vkf_sequence second = {0};
  vkf_ids rows[2];
  vkf_encodings* encodings = NULL;
  vkf_generation* generation = NULL;
  options.struct_size = sizeof options;
  defaults.struct_size = sizeof defaults;
  counters.struct_size = sizeof counters;
  best.struct_size = second.struct_size = sizeof best;
  check_pronounced(session, tokenizer);
  encode_words(tokenizer, &encodings, rows);
  OK(vkf_session_generation_defaults(session, &defaults, error));
  CHECK(defaults.beams >= 1 && defaults.eos.count >= 1 && defaults.early_stopping[0] != '\0');
  CHECK((defaults.set & VKF_SET_BEAMS) != 0 && (defaults.set & VKF_SET_CONTEXT) == 0);

  options.set = VKF_SET_BEAMS | VKF_SET_RETURN_SEQUENCES | VKF_SET_MAX_NEW_TOKENS;
  options.beams = 3;
  options.return_sequences = 2;
  options.max_new_tokens = 12;
  OK(vkf_session_generate(session, rows, 2, &options, &generation, error));
  CHECK(vkf_generation_count(generation, 0) == 2 && vkf_generation_count(generation, 1) == 2);
  OK(vkf_generation_get(generation, 0, 0, &best, error));
  OK(vkf_generation_get(generation, 0, 1, &second, error));
  CHECK(best.score >= second.score && best.score < 0 && best.ids.count > 2);
  FAILS(vkf_generation_get(generation, 0, 2, &best, error), VKF_INVALID_ARGUMENT, "[sequence]");
  vkf_generation_free(generation);
  OK(vkf_session_counters(session, &counters, error));
  CHECK(counters.steps > 0 && counters.submits > 0);

  /* the model's own settings, handed back, change nothing */
  OK(vkf_session_generation_defaults(session, &defaults, error));
  OK(vkf_session_generate(session, rows, 2, &defaults, &generation, error));
  OK(vkf_generation_get(generation, 1, 0, &best, error));
  vkf_generation_free(generation);

  options.set = VKF_SET_MAX_NEW_TOKENS | VKF_SET_EOS | VKF_SET_SUPPRESS;
  options.max_new_tokens = 5;
  options.suppress.ids = forced;
  options.suppress.count = 1;
  OK(vkf_session_generate(session, rows, 1, &options, &generation, error));
  OK(vkf_generation_get(generation, 0, 0, &best, error));
  CHECK(best.ids.count == 6); /* the start token, and no end token stops the others */
  vkf_generation_free(generation);

  options.set = 1u << 30;
  FAILS(vkf_session_generate(session, rows, 1, &options, &generation, error), VKF_UNSUPPORTED,
        "[set]");
  CHECK(generation == NULL);
  options.set = VKF_SET_BEAMS;
  options.beams = 0;
  FAILS(vkf_session_generate(session, rows, 1, &options, &generation, error), VKF_INVALID_ARGUMENT,
        "beams");
  rows[0].ids = NULL;
  FAILS(vkf_session_generate(session, rows, 1, NULL, &generation, error), VKF_INVALID_ARGUMENT,
        "ids of a row");
  FAILS(vkf_session_generate(session, NULL, 1, NULL, &generation, error), VKF_INVALID_ARGUMENT,
        "[rows]");
  vkf_encodings_free(encodings);
}

static void set_ids(vkf_tensors* tensors, const char* name, vkf_ids ids) {
  int64_t shape[2] = {1, 0};
  vkf_tensor tensor = {0};
  shape[1] = (int64_t)ids.count;
  tensor.struct_size = sizeof tensor;
  tensor.dtype = VKF_I64;
  tensor.shape = shape;
  tensor.rank = 2;
  tensor.data = ids.ids;
  tensor.bytes = ids.count * sizeof(int64_t);
  OK(vkf_tensors_set(tensors, name, &tensor, error));
}

static void test_passes(vkf_session* session, const vkf_tokenizer* tokenizer) {
  static const int64_t start[1] = {1};
  vkf_run_options options = {0};
  vkf_tensor view = {0};
  vkf_maps_info info = {0};
  vkf_ids rows[2];
  vkf_ids begin = {NULL, 1};
  vkf_encodings* encodings = NULL;
  vkf_tensors* inputs = NULL;
  vkf_tensors* outputs = NULL;
  vkf_generation* generation = NULL;
  vkf_maps* maps = NULL;
  vkf_bytes* png = NULL;
  options.struct_size = sizeof options;
  view.struct_size = sizeof view;
  info.struct_size = sizeof info;
  begin.ids = start;
  encode_words(tokenizer, &encodings, rows);
  OK(vkf_tensors_create(&inputs, error));
  set_ids(inputs, "input_ids", rows[0]);
  OK(vkf_session_generate_from(session, inputs, NULL, &generation, error));
  CHECK(vkf_generation_count(generation, 0) == 1);
  vkf_generation_free(generation);
  set_ids(inputs, "decoder_input_ids", begin);
  options.flags = VKF_RUN_ATTENTIONS | VKF_RUN_ENTROPY | VKF_RUN_ATTENTION_LAYER;
  options.attention_layer = 1;
  OK(vkf_session_run(session, inputs, &options, &outputs, error));
  OK(vkf_tensors_get(outputs, "logits", &view, error));
  CHECK(view.rank == 3 && view.dtype == VKF_F32 && view.shape[1] == 1);
  CHECK(vkf_tensors_get(outputs, "cross_attentions.0", &view, NULL) == VKF_NOT_FOUND);
  OK(vkf_tensors_get(outputs, "cross_attentions.1", &view, error));
  CHECK(view.rank == 4 && view.shape[3] == (int64_t)rows[0].count);
  OK(vkf_maps_from(outputs, "cross", 0, &maps, error));
  OK(vkf_maps_get(maps, &info, error));
  CHECK(info.rows == 1 && info.columns == (int32_t)rows[0].count && info.layers == 1);
  OK(vkf_maps_grid_png(maps, NULL, &png, error));
  CHECK(vkf_bytes_size(png) > 100);
  vkf_maps_free(maps);
  FAILS(vkf_maps_from(outputs, "cross", 7, &maps, error), VKF_INVALID_ARGUMENT, "7");
  CHECK(maps == NULL);
  options.attention_layer = 99;
  vkf_tensors_free(outputs);
  FAILS(vkf_session_run(session, inputs, &options, &outputs, error), VKF_INVALID_ARGUMENT, "99");
  CHECK(outputs == NULL);
  options.flags = 1u << 31;
  FAILS(vkf_session_run(session, inputs, &options, &outputs, error), VKF_UNSUPPORTED, "[flags]");
  FAILS(vkf_session_run(session, NULL, NULL, &outputs, error), VKF_INVALID_ARGUMENT, "[inputs]");
  set_ids(inputs, "attention_masks", rows[0]);
  FAILS(vkf_session_run(session, inputs, NULL, &outputs, error), VKF_INVALID_ARGUMENT,
        "the nearest is attention_mask");
  vkf_bytes_free(png);
  vkf_tensors_free(inputs);
  vkf_encodings_free(encodings);
}

/* Every dispatch of a generation has a name and a time. */
static void test_profile(vkf_device* device, const vkf_model* model,
                         const vkf_tokenizer* tokenizer) {
  vkf_ids rows[2];
  vkf_encodings* encodings = NULL;
  vkf_session* session = NULL;
  vkf_generation* generation = NULL;
  vkf_profile* profile = NULL;
  vkf_dispatch_time time = {0};
  time.struct_size = sizeof time;
  FAILS(vkf_device_take_profile(device, &profile, error), VKF_INVALID_ARGUMENT, "start_profile");
  OK(vkf_device_start_profile(device, error));
  FAILS(vkf_device_start_profile(device, error), VKF_INVALID_ARGUMENT, "already");
  OK(vkf_session_create(model, NULL, &session, error));
  encode_words(tokenizer, &encodings, rows);
  OK(vkf_session_generate(session, rows, 1, NULL, &generation, error));
  OK(vkf_device_take_profile(device, &profile, error));
  OK(vkf_device_stop_profile(device, error));
  CHECK(vkf_profile_count(profile) > 10);
  OK(vkf_profile_get(profile, 0, &time, error));
  CHECK(time.submit == 0 && time.op[0] != '\0' && time.kernel[0] != '\0');
  FAILS(vkf_profile_get(profile, vkf_profile_count(profile), &time, error), VKF_INVALID_ARGUMENT,
        "dispatch");
  vkf_profile_free(profile);
  vkf_generation_free(generation);
  vkf_encodings_free(encodings);
  vkf_session_free(session);
}

/* Sessions share frames, and give the bits of a pass in one go. */
static void test_frames(vkf_session* session, const vkf_tensors* inputs, const vkf_tensor* whole) {
  vkf_session_sizes sizes = {0};
  vkf_frame_estimate estimate = {0};
  vkf_frame_job job = {0};
  vkf_frame_progress progress = {0};
  vkf_frames* frames = NULL;
  vkf_frame_updates* updates = NULL;
  vkf_tensors* outputs = NULL;
  vkf_tensor shared = {0};
  double fraction = 0;
  uint64_t number = 0;
  uint64_t second = 0;
  sizes.struct_size = sizeof sizes;
  sizes.inputs = inputs;
  estimate.struct_size = sizeof estimate;
  job.struct_size = sizeof job;
  progress.struct_size = sizeof progress;
  shared.struct_size = sizeof shared;
  OK(vkf_session_warm_up(session, &sizes, error));
  OK(vkf_session_finish_warm_up(session, error));
  OK(vkf_session_warmed_up(session, &fraction, error));
  CHECK(fraction == 1);
  OK(vkf_session_estimate(session, &sizes, 1000, &estimate, error));
  CHECK(estimate.frames >= estimate.first_frames && estimate.first_frames > 0);
  CHECK(estimate.measured >= 0 && estimate.measured <= 1 && estimate.milliseconds > 0);
  FAILS(vkf_session_estimate(session, &sizes, 0, &estimate, error), VKF_INVALID_ARGUMENT, "budget");
  OK(vkf_frames_create(&frames, error));
  CHECK(vkf_frames_count(frames) == 0);
  job.priority = 7;
  CHECK(vkf_frames_add(frames, session, &job, &number, error) != VKF_OK);
  job.priority = VKF_JOB_HIGH;
  job.deadline_ms = 1000;
  OK(vkf_session_start(session, inputs, NULL, error));
  OK(vkf_frames_add(frames, session, &job, &number, error));
  FAILS(vkf_frames_add(frames, session, NULL, &second, error), VKF_INVALID_ARGUMENT, "[session]");
  FAILS(vkf_frames_advance(frames, 0, &updates, error), VKF_INVALID_ARGUMENT, "budget");
  FAILS(vkf_frames_record(frames, NULL, 1, &updates, error), VKF_INVALID_ARGUMENT, "[command");
  while (vkf_frames_count(frames) > 0) {
    OK(vkf_frames_advance(frames, 1000, &updates, error));
    if (vkf_frame_updates_count(updates) > 0) {
      OK(vkf_frame_updates_get(updates, 0, &progress, error));
      CHECK(progress.job == number && progress.error == NULL);
    }
    vkf_frame_updates_free(updates);
  }
  CHECK(progress.progress == VKF_DONE);
  OK(vkf_frames_remove(frames, number, error));
  vkf_frames_free(frames);
  OK(vkf_session_finish(session, &outputs, error));
  OK(vkf_tensors_get(outputs, "logits", &shared, error));
  CHECK(whole->bytes == shared.bytes && memcmp(whole->data, shared.data, shared.bytes) == 0);
  vkf_tensors_free(outputs);
}

/* A pass in slices gives the bits of a pass in one go. */
static void test_slices(vkf_session* session, const vkf_tokenizer* tokenizer) {
  static const int64_t start[1] = {1};
  vkf_slice_options slice = {0};
  vkf_advance advance = {0};
  vkf_tensor whole = {0};
  vkf_tensor sliced = {0};
  vkf_pass_buffer place = {0};
  vkf_ids rows[2];
  vkf_ids begin = {NULL, 1};
  vkf_encodings* encodings = NULL;
  vkf_tensors* inputs = NULL;
  vkf_tensors* at_once = NULL;
  vkf_tensors* outputs = NULL;
  vkf_pass_buffers* buffers = NULL;
  const time_t begun = time(NULL);
  slice.struct_size = sizeof slice;
  advance.struct_size = sizeof advance;
  whole.struct_size = sliced.struct_size = sizeof whole;
  place.struct_size = sizeof place;
  begin.ids = start;
  encode_words(tokenizer, &encodings, rows);
  OK(vkf_tensors_create(&inputs, error));
  set_ids(inputs, "input_ids", rows[0]);
  set_ids(inputs, "decoder_input_ids", begin);
  OK(vkf_session_run(session, inputs, NULL, &at_once, error));
  slice.microseconds = 200;
  FAILS(vkf_session_advance(session, &slice, &advance, error), VKF_INVALID_ARGUMENT, "start");
  FAILS(vkf_session_finish(session, &outputs, error), VKF_INVALID_ARGUMENT, "start");
  OK(vkf_session_start(session, inputs, NULL, error));
  CHECK(vkf_session_start(session, inputs, NULL, error) == VKF_INVALID_ARGUMENT);
  OK(vkf_session_pass_buffers(session, &buffers, error));
  CHECK(vkf_pass_buffers_count(buffers) >= 2);
  OK(vkf_pass_buffers_get(buffers, 0, &place, error));
  CHECK(place.range.buffer != 0 && place.range.bytes > 0 && place.range.name[0] != '\0');
  vkf_pass_buffers_free(buffers);
  FAILS(vkf_session_advance(session, &slice, NULL, error), VKF_INVALID_ARGUMENT, "[advance]");
  FAILS(vkf_session_advance(session, NULL, &advance, error), VKF_INVALID_ARGUMENT, "[slice");
  FAILS(vkf_session_record(session, NULL, 1, &advance, error), VKF_INVALID_ARGUMENT, "[command");
  do {
    OK(vkf_session_advance(session, &slice, &advance, error));
    CHECK(advance.fraction >= 0 && advance.fraction <= 1);
  } while ((advance.progress == VKF_RUNNING || advance.progress == VKF_PREPARING) &&
           difftime(time(NULL), begun) < 120);
  OK(vkf_session_finish(session, &outputs, error));
  OK(vkf_tensors_get(at_once, "logits", &whole, error));
  OK(vkf_tensors_get(outputs, "logits", &sliced, error));
  CHECK(whole.bytes == sliced.bytes && memcmp(whole.data, sliced.data, whole.bytes) == 0);
  test_frames(session, inputs, &whole);
  OK(vkf_session_start(session, inputs, NULL, error));
  OK(vkf_session_cancel(session, error));
  vkf_tensors_free(outputs);
  vkf_tensors_free(at_once);
  vkf_tensors_free(inputs);
  vkf_encodings_free(encodings);
}

/* One file of the model directory in memory. */
static vkf_file read_file(const char* directory, const char* name) {
  char path[4096];
  vkf_file file = {NULL, NULL, 0};
  FILE* from;
  long size;
  void* data;
  snprintf(path, sizeof path, "%s/%s", directory, name);
  from = fopen(path, "rb");
  if (from == NULL) {
    fprintf(stderr, "g2p_test: %s cannot be read\n", path);
    exit(1);
  }
  fseek(from, 0, SEEK_END);
  size = ftell(from);
  fseek(from, 0, SEEK_SET);
  data = malloc((size_t)size);
  if (data == NULL || fread(data, 1, (size_t)size, from) != (size_t)size) exit(1);
  fclose(from);
  file.name = name;
  file.data = data;
  file.size = (size_t)size;
  return file;
}

typedef struct file_list {
  const vkf_file* files;
  size_t count;
} file_list;

static const vkf_file* find_file(const file_list* list, const char* name) {
  size_t i;
  for (i = 0; i < list->count; ++i) {
    if (strcmp(list->files[i].name, name) == 0) return &list->files[i];
  }
  return NULL;
}

static int size_of_file(void* data, const char* name, uint64_t* size) {
  const vkf_file* found = find_file(data, name);
  if (found != NULL) *size = found->size;
  return found != NULL;
}

static int read_from_list(void* data, const char* name, uint64_t offset, void* out, size_t bytes) {
  const vkf_file* found = find_file(data, name);
  if (found == NULL || offset > found->size || bytes > found->size - offset) return 0;
  memcpy(out, (const char*)found->data + offset, bytes);
  return 1;
}

static int count_progress(void* data, uint64_t loaded, uint64_t total) {
  int* calls = data;
  ++*calls;
  return loaded <= total;
}

static int stop_loading(void* data, uint64_t loaded, uint64_t total) {
  (void)data;
  (void)loaded;
  (void)total;
  return 0;
}

static void test_sources(const vkf_device* device, const char* directory,
                         const vkf_tokenizer* tokenizer) {
  vkf_file files[4];
  file_list list;
  vkf_file_reader reader = {0};
  vkf_model_options options = {0};
  vkf_source* memory = NULL;
  vkf_source* host = NULL;
  vkf_source* empty = NULL;
  vkf_model* model = NULL;
  vkf_session* session = NULL;
  vkf_load* load = NULL;
  uint64_t loaded = 0, total = 0;
  int calls = 0;
  size_t i;
  files[0] = read_file(directory, "config.json");
  files[1] = read_file(directory, "generation_config.json");
  files[2] = read_file(directory, "model.safetensors");
  files[3] = read_file(directory, "tokenizer.json");
  list.files = files;
  list.count = 4;
  reader.struct_size = sizeof reader;
  options.struct_size = sizeof options;
  OK(vkf_source_memory(files, 4, "archive", &memory, error));
  options.progress = count_progress;
  options.progress_data = &calls;
  options.weights = "f32";
  OK(vkf_model_load_from(device, memory, &options, &model, error));
  CHECK(calls > 10 && vkf_model_weight_bytes(model) > 8000000);
  OK(vkf_session_create(model, NULL, &session, error));
  vkf_model_free(model);
  check_pronounced(session, tokenizer);
  vkf_session_free(session);
  options.progress = stop_loading;
  FAILS(vkf_model_load_from(device, memory, &options, &model, error), VKF_CANCELLED, "");

  FAILS(vkf_source_reader(&reader, "host", &host, error), VKF_INVALID_ARGUMENT, "lacks");
  reader.size = size_of_file;
  reader.read = read_from_list;
  reader.data = &list;
  OK(vkf_source_reader(&reader, "host", &host, error));
  OK(vkf_load_start(device, host, NULL, &load, error));
  vkf_source_free(host);
  OK(vkf_load_wait(load, &model, error));
  CHECK(vkf_load_done(load) == 1);
  OK(vkf_load_progress(load, &loaded, &total, error));
  CHECK(loaded > 0 && loaded <= total);
  vkf_load_free(load);
  OK(vkf_session_create(model, NULL, &session, error));
  check_pronounced(session, tokenizer);
  vkf_session_free(session);
  vkf_model_free(model);

  OK(vkf_source_memory(NULL, 0, "nothing", &empty, error));
  FAILS(vkf_model_load_from(device, empty, NULL, &model, error), VKF_NOT_FOUND, "nothing");
  OK(vkf_load_start(device, empty, NULL, &load, error));
  vkf_load_cancel(load);
  CHECK(vkf_load_wait(load, &model, error) != VKF_OK && model == NULL);
  vkf_load_free(load);
  vkf_source_free(empty);
  vkf_source_free(memory);
  for (i = 0; i < 4; ++i) free((void*)files[i].data);
}

static void test_task(const vkf_device* device, const char* directory) {
  vkf_task_options options = {0};
  vkf_text_options text = {0};
  vkf_model_info info = {0};
  vkf_finding finding = {0};
  vkf_source* source = NULL;
  vkf_task* task = NULL;
  vkf_findings* findings = NULL;
  vkf_description* description = NULL;
  vkf_tensors* tensors = NULL;
  vkf_text_pair pair = {"a", NULL};
  size_t i;
  options.struct_size = sizeof options;
  text.struct_size = sizeof text;
  info.struct_size = sizeof info;
  finding.struct_size = sizeof finding;
  OK(vkf_source_directory(directory, &source, error));
  FAILS(vkf_task_load(device, directory, "juggle", NULL, &task, error), VKF_INVALID_ARGUMENT,
        "fill-mask");
  CHECK(vkf_task_load(device, directory, "answer", NULL, &task, error) != VKF_OK && task == NULL);
  options.batch = 2;
  OK(vkf_task_load_from(device, source, "generate", &options, &task, error));
  vkf_source_free(source);
  OK(vkf_task_describe(task, &description, error));
  OK(vkf_description_get(description, &info, error));
  CHECK(info.parameters > 0);
  OK(vkf_task_generate(task, kWords, 2, NULL, &findings, error));
  CHECK(vkf_findings_inputs(findings) == 2);
  for (i = 0; i < 2; ++i) {
    CHECK(vkf_findings_count(findings, i) == 1);
    OK(vkf_findings_get(findings, i, 0, &finding, error));
    CHECK(strcmp(finding.text, kPhonemes[i]) == 0 && finding.label == NULL);
    CHECK(finding.ids.count > 2 && finding.score < 0);
  }
  FAILS(vkf_findings_get(findings, 2, 0, &finding, error), VKF_INVALID_ARGUMENT, "[input]");
  vkf_findings_free(findings);
  text.set = VKF_SET_BEAMS | VKF_SET_RETURN_SEQUENCES;
  text.beams = text.return_sequences = 2;
  OK(vkf_task_generate(task, kWords, 1, &text, &findings, error));
  CHECK(vkf_findings_count(findings, 0) == 2);
  vkf_findings_free(findings);
  FAILS(vkf_task_classify(task, &pair, 1, 1, &findings, error), VKF_INVALID_ARGUMENT, "[task]");
  FAILS(vkf_task_embed(task, kWords, 1, NULL, &tensors, error), VKF_INVALID_ARGUMENT, "[task]");
  CHECK(vkf_task_mask_token(task) == NULL && vkf_task_finds_entities(task) == 0);
  vkf_description_free(description);
  vkf_task_free(task);
}

static void test_operators(const vkf_device* device) {
  static const float kValues[4] = {1, 2, 3, 4};
  static const float kIdentity[4] = {1, 0, 0, 1};
  static const char* const kMatrices[3] = {"query.weight", "key.weight", "value.weight"};
  const int64_t square[2] = {2, 2};
  const int64_t batch[3] = {1, 2, 2};
  float out[4];
  vkf_tensor tensor = {0};
  vkf_operator_call call = {0};
  vkf_operator_costs costs = {0};
  vkf_attention_options options = {0};
  vkf_tensors* inputs = NULL;
  vkf_tensors* outputs = NULL;
  vkf_attention* block = NULL;
  vkf_recorded_operator* recorded = NULL;
  vkf_operator_tensor place = {0};
  vkf_buffer_range range = {"odd", 0, 0, 16};
  size_t i;
  tensor.struct_size = sizeof tensor;
  call.struct_size = sizeof call;
  costs.struct_size = sizeof costs;
  options.struct_size = sizeof options;
  place.struct_size = sizeof place;
  tensor.shape = square;
  tensor.rank = 2;
  tensor.data = kValues;
  tensor.bytes = sizeof kValues;
  OK(vkf_tensors_create(&inputs, error));
  OK(vkf_tensors_set(inputs, "X", &tensor, error));
  call.name = "softmax";
  call.inputs = inputs;
  OK(vkf_operator_run(device, &call, NULL, &outputs, &costs, error));
  OK(vkf_tensors_get_floats(outputs, vkf_tensors_name(outputs, 0), out, 4, error));
  CHECK(fabs(out[0] - 0.26894142) < 1e-6 && fabs(out[3] - 0.73105858) < 1e-6);
  CHECK(costs.dispatches == 1 && costs.bytes > 0);
  vkf_tensors_free(outputs);
  OK(vkf_recorded_operator_create(device, &call, &recorded, error));
  CHECK(vkf_recorded_operator_count(recorded, VKF_OPERATOR_INPUTS) >= 1);
  CHECK(vkf_recorded_operator_count(recorded, VKF_OPERATOR_OUTPUTS) == 1);
  OK(vkf_recorded_operator_get(recorded, VKF_OPERATOR_OUTPUTS, 0, &place, error));
  CHECK(place.dtype == VKF_F32 && place.rank == 2 && place.bytes >= 16);
  FAILS(vkf_recorded_operator_bind(recorded, &range, 1, error), VKF_INVALID_ARGUMENT, "[odd]");
  FAILS(vkf_recorded_operator_record(recorded, NULL, error), VKF_INVALID_ARGUMENT, "null");
  vkf_recorded_operator_free(recorded);
  call.name = "no such operator";
  FAILS(vkf_operator_run(device, &call, NULL, &outputs, NULL, error), VKF_UNSUPPORTED,
        "no such operator");
  call.name = "softmax";
  call.attributes_json = "{";
  CHECK(vkf_operator_run(device, &call, NULL, &outputs, NULL, error) != VKF_OK);
  vkf_tensors_free(inputs);

  OK(vkf_tensors_create(&inputs, error));
  tensor.data = kIdentity;
  for (i = 0; i < 3; ++i) OK(vkf_tensors_set(inputs, kMatrices[i], &tensor, error));
  options.d_model = 2;
  options.causal = 1;
  OK(vkf_attention_create(device, &options, inputs, &block, error));
  tensor.shape = batch;
  tensor.rank = 3;
  tensor.data = kValues;
  FAILS(vkf_attention_run(block, inputs, &outputs, error), VKF_NOT_FOUND, "[x]");
  OK(vkf_tensors_set(inputs, "x", &tensor, error));
  OK(vkf_attention_run(block, inputs, &outputs, error));
  OK(vkf_tensors_get_floats(outputs, "output", out, 4, error));
  CHECK(out[0] == 1.0f && out[1] == 2.0f); /* the first token sees itself alone */
  OK(vkf_tensors_get_floats(outputs, "weights", out, 4, error));
  CHECK(out[0] == 1.0f && out[1] == 0.0f);
  options.projection = 5;
  vkf_tensors_free(outputs);
  vkf_attention_free(block);
  FAILS(vkf_attention_create(device, &options, inputs, &block, error), VKF_INVALID_ARGUMENT,
        "[projection]");
  vkf_tensors_free(inputs);
}

/* What is known before a model is loaded. `model` is the directory's. */
static void test_memory_needs(const vkf_device* device, const char* directory,
                              const vkf_model* model) {
  static const int64_t row[3] = {5, 6, 1};
  vkf_ids ids = {NULL, 3};
  vkf_session_sizes sizes = {0};
  vkf_memory_needs pass = {0}, generation = {0}, given = {0};
  vkf_source* source = NULL;
  vkf_tensors* inputs = NULL;
  OK(vkf_source_directory(directory, &source, error));
  sizes.struct_size = sizeof sizes;
  pass.struct_size = sizeof pass;
  generation.struct_size = sizeof generation;
  OK(vkf_model_memory_needs(device, source, NULL, NULL, &pass, error));
  CHECK(pass.weights == vkf_model_weight_bytes(model) && pass.cache == 0);
  CHECK(pass.arena >= pass.arena_bound && pass.arena_bound > 0);
  sizes.new_tokens = 8;
  OK(vkf_model_memory_needs(device, source, NULL, &sizes, &generation, error));
  CHECK(generation.weights == pass.weights && generation.cache > 0);
  CHECK(generation.total == generation.weights + generation.arena + generation.cache +
                                generation.tensors + generation.staging);
  ids.ids = row;
  sizes.tokens = 3;
  OK(vkf_model_memory_needs(device, source, NULL, &sizes, &generation, error));
  OK(vkf_tensors_create(&inputs, error));
  set_ids(inputs, "input_ids", ids);
  sizes.tokens = 0;
  sizes.inputs = inputs;
  given.struct_size = sizeof given;
  OK(vkf_model_memory_needs(device, source, NULL, &sizes, &given, error));
  CHECK(given.total == generation.total);
  sizes.inputs = NULL;
  vkf_tensors_free(inputs);
  sizes.batch = -1;
  FAILS(vkf_model_memory_needs(device, source, NULL, &sizes, &pass, error), VKF_INVALID_ARGUMENT,
        "-1");
  FAILS(vkf_model_memory_needs(device, NULL, NULL, NULL, &pass, error), VKF_INVALID_ARGUMENT,
        "source");
  vkf_source_free(source);
}

/* On a device that keeps no cache, so that no file of the user's is replaced. */
static void test_tuner(void) {
  vkf_device_options made = device_options();
  vkf_tune_options options = {0};
  vkf_tuned_choice choice = {0};
  vkf_tune_report* report = NULL;
  vkf_device* device = NULL;
  made.cache_directory = "none";
  made.tuning = 1;
  made.compile_threads = VKF_NO_COMPILE_THREADS;
  OK(vkf_device_create(&made, &device, error));
  options.struct_size = sizeof options;
  choice.struct_size = sizeof choice;
  options.quick = 1;
  options.ms_per_choice = -1;
  FAILS(vkf_device_tune(device, &options, &report, error), VKF_INVALID_ARGUMENT, "-1");
  options.ms_per_choice = 0.01;
  OK(vkf_device_tune(device, &options, &report, error));
  CHECK(vkf_tune_report_count(report) > 0 && strcmp(vkf_tune_report_file(report), "") == 0);
  OK(vkf_tune_report_get(report, 0, &choice, error));
  CHECK(choice.tried >= 1 && choice.winner_ms <= choice.usual_ms && choice.shape[0] != 0);
  FAILS(vkf_tune_report_get(report, vkf_tune_report_count(report), &choice, error),
        VKF_INVALID_ARGUMENT, "choice");
  vkf_tune_report_free(report);
  vkf_device_free(device);
}

int main(int argc, char** argv) {
  vkf_session_options options = {0};
  vkf_tokenizer* tokenizer = NULL;
  vkf_device* device;
  vkf_model* model = NULL;
  vkf_session* session = NULL;
  vkf_bytes* plan = NULL;
  vkf_description* description = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: g2p_test MODEL\n");
    return 2;
  }
  error = vkf_error_create();
  test_devices();
  device = make_device(NULL, NULL);
  FAILS(vkf_model_load(device, "absent", NULL, &model, error), VKF_NOT_FOUND, "absent");
  CHECK(model == NULL);
  OK(vkf_tokenizer_load(argv[1], &tokenizer, error));
  OK(vkf_model_load(device, argv[1], NULL, &model, error));
  OK(vkf_model_describe(model, &description, error));
  OK(vkf_model_plan(model, NULL, &plan, error));
  CHECK(vkf_bytes_size(plan) > 100 && vkf_device_memory_in_use(device) > 0);
  test_memory_needs(device, argv[1], model);
  test_tuner();
  test_sources(device, argv[1], tokenizer);
  test_task(device, argv[1]);
  test_operators(device);
  test_profile(device, model, tokenizer);
  options.struct_size = sizeof options;
  options.steps_per_submit = -1;
  FAILS(vkf_session_create(model, &options, &session, error), VKF_INVALID_ARGUMENT, "-1");
  options.steps_per_submit = 4;
  OK(vkf_session_create(model, &options, &session, error));
  /* the session keeps alive what it was made from */
  vkf_device_free(device);
  vkf_model_free(model);
  test_passes(session, tokenizer);
  test_slices(session, tokenizer);
  test_generation(session, tokenizer);
  vkf_session_free(session);
  vkf_description_free(description);
  vkf_bytes_free(plan);
  vkf_tokenizer_free(tokenizer);
  vkf_error_free(error);
  return summary("g2p_test");
}
