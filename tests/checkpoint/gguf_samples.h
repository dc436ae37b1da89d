// GGUF files for tests, byte by byte, so that any of their fields can be wrong.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"

namespace vkformer::test {

template <class T>
std::string raw_bytes(T value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

// A text with its length in front.
inline std::string gguf_text(std::string_view text) {
  return raw_bytes<uint64_t>(text.size()) + std::string(text);
}

struct GgufSample {
  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the data; general.alignment is a key like others

  GgufSample& put(std::string_view key, GgufKind kind, const std::string& value) {
    keys += gguf_text(key) + raw_bytes(static_cast<uint32_t>(kind)) + value;
    ++key_count;
    return *this;
  }
  GgufSample& put_text(std::string_view key, std::string_view value) {
    return put(key, GgufKind::kString, gguf_text(value));
  }
  GgufSample& put_number(std::string_view key, uint32_t value) {
    return put(key, GgufKind::kU32, raw_bytes(value));
  }
  GgufSample& put_float(std::string_view key, float value) {
    return put(key, GgufKind::kF32, raw_bytes(value));
  }
  GgufSample& put_texts(std::string_view key, const std::vector<std::string>& values) {
    std::string all =
        raw_bytes(static_cast<uint32_t>(GgufKind::kString)) + raw_bytes<uint64_t>(values.size());
    for (const std::string& value : values) all += gguf_text(value);
    return put(key, GgufKind::kArray, all);
  }
  template <class T>
  GgufSample& put_list(std::string_view key, GgufKind kind, const std::vector<T>& values) {
    std::string all = raw_bytes(static_cast<uint32_t>(kind)) + raw_bytes<uint64_t>(values.size());
    for (const T value : values) all += raw_bytes(value);
    return put(key, GgufKind::kArray, all);
  }
  // A tensor whose shape is written as it is given: fastest axis first.
  GgufSample& put_tensor(std::string_view name, const std::vector<uint64_t>& shape, uint32_t type,
                         const std::string& bytes) {
    return put_tensor_at(name, shape, type, data.size()).put_data(bytes);
  }
  GgufSample& put_tensor_at(std::string_view name, const std::vector<uint64_t>& shape,
                            uint32_t type, uint64_t offset) {
    tensors += gguf_text(name) + raw_bytes(static_cast<uint32_t>(shape.size()));
    for (const uint64_t extent : shape) tensors += raw_bytes(extent);
    tensors += raw_bytes(type) + raw_bytes(offset);
    ++tensor_count;
    return *this;
  }
  GgufSample& put_data(const std::string& bytes) {
    data += bytes + std::string((alignment - bytes.size() % alignment) % alignment, '\0');
    return *this;
  }
  // In f32; all values are 0.5.
  GgufSample& put_floats(std::string_view name, const std::vector<uint64_t>& shape) {
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    std::string bytes;
    for (uint64_t i = 0; i < count; ++i) bytes += raw_bytes(0.5f);
    return put_tensor(name, shape, 0, bytes);
  }

  std::string text() const {
    std::string all = magic + raw_bytes(version) + raw_bytes(tensor_count) + raw_bytes(key_count) +
                      keys + tensors;
    all += std::string((alignment - all.size() % alignment) % alignment, '\0');
    return all + data;
  }

  std::string keys, tensors, data;
  uint64_t key_count = 0, tensor_count = 0;
};

inline Result<GgufFile> open_gguf(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return GgufFile::parse(MappedFile::from_bytes({bytes.begin(), bytes.end()}, "sample.gguf"));
}

// The smallest LLaMA: one layer, one head of 2, and as many tokens as its tokenizer has.
inline GgufSample tiny_llama() {
  GgufSample sample;
  sample.put_text("general.architecture", "llama");
  for (const auto& [key, value] :
       {std::pair{"block_count", 1u}, std::pair{"embedding_length", 2u},
        std::pair{"attention.head_count", 1u}, std::pair{"feed_forward_length", 3u},
        std::pair{"context_length", 16u}}) {
    sample.put_number(std::string("llama.") + key, value);
  }
  sample.put_float("llama.attention.layer_norm_rms_epsilon", 1e-6f);
  sample.put_floats("token_embd.weight", {2, 4}).put_floats("output_norm.weight", {2});
  for (const char* norm : {"attn_norm", "ffn_norm"}) {
    sample.put_floats(std::string("blk.0.") + norm + ".weight", {2});
  }
  for (const char* square : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
    sample.put_floats(std::string("blk.0.") + square + ".weight", {2, 2});
  }
  sample.put_floats("blk.0.ffn_gate.weight", {2, 3}).put_floats("blk.0.ffn_up.weight", {2, 3});
  return sample.put_floats("blk.0.ffn_down.weight", {3, 2});
}

// Its tokenizer, which has one merge.
inline GgufSample& put_tiny_tokenizer(GgufSample& sample) {
  sample.put_text("tokenizer.ggml.model", "gpt2").put_text("tokenizer.ggml.pre", "gpt-2");
  sample.put_texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|endoftext|>"});
  sample.put_texts("tokenizer.ggml.merges", {"a b"});
  sample.put_list<int32_t>("tokenizer.ggml.token_type", GgufKind::kI32, {1, 1, 1, 3});
  return sample.put_number("tokenizer.ggml.eos_token_id", 3);
}

}  // namespace vkformer::test
