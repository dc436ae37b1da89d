/* Examples of texts: tokenizers, streams, stop strings, grammars, chat templates. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples.h"

static int show_loading(const char* directory, vkf_error* error) {
  //! [vkf_tokenizer_load vkf_tokenizer_vocab_size vkf_tokenizer_free]
  // Loads the tokenizer of a model directory.
  vkf_tokenizer* tokenizer = NULL;
  const int ok = vkf_tokenizer_load(directory, &tokenizer, error) == VKF_OK;
  printf("%zu tokens\n", vkf_tokenizer_vocab_size(tokenizer));
  vkf_tokenizer_free(tokenizer);
  //! [end]
  return ok;
}

static int show_encoding(const vkf_tokenizer* tokenizer, vkf_error* error) {
  //! [vkf_tokenizer_encode vkf_tokenizer_decode vkf_bytes_text]
  // Text to token ids, and back.
  const char* const text = "KING RICHARD:";
  vkf_encodings* encodings = NULL;
  vkf_encoding encoding = {.struct_size = sizeof encoding};
  vkf_bytes* back = NULL;
  int ok = vkf_tokenizer_encode(tokenizer, &text, 1, NULL, &encodings, error) == VKF_OK &&
           vkf_encodings_get(encodings, 0, &encoding, error) == VKF_OK;
  const vkf_ids ids = {encoding.ids, encoding.count};
  ok = ok && vkf_tokenizer_decode(tokenizer, ids, 0, &back, error) == VKF_OK;
  printf("%zu tokens of [%s]\n", ids.count, vkf_bytes_text(back));
  vkf_bytes_free(back);
  vkf_encodings_free(encodings);
  //! [end]
  return ok;
}

static int show_batch(const vkf_tokenizer* tokenizer, vkf_error* error) {
  //! [vkf_encodings_count vkf_encodings_get vkf_encodings_free]
  // Two texts as the rows of one batch, each padded to 16 tokens.
  const char* const texts[2] = {"O Romeo", "Farewell"};
  const vkf_encode_options options = {.struct_size = sizeof options,
                                      .flags = VKF_ENCODE_PAD_ID,
                                      .padding = VKF_TO_LENGTH,
                                      .padded_length = 16};
  vkf_encodings* rows = NULL;
  int ok = vkf_tokenizer_encode(tokenizer, texts, 2, &options, &rows, error) == VKF_OK;
  for (size_t i = 0; ok && i < vkf_encodings_count(rows); ++i) {
    vkf_encoding row = {.struct_size = sizeof row};
    ok = vkf_encodings_get(rows, i, &row, error) == VKF_OK;
    if (ok) printf("row %zu: %zu ids\n", i, row.count);
  }
  vkf_encodings_free(rows);
  //! [end]
  return ok;
}

static int show_pair(const vkf_tokenizer* tokenizer, vkf_error* error) {
  //! [vkf_tokenizer_encode_pair]
  // Two texts that belong together, such as a question and its context.
  vkf_encodings* encodings = NULL;
  vkf_encoding pair = {.struct_size = sizeof pair};
  const int ok = vkf_tokenizer_encode_pair(tokenizer, "Who speaks?", "Juliet speaks.", NULL,
                                           &encodings, error) == VKF_OK &&
                 vkf_encodings_get(encodings, 0, &pair, error) == VKF_OK;
  if (ok) printf("%zu tokens of two texts\n", pair.count);
  vkf_encodings_free(encodings);
  //! [end]
  return ok;
}

static int show_parsing(const void* json, size_t size, vkf_error* error) {
  //! [vkf_tokenizer_parse]
  // Makes a tokenizer of the content of tokenizer.json, as from a game's archive.
  vkf_tokenizer* tokenizer = NULL;
  const int ok =
      vkf_tokenizer_parse(json, size, "archive/tokenizer.json", &tokenizer, error) == VKF_OK;
  vkf_tokenizer_free(tokenizer);
  //! [end]
  return ok;
}

static int show_tokens(const vkf_tokenizer* tokenizer, vkf_error* error) {
  //! [vkf_tokenizer_id_to_token vkf_tokenizer_token_to_id vkf_tokenizer_token_bytes]
  // What one token is called, and which bytes it adds to a text.
  vkf_bytes* token = NULL;
  vkf_bytes* bytes = NULL;
  int64_t id = 0;
  const int ok =
      vkf_tokenizer_id_to_token(tokenizer, 10, &token, error) == VKF_OK &&
      vkf_tokenizer_token_to_id(tokenizer, vkf_bytes_text(token), &id, error) == VKF_OK &&
      vkf_tokenizer_token_bytes(tokenizer, id, &bytes, error) == VKF_OK;
  if (ok) printf("[%s]: %zu bytes\n", vkf_bytes_text(token), vkf_bytes_size(bytes));
  vkf_bytes_free(bytes);
  vkf_bytes_free(token);
  //! [end]
  return ok && id == 10;
}

static int show_stream(const vkf_tokenizer* tokenizer, vkf_ids ids, vkf_error* error) {
  //! [vkf_decode_stream_create vkf_decode_stream_push vkf_decode_stream_finish]
  //! [vkf_decode_stream_free]
  // Prints a text while its tokens arrive, in whole characters.
  vkf_decode_stream* stream = NULL;
  vkf_bytes* piece = NULL;
  int ok = vkf_decode_stream_create(tokenizer, 0, &stream, error) == VKF_OK;
  for (size_t i = 0; ok && i < ids.count; ++i) {
    ok = vkf_decode_stream_push(stream, ids.ids[i], &piece, error) == VKF_OK;
    printf("%s", vkf_bytes_text(piece));
    vkf_bytes_free(piece);
  }
  ok = ok && vkf_decode_stream_finish(stream, &piece, error) == VKF_OK;
  if (ok) printf("%s\n", vkf_bytes_text(piece));
  if (ok) vkf_bytes_free(piece);
  vkf_decode_stream_free(stream);
  //! [end]
  return ok;
}

static int show_stop_strings(vkf_error* error) {
  //! [vkf_stop_strings_create vkf_stop_strings_push vkf_stop_strings_finish]
  //! [vkf_stop_strings_stopped vkf_stop_strings_free]
  // Ends a text that arrives in pieces before "END".
  const char* const stop = "END";
  const char* const pieces[3] = {"all is well EN", "D and more", ""};
  vkf_stop_strings* stops = NULL;
  vkf_bytes* text = NULL;
  int ok = vkf_stop_strings_create(&stop, 1, &stops, error) == VKF_OK;
  for (int i = 0; ok && i < 3 && !vkf_stop_strings_stopped(stops); ++i) {
    ok = vkf_stop_strings_push(stops, pieces[i], &text, error) == VKF_OK;
    printf("%s", vkf_bytes_text(text));
    vkf_bytes_free(text);
  }
  ok = ok && vkf_stop_strings_finish(stops, &text, error) == VKF_OK;
  if (ok) printf("%s\n", vkf_bytes_text(text));  // what was held back
  if (ok) vkf_bytes_free(text);
  vkf_stop_strings_free(stops);
  //! [end]
  return ok;
}

static int show_grammars(vkf_error* error) {
  //! [vkf_grammar_from_gbnf vkf_grammar_from_json_schema vkf_grammar_matches vkf_grammar_free]
  // Checks an answer against a grammar, and an object against a JSON schema.
  const char* const schema =
      "{\"type\": \"object\", \"properties\": {\"age\": {\"type\": \"integer\"}}}";
  vkf_grammar* answer = NULL;
  vkf_grammar* object = NULL;
  int32_t first = 0, second = 0;
  const int ok =
      vkf_grammar_from_gbnf("root ::= \"yes\" | \"no\"", NULL, &answer, error) == VKF_OK &&
      vkf_grammar_matches(answer, "yes", &first, error) == VKF_OK &&
      vkf_grammar_from_json_schema(schema, &object, error) == VKF_OK &&
      vkf_grammar_matches(object, "{\"age\": 7}", &second, error) == VKF_OK;
  if (ok) printf("%s, %s\n", first ? "allowed" : "refused", second ? "valid" : "invalid");
  vkf_grammar_free(object);
  vkf_grammar_free(answer);
  //! [end]
  return ok && first && second;
}

static int show_chat_loading(const char* directory, vkf_error* error) {
  //! [vkf_chat_template_load vkf_chat_template_load_from]
  // Reads a model's chat template from its directory, or from another source.
  vkf_chat_template* chat = NULL;
  vkf_chat_template* same = NULL;
  vkf_source* source = NULL;
  const int ok = vkf_chat_template_load(directory, &chat, error) == VKF_OK &&
                 vkf_source_directory(directory, &source, error) == VKF_OK &&
                 vkf_chat_template_load_from(source, &same, error) == VKF_OK;
  vkf_source_free(source);
  vkf_chat_template_free(same);
  vkf_chat_template_free(chat);
  //! [end]
  return ok;
}

static int show_chat(vkf_error* error) {
  //! [vkf_chat_template_parse vkf_chat_template_render vkf_chat_template_free]
  // Writes a conversation as the text that a model continues.
  const char* const jinja =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";
  const vkf_message messages[2] = {{"system", "You are a guard."}, {"user", "Who goes there?"}};
  vkf_chat_template* chat = NULL;
  vkf_bytes* text = NULL;
  const int ok =
      vkf_chat_template_parse(jinja, "{\"bos_token\": \"<s>\"}", &chat, error) == VKF_OK &&
      vkf_chat_template_render(chat, messages, 2, &text, error) == VKF_OK;
  printf("%s", vkf_bytes_text(text));
  vkf_bytes_free(text);
  vkf_chat_template_free(chat);
  //! [end]
  return ok;
}

int show_c_text(const c_setting* setting) {
  static const int64_t kIds[4] = {10, 11, 12, 13};
  const vkf_ids ids = {kIds, 4};
  char directory[PATH_BYTES], path[PATH_BYTES];
  vkf_error* error = setting->error;
  vkf_tokenizer* tokenizer = NULL;
  size_t size = 0;
  path_in(directory, setting->models, "shakespeare");
  void* json = read_whole_file(path_in(path, directory, "tokenizer.json"), &size);
  const int ok = json != NULL && show_loading(directory, error) &&
                 vkf_tokenizer_load(directory, &tokenizer, error) == VKF_OK &&
                 show_encoding(tokenizer, error) && show_batch(tokenizer, error) &&
                 show_pair(tokenizer, error) && show_parsing(json, size, error) &&
                 show_tokens(tokenizer, error) && show_stream(tokenizer, ids, error) &&
                 show_stop_strings(error) && show_grammars(error) &&
                 show_chat_loading(path_in(path, setting->tasks, "prompts-llava"), error) &&
                 show_chat(error);
  vkf_tokenizer_free(tokenizer);
  free(json);
  return ok;
}
