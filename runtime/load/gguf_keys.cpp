#include "load/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "model/blocks/bert_layers.h"
#include "model/text_decoder.h"

namespace vkformer {
namespace {

// Keys with the architecture in front.
class KeyWriter {
 public:
  KeyWriter(const ModelFiles& files, std::string architecture, GgufWriter& writer)
      : files_(files), architecture_(std::move(architecture)), writer_(writer) {}

  const ModelFiles& files() const { return files_; }
  const JsonConfig& config() const { return files_.config; }
  const std::string& architecture() const { return architecture_; }
  GgufWriter& writer() { return writer_; }
  std::string key(const char* name) const { return architecture_ + "." + name; }

  Status number(const char* name, int64_t value);
  void real(const char* name, double value) {
    writer_.put_float(key(name), static_cast<float>(value));
  }
  void text(const char* name, const char* value) { writer_.put_text(key(name), value); }
  void flag(const char* name, bool value) { writer_.put_bool(key(name), value); }
  Status floats(const std::string& tensor, const std::vector<double>& values);
  // What the format cannot say.
  Error refused(const std::string& what) const {
    return unsupported(
        message({config().where(), " ", what, ", which a GGUF file of the architecture ",
                 architecture_, " cannot say."}));
  }

 private:
  const ModelFiles& files_;
  std::string architecture_;
  GgufWriter& writer_;
};

Status KeyWriter::number(const char* name, int64_t value) {
  if (value < 0 || value > std::numeric_limits<uint32_t>::max()) {
    return refused(message({"makes [", key(name), "] ", value}));
  }
  writer_.put_number(key(name), static_cast<uint32_t>(value));
  return {};
}

Status KeyWriter::floats(const std::string& tensor, const std::vector<double>& values) {
  std::vector<std::byte> bytes(4 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    std::memcpy(bytes.data() + 4 * i, &value, sizeof value);
  }
  return writer_.put_tensor(tensor, GgmlType::kF32, {static_cast<int64_t>(values.size())},
                            std::move(bytes));
}

// Rotary positions

// Divisors of the frequencies of theta that are those of the scaling.
Result<std::vector<double>> divisors_of(const RotarySetup& rotary) {
  RotaryScaling plain;
  plain.theta = rotary.scaling.theta;
  VKF_ASSIGN(const RotaryFrequencies own, rotary_frequencies(rotary.scaling, rotary.width, 1));
  VKF_ASSIGN(const RotaryFrequencies base, rotary_frequencies(plain, rotary.width, 1));
  std::vector<double> divisors;
  for (size_t i = 0; i < own.radians.size(); ++i) {
    divisors.push_back(base.radians[i] / own.radians[i]);
  }
  return divisors;
}

Status put_yarn(const RotaryScaling& scaling, KeyWriter& keys) {
  if (scaling.mscale != 0 || scaling.mscale_all_dim != 0) {
    return keys.refused("has [mscale] or [mscale_all_dim]");
  }
  const int64_t original =
      scaling.original_positions > 0 ? scaling.original_positions : scaling.max_positions;
  keys.text("rope.scaling.type", "yarn");
  keys.real("rope.scaling.factor", scaling.factor
                                       ? *scaling.factor
                                       : static_cast<double>(scaling.max_positions) /
                                             static_cast<double>(std::max<int64_t>(1, original)));
  VKF_CHECK(keys.number("rope.scaling.original_context_length", original));
  if (scaling.beta_fast != 32.0) keys.real("rope.scaling.yarn_beta_fast", scaling.beta_fast);
  if (scaling.beta_slow != 1.0) keys.real("rope.scaling.yarn_beta_slow", scaling.beta_slow);
  if (!scaling.truncate) keys.flag("rope.scaling.yarn_truncate", false);
  if (scaling.attention_factor) {
    keys.real("rope.scaling.yarn_attn_factor", *scaling.attention_factor);
  }
  return {};
}

// Phi-3's, whose divisors are tensors.
Status put_longrope(const RotarySetup& rotary, KeyWriter& keys) {
  const RotaryScaling& scaling = rotary.scaling;
  VKF_CHECK(keys.floats("rope_factors_long.weight", scaling.long_factor));
  VKF_CHECK(keys.floats("rope_factors_short.weight", scaling.short_factor));
  VKF_CHECK(keys.number("rope.scaling.original_context_length", scaling.original_positions > 0
                                                                    ? scaling.original_positions
                                                                    : scaling.max_positions));
  VKF_ASSIGN(const RotaryFrequencies used,
             rotary_frequencies(scaling, rotary.width, scaling.max_positions));
  keys.real("rope.scaling.attn_factor", used.scale);
  return {};
}

Status put_rotary(const RotarySetup& rotary, const StackConfig& stack, KeyWriter& keys) {
  const RotaryScaling& scaling = rotary.scaling;
  const bool phi3 = keys.architecture() == "phi3";
  if (rotary.width != stack.head() && !phi3) {
    return keys.refused(
        message({"rotates ", rotary.width, " of the ", stack.head(), " columns of a head"}));
  }
  VKF_CHECK(keys.number("rope.dimension_count", rotary.width));
  keys.real("rope.freq_base", scaling.theta);
  switch (scaling.kind) {
    case RotaryScalingKind::kDefault:
      if (!scaling.frequencies.empty()) return keys.refused("has its own rotary frequencies");
      return scaling.divisors.empty() ? Status{}
                                      : keys.floats("rope_freqs.weight", scaling.divisors);
    case RotaryScalingKind::kLinear:
      keys.text("rope.scaling.type", "linear");
      keys.real("rope.scaling.factor", scaling.factor.value_or(1.0));
      return {};
    case RotaryScalingKind::kYarn:
      return put_yarn(scaling, keys);
    case RotaryScalingKind::kLlama3: {
      if (keys.architecture() != "llama") return keys.refused("has [rope_type] as llama3");
      VKF_ASSIGN(const std::vector<double> divisors, divisors_of(rotary));
      return keys.floats("rope_freqs.weight", divisors);
    }
    case RotaryScalingKind::kLongrope:
      if (phi3) return put_longrope(rotary, keys);
      return keys.refused("has [rope_type] as longrope");
    case RotaryScalingKind::kDynamic:
      break;
  }
  return keys.refused("has [rope_type] as dynamic");
}

// Windows

// The window of the kind that layer i has; -1: it sees all.
int64_t window_of(const StackConfig& stack, int64_t layer) {
  const auto i = static_cast<size_t>(layer);
  const size_t kind = i < stack.kind_of.size() ? stack.kind_of[i] : 0;
  const int64_t left = kind < stack.kinds.size() ? stack.kinds[kind].window_left : -1;
  return left < 0 ? -1 : left + 1;
}

// Which layers slide, and the one width that their windows have; 0: none.
struct Windows {
  std::vector<uint8_t> slides;
  int64_t width = 0;

  bool follows(const std::function<bool(size_t layer)>& rule) const {
    for (size_t i = 0; i < slides.size(); ++i) {
      if ((slides[i] != 0) != rule(i)) return false;
    }
    return true;
  }
};

Windows windows_of(const StackConfig& stack) {
  Windows windows;
  for (int64_t i = 0; i < stack.layers; ++i) {
    const int64_t width = window_of(stack, i);
    windows.slides.push_back(width > 0 ? 1 : 0);
    windows.width = std::max(windows.width, width);
  }
  return windows;
}

Status put_windows(const StackConfig& stack, KeyWriter& keys) {
  const Windows windows = windows_of(stack);
  const std::string& architecture = keys.architecture();
  const bool any = windows.width > 0;
  if (architecture == "phi3" && any) {
    if (!windows.follows([](size_t) { return true; })) return keys.refused("has [layer_types]");
    return keys.number("attention.sliding_window", windows.width);
  }
  if (architecture == "gemma2") {
    if (!windows.follows([](size_t i) { return i % 2 == 0; })) {
      return keys.refused("has other [layer_types] than a window on every other layer");
    }
    return keys.number("attention.sliding_window", windows.width);
  }
  if (architecture == "gemma3") {
    if (!any) return {};
    VKF_CHECK(keys.number("attention.sliding_window", windows.width));
    if (!windows.follows([](size_t i) { return i % 6 != 5; })) {
      keys.writer().put_bools(keys.key("attention.sliding_window_pattern"), windows.slides);
    }
    return {};
  }
  if (!any) return {};
  return keys.refused(message({"has [sliding_window] as ", windows.width}));
}

// Decoders

ActivationKind activation_of(const std::string& architecture) {
  return architecture.starts_with("gemma") ? ActivationKind::kGeluTanh : ActivationKind::kSilu;
}

// Gemma 2's and 3's: what files do not say of the scale of scores, their readers know by the number
// of layers.
Status put_gemma_scores(const DecoderConfig& block, KeyWriter& keys) {
  const StackConfig& s = block.stack;
  const bool second = keys.architecture() == "gemma2";
  const bool largest = s.layers == (second ? 46 : 62);
  const double scalar = largest ? static_cast<double>(s.width) / static_cast<double>(s.heads)
                                : static_cast<double>(s.head());
  if (s.scales.size() != 1 || s.scales[0] != static_cast<float>(1.0 / std::sqrt(scalar))) {
    return keys.refused("has another [query_pre_attn_scalar] than published sizes");
  }
  if (second) keys.real("attn_logit_softcapping", double{s.softcap});
  if (second || block.logit_cap != 0) {
    keys.real("final_logit_softcapping", double{block.logit_cap});
  }
  if (second) return {};
  const RotarySetup& local = s.rotaries.back();
  if (local.scaling.kind != RotaryScalingKind::kDefault) {
    return keys.refused("stretches rotary positions of layers with windows");
  }
  if (local.scaling.theta != 10000.0) keys.real("rope.freq_base_swa", local.scaling.theta);
  return {};
}

Status put_decoder(KeyWriter& keys) {
  VKF_ASSIGN(const LlamaParts parts, read_text_decoder(keys.files()));
  const DecoderConfig& block = parts.block;
  const StackConfig& s = block.stack;
  if (block.head.empty() && !keys.files().sentence.pools()) {
    return keys.refused("is of a model without a language head");
  }
  if (s.activation != activation_of(keys.architecture())) {
    return keys.refused("has another activation than the architecture's");
  }
  const bool gemma = keys.architecture().starts_with("gemma");
  if (gemma && parts.kind.biases.qkv) return keys.refused("has [attention_bias] as true");
  if (s.causal == StackConfig::Causal::kNo) {
    return keys.refused("has [use_bidirectional_attention] as true");
  }
  VKF_ASSIGN(const int64_t positions,
             keys.config().get_int_or("max_position_embeddings", parts.kind.max_positions));
  VKF_CHECK(keys.number("block_count", s.layers));
  VKF_CHECK(keys.number("context_length", positions));
  VKF_CHECK(keys.number("embedding_length", s.width));
  VKF_CHECK(keys.number("feed_forward_length", s.ffn));
  VKF_CHECK(keys.number("attention.head_count", s.heads));
  VKF_CHECK(keys.number("attention.head_count_kv", s.kv()));
  VKF_CHECK(keys.number("attention.key_length", s.head()));
  VKF_CHECK(keys.number("attention.value_length", s.values()));
  keys.real("attention.layer_norm_rms_epsilon", double{s.epsilon});
  VKF_CHECK(put_rotary(s.rotaries.front(), s, keys));
  VKF_CHECK(put_windows(s, keys));
  if (keys.architecture() == "gemma2" || keys.architecture() == "gemma3") {
    return put_gemma_scores(block, keys);
  }
  return {};
}

// Encoders

Status put_bert(KeyWriter& keys) {
  VKF_ASSIGN(const BertConfig bert, read_bert_config(keys.files(), {}, "BertModel"));
  const StackConfig& s = bert.block.stack;
  if (s.activation != ActivationKind::kGelu) {
    return keys.refused("has another [hidden_act] than gelu");
  }
  VKF_CHECK(keys.number("block_count", s.layers));
  VKF_CHECK(keys.number("context_length", bert.facts.max_source));
  VKF_CHECK(keys.number("embedding_length", s.width));
  VKF_CHECK(keys.number("feed_forward_length", s.ffn));
  VKF_CHECK(keys.number("attention.head_count", s.heads));
  keys.real("attention.layer_norm_epsilon", double{s.epsilon});
  keys.flag("attention.causal", false);
  VKF_ASSIGN(const int64_t types, keys.config().get_int_or("type_vocab_size", 2));
  if (types < 1 || types > std::numeric_limits<uint16_t>::max()) {
    return keys.refused(message({"has [type_vocab_size] as ", types}));
  }
  // Among the keys of the tokenizer, though a model without one has it, too.
  keys.writer().put_number("tokenizer.ggml.token_type_count", static_cast<uint32_t>(types));
  return {};
}

// T5: the keys of its configuration are there, since files of the library always have them.
Status put_t5(KeyWriter& keys) {
  const JsonConfig& config = keys.config();
  for (const auto& [to, from] :
       {std::pair{"embedding_length", "d_model"}, std::pair{"block_count", "num_layers"},
        std::pair{"attention.head_count", "num_heads"}, std::pair{"attention.key_length", "d_kv"},
        std::pair{"attention.value_length", "d_kv"}, std::pair{"feed_forward_length", "d_ff"}}) {
    VKF_ASSIGN(const int64_t value, config.get_int(from));
    VKF_CHECK(keys.number(to, value));
  }
  VKF_ASSIGN(const int64_t layers, config.get_int("num_layers"));
  VKF_ASSIGN(const int64_t decoder_layers, config.get_int_or("num_decoder_layers", layers));
  VKF_CHECK(keys.number("decoder_block_count", decoder_layers));
  VKF_ASSIGN(const int64_t positions, config.get_int_or("n_positions", 512));
  VKF_CHECK(keys.number("context_length", positions));
  VKF_ASSIGN(const int64_t buckets, config.get_int_or("relative_attention_num_buckets", 32));
  VKF_CHECK(keys.number("attention.relative_buckets_count", buckets));
  VKF_ASSIGN(const int64_t distance, config.get_int_or("relative_attention_max_distance", 128));
  if (distance != 128) {
    return keys.refused(message({"has [relative_attention_max_distance] as ", distance}));
  }
  VKF_ASSIGN(const std::string ffn, config.get_string_or("feed_forward_proj", "relu"));
  VKF_ASSIGN(const bool tied, config.get_bool_or("tie_word_embeddings", true));
  VKF_ASSIGN(const bool scaled, config.get_bool_or("scale_decoder_outputs", tied));
  const bool gated = ffn == "gated-gelu";
  if (!gated && ffn != "relu") return keys.refused("has [feed_forward_proj] as " + bracketed(ffn));
  if (scaled != (tied && !gated)) {
    return keys.refused(message(
        {"has [feed_forward_proj] as ", ffn, " and ties its embeddings in another way than T5"}));
  }
  VKF_ASSIGN(const double epsilon, config.get_double_or("layer_norm_epsilon", 1e-6));
  keys.real("attention.layer_norm_epsilon", epsilon);
  keys.real("attention.layer_norm_rms_epsilon", epsilon);
  VKF_ASSIGN(const int64_t start, config.get_int_or("decoder_start_token_id", 0));
  return keys.number("decoder_start_token_id", start);
}

// How texts become embeddings; readers bring them to length 1.
Status put_pooling(KeyWriter& keys) {
  const SentenceFacts& sentence = keys.files().sentence;
  if (!sentence.pools()) return {};
  const bool dense = std::any_of(sentence.steps.begin(), sentence.steps.end(),
                                 [](const SentenceFacts::Step& step) {
                                   return step.kind == SentenceFacts::Step::Kind::kDense;
                                 });
  if (dense || !sentence.normalizes() || sentence.pooling.size() != 1) {
    return keys.refused("comes with modules other than one pooling and Normalize");
  }
  switch (sentence.pooling.front()) {
    case PoolKind::kMean:
      return keys.number("pooling_type", 1);
    case PoolKind::kFirst:
      return keys.number("pooling_type", 2);
    case PoolKind::kLast:
      return keys.number("pooling_type", 3);
    default:
      return keys.refused("comes with a pooling that is not mean, cls or lasttoken");
  }
}

struct WrittenFamily {
  const char* model_type;
  const char* architecture;
  Status (*put)(KeyWriter& keys);
};

constexpr WrittenFamily kWritten[] = {
    {"llama", "llama", put_decoder},
    {"mistral", "llama", put_decoder},
    {"qwen2", "qwen2", put_decoder},
    {"qwen3", "qwen3", put_decoder},
    {"gemma", "gemma", put_decoder},
    {"gemma2", "gemma2", put_decoder},
    {"gemma3_text", "gemma3", put_decoder},
    {"phi3", "phi3", put_decoder},
    {"bert", "bert", put_bert},
    {"t5", "t5", put_t5},
    {"mt5", "t5", put_t5},
};

Result<const WrittenFamily*> find_written(const ModelFiles& files) {
  VKF_ASSIGN(const std::string type, files.config.get_string("model_type"));
  std::string known;
  for (const WrittenFamily& family : kWritten) {
    if (type == family.model_type) return &family;
    known += std::string(known.empty() ? "" : ", ") + family.model_type;
  }
  return unsupported(message({"[model_type] in ", files.config.where(), " is ", bracketed(type),
                              ", which is not written to GGUF files. Written are ", known, "."}));
}

}  // namespace

Result<std::string> gguf_architecture_of(const ModelFiles& files) {
  VKF_ASSIGN(const WrittenFamily* found, find_written(files));
  VKF_ASSIGN(const std::vector<std::string> classes,
             files.config.get_string_list_or("architectures", {}));
  const bool encoder = !classes.empty() && classes.front() == "T5EncoderModel";
  return std::string(encoder ? "t5encoder" : found->architecture);
}

Status put_gguf_keys(const ModelFiles& files, GgufWriter& writer) {
  VKF_ASSIGN(const WrittenFamily* found, find_written(files));
  VKF_ASSIGN(std::string architecture, gguf_architecture_of(files));
  KeyWriter keys(files, std::move(architecture), writer);
  VKF_CHECK(found->put(keys));
  return put_pooling(keys);
}

bool gguf_leaves_out(const std::string& architecture, const std::string& tensor) {
  return architecture == "bert" &&
         (tensor.starts_with("pooler.") || tensor.find(".pooler.") != std::string::npos);
}

}  // namespace vkformer
