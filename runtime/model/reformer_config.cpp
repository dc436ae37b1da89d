#include "model/reformer_config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/config_reading.h"
#include "ops/lsh_hash.h"

namespace vkformer {
namespace {

using ReformerKind = ReformerConfig::Kind;

Result<int64_t> get_count(const JsonConfig& config, const std::string& key, int64_t fallback,
                          int64_t most) {
  VKF_ASSIGN(const int64_t value, config.get_int_or(key, fallback));
  if (value >= 0 && value <= most) return value;
  return invalid_file(message(
      {"[", key, "] in ", config.where(), " is ", value, ", but must lie between 0 and ", most}));
}

Result<ReformerChunks> read_chunks(const JsonConfig& config, const std::string& kind) {
  constexpr int64_t kMostNeighbors = 4096;
  ReformerChunks chunks;
  VKF_ASSIGN(chunks.length, get_size_or(config, kind + "_attn_chunk_length", 64, kMostPositions));
  VKF_ASSIGN(chunks.before, get_count(config, kind + "_num_chunks_before", 1, kMostNeighbors));
  VKF_ASSIGN(chunks.after, get_count(config, kind + "_num_chunks_after", 0, kMostNeighbors));
  return chunks;
}

Status read_kinds(const JsonConfig& config, ReformerConfig& r) {
  const std::vector<std::string> usual = {"local", "lsh", "local", "lsh", "local", "lsh"};
  VKF_ASSIGN(const std::vector<std::string> names, config.get_string_list_or("attn_layers", usual));
  if (names.empty() || static_cast<int64_t>(names.size()) > kMostLayers) {
    return invalid_file(message({"[attn_layers] in ", config.where(), " lists ", names.size(),
                                 " layers, but must list from 1 to ", kMostLayers}));
  }
  for (const std::string& name : names) {
    if (name != "local" && name != "lsh") {
      return unsupported(message({"[attn_layers] in ", config.where(), " names '", name,
                                  "'; supported are local and lsh"}));
    }
    r.kinds.push_back(name == "lsh" ? ReformerKind::kLsh : ReformerKind::kLocal);
  }
  r.stack.layers = static_cast<int64_t>(names.size());
  VKF_ASSIGN(const int64_t stated,
             get_size_or(config, "num_hidden_layers", r.stack.layers, kMostLayers));
  if (stated == r.stack.layers) return {};
  return invalid_file(message({"[num_hidden_layers] in ", config.where(), " is ", stated,
                               ", but attn_layers lists ", r.stack.layers, " layers"}));
}

Status read_sizes(const JsonConfig& config, StackConfig& stack) {
  stack.rows = "encoder";
  VKF_ASSIGN(stack.width, get_size_or(config, "hidden_size", 256, kMostWidth));
  VKF_ASSIGN(stack.heads, get_size_or(config, "num_attention_heads", 12, kMostWidth));
  VKF_ASSIGN(stack.head_width, get_size_or(config, "attention_head_size", 64, kMostHeadWidth));
  VKF_ASSIGN(stack.ffn, get_size_or(config, "feed_forward_size", 512, kMostWidth));
  VKF_ASSIGN(stack.activation, get_activation(config, "hidden_act", "relu"));
  VKF_ASSIGN(stack.epsilon, get_epsilon(config, "layer_norm_eps", 1e-12));
  return {};
}

Status read_hashing(const JsonConfig& config, ReformerConfig& r) {
  constexpr int64_t kMostRounds = 256;
  VKF_ASSIGN(r.rounds, get_size_or(config, "num_hashes", 1, kMostRounds));
  if (config.has("hash_seed")) {
    VKF_ASSIGN(r.hash_seed, config.get_int("hash_seed"));
  }
  VKF_ASSIGN(const std::vector<int64_t> factors, config.get_int_list_or("num_buckets", {}));
  if (factors.empty()) return {};
  for (int64_t factor : factors) {
    r.buckets.push_back(static_cast<uint32_t>(std::clamp<int64_t>(factor, 0, UINT32_MAX)));
  }
  const auto count = count_buckets(r.buckets);
  if (count) return {};
  return count.error().with_context("[num_buckets] in " + config.where());
}

Status read_axial(const JsonConfig& config, ReformerConfig& r) {
  VKF_ASSIGN(const bool axial, config.get_bool_or("axial_pos_embds", true));
  if (!axial) return {};
  VKF_ASSIGN(r.axial_shape, config.get_int_list_or("axial_pos_shape", {64, 64}));
  VKF_ASSIGN(r.axial_widths, config.get_int_list_or("axial_pos_embds_dim", {64, 192}));
  if (r.axial_shape.size() != 2 || r.axial_widths.size() != 2) {
    return unsupported(message({"[axial_pos_shape] in ", config.where(), " has ",
                                r.axial_shape.size(), " axes and axial_pos_embds_dim ",
                                r.axial_widths.size(), "; supported are 2 of both"}));
  }
  for (size_t axis = 0; axis < 2; ++axis) {
    if (r.axial_shape[axis] >= 1 && r.axial_shape[axis] <= kMostPositions &&
        r.axial_widths[axis] >= 1 && r.axial_widths[axis] < r.stack.width) {
      continue;
    }
    return invalid_file(message({"[axial_pos_shape] in ", config.where(), " has axis ", axis,
                                 " of ", r.axial_shape[axis], " positions, ", r.axial_widths[axis],
                                 " wide; there must be from 1 to ", kMostPositions,
                                 ", narrower than hidden_size, ", r.stack.width}));
  }
  const int64_t sum = r.axial_widths[0] + r.axial_widths[1];
  if (sum == r.stack.width) return {};
  return invalid_file(message({"[axial_pos_embds_dim] in ", config.where(), " adds up to ", sum,
                               ", but hidden_size is ", r.stack.width}));
}

Status check_causal(const JsonConfig& config, const ReformerConfig& r, HeadKind head) {
  if (head == HeadKind::kMasked && r.causal) {
    return invalid_file(message({"[is_decoder] is true in ", config.where(),
                                 ", but masked words need a model that sees everything"}));
  }
  if (head != HeadKind::kLanguage) return {};
  if (!r.causal) {
    return invalid_file(message({"[is_decoder] is false in ", config.where(),
                                 ", but a language head needs a causal model"}));
  }
  const int64_t after = std::max(r.has(ReformerKind::kLocal) ? r.local.after : 0,
                                 r.has(ReformerKind::kLsh) ? r.lsh.after : 0);
  if (after == 0) return {};
  return invalid_file(
      message({"[num_chunks_after] in ", config.where(), " is ", after,
               ", but a causal model with a language head sees 0 chunks after its own"}));
}

}  // namespace

bool ReformerConfig::has(ReformerKind kind) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

int64_t ReformerConfig::padded(int64_t tokens) const {
  const int64_t a = has(ReformerKind::kLocal) ? local.length : lsh.length;
  const int64_t b = has(ReformerKind::kLsh) ? lsh.length : local.length;
  if (tokens <= std::min(a, b)) return tokens;
  const int64_t whole = std::lcm(a, b);
  return (tokens + whole - 1) / whole * whole;
}

std::vector<uint32_t> ReformerConfig::bucket_factors(int64_t padded) const {
  if (!buckets.empty()) return buckets;
  // As the library chooses: a power of two near twice the chunks, in two factors where it is large.
  const auto power = std::bit_width(static_cast<uint64_t>(2 * (padded / lsh.length))) - 1;
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(positions / lsh.length)));
  const int64_t limit = 2 * std::max(root, lsh.length);
  if (int64_t{1} << power <= limit) return {uint32_t{1} << power};
  return {uint32_t{1} << (power / 2), uint32_t{1} << (power - power / 2)};
}

Result<ReformerConfig> read_reformer(const JsonConfig& config) {
  ReformerConfig r;
  VKF_CHECK(read_kinds(config, r));
  VKF_CHECK(read_sizes(config, r.stack));
  VKF_ASSIGN(r.local, read_chunks(config, "local"));
  VKF_ASSIGN(r.lsh, read_chunks(config, "lsh"));
  VKF_CHECK(read_hashing(config, r));
  VKF_CHECK(read_axial(config, r));
  VKF_ASSIGN(r.positions, get_size_or(config, "max_position_embeddings", 4096, kMostPositions));
  VKF_ASSIGN(r.pad, config.get_int_or("pad_token_id", 0));
  VKF_ASSIGN(r.causal, config.get_bool_or("is_decoder", false));
  return r;
}

Result<ModelFacts> read_reformer_facts(const ModelFiles& files, const ReformerConfig& r) {
  const JsonConfig& config = files.config;
  ModelFacts facts{.family = "reformer", .kind = ModelKind::kEncoder};
  facts.sentence = files.sentence;
  facts.width = 2 * r.stack.width;
  facts.encoder_layers = r.stack.layers;
  facts.encoder_heads = r.stack.heads;
  VKF_ASSIGN(facts.source_vocab, get_size_or(config, "vocab_size", 320, kMostVocabulary));
  facts.max_source = r.positions;
  if (!r.axial_shape.empty()) {
    facts.max_source = std::min(facts.max_source, r.axial_shape[0] * r.axial_shape[1]);
  }
  if (r.pad < 0 || r.pad >= facts.source_vocab) {
    return invalid_file(message({"[pad_token_id] in ", config.where(), " is ", r.pad,
                                 ", but vocab_size is ", facts.source_vocab}));
  }
  VKF_ASSIGN(facts.architecture, get_architecture(config, "ReformerModel"));
  if (facts.architecture == "ReformerModelWithLMHead") {
    facts.head = HeadKind::kLanguage;
  } else {
    VKF_ASSIGN(facts.head, read_encoder_head(config, facts.architecture));
  }
  if (facts.head == HeadKind::kTokens) {
    return unsupported(
        message({"[architectures] of ", config.where(), " names '", facts.architecture,
                 "', whose head this family does not have; supported are the bare model and heads "
                 "for language, masked words, sequence classification and question answering"}));
  }
  VKF_CHECK(check_causal(config, r, facts.head));
  if (facts.head == HeadKind::kLanguage || facts.head == HeadKind::kMasked) {
    facts.target_vocab = facts.source_vocab;
  }
  if (facts.head == HeadKind::kSequence) {
    VKF_ASSIGN(facts.labels, get_labels(config));
  }
  return facts;
}

}  // namespace vkformer
