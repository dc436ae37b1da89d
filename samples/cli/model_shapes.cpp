#include "model_shapes.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

namespace vkformer::cli {

namespace {

// Kinds of lines: linear, with weight (N, K) and bias (N), or its weight alone. A norm has weight
// and bias, or its weight alone. Other lines are a tensor by its whole name.
//   linear NAME N K | matrix NAME N K | norm NAME D | gain NAME D | tensor NAME SIZES...
constexpr const char* kBertTensors =
    "tensor embeddings.word_embeddings.weight 30522 768\n"
    "tensor embeddings.position_embeddings.weight 512 768\n"
    "tensor embeddings.token_type_embeddings.weight 2 768\n"
    "norm embeddings.LayerNorm 768\n"
    "linear encoder.layer.#.attention.self.query 768 768\n"
    "linear encoder.layer.#.attention.self.key 768 768\n"
    "linear encoder.layer.#.attention.self.value 768 768\n"
    "linear encoder.layer.#.attention.output.dense 768 768\n"
    "norm encoder.layer.#.attention.output.LayerNorm 768\n"
    "linear encoder.layer.#.intermediate.dense 3072 768\n"
    "linear encoder.layer.#.output.dense 768 3072\n"
    "norm encoder.layer.#.output.LayerNorm 768\n"
    "linear pooler.dense 768 768\n";

// Its linear layers are stored (K, N).
constexpr const char* kGpt2Tensors =
    "tensor transformer.wte.weight 50257 768\n"
    "tensor transformer.wpe.weight 1024 768\n"
    "norm transformer.h.#.ln_1 768\n"
    "tensor transformer.h.#.attn.c_attn.weight 768 2304\n"
    "tensor transformer.h.#.attn.c_attn.bias 2304\n"
    "tensor transformer.h.#.attn.c_proj.weight 768 768\n"
    "tensor transformer.h.#.attn.c_proj.bias 768\n"
    "norm transformer.h.#.ln_2 768\n"
    "tensor transformer.h.#.mlp.c_fc.weight 768 3072\n"
    "tensor transformer.h.#.mlp.c_fc.bias 3072\n"
    "tensor transformer.h.#.mlp.c_proj.weight 3072 768\n"
    "tensor transformer.h.#.mlp.c_proj.bias 768\n"
    "norm transformer.ln_f 768\n";

constexpr const char* kLlamaTensors =
    "tensor model.embed_tokens.weight 32000 768\n"
    "gain model.layers.#.input_layernorm 768\n"
    "matrix model.layers.#.self_attn.q_proj 768 768\n"
    "matrix model.layers.#.self_attn.k_proj 768 768\n"
    "matrix model.layers.#.self_attn.v_proj 768 768\n"
    "matrix model.layers.#.self_attn.o_proj 768 768\n"
    "gain model.layers.#.post_attention_layernorm 768\n"
    "matrix model.layers.#.mlp.gate_proj 2048 768\n"
    "matrix model.layers.#.mlp.up_proj 2048 768\n"
    "matrix model.layers.#.mlp.down_proj 768 2048\n"
    "gain model.norm 768\n"
    "matrix lm_head 32000 768\n";

constexpr const char* kVitTensors =
    "tensor embeddings.cls_token 1 1 768\n"
    "tensor embeddings.position_embeddings 1 145 768\n"
    "tensor embeddings.patch_embeddings.projection.weight 768 3 32 32\n"
    "tensor embeddings.patch_embeddings.projection.bias 768\n"
    "norm encoder.layer.#.layernorm_before 768\n"
    "linear encoder.layer.#.attention.attention.query 768 768\n"
    "linear encoder.layer.#.attention.attention.key 768 768\n"
    "linear encoder.layer.#.attention.attention.value 768 768\n"
    "linear encoder.layer.#.attention.output.dense 768 768\n"
    "norm encoder.layer.#.layernorm_after 768\n"
    "linear encoder.layer.#.intermediate.dense 3072 768\n"
    "linear encoder.layer.#.output.dense 768 3072\n"
    "norm layernorm 768\n"
    "linear pooler.dense 768 768\n";

constexpr const char* kT5Tensors =
    "tensor shared.weight 32128 512\n"
    "tensor encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 8\n"
    "tensor decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight 32 8\n"
    "matrix encoder.block.#.layer.0.SelfAttention.q 512 512\n"
    "matrix encoder.block.#.layer.0.SelfAttention.k 512 512\n"
    "matrix encoder.block.#.layer.0.SelfAttention.v 512 512\n"
    "matrix encoder.block.#.layer.0.SelfAttention.o 512 512\n"
    "gain encoder.block.#.layer.0.layer_norm 512\n"
    "matrix encoder.block.#.layer.1.DenseReluDense.wi 2048 512\n"
    "matrix encoder.block.#.layer.1.DenseReluDense.wo 512 2048\n"
    "gain encoder.block.#.layer.1.layer_norm 512\n"
    "gain encoder.final_layer_norm 512\n"
    "matrix decoder.block.#.layer.0.SelfAttention.q 512 512\n"
    "matrix decoder.block.#.layer.0.SelfAttention.k 512 512\n"
    "matrix decoder.block.#.layer.0.SelfAttention.v 512 512\n"
    "matrix decoder.block.#.layer.0.SelfAttention.o 512 512\n"
    "gain decoder.block.#.layer.0.layer_norm 512\n"
    "matrix decoder.block.#.layer.1.EncDecAttention.q 512 512\n"
    "matrix decoder.block.#.layer.1.EncDecAttention.k 512 512\n"
    "matrix decoder.block.#.layer.1.EncDecAttention.v 512 512\n"
    "matrix decoder.block.#.layer.1.EncDecAttention.o 512 512\n"
    "gain decoder.block.#.layer.1.layer_norm 512\n"
    "matrix decoder.block.#.layer.2.DenseReluDense.wi 2048 512\n"
    "matrix decoder.block.#.layer.2.DenseReluDense.wo 512 2048\n"
    "gain decoder.block.#.layer.2.layer_norm 512\n"
    "gain decoder.final_layer_norm 512\n";

// Bart's, Marian's and Whisper's layers; D and F stand for the widths.
constexpr const char* kBartLayers =
    "linear model.encoder.layers.#.self_attn.q_proj D D\n"
    "linear model.encoder.layers.#.self_attn.v_proj D D\n"
    "linear model.encoder.layers.#.self_attn.out_proj D D\n"
    "norm model.encoder.layers.#.self_attn_layer_norm D\n"
    "linear model.encoder.layers.#.fc1 F D\n"
    "linear model.encoder.layers.#.fc2 D F\n"
    "norm model.encoder.layers.#.final_layer_norm D\n"
    "linear model.decoder.layers.#.self_attn.q_proj D D\n"
    "linear model.decoder.layers.#.self_attn.v_proj D D\n"
    "linear model.decoder.layers.#.self_attn.out_proj D D\n"
    "norm model.decoder.layers.#.self_attn_layer_norm D\n"
    "linear model.decoder.layers.#.encoder_attn.q_proj D D\n"
    "linear model.decoder.layers.#.encoder_attn.v_proj D D\n"
    "linear model.decoder.layers.#.encoder_attn.out_proj D D\n"
    "norm model.decoder.layers.#.encoder_attn_layer_norm D\n"
    "linear model.decoder.layers.#.fc1 F D\n"
    "linear model.decoder.layers.#.fc2 D F\n"
    "norm model.decoder.layers.#.final_layer_norm D\n";

constexpr const char* kBartTensors =
    "width 768 3072\nlayers linear\n"
    "tensor final_logits_bias 1 50265\n"
    "tensor model.shared.weight 50265 768\n"
    "tensor model.encoder.embed_positions.weight 1026 768\n"
    "norm model.encoder.layernorm_embedding 768\n"
    "tensor model.decoder.embed_positions.weight 1026 768\n"
    "norm model.decoder.layernorm_embedding 768\n";

constexpr const char* kMarianTensors =
    "width 512 2048\nlayers linear\n"
    "tensor final_logits_bias 1 59514\n"
    "tensor model.shared.weight 59514 512\n";

constexpr const char* kWhisperTensors =
    "width 384 1536\nlayers matrix\n"
    "tensor model.encoder.conv1.weight 384 80 3\n"
    "tensor model.encoder.conv1.bias 384\n"
    "tensor model.encoder.conv2.weight 384 384 3\n"
    "tensor model.encoder.conv2.bias 384\n"
    "tensor model.encoder.embed_positions.weight 1500 384\n"
    "norm model.encoder.layer_norm 384\n"
    "tensor model.decoder.embed_tokens.weight 51865 384\n"
    "tensor model.decoder.embed_positions.weight 448 384\n"
    "norm model.decoder.layer_norm 384\n";

const ModelShape kShapes[] = {
    {"bert-base",
     R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 768,
"num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
"max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "layer_norm_eps": 1e-12,
"pad_token_id": 0})",
     "F32",
     12,
     kBertTensors,
     {{"1x128"}, {"32x128", 32}}},
    {"gpt2",
     R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12,
"n_head": 12, "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new",
"layer_norm_epsilon": 1e-5, "bos_token_id": 50256, "eos_token_id": 50256})",
     "F32",
     12,
     kGpt2Tensors,
     {{"prefill 512", 1, 512, 32}}},
    {"llama-134m",
     R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 768,
"num_hidden_layers": 12, "num_attention_heads": 12, "num_key_value_heads": 12,
"intermediate_size": 2048, "hidden_act": "silu", "max_position_embeddings": 2048,
"vocab_size": 32000, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": false,
"bos_token_id": 1, "eos_token_id": 2})",
     "F16",
     12,
     kLlamaTensors,
     {{"prefill 256", 1, 256, 32}}},
    {"vit-b32-384",
     R"({"model_type": "vit", "architectures": ["ViTModel"], "hidden_size": 768,
"num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
"image_size": 384, "patch_size": 32, "num_channels": 3, "qkv_bias": true,
"layer_norm_eps": 1e-12})",
     "F32",
     12,
     kVitTensors,
     {{"1 picture"}}},
    {"t5-small",
     R"({"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 512,
"d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_decoder_layers": 6, "num_heads": 8,
"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "vocab_size": 32128,
"feed_forward_proj": "relu", "is_encoder_decoder": true, "tie_word_embeddings": true,
"layer_norm_epsilon": 1e-6, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0})",
     "F32",
     6,
     kT5Tensors,
     {{"source 128", 1, 128, 32}}},
    {"bart-base",
     R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "d_model": 768,
"encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 12,
"decoder_attention_heads": 12, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
"activation_function": "gelu", "max_position_embeddings": 1024, "vocab_size": 50265,
"is_encoder_decoder": true, "scale_embedding": false, "tie_word_embeddings": true,
"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2})",
     "F32",
     6,
     kBartTensors,
     {{"source 128", 1, 128, 32}}},
    {"marian",
     R"({"model_type": "marian", "architectures": ["MarianMTModel"], "d_model": 512,
"encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
"decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048,
"activation_function": "swish", "max_position_embeddings": 512, "vocab_size": 59514,
"decoder_vocab_size": 59514, "is_encoder_decoder": true, "scale_embedding": true,
"share_encoder_decoder_embeddings": true, "tie_word_embeddings": true, "pad_token_id": 59513,
"eos_token_id": 0, "decoder_start_token_id": 59513})",
     "F32",
     6,
     kMarianTensors,
     {{"source 40", 1, 40, 32}}},
    {"whisper-tiny",
     R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"],
"d_model": 384, "encoder_layers": 4, "decoder_layers": 4, "encoder_attention_heads": 6,
"decoder_attention_heads": 6, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536,
"activation_function": "gelu", "num_mel_bins": 80, "max_source_positions": 1500,
"max_target_positions": 448, "vocab_size": 51865, "is_encoder_decoder": true,
"scale_embedding": false, "tie_word_embeddings": true, "pad_token_id": 50257,
"bos_token_id": 50257, "eos_token_id": 50257, "decoder_start_token_id": 50258})",
     "F32",
     4,
     kWhisperTensors,
     {{"30 s", 1, 0, 32}}},
};

struct RandomTensor {
  std::string name;
  std::vector<int64_t> shape;
  bool gain = false;
  uint64_t count = 1;  // elements
  uint64_t first = 0;  // element of the file
};

// A safetensors file that is computed while it is read.
class RandomFile {
 public:
  RandomFile(const ModelShape& shape, ShapeWeights weights)
      : half_(std::strcmp(shape.dtype, "F16") == 0), zeros_(weights == ShapeWeights::kZeros) {
    add_lines(shape.tensors, shape.layers);
    Json header;
    const uint64_t size = half_ ? 2 : 4;
    for (const RandomTensor& tensor : tensors_) {
      header[tensor.name] = {
          {"dtype", shape.dtype},
          {"shape", tensor.shape},
          {"data_offsets", {tensor.first * size, (tensor.first + tensor.count) * size}}};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const uint64_t length = text.size();
    header_.resize(sizeof length);
    std::memcpy(header_.data(), &length, sizeof length);
    header_ += text;
  }

  uint64_t bytes() const { return header_.size() + elements_ * (half_ ? 2 : 4); }

  // Both `offset` and the end at whole elements after the header.
  bool read(uint64_t offset, std::span<std::byte> out) const {
    if (offset > bytes() || out.size() > bytes() - offset) return false;
    if (offset < header_.size()) {
      const size_t part = std::min<size_t>(out.size(), header_.size() - offset);
      std::memcpy(out.data(), header_.data() + offset, part);
      offset += part;
      out = out.subspan(part);
    }
    if (zeros_) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return true;
    }
    const uint64_t size = half_ ? 2 : 4;
    uint64_t element = (offset - header_.size()) / size;
    const uint64_t last = element + out.size() / size;
    auto tensor =
        std::upper_bound(tensors_.begin(), tensors_.end(), element,
                         [](uint64_t at, const RandomTensor& t) { return at < t.first + t.count; });
    for (std::byte* to = out.data(); element < last; ++tensor) {
      const uint64_t end = std::min(last, tensor->first + tensor->count);
      for (; element < end; ++element, to += size) write(element, tensor->gain, to);
    }
    return true;
  }

 private:
  void add(const std::string& name, std::vector<int64_t> shape, bool gain = false) {
    RandomTensor tensor{.name = name, .shape = std::move(shape), .gain = gain};
    for (int64_t size : tensor.shape) tensor.count *= static_cast<uint64_t>(size);
    tensor.first = elements_;
    elements_ += tensor.count;
    tensors_.push_back(std::move(tensor));
  }

  void add_named(const std::string& kind, const std::string& name, std::vector<int64_t> shape) {
    const bool norm = kind == "norm" || kind == "gain";
    if (kind == "tensor") return add(name, std::move(shape));
    if (kind == "linear" || kind == "norm") add(name + ".bias", {shape.front()});
    add(name + ".weight", std::move(shape), norm);
  }

  void add_lines(const std::string& lines, int64_t layers) {
    std::istringstream text(lines);
    for (std::string line; std::getline(text, line);) add_line(line, layers);
  }

  void add_line(const std::string& line, int64_t layers) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind >> name;
    if (kind == "width") {
      width_ = std::stoll(name);
      words >> feed_forward_;
      return;
    }
    if (kind == "layers") {
      add_lines(kBartLayers, layers);
      // Whisper's keys alone have no bias.
      for (const char* attention : {"encoder.layers.#.self_attn", "decoder.layers.#.self_attn",
                                    "decoder.layers.#.encoder_attn"}) {
        add_line(name + " model." + attention + ".k_proj D D", layers);
      }
      return;
    }
    std::vector<int64_t> shape;
    for (std::string size; words >> size;) {
      shape.push_back(size == "D" ? width_ : size == "F" ? feed_forward_ : std::stoll(size));
    }
    const size_t layer = name.find('#');
    if (layer == std::string::npos) return add_named(kind, name, shape);
    for (int64_t i = 0; i < layers; ++i) {
      add_named(kind, std::string(name).replace(layer, 1, std::to_string(i)), shape);
    }
  }

  // SplitMix64 of the element's number; the bits of a float with a fixed exponent.
  void write(uint64_t element, bool gain, std::byte* to) const {
    uint64_t z = (element + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    if (half_) {
      const uint64_t bits = gain ? 0x3c00u | (z & 0x7fu) : 0x2400u | (z & 0x83ffu);
      const auto word = static_cast<uint16_t>(bits);
      std::memcpy(to, &word, sizeof word);
      return;
    }
    const uint64_t bits = gain ? 0x3f800000u | (z & 0xfffffu) : 0x3c800000u | (z & 0x807fffffu);
    const auto word = static_cast<uint32_t>(bits);
    std::memcpy(to, &word, sizeof word);
  }

  bool half_ = false;
  bool zeros_ = false;
  int64_t width_ = 0;
  int64_t feed_forward_ = 0;
  uint64_t elements_ = 0;
  std::vector<RandomTensor> tensors_;
  std::string header_;
};

}  // namespace

SessionSizes sizes_of(const ModelRun& run) {
  return {
      .batch = run.batch, .tokens = std::max<int64_t>(1, run.tokens), .new_tokens = run.new_tokens};
}

std::span<const ModelShape> model_shapes() {
  return kShapes;
}

const ModelShape* find_model_shape(const std::string& name) {
  for (const ModelShape& shape : kShapes) {
    if (name == shape.name) return &shape;
  }
  return nullptr;
}

ModelSource random_model(const ModelShape& shape, ShapeWeights weights) {
  const auto file = std::make_shared<const RandomFile>(shape, weights);
  const std::string config = shape.config;
  FileReader reader;
  reader.size = [file, config](const std::string& name) -> std::optional<uint64_t> {
    if (name == "config.json") return config.size();
    if (name == "model.safetensors") return file->bytes();
    return std::nullopt;
  };
  reader.read = [file, config](const std::string& name, uint64_t offset, std::span<std::byte> out) {
    if (name == "model.safetensors") return file->read(offset, out);
    if (name != "config.json" || offset > config.size() || out.size() > config.size() - offset) {
      return false;
    }
    std::memcpy(out.data(), config.data() + offset, out.size());
    return true;
  };
  return ModelSource::reader(std::move(reader), std::string("random ") + shape.name);
}

}  // namespace vkformer::cli
