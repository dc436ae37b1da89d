#include "gguf/gguf_adapter.h"

#include <cmath>

#include "base/half.h"
#include "checkpoint/all_weights.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/temp_dir.h"
#include "gguf/gguf_store.h"
#include "load/loaded_model.h"
#include "weights/merge_adapters.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

// Row-major numbers of a matrix, in steps of 1 / 64: halves hold them.
struct AdapterMatrix {
  uint64_t rows, columns;
  std::vector<float> values;
};

AdapterMatrix stepped(uint64_t rows, uint64_t columns, int seed) {
  AdapterMatrix made{rows, columns, {}};
  for (uint64_t i = 0; i < rows * columns; ++i) {
    made.values.push_back(static_cast<float>((static_cast<int>(i) * 37 + seed * 11) % 101 - 50) /
                          64.0f);
  }
  return made;
}

Tensor tensor_of(const AdapterMatrix& matrix) {
  Tensor tensor;
  tensor.dtype = DType::kF32;
  tensor.shape = {static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)};
  const auto bytes = std::as_bytes(std::span(matrix.values));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return tensor;
}

std::string floats_text(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += raw_bytes(value);
  return text;
}

// Rows of halves of each head, by turns, as the format has them.
AdapterMatrix by_pairs(const AdapterMatrix& from, uint64_t heads) {
  AdapterMatrix made = from;
  const uint64_t width = from.rows / heads;
  for (uint64_t row = 0; row < from.rows; ++row) {
    const uint64_t place = row % width;
    const uint64_t to = row / width * width + place % (width / 2) * 2 + place / (width / 2);
    for (uint64_t i = 0; i < from.columns; ++i) {
      made.values[to * from.columns + i] = from.values[row * from.columns + i];
    }
  }
  return made;
}

void put_matrix(GgufSample& sample, const std::string& name, const AdapterMatrix& matrix) {
  sample.put_tensor(name, {matrix.columns, matrix.rows}, 0, floats_text(matrix.values));
}

GgufSample lora_sample(const std::string& architecture = "llama", float alpha = 3.0f) {
  GgufSample sample;
  sample.put_text("general.architecture", architecture).put_text("general.type", "adapter");
  return sample.put_text("adapter.type", "lora").put_float("adapter.lora.alpha", alpha);
}

// A model directory whose one layer has two heads of 4 and half as many of keys.
constexpr const char* kTwoHeads =
    R"({"model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 1})";

struct BaseModel {
  TempDir dir;

  explicit BaseModel(const std::string& config = kTwoHeads) {
    dir.write("config.json", config);
    TensorMap tensors;
    tensors["model.embed_tokens.weight"] = tensor_of(stepped(5, 6, 1));
    tensors["model.layers.0.self_attn.q_proj.weight"] = tensor_of(stepped(8, 6, 2));
    tensors["model.layers.0.self_attn.k_proj.weight"] = tensor_of(stepped(4, 6, 3));
    tensors["model.layers.0.mlp.down_proj.weight"] = tensor_of(stepped(6, 3, 4));
    Tensor gain = tensor_of(stepped(1, 6, 5));
    gain.shape = {6};
    tensors["model.norm.weight"] = gain;
    for (const char* expert : {"0", "1"}) {
      tensors[std::string("model.layers.0.block_sparse_moe.experts.") + expert + ".w2.weight"] =
          tensor_of(stepped(6, 3, 6));
    }
    REQUIRE(write_safetensors(dir.file("model.safetensors"), tensors).ok());
  }

  std::string error_of(const std::string& adapter) const {
    const auto opened = open_adapters(*make_model_store(dir.path()), {{adapter, 1.0f}});
    REQUIRE_FALSE(opened.ok());
    CHECK(contains(opened.error().message, "bad.gguf"));
    return opened.error().message;
  }
};

// All weights of a model with adapters, by name.
std::map<std::string, std::vector<float>> merged_weights(
    const std::string& model, const std::vector<AdapterChoice>& choices) {
  const auto store = make_model_store(model);
  auto checkpoint = Checkpoint::open_store(*store);
  REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
  const auto adapters = open_adapters(*store, choices);
  REQUIRE_MESSAGE(adapters.ok(), adapters.error().message);
  const auto changed = merge_adapters({}, *adapters, *checkpoint);
  REQUIRE_MESSAGE(changed.ok(), changed.error().message);
  return test::all_weights(*checkpoint);
}

constexpr const char* kPeftSettings = R"({"peft_type": "LORA", "lora_alpha": 3, "r": 2})";
const std::string kPeftQueries = "base_model.model.model.layers.0.self_attn.q_proj";
const std::string kPeftKeys = "base_model.model.model.layers.0.self_attn.k_proj";
const std::string kPeftDown = "base_model.model.model.layers.0.mlp.down_proj";

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gguf adapter: merged weights have the bits of the same adapter in PEFT's layout") {
    const BaseModel base;
    const TempDir peft;
    peft.write("adapter_config.json", kPeftSettings);
    const AdapterMatrix a = stepped(2, 6, 7), q = stepped(8, 2, 8), k = stepped(4, 2, 9);
    const AdapterMatrix down_a = stepped(2, 3, 10), down_b = stepped(6, 2, 11);
    const AdapterMatrix tokens_a = stepped(2, 5, 12), tokens_b = stepped(6, 2, 13);
    TensorMap tensors;
    tensors[kPeftQueries + ".lora_A.weight"] = tensor_of(a);
    tensors[kPeftQueries + ".lora_B.weight"] = tensor_of(q);
    tensors[kPeftKeys + ".lora_A.weight"] = tensor_of(a);
    tensors[kPeftKeys + ".lora_B.weight"] = tensor_of(k);
    tensors[kPeftDown + ".lora_A.weight"] = tensor_of(down_a);
    tensors[kPeftDown + ".lora_B.weight"] = tensor_of(down_b);
    tensors["base_model.model.model.embed_tokens.lora_embedding_A"] = tensor_of(tokens_a);
    tensors["base_model.model.model.embed_tokens.lora_embedding_B"] = tensor_of(tokens_b);
    REQUIRE(write_safetensors(peft.file("adapter_model.safetensors"), tensors).ok());

    GgufSample sample = lora_sample();
    put_matrix(sample, "blk.0.attn_q.weight.lora_a", a);
    put_matrix(sample, "blk.0.attn_q.weight.lora_b", by_pairs(q, 2));
    put_matrix(sample, "blk.0.attn_k.weight.lora_a", a);
    put_matrix(sample, "blk.0.attn_k.weight.lora_b", by_pairs(k, 1));
    std::string halves;
    for (const float value : down_a.values) halves += raw_bytes(half_from_float(value));
    sample.put_tensor("blk.0.ffn_down.weight.lora_a", {3, 2}, 1, halves);
    put_matrix(sample, "blk.0.ffn_down.weight.lora_b", down_b);
    AdapterMatrix turned{5, 2, {}};
    for (size_t i = 0; i < 10; ++i) turned.values.push_back(tokens_a.values[i % 2 * 5 + i / 2]);
    put_matrix(sample, "token_embd.weight.lora_a", turned);
    put_matrix(sample, "token_embd.weight.lora_b", tokens_b);
    const std::string file = peft.write("lora.gguf", sample.text());
    CHECK(merged_weights(base.dir.path(), {{file, 0.75f}}) ==
          merged_weights(base.dir.path(), {{peft.path(), 0.75f}}));
    CHECK(merged_weights(base.dir.path(), {{file, 0.75f}}) != merged_weights(base.dir.path(), {}));
    CHECK(merged_weights(base.dir.path(), {{file, 0.75f}, {peft.path(), -0.5f}}) ==
          merged_weights(base.dir.path(), {{peft.path(), 0.75f}, {file, -0.5f}}));
  }

  TEST_CASE("gguf adapter: one onto a model in the format changes rows as onto a directory") {
    const TempDir dir;
    GgufSample model = tiny_llama();
    const std::string base = dir.write("tiny.gguf", put_tiny_tokenizer(model).text());
    GgufSample sample = lora_sample("llama", 2.0f);
    put_matrix(sample, "blk.0.attn_q.weight.lora_a", {1, 2, {1.0f, 2.0f}});
    put_matrix(sample, "blk.0.attn_q.weight.lora_b", {2, 1, {3.0f, 5.0f}});
    const auto weights = merged_weights(base, {{dir.write("lora.gguf", sample.text()), 0.5f}});
    CHECK(weights.at("model.layers.0.self_attn.q_proj.weight") ==
          std::vector<float>{3.5f, 6.5f, 5.5f, 10.5f});
  }

  TEST_CASE("gguf adapter: without alpha nothing is divided; experts and gains are read") {
    const BaseModel base(
        R"({"model_type": "mixtral", "num_attention_heads": 2, "num_key_value_heads": 1})");
    const TempDir dir;
    GgufSample sample = lora_sample("llama", 0.0f);
    const AdapterMatrix a = stepped(4, 3, 3), b = stepped(12, 2, 4);
    sample.put_tensor("blk.0.ffn_down_exps.weight.lora_a", {3, 2, 2}, 0, floats_text(a.values));
    sample.put_tensor("blk.0.ffn_down_exps.weight.lora_b", {2, 6, 2}, 0, floats_text(b.values));
    sample.put_tensor("output_norm.weight", {6}, 0, floats_text({1, 2, 3, 4, 5, 6}));
    const auto before = merged_weights(base.dir.path(), {});
    const auto weights = merged_weights(base.dir.path(), {{dir.write("lora.gguf", sample.text())}});
    CHECK(weights.at("model.norm.weight") == std::vector<float>{1, 2, 3, 4, 5, 6});
    for (size_t x = 0; x < 2; ++x) {
      const std::string name =
          "model.layers.0.block_sparse_moe.experts." + std::to_string(x) + ".w2.weight";
      for (size_t i = 0; i < 18; ++i) {
        double sum = before.at(name)[i];
        for (size_t r = 0; r < 2; ++r) {
          sum += double{b.values[x * 12 + i / 3 * 2 + r]} * a.values[x * 6 + r * 3 + i % 3];
        }
        CHECK(weights.at(name)[i] == static_cast<float>(sum));
      }
    }
  }

  TEST_CASE("gguf adapter: a faulty one is refused with what is wrong") {
    const BaseModel base;
    const TempDir dir;
    const auto error_of = [&](const GgufSample& sample) {
      return base.error_of(dir.write("bad.gguf", sample.text()));
    };
    const AdapterMatrix a = stepped(2, 6, 1), b = stepped(8, 2, 2);
    GgufSample model = tiny_llama();
    CHECK(contains(error_of(model), "[general.type] as [model]"));
    CHECK(contains(error_of(lora_sample("qwen2")), "qwen2, but [model_type]"));
    CHECK(contains(error_of(lora_sample("falcon")), "[falcon], which is not supported"));
    CHECK(contains(error_of(lora_sample()), "no tensors"));
    CHECK(contains(error_of(lora_sample("llama", std::nanf(""))), "finite"));
    GgufSample kind;
    kind.put_text("general.architecture", "llama").put_text("general.type", "adapter");
    CHECK(contains(error_of(kind.put_text("adapter.type", "ia3")), "[ia3], but only [lora]"));
    GgufSample late = lora_sample();
    late.put_list<int32_t>("adapter.alora.invocation_tokens", GgufKind::kI32, {1});
    CHECK(contains(error_of(late), "adapters that begin at a token"));

    GgufSample half = lora_sample();
    put_matrix(half, "blk.0.attn_q.weight.lora_a", a);
    CHECK(contains(error_of(half), "lacks its matrix B"));
    GgufSample other_half = lora_sample();
    put_matrix(other_half, "blk.0.attn_q.weight.lora_b", b);
    CHECK(contains(error_of(other_half), "lacks its matrix A"));
    GgufSample odd = lora_sample();
    put_matrix(odd, "blk.0.attn_q.weight.lora_a", a);
    put_matrix(odd, "blk.0.attn_q.weight.lora_b", stepped(6, 2, 3));
    CHECK(contains(error_of(odd), "of 6 rows, but there are 2 heads"));
    GgufSample apart = lora_sample();
    put_matrix(apart, "blk.0.attn_q.weight.lora_a", a);
    put_matrix(apart, "blk.0.attn_q.weight.lora_b", stepped(8, 3, 3));
    CHECK(contains(error_of(apart), "A of shape (2, 6) and B of shape (8, 3)"));
    GgufSample unknown = lora_sample();
    put_matrix(unknown, "blk.0.nothing.weight.lora_a", a);
    CHECK(contains(error_of(unknown), "blk.0.nothing.weight.lora_a"));
    GgufSample whole = lora_sample();
    put_matrix(whole, "blk.0.ffn_down.weight", b);
    CHECK(contains(error_of(whole), "neither A nor B"));
    GgufSample vector = lora_sample();
    vector.put_floats("token_embd.weight.lora_a", {3}).put_floats("token_embd.weight.lora_b", {3});
    CHECK(contains(error_of(vector), "they must be floats (r, K) and (N, r)"));
  }

  TEST_CASE("gguf adapter: an adapter is not a model, and a directory may hold adapter.gguf") {
    const BaseModel base;
    const TempDir dir;
    GgufSample sample = lora_sample();
    put_matrix(sample, "blk.0.ffn_down.weight.lora_a", stepped(1, 3, 1));
    put_matrix(sample, "blk.0.ffn_down.weight.lora_b", stepped(6, 1, 2));
    const std::string path = dir.write("adapter.gguf", sample.text());
    const auto info = inspect_model(path);
    REQUIRE_FALSE(info.ok());
    CHECK(contains(info.error().message, "is an adapter"));
    CHECK(merged_weights(base.dir.path(), {{path}}) ==
          merged_weights(base.dir.path(), {{dir.path()}}));
  }
}
