/* What needs no Vulkan driver: versions of structs, errors, tensors, tokenizers, pictures, sound,
 * descriptions. values_test MODEL PICTURE_MODEL SOUND_MODEL, directories each */
#include <math.h>

#include "check.h"

static vkf_error* error;

/* A struct as a newer header would declare it. */
typedef struct newer_view_options {
  vkf_view_options known;
  uint64_t later[2];
} newer_view_options;

typedef struct newer_maps_info {
  vkf_maps_info known;
  uint64_t later;
} newer_maps_info;

static vkf_maps* make_maps(void) {
  const int64_t shape[4] = {1, 2, 2, 2};
  const float values[8] = {1, 0, 0.5f, 0.5f, 0.25f, 0.75f, 0, 1};
  vkf_tensor tensor = {sizeof tensor, VKF_F32, NULL, 0, NULL, 0};
  vkf_tensors* tensors = NULL;
  vkf_maps* maps = NULL;
  tensor.shape = shape;
  tensor.rank = 4;
  tensor.data = values;
  tensor.bytes = sizeof values;
  OK(vkf_tensors_create(&tensors, error));
  OK(vkf_tensors_set(tensors, "attentions.0", &tensor, error));
  OK(vkf_maps_from(tensors, "self", 0, &maps, error));
  vkf_tensors_free(tensors);
  return maps;
}

/* Callers of other versions than the library's: shorter and longer structs, in and out. */
static void test_versions(void) {
  vkf_maps* maps = make_maps();
  vkf_bytes* whole = NULL;
  vkf_bytes* png = NULL;
  newer_view_options options;
  newer_maps_info info;
  OK(vkf_maps_grid_png(maps, NULL, &whole, error));

  memset(&options, 0, sizeof options);
  FAILS(vkf_maps_grid_png(maps, &options.known, &png, error), VKF_INVALID_ARGUMENT, "struct_size");
  CHECK(png == NULL);
  options.known.struct_size = 7;
  FAILS(vkf_maps_grid_png(maps, &options.known, &png, error), VKF_INVALID_ARGUMENT, "7 bytes");
  options.known.struct_size = 1u << 30;
  FAILS(vkf_maps_grid_png(maps, &options.known, &png, error), VKF_INVALID_ARGUMENT, "1073741824");

  /* older: the title lies behind what the caller's struct has, and is not looked at */
  options.known.struct_size = (uint32_t)offsetof(vkf_view_options, title);
  options.known.title = (const char*)1;
  OK(vkf_maps_grid_png(maps, &options.known, &png, error));
  CHECK(vkf_bytes_size(png) == vkf_bytes_size(whole));
  CHECK(memcmp(vkf_bytes_data(png), vkf_bytes_data(whole), vkf_bytes_size(whole)) == 0);
  vkf_bytes_free(png);

  /* newer: taken while what is unknown is zero */
  options.known.struct_size = sizeof options;
  options.known.title = NULL;
  OK(vkf_maps_grid_png(maps, &options.known, &png, error));
  CHECK(memcmp(vkf_bytes_data(png), vkf_bytes_data(whole), vkf_bytes_size(whole)) == 0);
  vkf_bytes_free(png);
  options.later[1] = 1;
  FAILS(vkf_maps_grid_png(maps, &options.known, &png, error), VKF_UNSUPPORTED, "newer");
  CHECK(png == NULL);

  /* out, older: nothing behind the caller's struct is touched */
  memset(&info, 0x5a, sizeof info);
  info.known.struct_size = (uint32_t)offsetof(vkf_maps_info, layers);
  OK(vkf_maps_get(maps, &info.known, error));
  CHECK(info.known.heads == 2 && info.known.rows == 2 && info.known.columns == 2);
  CHECK(info.known.struct_size == offsetof(vkf_maps_info, layers));
  CHECK(((unsigned char*)&info.known.layers)[0] == 0x5a && info.later == 0x5a5a5a5a5a5a5a5au);
  /* out, newer: zeros */
  info.known.struct_size = sizeof info;
  OK(vkf_maps_get(maps, &info.known, error));
  CHECK(info.known.layers == 1 && strcmp(info.known.kind, "self") == 0 && info.later == 0);
  info.known.struct_size = 0;
  FAILS(vkf_maps_get(maps, &info.known, error), VKF_INVALID_ARGUMENT, "struct_size");
  FAILS(vkf_maps_get(maps, NULL, error), VKF_INVALID_ARGUMENT, "null");
  vkf_bytes_free(whole);
  vkf_maps_free(maps);
  CHECK(vkf_api_version() == VKF_API_VERSION);
  CHECK(vkf_version_text()[0] != '\0');
}

static void test_errors(void) {
  vkf_tensors* tensors = NULL;
  vkf_status status;
  CHECK(strcmp(vkf_status_name(VKF_CANCELLED), "VKF_CANCELLED") == 0);
  CHECK(strcmp(vkf_status_name(99), "unknown") == 0 && strcmp(vkf_status_name(-1), "unknown") == 0);
  for (status = VKF_OK; status <= VKF_QUEUE_FULL; ++status) {
    CHECK(strncmp(vkf_status_name(status), "VKF_", 4) == 0);
  }
  /* without an error handle there is still the status */
  CHECK(vkf_tensors_read("absent/x.safetensors", &tensors, NULL) == VKF_NOT_FOUND);
  CHECK(tensors == NULL);
  FAILS(vkf_tensors_read("absent/x.safetensors", &tensors, error), VKF_NOT_FOUND,
        "x.safetensors");
  FAILS(vkf_tensors_read(NULL, &tensors, error), VKF_INVALID_ARGUMENT, "[path]");
  FAILS(vkf_tensors_create(NULL, error), VKF_INVALID_ARGUMENT, "null");
  OK(vkf_tensors_create(&tensors, error));
  CHECK(strcmp(vkf_error_message(error), "") == 0);
  vkf_tensors_free(tensors);
  CHECK(vkf_error_status(NULL) == VKF_OK && strcmp(vkf_error_message(NULL), "") == 0);
}

/* Every getter and free function takes null. */
static void test_null_handles(void) {
  vkf_error_free(NULL);
  vkf_bytes_free(NULL);
  vkf_strings_free(NULL);
  vkf_tensors_free(NULL);
  vkf_devices_free(NULL);
  vkf_device_free(NULL);
  vkf_source_free(NULL);
  vkf_description_free(NULL);
  vkf_families_free(NULL);
  vkf_model_free(NULL);
  vkf_load_free(NULL);
  vkf_load_cancel(NULL);
  vkf_session_free(NULL);
  vkf_generation_free(NULL);
  vkf_profile_free(NULL);
  vkf_pass_buffers_free(NULL);
  vkf_tokenizer_free(NULL);
  vkf_encodings_free(NULL);
  vkf_decode_stream_free(NULL);
  vkf_stop_strings_free(NULL);
  vkf_picture_free(NULL);
  vkf_picture_processor_free(NULL);
  vkf_sound_free(NULL);
  vkf_log_mel_free(NULL);
  vkf_task_free(NULL);
  vkf_findings_free(NULL);
  vkf_maps_free(NULL);
  vkf_heads_free(NULL);
  vkf_recorded_operator_free(NULL);
  vkf_attention_free(NULL);
  CHECK(vkf_bytes_data(NULL) == NULL && vkf_bytes_size(NULL) == 0 && vkf_bytes_text(NULL)[0] == 0);
  CHECK(vkf_strings_count(NULL) == 0 && vkf_strings_get(NULL, 0) == NULL);
  CHECK(vkf_tensors_count(NULL) == 0 && vkf_tensors_name(NULL, 0) == NULL);
  CHECK(vkf_devices_count(NULL) == 0 && vkf_device_tier(NULL)[0] == '\0');
  CHECK(vkf_device_memory_in_use(NULL) == 0 && vkf_model_weight_bytes(NULL) == 0);
  CHECK(vkf_families_count(NULL) == 0 && vkf_load_done(NULL) == 0);
  CHECK(vkf_stop_strings_stopped(NULL) == 0);
  CHECK(vkf_generation_inputs(NULL) == 0 && vkf_generation_count(NULL, 0) == 0);
  CHECK(vkf_profile_count(NULL) == 0 && vkf_encodings_count(NULL) == 0);
  CHECK(vkf_tokenizer_vocab_size(NULL) == 0 && vkf_sound_count(NULL) == 0);
  CHECK(vkf_sound_samples(NULL) == NULL && vkf_sound_sampling_rate(NULL) == 0);
  CHECK(vkf_task_mask_token(NULL) == NULL && vkf_task_finds_entities(NULL) == 0);
  CHECK(vkf_findings_inputs(NULL) == 0 && vkf_findings_count(NULL, 0) == 0);
  CHECK(vkf_recorded_operator_count(NULL, VKF_OPERATOR_INPUTS) == 0);
}

static void test_null_arguments(void) {
  vkf_model* model = (vkf_model*)1;
  vkf_session* session = NULL;
  vkf_tensors* tensors = NULL;
  vkf_generation* generation = NULL;
  vkf_description* description = NULL;
  vkf_task* task = NULL;
  vkf_findings* findings = NULL;
  vkf_attention* attention = NULL;
  vkf_recorded_operator* recorded = NULL;
  vkf_load* load = NULL;
  uint64_t bytes = 0;
  FAILS(vkf_model_load(NULL, "x", NULL, &model, error), VKF_INVALID_ARGUMENT, "[device]");
  CHECK(model == NULL);
  FAILS(vkf_model_load_from(NULL, NULL, NULL, &model, error), VKF_INVALID_ARGUMENT, "[device]");
  FAILS(vkf_model_describe(NULL, &description, error), VKF_INVALID_ARGUMENT, "[model]");
  FAILS(vkf_session_create(NULL, NULL, &session, error), VKF_INVALID_ARGUMENT, "[model]");
  FAILS(vkf_session_run(NULL, NULL, NULL, &tensors, error), VKF_INVALID_ARGUMENT, "[session]");
  FAILS(vkf_session_generate(NULL, NULL, 1, NULL, &generation, error), VKF_INVALID_ARGUMENT,
        "[session]");
  FAILS(vkf_session_generate_from(NULL, NULL, NULL, &generation, error), VKF_INVALID_ARGUMENT,
        "[session]");
  FAILS(vkf_session_generation_defaults(NULL, NULL, error), VKF_INVALID_ARGUMENT, "[session]");
  FAILS(vkf_session_counters(NULL, NULL, error), VKF_INVALID_ARGUMENT, "[session]");
  FAILS(vkf_generation_get(NULL, 0, 0, NULL, error), VKF_INVALID_ARGUMENT, "[generation]");
  FAILS(vkf_task_load(NULL, NULL, "embed", NULL, &task, error), VKF_INVALID_ARGUMENT, "[device]");
  FAILS(vkf_task_load_from(NULL, NULL, "embed", NULL, &task, error), VKF_INVALID_ARGUMENT,
        "[device]");
  FAILS(vkf_task_generate(NULL, NULL, 0, NULL, &findings, error), VKF_INVALID_ARGUMENT, "[task]");
  FAILS(vkf_task_embed(NULL, NULL, 0, NULL, &tensors, error), VKF_INVALID_ARGUMENT, "[task]");
  FAILS(vkf_findings_get(NULL, 0, 0, NULL, error), VKF_INVALID_ARGUMENT, "[findings]");
  FAILS(vkf_operator_run(NULL, NULL, NULL, &tensors, NULL, error), VKF_INVALID_ARGUMENT,
        "[device]");
  FAILS(vkf_attention_create(NULL, NULL, NULL, &attention, error), VKF_INVALID_ARGUMENT,
        "[device]");
  FAILS(vkf_recorded_operator_create(NULL, NULL, &recorded, error), VKF_INVALID_ARGUMENT,
        "[device]");
  FAILS(vkf_recorded_operator_record(NULL, NULL, error), VKF_INVALID_ARGUMENT, "[recorded");
  FAILS(vkf_load_start(NULL, NULL, NULL, &load, error), VKF_INVALID_ARGUMENT, "[device]");
  FAILS(vkf_load_progress(NULL, &bytes, &bytes, error), VKF_INVALID_ARGUMENT, "[load]");
  FAILS(vkf_device_adopt(NULL, NULL, NULL, error), VKF_INVALID_ARGUMENT, "null");
}

static void test_tensors(void) {
  const int64_t shape[2] = {2, 3};
  const int64_t ids[6] = {1, -2, 3, 4, 5, 6};
  const uint16_t halves[2] = {0x3c00, 0xc000};
  const int64_t two = 2;
  int64_t back[6] = {0};
  float floats[2] = {0, 0};
  vkf_tensor view = {0};
  vkf_tensor tensor = {sizeof tensor, VKF_I64, NULL, 2, NULL, sizeof ids};
  vkf_tensors* tensors = NULL;
  tensor.shape = shape;
  tensor.data = ids;
  view.struct_size = sizeof view;
  OK(vkf_tensors_create(&tensors, error));
  OK(vkf_tensors_set(tensors, "ids", &tensor, error));
  OK(vkf_tensors_get(tensors, "ids", &view, error));
  CHECK(view.dtype == VKF_I64 && view.rank == 2 && view.shape[1] == 3 && view.bytes == sizeof ids);
  CHECK(view.data != (const void*)ids && memcmp(view.data, ids, sizeof ids) == 0);
  OK(vkf_tensors_get_ints(tensors, "ids", back, 6, error));
  CHECK(memcmp(back, ids, sizeof ids) == 0);
  FAILS(vkf_tensors_get_ints(tensors, "ids", back, 5, error), VKF_INVALID_ARGUMENT, "room for 5");
  FAILS(vkf_tensors_get_floats(tensors, "ids", floats, 6, error), VKF_INVALID_ARGUMENT, "[ids]");
  FAILS(vkf_tensors_get(tensors, "odd", &view, error), VKF_NOT_FOUND, "[odd]");

  tensor.dtype = VKF_F16;
  tensor.shape = &two;
  tensor.rank = 1;
  tensor.data = halves;
  FAILS(vkf_tensors_set(tensors, "h", &tensor, error), VKF_INVALID_ARGUMENT, "48 bytes");
  tensor.bytes = sizeof halves;
  OK(vkf_tensors_set(tensors, "h", &tensor, error));
  OK(vkf_tensors_get_floats(tensors, "h", floats, 2, error));
  CHECK(floats[0] == 1.0f && floats[1] == -2.0f);
  CHECK(vkf_tensors_count(tensors) == 2 && strcmp(vkf_tensors_name(tensors, 0), "h") == 0);
  CHECK(vkf_tensors_name(tensors, 2) == NULL);
  tensor.dtype = 77;
  FAILS(vkf_tensors_set(tensors, "h", &tensor, error), VKF_INVALID_ARGUMENT, "77");
  tensor.dtype = VKF_F16;
  tensor.rank = 1000;
  FAILS(vkf_tensors_set(tensors, "h", &tensor, error), VKF_INVALID_ARGUMENT, "1000");
  tensor.rank = 1;
  tensor.data = NULL;
  FAILS(vkf_tensors_set(tensors, "h", &tensor, error), VKF_INVALID_ARGUMENT, "[data]");
  vkf_tensors_free(tensors);
}

static void test_tokenizer(const char* model) {
  const char* words[2] = {"all", "attention"};
  const int64_t bad_id = -3;
  vkf_ids ids = {NULL, 0};
  vkf_tokenizer* tokenizer = NULL;
  vkf_encodings* encodings = NULL;
  vkf_decode_stream* stream = NULL;
  vkf_bytes* text = NULL;
  vkf_encode_options options = {0};
  vkf_encoding encoding = {0};
  int64_t id = -1;
  options.struct_size = sizeof options;
  options.padding = VKF_TO_LONGEST;
  options.flags = VKF_ENCODE_PAD_ID;
  FAILS(vkf_tokenizer_load("absent", &tokenizer, error), VKF_NOT_FOUND, "absent");
  FAILS(vkf_tokenizer_parse("{", 1, "broken.json", &tokenizer, error), VKF_INVALID_FILE,
        "broken.json");
  OK(vkf_tokenizer_load(model, &tokenizer, error));
  CHECK(vkf_tokenizer_vocab_size(tokenizer) > 26);
  OK(vkf_tokenizer_encode(tokenizer, words, 2, &options, &encodings, error));
  CHECK(vkf_encodings_count(encodings) == 2);
  encoding.struct_size = sizeof encoding;
  OK(vkf_encodings_get(encodings, 1, &encoding, error));
  CHECK(encoding.count >= 9 && encoding.attention_mask[0] == 1);
  OK(vkf_tokenizer_id_to_token(tokenizer, encoding.ids[0], &text, error));
  CHECK(strcmp(vkf_bytes_text(text), encoding.tokens[0]) == 0);
  OK(vkf_tokenizer_token_to_id(tokenizer, encoding.tokens[0], &id, error));
  CHECK(id == encoding.ids[0]);
  vkf_bytes_free(text);
  OK(vkf_tokenizer_token_bytes(tokenizer, encoding.ids[0], &text, error));
  CHECK(strstr(vkf_bytes_text(text), encoding.tokens[0]) != NULL);
  vkf_bytes_free(text);
  OK(vkf_tokenizer_token_bytes(tokenizer, INT64_MAX, &text, error));
  CHECK(strcmp(vkf_bytes_text(text), "") == 0);
  vkf_bytes_free(text);
  OK(vkf_encodings_get(encodings, 0, &encoding, error));
  CHECK(encoding.attention_mask[encoding.count - 1] == 0);
  FAILS(vkf_encodings_get(encodings, 2, &encoding, error), VKF_INVALID_ARGUMENT, "there are 2");
  vkf_encodings_free(encodings);
  FAILS(vkf_tokenizer_token_to_id(tokenizer, "no such token", &id, error), VKF_NOT_FOUND,
        "no such token");
  FAILS(vkf_tokenizer_encode(tokenizer, words, 1, NULL, NULL, error), VKF_INVALID_ARGUMENT, "null");
  words[1] = NULL;
  FAILS(vkf_tokenizer_encode(tokenizer, words, 2, NULL, &encodings, error), VKF_INVALID_ARGUMENT,
        "number 1 of 2");
  words[1] = "\xff";
  FAILS(vkf_tokenizer_encode(tokenizer, words, 2, NULL, &encodings, error), VKF_INVALID_ARGUMENT,
        "UTF-8");
  options.flags = 1u << 20;
  FAILS(vkf_tokenizer_encode(tokenizer, words, 1, &options, &encodings, error), VKF_UNSUPPORTED,
        "bits");
  options.flags = 0;
  options.padding = 9;
  FAILS(vkf_tokenizer_encode(tokenizer, words, 1, &options, &encodings, error),
        VKF_INVALID_ARGUMENT, "[padding]");
  ids.ids = &bad_id;
  ids.count = 1;
  FAILS(vkf_tokenizer_decode(tokenizer, ids, 0, &text, error), VKF_INVALID_ARGUMENT, "-3");

  /* the stream keeps the tokenizer alive, and gives what decode gives */
  OK(vkf_tokenizer_encode_pair(tokenizer, "all", "you", NULL, &encodings, error));
  OK(vkf_encodings_get(encodings, 0, &encoding, error));
  ids.ids = encoding.ids;
  ids.count = encoding.count;
  OK(vkf_tokenizer_decode(tokenizer, ids, VKF_DECODE_SPECIAL_TOKENS, &text, error));
  OK(vkf_decode_stream_create(tokenizer, VKF_DECODE_SPECIAL_TOKENS, &stream, error));
  vkf_tokenizer_free(tokenizer);
  {
    char joined[256] = "";
    size_t i;
    vkf_bytes* piece = NULL;
    for (i = 0; i < encoding.count; ++i) {
      OK(vkf_decode_stream_push(stream, encoding.ids[i], &piece, error));
      strncat(joined, vkf_bytes_text(piece), sizeof joined - strlen(joined) - 1);
      vkf_bytes_free(piece);
    }
    OK(vkf_decode_stream_finish(stream, &piece, error));
    strncat(joined, vkf_bytes_text(piece), sizeof joined - strlen(joined) - 1);
    vkf_bytes_free(piece);
    CHECK(strcmp(joined, vkf_bytes_text(text)) == 0 && joined[0] != '\0');
  }
  vkf_bytes_free(text);
  vkf_decode_stream_free(stream);
  vkf_encodings_free(encodings);
}

static vkf_pixels square_of(int32_t format, const uint8_t* bytes, size_t count, int32_t side) {
  vkf_pixels pixels = {0};
  pixels.struct_size = sizeof pixels;
  pixels.format = format;
  pixels.bytes = bytes;
  pixels.byte_count = count;
  pixels.width = pixels.height = side;
  return pixels;
}

static void test_pictures(void) {
  const uint8_t red[2 * 2 * 4] = {255, 0, 0, 9, 255, 0, 0, 9, 255, 0, 0, 9, 255, 0, 0, 9};
  const float patches[4] = {0, 1, 0.5f, 0.25f};
  float values[3 * 4 * 4];
  double region[4] = {1, 1, 1, 1};
  const vkf_picture* batch[1];
  vkf_picture* picture = NULL;
  vkf_picture* decoded = NULL;
  vkf_picture_processor* processor = NULL;
  vkf_tensors* tensors = NULL;
  vkf_bytes* png = NULL;
  vkf_pixels pixels = square_of(VKF_RGBA8, red, sizeof red, 2);
  vkf_picture_settings settings = {0};
  vkf_overlay overlay = {0};
  settings.struct_size = sizeof settings;
  overlay.struct_size = sizeof overlay;
  OK(vkf_picture_from_pixels(&pixels, &picture, error));
  OK(vkf_picture_get(picture, &pixels, error));
  CHECK(pixels.format == VKF_RGB8 && pixels.byte_count == 12 && pixels.stride == 6);
  CHECK(((const uint8_t*)pixels.bytes)[3] == 255 && ((const uint8_t*)pixels.bytes)[4] == 0);
  settings.width = settings.height = 4;
  OK(vkf_picture_processor_create(&settings, &processor, error));
  OK(vkf_picture_processor_settings(processor, &settings, error));
  CHECK(settings.width == 4 && settings.shortest_edge == 224 && settings.resampling == 2);
  CHECK(settings.mean[2] == 0.5 && fabs(settings.rescale * 255 - 1) < 1e-12);
  batch[0] = picture;
  OK(vkf_picture_processor_run(processor, batch, 1, &tensors, error));
  OK(vkf_tensors_get_floats(tensors, "pixel_values", values, 48, error));
  CHECK(values[0] == 1.0f && values[47] == -1.0f);
  vkf_tensors_free(tensors);
  batch[0] = NULL;
  FAILS(vkf_picture_processor_run(processor, batch, 1, &tensors, error), VKF_INVALID_ARGUMENT,
        "[picture]");
  OK(vkf_picture_processor_seen(processor, 8, 6, region, error));
  CHECK(region[0] == 0 && region[1] == 0 && region[2] == 8 && region[3] == 6);
  CHECK(vkf_picture_processor_seen(processor, 0, 6, region, error) == VKF_INVALID_ARGUMENT);
  settings.resampling = 44;
  vkf_picture_processor_free(processor);
  FAILS(vkf_picture_processor_create(&settings, &processor, error), VKF_INVALID_ARGUMENT, "44");
  overlay.rows = overlay.columns = 2;
  overlay.values = patches;
  OK(vkf_overlay_png(picture, &overlay, &png, error));
  OK(vkf_picture_decode(vkf_bytes_data(png), vkf_bytes_size(png), "overlay.png", &decoded, error));
  pixels.struct_size = sizeof pixels;
  OK(vkf_picture_get(decoded, &pixels, error));
  CHECK(pixels.width == 2 && pixels.height == 2);
  vkf_picture_free(decoded);
  FAILS(vkf_picture_decode("abc", 3, "abc.png", &decoded, error), VKF_UNSUPPORTED, "abc.png");
  CHECK(decoded == NULL);
  FAILS(vkf_picture_load("absent.png", &decoded, error), VKF_NOT_FOUND, "absent.png");
  pixels.format = -1;
  pixels.struct_size = sizeof pixels;
  pixels.bytes = red;
  FAILS(vkf_picture_from_pixels(&pixels, &decoded, error), VKF_INVALID_ARGUMENT, "[format]");
  vkf_bytes_free(png);
  vkf_picture_free(picture);
}

/* The settings that a model's directory states; `directory` is of a model for 32 x 32 pixels. */
static void test_processor_of_model(const char* directory) {
  const uint8_t white[3] = {255, 255, 255};
  const vkf_picture* batch[2];
  float values[2 * 3 * 32 * 32];
  vkf_pixels pixels = square_of(VKF_RGB8, white, sizeof white, 1);
  vkf_tensor view = {0};
  vkf_picture* picture = NULL;
  vkf_picture_processor* processor = NULL;
  vkf_tensors* tensors = NULL;
  view.struct_size = sizeof view;
  OK(vkf_picture_from_pixels(&pixels, &picture, error));
  OK(vkf_picture_processor_load(directory, &processor, error));
  batch[0] = batch[1] = picture;
  OK(vkf_picture_processor_run(processor, batch, 2, &tensors, error));
  OK(vkf_tensors_get(tensors, "pixel_values", &view, error));
  CHECK(view.rank == 4 && view.shape[0] == 2 && view.shape[1] == 3 && view.shape[3] == 32);
  OK(vkf_tensors_get_floats(tensors, "pixel_values", values, 2 * 3 * 32 * 32, error));
  CHECK(fabs(values[0] - 1) < 1e-6 && fabs(values[2 * 3 * 32 * 32 - 1] - 1) < 1e-6);
  vkf_tensors_free(tensors);
  vkf_picture_processor_free(processor);
  vkf_picture_free(picture);
  FAILS(vkf_picture_processor_load("absent", &processor, error), VKF_NOT_FOUND,
        "absent");
  FAILS(vkf_picture_processor_load(NULL, &processor, error), VKF_INVALID_ARGUMENT, "directory");
}

/* (16,100) of a sound. */
static void hear(const vkf_log_mel* features, const float* wave, size_t count, int32_t rate,
                 float heard[16 * 100]) {
  vkf_sound* sound = NULL;
  vkf_tensors* tensors = NULL;
  OK(vkf_sound_create(wave, count, rate, &sound, error));
  OK(vkf_log_mel_run(features, sound, &tensors, error));
  OK(vkf_tensors_get_floats(tensors, "input_features", heard, 16 * 100, error));
  vkf_tensors_free(tensors);
  vkf_sound_free(sound);
}

/* `directory` is of a model that hears 16 bands of a second, 100 frames. */
static void test_log_mel(const char* directory) {
  static float wave[16000];
  static float silence[16 * 100];
  static float tone[16 * 100];
  vkf_log_mel_info info = {0};
  vkf_log_mel* features = NULL;
  vkf_tensors* tensors = NULL;
  size_t i;
  info.struct_size = sizeof info;
  OK(vkf_log_mel_load(directory, &features, error));
  OK(vkf_log_mel_get_info(features, &info, error));
  CHECK(info.sampling_rate == 16000 && info.chunk_samples == 16000);
  CHECK(info.mel_bands == 16 && info.frames == 100);
  hear(features, wave, 16000, 16000, silence);
  /* log10 of the floor 1e-10, plus 4, by 4 (Radford et al., 2022). */
  for (i = 0; i < 16 * 100; ++i) CHECK(fabs(silence[i] + 1.5) < 1e-4);
  for (i = 0; i < 16000; ++i) wave[i] = (float)sin((double)i * 0.1);
  hear(features, wave, 16000, 16000, tone);
  /* 255 Hz: a low band is louder than the highest. */
  CHECK(tone[1 * 100 + 50] > tone[15 * 100 + 50] + 0.5f);
  /* Another rate is resampled. */
  hear(features, wave, 800, 8000, tone);
  FAILS(vkf_log_mel_run(features, NULL, &tensors, error), VKF_INVALID_ARGUMENT, "sound");
  vkf_log_mel_free(features);
}

static void test_sound(void) {
  float wave[800];
  vkf_sound* sound = NULL;
  vkf_sound* other = NULL;
  vkf_log_mel* features = NULL;
  vkf_file wav = {"noise.wav", "RIFFxxxx", 8};
  size_t i;
  for (i = 0; i < 800; ++i) wave[i] = (float)sin((double)i * 0.1);
  OK(vkf_sound_create(wave, 800, 8000, &sound, error));
  CHECK(vkf_sound_count(sound) == 800 && vkf_sound_sampling_rate(sound) == 8000);
  CHECK(vkf_sound_samples(sound) != wave && vkf_sound_samples(sound)[5] == wave[5]);
  OK(vkf_sound_resample(sound, 16000, &other, error));
  CHECK(vkf_sound_count(other) == 1600 && vkf_sound_sampling_rate(other) == 16000);
  vkf_sound_free(other);
  FAILS(vkf_sound_resample(sound, 1, &other, error), VKF_INVALID_ARGUMENT, "1");
  FAILS(vkf_sound_decode(&wav, 0, &other, error), VKF_INVALID_FILE, "noise.wav");
  FAILS(vkf_sound_decode(NULL, 0, &other, error), VKF_INVALID_ARGUMENT, "wav");
  FAILS(vkf_sound_load("absent.wav", 0, &other, error), VKF_NOT_FOUND, "absent.wav");
  FAILS(vkf_log_mel_load("absent", &features, error), VKF_NOT_FOUND, "absent");
  vkf_sound_free(sound);
}

static void test_views(void) {
  const float values[2] = {0.25f, 0.75f};
  const char* rows[1] = {"a"};
  const char* columns[2] = {"b", "c"};
  const char* two[2] = {"x", "y"};
  const vkf_maps* list[1];
  int32_t layer = -1;
  const float* weights = NULL;
  vkf_maps* maps = make_maps();
  vkf_maps* mean = NULL;
  vkf_maps* rollout = NULL;
  vkf_bytes* page = NULL;
  vkf_bytes* png = NULL;
  vkf_maps_info info = {0};
  vkf_heat_map map = {0};
  info.struct_size = sizeof info;
  map.struct_size = sizeof map;
  OK(vkf_maps_mean(maps, &mean, error));
  OK(vkf_maps_get(mean, &info, error));
  CHECK(info.heads == 1 && info.first_head == -1);
  OK(vkf_maps_get_layer(mean, 0, &layer, &weights, error));
  CHECK(layer == 0 && weights[0] == 0.625f && weights[1] == 0.375f);
  FAILS(vkf_maps_get_layer(mean, 1, &layer, &weights, error), VKF_INVALID_ARGUMENT, "[layer]");
  OK(vkf_maps_rollout(maps, &rollout, error));
  OK(vkf_maps_set_labels(maps, two, two, error));
  list[0] = maps;
  OK(vkf_maps_html(list, 1, "Weights of two tokens", &page, error));
  CHECK(strstr(vkf_bytes_text(page), "Weights of two tokens") != NULL);
  map.values = values;
  map.rows = 1;
  map.columns = 2;
  map.row_labels = rows;
  map.column_labels = columns;
  OK(vkf_heat_map_png(&map, NULL, &png, error));
  CHECK(vkf_bytes_size(png) > 8 && memcmp(vkf_bytes_data(png), "\x89PNG", 4) == 0);
  map.rows = -1;
  vkf_bytes_free(png);
  FAILS(vkf_heat_map_png(&map, NULL, &png, error), VKF_INVALID_ARGUMENT, "-1 rows");
  vkf_bytes_free(page);
  vkf_maps_free(rollout);
  vkf_maps_free(mean);
  vkf_maps_free(maps);
}

/* Scores that are all alike: a head that attends to everything. */
static void test_heads(void) {
  const float scores[4] = {0, 0, 0, 0};
  const float entropy[2] = {0.69314718f, 0.69314718f};
  const float* entropies[1];
  const int64_t shape[4] = {1, 1, 2, 2};
  vkf_tensor tensor = {0};
  vkf_measured_pass pass = {NULL, NULL};
  vkf_head_options options = {0};
  vkf_head head = {0};
  vkf_tensors* tensors = NULL;
  vkf_maps* maps = NULL;
  vkf_heads* heads = NULL;
  options.struct_size = sizeof options;
  head.struct_size = sizeof head;
  tensor.struct_size = sizeof tensor;
  tensor.shape = shape;
  tensor.rank = 4;
  tensor.data = scores;
  tensor.bytes = sizeof scores;
  entropies[0] = entropy;
  OK(vkf_tensors_create(&tensors, error));
  OK(vkf_tensors_set(tensors, "attentions.0", &tensor, error));
  OK(vkf_maps_from(tensors, "self", 0, &maps, error));
  pass.scores = maps;
  FAILS(vkf_heads_measure(&pass, 1, NULL, &heads, error), VKF_INVALID_ARGUMENT, "[entropies]");
  pass.entropies = entropies;
  OK(vkf_heads_measure(&pass, 1, &options, &heads, error));
  CHECK(vkf_heads_count(heads) == 1);
  OK(vkf_heads_get(heads, 0, &head, error));
  CHECK(head.state == VKF_HEAD_COLLAPSED && head.rows == 2 && head.score_variance == 0);
  CHECK(fabs(head.most_entropy - 0.69314718) < 1e-6 && fabs(head.entropy - 0.69314718) < 1e-6);
  FAILS(vkf_heads_get(heads, 1, &head, error), VKF_INVALID_ARGUMENT, "[head]");
  vkf_heads_free(heads);
  options.temperature = -1;
  CHECK(vkf_heads_measure(&pass, 1, &options, &heads, error) == VKF_INVALID_ARGUMENT);
  vkf_maps_free(maps);
  vkf_tensors_free(tensors);
}

static void test_descriptions(const char* model) {
  vkf_description* description = NULL;
  vkf_families* families = NULL;
  vkf_strings* names = NULL;
  vkf_model_info info = {0};
  vkf_tensor_info tensor = {0};
  vkf_family family = {0};
  const char* name = NULL;
  int64_t id = 0;
  size_t i;
  int found = 0;
  info.struct_size = sizeof info;
  tensor.struct_size = sizeof tensor;
  family.struct_size = sizeof family;
  FAILS(vkf_describe_directory("absent", &description, error), VKF_NOT_FOUND, "absent");
  OK(vkf_describe_directory(model, &description, error));
  OK(vkf_description_get(description, &info, error));
  CHECK(strcmp(info.kind, "encoder-decoder") == 0 && info.decoder_layers > 0 && info.width > 0);
  CHECK(info.task_count > 0 && info.tensor_count > 10 && info.parameters > 1000000);
  for (i = 0; i < info.task_count; ++i) found |= strcmp(info.tasks[i], "generate") == 0;
  CHECK(found);
  OK(vkf_description_get_tensor(description, 0, &tensor, error));
  CHECK(tensor.rank > 0 && tensor.name[0] != '\0' && tensor.shape[0] > 0);
  FAILS(vkf_description_get_tensor(description, info.tensor_count, &tensor, error),
        VKF_INVALID_ARGUMENT, "[tensor]");
  FAILS(vkf_description_get_prompt_token(description, info.prompt_token_count, &name, &id, error),
        VKF_INVALID_ARGUMENT, "[prompt token]");
  OK(vkf_families_list(&families, error));
  CHECK(vkf_families_count(families) > 20);
  OK(vkf_families_get(families, 0, &family, error));
  CHECK(family.family[0] != '\0' && family.head_count > 0 && family.heads[0][0] != '\0');
  OK(vkf_operator_names(&names, error));
  found = 0;
  for (i = 0; i < vkf_strings_count(names); ++i) {
    found |= strcmp(vkf_strings_get(names, i), "softmax") == 0;
  }
  CHECK(found && vkf_strings_get(names, vkf_strings_count(names)) == NULL);
  vkf_strings_free(names);
  vkf_families_free(families);
  vkf_description_free(description);
}

static void test_stop_strings(void) {
  const char* stops[2] = {"END", "\nQ:"};
  const char* missing[1] = {NULL};
  vkf_stop_strings* made = NULL;
  vkf_bytes* text = NULL;
  FAILS(vkf_stop_strings_create(missing, 1, &made, error), VKF_INVALID_ARGUMENT, "stop strings");
  OK(vkf_stop_strings_create(stops, 2, &made, error));
  OK(vkf_stop_strings_push(made, "one E", &text, error));
  CHECK(strcmp(vkf_bytes_text(text), "one ") == 0); /* E may be the beginning of END */
  vkf_bytes_free(text);
  OK(vkf_stop_strings_push(made, "N\nQ", &text, error));
  CHECK(strcmp(vkf_bytes_text(text), "EN") == 0 && vkf_stop_strings_stopped(made) == 0);
  vkf_bytes_free(text);
  OK(vkf_stop_strings_push(made, ": two", &text, error));
  CHECK(vkf_bytes_size(text) == 0 && vkf_stop_strings_stopped(made) == 1);
  vkf_bytes_free(text);
  OK(vkf_stop_strings_finish(made, &text, error));
  CHECK(vkf_bytes_size(text) == 0);
  vkf_bytes_free(text);
  FAILS(vkf_stop_strings_push(made, NULL, &text, error), VKF_INVALID_ARGUMENT, "piece");
  vkf_stop_strings_free(made);
}

/* Into a folder beside the test, and read back. */
static void test_quantize(const char* model) {
  vkf_quantize_options options = {0};
  vkf_quantize_report report = {0};
  vkf_description* description = NULL;
  options.struct_size = sizeof options;
  report.struct_size = sizeof report;
  FAILS(vkf_quantize_model(NULL, "there", NULL, NULL, error), VKF_INVALID_ARGUMENT, "model");
  FAILS(vkf_quantize_model("absent", "c_quantized", NULL, NULL, error), VKF_NOT_FOUND,
        "absent");
  options.weights = "q3";
  FAILS(vkf_quantize_model(model, "c_quantized", &options, NULL, error), VKF_INVALID_ARGUMENT,
        "q3");
  options.weights = "q4";
  OK(vkf_quantize_model(model, "c_quantized", &options, &report, error));
  CHECK(report.matrices > 10 && report.tensors > report.matrices);
  CHECK(report.bytes_after < report.bytes_before && report.bytes_after > 0);
  OK(vkf_describe_directory("c_quantized", &description, error));
  vkf_description_free(description);
}

static void test_pack(const char* model) {
  vkf_pack_options options = {0};
  vkf_pack_report report = {0};
  vkf_gguf_options gguf = {0};
  vkf_source* source = NULL;
  const char* adapters[1] = {"absent"};
  int digits = 0, i;
  options.struct_size = sizeof options;
  report.struct_size = sizeof report;
  gguf.struct_size = sizeof gguf;
  FAILS(vkf_pack_model(NULL, "c_packed", NULL, NULL, error), VKF_INVALID_ARGUMENT, "model");
  FAILS(vkf_pack_model(model, NULL, NULL, NULL, error), VKF_INVALID_ARGUMENT, "target");
  FAILS(vkf_pack_model("absent", "c_packed", NULL, NULL, error), VKF_NOT_FOUND, "absent");
  options.weights = "q3";
  FAILS(vkf_pack_model(model, "c_packed", &options, NULL, error), VKF_INVALID_ARGUMENT, "q3");
  options.weights = NULL;
  options.adapters = adapters;
  options.adapter_count = 1;
  FAILS(vkf_pack_model(model, "c_packed", &options, NULL, error), VKF_NOT_FOUND, "absent");
  options.adapter_count = 0;
  OK(vkf_pack_model(model, "c_packed", &options, &report, error));
  CHECK(report.size > 1000 && report.files >= 2);
  for (i = 0; i < 32; ++i) digits += report.sha256[i] != 0;
  CHECK(digits > 16);
  OK(vkf_source_pack("c_packed", 0, &source, error));
  vkf_source_free(source);
  FAILS(vkf_write_gguf(NULL, "c.gguf", NULL, NULL, error), VKF_INVALID_ARGUMENT, "model");
  FAILS(vkf_write_gguf("absent", "c.gguf", NULL, NULL, error), VKF_NOT_FOUND, "absent");
  gguf.weights = "q8";
  FAILS(vkf_write_gguf(model, "c.gguf", &gguf, NULL, error), VKF_INVALID_ARGUMENT, "q8_0");
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: values_test MODEL PICTURE_MODEL SOUND_MODEL\n");
    return 2;
  }
  error = vkf_error_create();
  test_versions();
  test_errors();
  test_null_handles();
  test_null_arguments();
  test_tensors();
  test_tokenizer(argv[1]);
  test_pictures();
  test_processor_of_model(argv[2]);
  test_sound();
  test_log_mel(argv[3]);
  test_views();
  test_heads();
  test_descriptions(argv[1]);
  test_stop_strings();
  test_quantize(argv[1]);
  test_pack(argv[1]);
  vkf_error_free(error);
  return summary("values_test");
}
