/* Examples of values: versions, errors, lists and tensors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples.h"

const char* path_in(char* path, const char* folder, const char* name) {
  snprintf(path, PATH_BYTES, "%s/%s", folder, name);
  return path;
}

void* read_whole_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  void* bytes = NULL;
  long end = -1;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0) end = ftell(file);
  if (end > 0 && fseek(file, 0, SEEK_SET) == 0) bytes = malloc((size_t)end);
  if (bytes != NULL && fread(bytes, 1, (size_t)end, file) != (size_t)end) {
    free(bytes);
    bytes = NULL;
  }
  fclose(file);
  *size = bytes != NULL ? (size_t)end : 0;
  return bytes;
}

static int show_version(void) {
  //! [vkf_version_text vkf_api_version]
  // Checks that the library is at least as new as the header that the program was built with.
  printf("vkformer %s\n", vkf_version_text());
  const int new_enough = vkf_api_version() >= VKF_API_VERSION;
  if (!new_enough) fprintf(stderr, "Install a newer libvkformer.\n");
  //! [end]
  return new_enough;
}

static int show_errors(void) {
  //! [vkf_error_create vkf_error_status vkf_error_message vkf_error_free vkf_status_name]
  // Prints the reason of a failure. One error object serves all calls of a thread.
  vkf_error* error = vkf_error_create();
  vkf_tokenizer* tokenizer = NULL;
  const int failed = vkf_tokenizer_load("absent", &tokenizer, error) != VKF_OK;
  if (failed) {
    fprintf(stderr, "%s: %s\n", vkf_status_name(vkf_error_status(error)), vkf_error_message(error));
  }
  vkf_tokenizer_free(tokenizer);
  vkf_error_free(error);
  //! [end]
  return failed;
}

static int show_lists(vkf_error* error) {
  //! [vkf_operator_names vkf_strings_count vkf_strings_get vkf_strings_free]
  // Lists the operators that vkf_operator_run knows.
  vkf_strings* names = NULL;
  const int ok = vkf_operator_names(&names, error) == VKF_OK;
  for (size_t i = 0; i < vkf_strings_count(names); ++i) puts(vkf_strings_get(names, i));
  vkf_strings_free(names);
  //! [end]
  return ok;
}

static int show_tensors(vkf_tensors* tensors, vkf_error* error) {
  //! [vkf_tensors_set vkf_tensors_get_ints vkf_tensors_get_floats]
  // Copies token ids and values in by name, and out again.
  const int64_t shape[2] = {1, 4};
  const int64_t ids[4] = {2, 15, 9, 3};
  const float values[4] = {0.5f, 1, -1, 2};
  vkf_tensor tensor = {.struct_size = sizeof tensor, .shape = shape, .rank = 2};
  tensor.dtype = VKF_I64;
  tensor.data = ids;
  tensor.bytes = sizeof ids;
  int ok = vkf_tensors_set(tensors, "input_ids", &tensor, error) == VKF_OK;
  tensor.dtype = VKF_F32;
  tensor.data = values;
  tensor.bytes = sizeof values;
  int64_t ids_back[4];
  float values_back[4];
  ok = ok && vkf_tensors_set(tensors, "values", &tensor, error) == VKF_OK &&
       vkf_tensors_get_ints(tensors, "input_ids", ids_back, 4, error) == VKF_OK &&
       vkf_tensors_get_floats(tensors, "values", values_back, 4, error) == VKF_OK;
  //! [end]
  return ok && memcmp(ids, ids_back, sizeof ids) == 0 && values_back[3] == 2;
}

static int show_tensor_files(const vkf_tensors* tensors, const char* path, vkf_error* error) {
  //! [vkf_tensors_write vkf_tensors_read vkf_tensors_count vkf_tensors_name vkf_tensors_get]
  //! [vkf_tensors_free]
  // Writes tensors as a safetensors file, reads them again, and lists their sizes.
  vkf_tensors* read = NULL;
  int ok = vkf_tensors_write(tensors, path, error) == VKF_OK &&
           vkf_tensors_read(path, &read, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_tensors_count(read); ++i) {
    const char* name = vkf_tensors_name(read, i);
    vkf_tensor tensor = {.struct_size = sizeof tensor};
    ok = vkf_tensors_get(read, name, &tensor, error) == VKF_OK;
    if (ok) printf("%s: %zu bytes\n", name, tensor.bytes);
  }
  vkf_tensors_free(read);
  //! [end]
  return ok;
}

static int show_heat_map(const char* path, vkf_error* error) {
  //! [vkf_heat_map_png vkf_bytes_data vkf_bytes_size vkf_bytes_free]
  // Draws a matrix of weights into a PNG file.
  const float weights[6] = {1, 0, 0, 0.25f, 0.75f, 0};
  const vkf_heat_map map = {.struct_size = sizeof map, .values = weights, .rows = 2, .columns = 3};
  vkf_bytes* png = NULL;
  int ok = vkf_heat_map_png(&map, NULL, &png, error) == VKF_OK;
  FILE* file = ok ? fopen(path, "wb") : NULL;
  if (file != NULL) {
    fwrite(vkf_bytes_data(png), 1, vkf_bytes_size(png), file);
    fclose(file);
  }
  vkf_bytes_free(png);
  //! [end]
  return ok && file != NULL;
}

int show_c_values(const c_setting* setting) {
  char path[PATH_BYTES];
  vkf_error* error = setting->error;
  if (!show_version() || !show_errors() || !show_lists(error)) return 0;
  //! [vkf_tensors_create]
  // Makes an empty collection, to which vkf_tensors_set adds tensors.
  vkf_tensors* tensors = NULL;
  int ok = vkf_tensors_create(&tensors, error) == VKF_OK;
  //! [end]
  ok = ok && show_tensors(tensors, error) &&
       show_tensor_files(tensors, path_in(path, setting->scratch, "c.safetensors"), error) &&
       show_heat_map(path_in(path, setting->scratch, "c_heat_map.png"), error);
  vkf_tensors_free(tensors);
  return ok;
}
