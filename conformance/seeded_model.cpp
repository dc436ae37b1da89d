#include "conformance/seeded_model.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "conformance/content.h"
#include "reference/attention.h"
#include "reference/embedding.h"
#include "reference/gated_activation.h"
#include "reference/layer_norm.h"
#include "reference/matmul.h"
#include "reference/multi_head_attention.h"
#include "reference/rms_norm.h"
#include "reference/rotary.h"

namespace vkformer::conformance {
namespace {

// y = x W^T + b, W (N, K).
Result<Array> linear(const Array& x, const Array& weight, const Array* bias,
                     const Array* residual = nullptr, const char* activation = "identity") {
  reference::MatmulOptions options;
  options.trans_b = true;
  options.bias = bias;
  options.residual = residual;
  VKF_ASSIGN(options.activation, reference::activation_from_name(activation));
  return reference::matmul(x, weight, options);
}

// GPT-2 stores its matrices (K, N).
Result<Array> linear_kn(const Array& x, const Array& weight, const Array* bias,
                        const Array* residual = nullptr, const char* activation = "identity") {
  reference::MatmulOptions options;
  options.bias = bias;
  options.residual = residual;
  VKF_ASSIGN(options.activation, reference::activation_from_name(activation));
  return reference::matmul(x, weight, options);
}

// Columns [first, first + width) of (T, any).
Array columns(const Array& x, int64_t first, int64_t width) {
  Array y = reference::filled({x.dim(0), width}, 0.0);
  for (int64_t i = 0; i < y.size(); ++i) y[i] = x[i / width * x.dim(1) + first + i % width];
  return y;
}

// q (T, H E), k and v (T, Hkv E) -> (T, H E)
Result<Array> attend(Array q, Array k, Array v, int64_t heads, int64_t kv_heads, bool causal) {
  for (Array* x : {&q, &k, &v}) x->shape.insert(x->shape.begin(), 1);
  reference::AttentionOptions options;
  options.masks.causal = causal;
  VKF_ASSIGN(const Array y, reference::attention(reference::split_heads(q, heads),
                                                 reference::split_heads(k, kv_heads),
                                                 reference::split_heads(v, kv_heads), options));
  Array merged = reference::merge_heads(y);
  merged.shape.erase(merged.shape.begin());
  return merged;
}

Array ids_array(const std::vector<int64_t>& ids) {
  Array array{{static_cast<int64_t>(ids.size())}, {}};
  for (const int64_t id : ids) array.data.push_back(static_cast<double>(id));
  return array;
}

// Cosines, then sines, of each position (P, E).
Array rotary_table(int64_t positions, int64_t width) {
  Array table = reference::filled({positions, width}, 0.0);
  for (int64_t p = 0; p < positions; ++p) {
    for (int64_t i = 0; i < width / 2; ++i) {
      const double angle =
          static_cast<double>(p) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      table[p * width + i] = std::cos(angle);
      table[p * width + width / 2 + i] = std::sin(angle);
    }
  }
  return table;
}

std::string number(int64_t value) {
  return std::to_string(value);
}

}  // namespace

SeededModel::SeededModel(Family family, const ModelSizes& sizes) : family_(family), sizes_(sizes) {
  switch (family) {
    case Family::kBert:
      add_bert();
      break;
    case Family::kGpt2:
      add_gpt2();
      break;
    case Family::kLlama:
      add_llama();
      break;
  }
}

void SeededModel::add(const std::string& name, const Shape& shape, double scale, double offset) {
  Array array = random_array(shape, 1000 + weights_.size());
  for (double& value : array.data) value = value * scale + offset;
  weights_.emplace(name, reference::round_to_f32(std::move(array)));
}

void SeededModel::add_bert() {
  const ModelSizes& s = sizes_;
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  add("embeddings.word_embeddings.weight", {s.vocab, s.width}, 0.5);
  add("embeddings.position_embeddings.weight", {s.positions, s.width}, 0.5);
  add("embeddings.token_type_embeddings.weight", {2, s.width}, 0.5);
  add("embeddings.LayerNorm.weight", {s.width}, 0.1, 1);
  add("embeddings.LayerNorm.bias", {s.width}, 0.1);
  for (int64_t l = 0; l < s.layers; ++l) {
    const std::string at = "encoder.layer." + number(l) + ".";
    for (const char* part : {"attention.self.query", "attention.self.key", "attention.self.value",
                             "attention.output.dense"}) {
      add(at + part + ".weight", {s.width, s.width}, scale);
      add(at + part + ".bias", {s.width}, 0.1);
    }
    add(at + "intermediate.dense.weight", {s.ffn, s.width}, scale);
    add(at + "intermediate.dense.bias", {s.ffn}, 0.1);
    add(at + "output.dense.weight", {s.width, s.ffn}, scale);
    add(at + "output.dense.bias", {s.width}, 0.1);
    for (const char* norm : {"attention.output.LayerNorm", "output.LayerNorm"}) {
      add(at + norm + ".weight", {s.width}, 0.1, 1);
      add(at + norm + ".bias", {s.width}, 0.1);
    }
  }
  write_files(
      R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu", )"
      R"("layer_norm_eps": 1e-12, "type_vocab_size": 2, "pad_token_id": 0, "vocab_size": )" +
      number(s.vocab) + R"(, "hidden_size": )" + number(s.width) + R"(, "num_attention_heads": )" +
      number(s.heads) + R"(, "num_hidden_layers": )" + number(s.layers) +
      R"(, "intermediate_size": )" + number(s.ffn) + R"(, "max_position_embeddings": )" +
      number(s.positions) + "}");
}

void SeededModel::add_gpt2() {
  const ModelSizes& s = sizes_;
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  add("transformer.wte.weight", {s.vocab, s.width}, 0.5);
  add("transformer.wpe.weight", {s.positions, s.width}, 0.5);
  for (int64_t l = 0; l < s.layers; ++l) {
    const std::string at = "transformer.h." + number(l) + ".";
    for (const char* norm : {"ln_1", "ln_2"}) {
      add(at + norm + ".weight", {s.width}, 0.1, 1);
      add(at + norm + ".bias", {s.width}, 0.1);
    }
    add(at + "attn.c_attn.weight", {s.width, 3 * s.width}, scale);
    add(at + "attn.c_attn.bias", {3 * s.width}, 0.1);
    add(at + "attn.c_proj.weight", {s.width, s.width}, scale);
    add(at + "attn.c_proj.bias", {s.width}, 0.1);
    add(at + "mlp.c_fc.weight", {s.width, s.ffn}, scale);
    add(at + "mlp.c_fc.bias", {s.ffn}, 0.1);
    add(at + "mlp.c_proj.weight", {s.ffn, s.width}, scale);
    add(at + "mlp.c_proj.bias", {s.width}, 0.1);
  }
  add("transformer.ln_f.weight", {s.width}, 0.1, 1);
  add("transformer.ln_f.bias", {s.width}, 0.1);
  write_files(R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], )"
              R"("activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": )" +
              number(s.vocab) + R"(, "n_embd": )" + number(s.width) + R"(, "n_head": )" +
              number(s.heads) + R"(, "n_layer": )" + number(s.layers) + R"(, "n_inner": )" +
              number(s.ffn) + R"(, "n_positions": )" + number(s.positions) + "}");
}

void SeededModel::add_llama() {
  const ModelSizes& s = sizes_;
  const int64_t kv = s.width / s.heads * s.kv_heads;
  const double scale = 1 / std::sqrt(static_cast<double>(s.width));
  add("model.embed_tokens.weight", {s.vocab, s.width}, 0.5);
  for (int64_t l = 0; l < s.layers; ++l) {
    const std::string at = "model.layers." + number(l) + ".";
    add(at + "input_layernorm.weight", {s.width}, 0.1, 1);
    add(at + "self_attn.q_proj.weight", {s.width, s.width}, scale);
    add(at + "self_attn.k_proj.weight", {kv, s.width}, scale);
    add(at + "self_attn.v_proj.weight", {kv, s.width}, scale);
    add(at + "self_attn.o_proj.weight", {s.width, s.width}, scale);
    add(at + "post_attention_layernorm.weight", {s.width}, 0.1, 1);
    add(at + "mlp.gate_proj.weight", {s.ffn, s.width}, scale);
    add(at + "mlp.up_proj.weight", {s.ffn, s.width}, scale);
    add(at + "mlp.down_proj.weight", {s.width, s.ffn}, scale);
  }
  add("model.norm.weight", {s.width}, 0.1, 1);
  add("lm_head.weight", {s.vocab, s.width}, scale);
  write_files(R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], )"
              R"("hidden_act": "silu", "rms_norm_eps": 1e-6, "rope_theta": 10000.0, )"
              R"("tie_word_embeddings": false, "vocab_size": )" +
              number(s.vocab) + R"(, "hidden_size": )" + number(s.width) +
              R"(, "num_attention_heads": )" + number(s.heads) + R"(, "num_key_value_heads": )" +
              number(s.kv_heads) + R"(, "num_hidden_layers": )" + number(s.layers) +
              R"(, "intermediate_size": )" + number(s.ffn) + R"(, "max_position_embeddings": )" +
              number(s.positions) + "}");
}

// https://github.com/huggingface/safetensors: the length of a JSON header, it, then the bytes.
void SeededModel::write_files(const std::string& config) {
  config_ = config;
  generation_ = "{}";
  std::string header = "{";
  std::vector<std::byte> data;
  for (const auto& [name, array] : weights_) {
    const Tensor tensor = floats(array);
    std::string shape;
    for (const int64_t size : array.shape) shape += (shape.empty() ? "" : ",") + number(size);
    header += (header.size() > 1 ? ",\"" : "\"") + name + R"(":{"dtype":"F32","shape":[)" + shape +
              R"(],"data_offsets":[)" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + tensor.bytes.size()) + "]}";
    data.insert(data.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  tensors_.resize(8 + header.size());
  std::memcpy(tensors_.data(), &length, 8);
  std::memcpy(tensors_.data() + 8, header.data(), header.size());
  tensors_.insert(tensors_.end(), data.begin(), data.end());
}

ModelSource SeededModel::source() const {
  return ModelSource::memory({{"config.json", std::as_bytes(std::span(config_))},
                              {"generation_config.json", std::as_bytes(std::span(generation_))},
                              {"model.safetensors", tensors_}},
                             "seeded model");
}

Result<Array> SeededModel::bert_layer(const Array& x, const std::string& scope) const {
  const auto part = [&](const std::string& name, const Array& from, const Array* residual = nullptr,
                        const char* activation = "identity") {
    return linear(from, at(scope + name + ".weight"), &at(scope + name + ".bias"), residual,
                  activation);
  };
  const auto norm = [&](const std::string& name, const Array& from) {
    return reference::layer_norm(from, {.epsilon = 1e-12,
                                        .gain = &at(scope + name + ".weight"),
                                        .bias = &at(scope + name + ".bias")});
  };
  VKF_ASSIGN(Array q, part("attention.self.query", x));
  VKF_ASSIGN(Array k, part("attention.self.key", x));
  VKF_ASSIGN(Array v, part("attention.self.value", x));
  VKF_ASSIGN(const Array seen, attend(q, k, v, sizes_.heads, sizes_.heads, false));
  VKF_ASSIGN(const Array joined, part("attention.output.dense", seen, &x));
  VKF_ASSIGN(const Array middle, norm("attention.output.LayerNorm", joined));
  VKF_ASSIGN(const Array wide, part("intermediate.dense", middle, nullptr, "gelu"));
  VKF_ASSIGN(const Array back, part("output.dense", wide, &middle));
  return norm("output.LayerNorm", back);
}

Result<Array> SeededModel::gpt2_layer(const Array& x, const std::string& scope) const {
  const auto part = [&](const std::string& name, const Array& from, const Array* residual = nullptr,
                        const char* activation = "identity") {
    return linear_kn(from, at(scope + name + ".weight"), &at(scope + name + ".bias"), residual,
                     activation);
  };
  const auto norm = [&](const std::string& name, const Array& from) {
    return reference::layer_norm(
        from, {.gain = &at(scope + name + ".weight"), .bias = &at(scope + name + ".bias")});
  };
  const int64_t d = sizes_.width;
  VKF_ASSIGN(const Array first, norm("ln_1", x));
  VKF_ASSIGN(const Array qkv, part("attn.c_attn", first));
  VKF_ASSIGN(const Array seen, attend(columns(qkv, 0, d), columns(qkv, d, d),
                                      columns(qkv, 2 * d, d), sizes_.heads, sizes_.heads, true));
  VKF_ASSIGN(const Array middle, part("attn.c_proj", seen, &x));
  VKF_ASSIGN(const Array second, norm("ln_2", middle));
  VKF_ASSIGN(const Array wide, part("mlp.c_fc", second, nullptr, "gelu_tanh"));
  return part("mlp.c_proj", wide, &middle);
}

Result<Array> SeededModel::llama_layer(const Array& x, const std::string& scope) const {
  const int64_t width = sizes_.width / sizes_.heads;
  const auto weight = [&](const char* name) -> const Array& {
    return at(scope + name + ".weight");
  };
  VKF_ASSIGN(const Array first, reference::rms_norm(x, {.gain = &weight("input_layernorm")}));
  VKF_ASSIGN(const Array q, linear(first, weight("self_attn.q_proj"), nullptr));
  VKF_ASSIGN(const Array k, linear(first, weight("self_attn.k_proj"), nullptr));
  VKF_ASSIGN(const Array v, linear(first, weight("self_attn.v_proj"), nullptr));
  Array places = reference::filled({x.dim(0)}, 0.0);
  std::iota(places.data.begin(), places.data.end(), 0.0);
  const Array table = rotary_table(x.dim(0), width);
  VKF_ASSIGN(Array turned_q,
             reference::rotary(q, table, places, {.heads = sizes_.heads, .head_width = width}));
  VKF_ASSIGN(Array turned_k,
             reference::rotary(k, table, places, {.heads = sizes_.kv_heads, .head_width = width}));
  VKF_ASSIGN(const Array seen, attend(turned_q, turned_k, v, sizes_.heads, sizes_.kv_heads, true));
  VKF_ASSIGN(const Array middle, linear(seen, weight("self_attn.o_proj"), nullptr, &x));
  VKF_ASSIGN(const Array second,
             reference::rms_norm(middle, {.gain = &weight("post_attention_layernorm")}));
  VKF_ASSIGN(Array gate, linear(second, weight("mlp.gate_proj"), nullptr, nullptr, "silu"));
  VKF_ASSIGN(const Array up, linear(second, weight("mlp.up_proj"), nullptr));
  for (int64_t i = 0; i < gate.size(); ++i) gate[i] *= up[i];
  return linear(gate, weight("mlp.down_proj"), nullptr, &middle);
}

Result<Array> SeededModel::hidden(const std::vector<int64_t>& ids) const {
  const Array rows = ids_array(ids);
  const bool bert = family_ == Family::kBert, llama = family_ == Family::kLlama;
  const char* table = bert    ? "embeddings.word_embeddings.weight"
                      : llama ? "model.embed_tokens.weight"
                              : "transformer.wte.weight";
  reference::EmbeddingOptions options;
  if (bert) options.position_table = &at("embeddings.position_embeddings.weight");
  if (!bert && !llama) options.position_table = &at("transformer.wpe.weight");
  VKF_ASSIGN(Array x, reference::embedding(at(table), rows, options));
  if (bert) {
    const Array& types = at("embeddings.token_type_embeddings.weight");
    for (int64_t i = 0; i < x.size(); ++i) x[i] += types[i % sizes_.width];
    VKF_ASSIGN(x, reference::layer_norm(x, {.epsilon = 1e-12,
                                            .gain = &at("embeddings.LayerNorm.weight"),
                                            .bias = &at("embeddings.LayerNorm.bias")}));
  }
  for (int64_t l = 0; l < sizes_.layers; ++l) {
    if (bert) {
      VKF_ASSIGN(x, bert_layer(x, "encoder.layer." + number(l) + "."));
    } else if (llama) {
      VKF_ASSIGN(x, llama_layer(x, "model.layers." + number(l) + "."));
    } else {
      VKF_ASSIGN(x, gpt2_layer(x, "transformer.h." + number(l) + "."));
    }
  }
  if (bert) return x;
  if (llama) return reference::rms_norm(x, {.gain = &at("model.norm.weight")});
  return reference::layer_norm(
      x, {.gain = &at("transformer.ln_f.weight"), .bias = &at("transformer.ln_f.bias")});
}

Result<Array> SeededModel::logits(const std::vector<int64_t>& ids) const {
  VKF_ASSIGN(const Array x, hidden(ids));
  return linear(x, at(family_ == Family::kLlama ? "lm_head.weight" : "transformer.wte.weight"),
                nullptr);
}

}  // namespace vkformer::conformance
