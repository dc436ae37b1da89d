/* The smallest C program around vkformer: spelling in, phonemes out.
 *
 * Build it against the installed library with the CMakeLists.txt beside this file, or with
 *   cc -std=c99 main.c -o embed_c $(pkg-config --cflags --libs vkformer)
 * and run it with
 *   embed_c models/g2p-en attention is all you need
 */
#include <stdio.h>
#include <vkformer/vkformer.h>

struct pronouncer {
  vkf_error* error;
  vkf_tokenizer* tokenizer;
  vkf_session* session;
};

/* Whether everything could be loaded. The session keeps device and model alive. */
static int load(struct pronouncer* p, const char* directory) {
  vkf_device* device = NULL;
  vkf_model* model = NULL;
  int loaded = vkf_tokenizer_load(directory, &p->tokenizer, p->error) == VKF_OK &&
               vkf_device_create(NULL, &device, p->error) == VKF_OK &&
               vkf_model_load(device, directory, NULL, &model, p->error) == VKF_OK &&
               vkf_session_create(model, NULL, &p->session, p->error) == VKF_OK;
  vkf_model_free(model);
  vkf_device_free(device);
  return loaded;
}

/* Prints a word and its phonemes; whether that succeeded. */
static int pronounce(struct pronouncer* p, const char* word) {
  vkf_encoding encoding = {.struct_size = sizeof encoding};
  vkf_sequence sequence = {.struct_size = sizeof sequence};
  vkf_encodings* encodings = NULL;
  vkf_generation* generation = NULL;
  vkf_bytes* text = NULL;
  vkf_ids row = {NULL, 0};
  int done = 0;
  if (vkf_tokenizer_encode(p->tokenizer, &word, 1, NULL, &encodings, p->error) == VKF_OK &&
      vkf_encodings_get(encodings, 0, &encoding, p->error) == VKF_OK) {
    row.ids = encoding.ids;
    row.count = encoding.count;
    done = vkf_session_generate(p->session, &row, 1, NULL, &generation, p->error) == VKF_OK &&
           vkf_generation_get(generation, 0, 0, &sequence, p->error) == VKF_OK &&
           vkf_tokenizer_decode(p->tokenizer, sequence.ids, 0, &text, p->error) == VKF_OK;
  }
  if (done) printf("%s\t%s\n", word, vkf_bytes_text(text));
  vkf_bytes_free(text);
  vkf_generation_free(generation);
  vkf_encodings_free(encodings);
  return done;
}

int main(int argc, char** argv) {
  struct pronouncer p = {NULL, NULL, NULL};
  int i, done;
  if (argc < 3) {
    fprintf(stderr, "usage: embed_c MODEL WORD...\n");
    return 2;
  }
  p.error = vkf_error_create();
  done = load(&p, argv[1]);
  for (i = 2; done && i < argc; ++i) done = pronounce(&p, argv[i]);
  if (!done) fprintf(stderr, "embed_c: %s\n", vkf_error_message(p.error));
  vkf_session_free(p.session);
  vkf_tokenizer_free(p.tokenizer);
  vkf_error_free(p.error);
  return done ? 0 : 1;
}
