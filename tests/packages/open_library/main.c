/* A C program that links to no vkformer: it opens the library that it is given, as engines open plugins. It needs
 * the C headers alone. Prints the ids of a word's tokens.
 *   open_library LIBRARY MODEL WORD */
#include <stdio.h>
#include <vkformer/vkformer.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

static void* symbol_of(void* library, const char* name) {
#ifdef _WIN32
  return (void*)GetProcAddress((HMODULE)library, name);
#else
  return dlsym(library, name);
#endif
}

static void* open_library(const char* path) {
#ifdef _WIN32
  return (void*)LoadLibraryA(path);
#else
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
#endif
}

/* A function of the headers, by their own declaration of it. */
#define FUNCTION(name) __typeof__(&name) my_##name = (__typeof__(&name))symbol_of(library, #name)

int main(int argc, char** argv) {
  vkf_encoding encoding = {.struct_size = sizeof encoding};
  vkf_tokenizer* tokenizer = NULL;
  vkf_encodings* encodings = NULL;
  vkf_error* error;
  const char* word;
  void* library;
  size_t i;
  if (argc != 4) return 2;
  library = open_library(argv[1]);
  if (!library) {
    fprintf(stderr, "[%s] cannot be opened.\n", argv[1]);
    return 1;
  }
  FUNCTION(vkf_api_version);
  FUNCTION(vkf_error_create);
  FUNCTION(vkf_error_message);
  FUNCTION(vkf_error_free);
  FUNCTION(vkf_tokenizer_load);
  FUNCTION(vkf_tokenizer_encode);
  FUNCTION(vkf_tokenizer_free);
  FUNCTION(vkf_encodings_get);
  FUNCTION(vkf_encodings_free);
  if (my_vkf_api_version() != VKF_API_VERSION) {
    fprintf(stderr, "The library has version %u of the C interface; the headers have %u.\n", (unsigned)my_vkf_api_version(),
            (unsigned)VKF_API_VERSION);
    return 1;
  }
  word = argv[3];
  error = my_vkf_error_create();
  if (my_vkf_tokenizer_load(argv[2], &tokenizer, error) != VKF_OK ||
      my_vkf_tokenizer_encode(tokenizer, &word, 1, NULL, &encodings, error) != VKF_OK ||
      my_vkf_encodings_get(encodings, 0, &encoding, error) != VKF_OK) {
    fprintf(stderr, "%s\n", my_vkf_error_message(error));
    return 1;
  }
  printf("%s:", word);
  for (i = 0; i < encoding.count; ++i) printf(" %ld", (long)encoding.ids[i]);
  printf("\n");
  my_vkf_encodings_free(encodings);
  my_vkf_tokenizer_free(tokenizer);
  my_vkf_error_free(error);
  return 0;
}
