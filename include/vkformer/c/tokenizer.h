// c/tokenizer.h: texts to token ids and back.
// The rules of the C interface are in vkformer.h.
#ifndef VKFORMER_C_TOKENIZER_H
#define VKFORMER_C_TOKENIZER_H

#include "vkformer/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

// Immutable once loaded.
typedef struct vkf_tokenizer vkf_tokenizer;
typedef struct vkf_encodings vkf_encodings;
typedef struct vkf_decode_stream vkf_decode_stream;

// What truncation and padding go by.
enum { VKF_OFF = 0, VKF_TO_LENGTH = 1, VKF_FROM_FILE = 2, VKF_TO_LONGEST = 3 };
// vkf_encode_options::truncation_strategy: which text of a pair loses tokens.
enum { VKF_LONGEST_FIRST = 0, VKF_ONLY_FIRST = 1, VKF_ONLY_SECOND = 2 };
// Bits of vkf_encode_options::flags.
enum {
  VKF_ENCODE_NO_SPECIAL_TOKENS = 1,  // do not add those of the file's post-processor
  VKF_ENCODE_TRUNCATE_LEFT = 2,
  VKF_ENCODE_PAD_LEFT = 4,
  VKF_ENCODE_PAD_ID = 8  // pad with pad_id, and not as the file says
};
typedef struct vkf_encode_options {
  uint32_t struct_size;
  uint32_t flags;
  int32_t truncation;  // VKF_OFF, VKF_TO_LENGTH or VKF_FROM_FILE
  int32_t max_length;  // tokens kept at most; 0: 512
  int32_t truncation_strategy;
  int32_t padding;        // VKF_OFF, VKF_TO_LENGTH, VKF_FROM_FILE or VKF_TO_LONGEST
  int32_t padded_length;  // tokens per row with VKF_TO_LENGTH
  int32_t multiple_of;    // rounds rows up to a multiple of this many tokens
  int64_t pad_id;         // counts with VKF_ENCODE_PAD_ID
  int32_t pad_type_id;
  uint32_t reserved;
} vkf_encode_options;

// One encoded text; all arrays have `count` elements.
typedef struct vkf_encoding {
  uint32_t struct_size;
  uint32_t reserved;
  size_t count;
  const int64_t* ids;
  const char* const* tokens;
  const int32_t* begins;  // where each token came from, in code points of its text; 0 to 0 for
  const int32_t* ends;    // padding and for special tokens that were added
  const int32_t* type_ids;
  const int32_t* attention_mask;  // 1 for tokens, 0 for padding
} vkf_encoding;

// Reads tokenizer.json, or the file of that name in the directory `path`. [any]
VKFORMER_API vkf_status vkf_tokenizer_load(const char* path, vkf_tokenizer** tokenizer,
                                           vkf_error* error);
// The same from the file's content; `name` stands for the file in messages. [any]
VKFORMER_API vkf_status vkf_tokenizer_parse(const void* json, size_t size, const char* name,
                                            vkf_tokenizer** tokenizer, vkf_error* error);
VKFORMER_API void vkf_tokenizer_free(vkf_tokenizer* tokenizer);
// Tokens of `count` texts. [any]
VKFORMER_API vkf_status vkf_tokenizer_encode(const vkf_tokenizer* tokenizer,
                                             const char* const* texts, size_t count,
                                             const vkf_encode_options* options,
                                             vkf_encodings** encodings, vkf_error* error);
// One encoding of two texts that belong together. [any]
VKFORMER_API vkf_status vkf_tokenizer_encode_pair(const vkf_tokenizer* tokenizer, const char* first,
                                                  const char* second,
                                                  const vkf_encode_options* options,
                                                  vkf_encodings** encodings, vkf_error* error);
// [any]
VKFORMER_API size_t vkf_encodings_count(const vkf_encodings* encodings);
// [any]
VKFORMER_API vkf_status vkf_encodings_get(const vkf_encodings* encodings, size_t index,
                                          vkf_encoding* encoding, vkf_error* error);
VKFORMER_API void vkf_encodings_free(vkf_encodings* encodings);
enum { VKF_DECODE_SPECIAL_TOKENS = 1 };  // writes special tokens too
// The text of ids. [any]
VKFORMER_API vkf_status vkf_tokenizer_decode(const vkf_tokenizer* tokenizer, vkf_ids ids,
                                             uint32_t flags, vkf_bytes** text, vkf_error* error);
// Distinct tokens, added ones included. [any]
VKFORMER_API size_t vkf_tokenizer_vocab_size(const vkf_tokenizer* tokenizer);
// VKF_NOT_FOUND if there is no such token. [any]
VKFORMER_API vkf_status vkf_tokenizer_token_to_id(const vkf_tokenizer* tokenizer, const char* token,
                                                  int64_t* id, vkf_error* error);
// VKF_NOT_FOUND if there is no such id. [any]
VKFORMER_API vkf_status vkf_tokenizer_id_to_token(const vkf_tokenizer* tokenizer, int64_t id,
                                                  vkf_bytes** token, vkf_error* error);
// The bytes that a token adds to a decoded text when it follows others: not always whole
// characters. Empty for special tokens and for ids that name none. [any]
VKFORMER_API vkf_status vkf_tokenizer_token_bytes(const vkf_tokenizer* tokenizer, int64_t id,
                                                  vkf_bytes** bytes, vkf_error* error);
// Decoding while ids still arrive; keeps the tokenizer alive. [any]
VKFORMER_API vkf_status vkf_decode_stream_create(const vkf_tokenizer* tokenizer, uint32_t flags,
                                                 vkf_decode_stream** stream, vkf_error* error);
// The text that is certain with this id; often empty. [one]
VKFORMER_API vkf_status vkf_decode_stream_push(vkf_decode_stream* stream, int64_t id,
                                               vkf_bytes** text, vkf_error* error);
// The rest of the text; the stream is then ready for another one. [one]
VKFORMER_API vkf_status vkf_decode_stream_finish(vkf_decode_stream* stream, vkf_bytes** text,
                                                 vkf_error* error);
VKFORMER_API void vkf_decode_stream_free(vkf_decode_stream* stream);

// Ends a text where the first of several strings is complete, while it still arrives in pieces.
// What may be the beginning of one is held back.
typedef struct vkf_stop_strings vkf_stop_strings;
// [any]
VKFORMER_API vkf_status vkf_stop_strings_create(const char* const* stops, size_t count,
                                                vkf_stop_strings** made, vkf_error* error);
// The text that is certain with this piece; nothing once a string was found. [one]
VKFORMER_API vkf_status vkf_stop_strings_push(vkf_stop_strings* stops, const char* piece,
                                              vkf_bytes** text, vkf_error* error);
// What was held back, where no string came. [one]
VKFORMER_API vkf_status vkf_stop_strings_finish(vkf_stop_strings* stops, vkf_bytes** text,
                                                vkf_error* error);
// 1: one of the strings came, and the text ends before it. [one]
VKFORMER_API int vkf_stop_strings_stopped(const vkf_stop_strings* stops);
VKFORMER_API void vkf_stop_strings_free(vkf_stop_strings* stops);

#ifdef __cplusplus
}
#endif

#endif  // VKFORMER_C_TOKENIZER_H
