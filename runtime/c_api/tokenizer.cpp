#include "vkformer/tokenizer.h"
#include "base/message.h"
#include "c_api/enums.h"
#include "vkformer/stop_strings.h"

// One text's tokens, split into the arrays of the C interface.
struct CEncoding {
  std::vector<vkformer::TokenId> ids;
  std::vector<std::string> tokens;
  std::vector<const char*> token_pointers;
  std::vector<int32_t> begins, ends, type_ids, attention_mask;
};

struct vkf_encodings {
  std::vector<CEncoding> items;
};

struct vkf_stop_strings {
  vkformer::StopStrings stops;
};

struct vkf_decode_stream {
  vkformer::DecodeStream stream;
};

namespace vkformer {
namespace {

constexpr uint32_t kEncodeBits = VKF_ENCODE_NO_SPECIAL_TOKENS | VKF_ENCODE_TRUNCATE_LEFT |
                                 VKF_ENCODE_PAD_LEFT | VKF_ENCODE_PAD_ID;

TruncationOptions truncation(const vkf_encode_options& given) {
  TruncationOptions made;
  made.mode = value_of<TruncationMode>(given.truncation, "truncation");
  made.strategy = value_of<TruncationStrategy>(given.truncation_strategy, "truncation_strategy");
  if (given.max_length != 0) made.max_length = given.max_length;
  if ((given.flags & VKF_ENCODE_TRUNCATE_LEFT) != 0) made.side = TextSide::kLeft;
  return made;
}

PaddingOptions padding(const vkf_encode_options& given) {
  PaddingOptions made;
  made.mode = value_of<PaddingMode>(given.padding, "padding");
  made.length = given.padded_length;
  made.multiple_of = given.multiple_of;
  if ((given.flags & VKF_ENCODE_PAD_ID) != 0) made.pad_id = given.pad_id;
  made.pad_type_id = given.pad_type_id;
  if ((given.flags & VKF_ENCODE_PAD_LEFT) != 0) made.side = TextSide::kLeft;
  return made;
}

EncodeOptions encode_options(const vkf_encode_options* options) {
  const vkf_encode_options given = read_struct(options, "encode options");
  check_bits(given.flags, kEncodeBits, "flags");
  EncodeOptions made;
  if ((given.flags & VKF_ENCODE_NO_SPECIAL_TOKENS) != 0) {
    made.special_tokens = SpecialTokens::kExclude;
  }
  made.truncation = truncation(given);
  made.padding = padding(given);
  return made;
}

CEncoding split(Encoding from) {
  CEncoding made;
  made.ids = std::move(from.ids);
  made.tokens = std::move(from.tokens);
  made.token_pointers = pointers_to(made.tokens);
  for (const TextRange& range : from.offsets) {
    made.begins.push_back(range.begin);
    made.ends.push_back(range.end);
  }
  made.type_ids.assign(from.type_ids.begin(), from.type_ids.end());
  made.attention_mask.assign(from.attention_mask.begin(), from.attention_mask.end());
  return made;
}

std::unique_ptr<vkf_encodings> encodings_of(Result<std::vector<Encoding>> made) {
  std::vector<Encoding> list = take(std::move(made));
  auto self = std::make_unique<vkf_encodings>();
  self->items.reserve(list.size());
  for (Encoding& encoding : list) self->items.push_back(split(std::move(encoding)));
  return self;
}

SpecialTokens decode_flags(uint32_t flags) {
  check_bits(flags, VKF_DECODE_SPECIAL_TOKENS, "flags");
  return flags != 0 ? SpecialTokens::kInclude : SpecialTokens::kExclude;
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_tokenizer_load(const char* path, vkf_tokenizer** tokenizer, vkf_error* error) {
  return make_handle(tokenizer, error, [&] {
    need(path, "path");
    Tokenizer made = take(Tokenizer::load(path));
    return handle(vkf_tokenizer{std::make_shared<const Tokenizer>(std::move(made))});
  });
}

vkf_status vkf_tokenizer_parse(const void* json, size_t size, const char* name,
                               vkf_tokenizer** tokenizer, vkf_error* error) {
  return make_handle(tokenizer, error, [&] {
    need(json, "json");
    Tokenizer made = take(
        Tokenizer::parse({static_cast<const char*>(json), size}, text_or(name, "tokenizer.json")));
    return handle(vkf_tokenizer{std::make_shared<const Tokenizer>(std::move(made))});
  });
}

void vkf_tokenizer_free(vkf_tokenizer* tokenizer) {
  delete tokenizer;
}

vkf_status vkf_tokenizer_encode(const vkf_tokenizer* tokenizer, const char* const* texts,
                                size_t count, const vkf_encode_options* options,
                                vkf_encodings** encodings, vkf_error* error) {
  return make_handle(encodings, error, [&] {
    need(tokenizer, "tokenizer");
    const std::vector<std::string> copies = read_texts(texts, count, "texts");
    const EncodeOptions read = encode_options(options);
    return encodings_of(tokenizer->tokenizer->encode_batch(copies, read));
  });
}

vkf_status vkf_tokenizer_encode_pair(const vkf_tokenizer* tokenizer, const char* first,
                                     const char* second, const vkf_encode_options* options,
                                     vkf_encodings** encodings, vkf_error* error) {
  return make_handle(encodings, error, [&] {
    need_all({{tokenizer, "tokenizer"}, {first, "first"}, {second, "second"}});
    const EncodeOptions read = encode_options(options);
    Encoding made = take(tokenizer->tokenizer->encode_pair(first, second, read));
    std::vector<Encoding> one;
    one.push_back(std::move(made));
    return encodings_of(std::move(one));
  });
}

size_t vkf_encodings_count(const vkf_encodings* encodings) {
  return encodings != nullptr ? encodings->items.size() : 0;
}

vkf_status vkf_encodings_get(const vkf_encodings* encodings, size_t index, vkf_encoding* encoding,
                             vkf_error* error) {
  return guard(error, [&] {
    need(encodings, "encodings");
    check_index(index, encodings->items.size(), "encoding");
    const CEncoding& from = encodings->items[index];
    vkf_encoding c{};
    c.count = from.ids.size();
    c.ids = from.ids.data();
    c.tokens = from.token_pointers.data();
    c.begins = from.begins.data();
    c.ends = from.ends.data();
    c.type_ids = from.type_ids.data();
    c.attention_mask = from.attention_mask.data();
    return write_struct(encoding, c, "encoding");
  });
}

void vkf_encodings_free(vkf_encodings* encodings) {
  delete encodings;
}

vkf_status vkf_tokenizer_decode(const vkf_tokenizer* tokenizer, vkf_ids ids, uint32_t flags,
                                vkf_bytes** text, vkf_error* error) {
  return make_handle(text, error, [&] {
    need(tokenizer, "tokenizer");
    if (ids.count != 0) need(ids.ids, "ids");
    const SpecialTokens special = decode_flags(flags);
    return bytes_of(tokenizer->tokenizer->decode({ids.ids, ids.count}, special));
  });
}

size_t vkf_tokenizer_vocab_size(const vkf_tokenizer* tokenizer) {
  return tokenizer != nullptr ? tokenizer->tokenizer->vocab_size() : 0;
}

vkf_status vkf_tokenizer_token_to_id(const vkf_tokenizer* tokenizer, const char* token, int64_t* id,
                                     vkf_error* error) {
  return guard(error, [&] {
    need_all({{tokenizer, "tokenizer"}, {token, "token"}, {id, "id"}});
    const std::optional<TokenId> found = tokenizer->tokenizer->token_to_id(token);
    if (!found) refuse(not_found(message({"[", token, "] is not a token of this tokenizer."})));
    *id = *found;
  });
}

vkf_status vkf_tokenizer_id_to_token(const vkf_tokenizer* tokenizer, int64_t id, vkf_bytes** token,
                                     vkf_error* error) {
  return make_handle(token, error, [&] {
    need(tokenizer, "tokenizer");
    std::optional<std::string> found = tokenizer->tokenizer->id_to_token(id);
    if (!found) refuse(not_found(message({"[id] ", id, " names no token."})));
    return bytes_of(std::move(*found));
  });
}

vkf_status vkf_tokenizer_token_bytes(const vkf_tokenizer* tokenizer, int64_t id, vkf_bytes** bytes,
                                     vkf_error* error) {
  return make_handle(bytes, error, [&] {
    need(tokenizer, "tokenizer");
    return bytes_of(tokenizer->tokenizer->token_bytes(id));
  });
}

vkf_status vkf_decode_stream_create(const vkf_tokenizer* tokenizer, uint32_t flags,
                                    vkf_decode_stream** stream, vkf_error* error) {
  return make_handle(stream, error, [&] {
    need(tokenizer, "tokenizer");
    const SpecialTokens special = decode_flags(flags);
    return handle(vkf_decode_stream{tokenizer->tokenizer->decode_stream(special)});
  });
}

vkf_status vkf_decode_stream_push(vkf_decode_stream* stream, int64_t id, vkf_bytes** text,
                                  vkf_error* error) {
  return make_handle(text, error, [&] {
    need(stream, "stream");
    return bytes_of(stream->stream.push(id));
  });
}

vkf_status vkf_decode_stream_finish(vkf_decode_stream* stream, vkf_bytes** text, vkf_error* error) {
  return make_handle(text, error, [&] {
    need(stream, "stream");
    return bytes_of(stream->stream.finish());
  });
}

void vkf_decode_stream_free(vkf_decode_stream* stream) {
  delete stream;
}

vkf_status vkf_stop_strings_create(const char* const* stops, size_t count, vkf_stop_strings** made,
                                   vkf_error* error) {
  return make_handle(made, error, [&] {
    return handle(vkf_stop_strings{StopStrings(read_texts(stops, count, "stop strings"))});
  });
}

vkf_status vkf_stop_strings_push(vkf_stop_strings* stops, const char* piece, vkf_bytes** text,
                                 vkf_error* error) {
  return make_handle(text, error, [&] {
    need_all({{stops, "stop strings"}, {piece, "piece"}});
    return bytes_of(stops->stops.push(piece));
  });
}

vkf_status vkf_stop_strings_finish(vkf_stop_strings* stops, vkf_bytes** text, vkf_error* error) {
  return make_handle(text, error, [&] {
    need(stops, "stop strings");
    return bytes_of(stops->stops.finish());
  });
}

int vkf_stop_strings_stopped(const vkf_stop_strings* stops) {
  return stops != nullptr && stops->stops.stopped() ? 1 : 0;
}

void vkf_stop_strings_free(vkf_stop_strings* stops) {
  delete stops;
}
