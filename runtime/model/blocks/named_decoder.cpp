#include "model/blocks/named_decoder.h"

#include "base/message.h"
#include "model/config_reading.h"
#include "model/weight_rows.h"

namespace vkformer {
namespace {

Status read_decoder_classes(const JsonConfig& config, ModelFacts& facts, DecoderConfig& block) {
  VKF_ASSIGN(facts.labels, get_labels(config));
  block.classes = "classes";
  if (!config.has("pad_token_id")) return {};
  VKF_ASSIGN(const int64_t padding, config.get_int("pad_token_id"));
  // Some configurations have -1 where there is no such token.
  if (padding >= 0) block.padding = padding;
  return {};
}

}  // namespace

Status read_decoder_head(const JsonConfig& config, const std::string& fallback, ModelFacts& facts,
                         DecoderConfig& block) {
  VKF_ASSIGN(facts.architecture, get_architecture(config, fallback));
  facts.head = head_of(facts.architecture);
  const bool bare =
      facts.architecture.ends_with("Model") && !facts.architecture.ends_with("DoubleHeadsModel");
  if (facts.head == HeadKind::kLanguage && facts.sentence.pools()) {
    facts.head = HeadKind::kNone;
    return {};
  }
  if (facts.head == HeadKind::kLanguage) {
    block.head = "head";
    return {};
  }
  if (facts.head == HeadKind::kSequence) return read_decoder_classes(config, facts, block);
  if (facts.head == HeadKind::kNone && bare) return {};
  return unsupported(message({"[architectures] in ", config.where(), " is ", facts.architecture,
                              "; of this family the bare model, the one with a language head (",
                              fallback, ") and the one that classifies texts are supported."}));
}

void set_decoder_facts(const DecoderConfig& block, int64_t vocabulary, int64_t most_tokens,
                       ModelFacts& facts) {
  facts.kind = ModelKind::kDecoder;
  facts.width = block.stack.width;
  facts.decoder_layers = block.stack.layers;
  facts.decoder_heads = block.stack.heads;
  facts.source_vocab = facts.target_vocab = vocabulary;
  facts.max_source = facts.max_target = most_tokens;
  for (const RotarySetup& rotary : block.stack.rotaries) {
    const RotaryScalingKind kind = rotary.scaling.kind;
    const bool by_length =
        kind == RotaryScalingKind::kDynamic || kind == RotaryScalingKind::kLongrope;
    if (by_length) facts.prompts = ModelFacts::Prompts::kExact;
  }
}

Result<int64_t> size_by_either(const JsonConfig& config, const std::string& own,
                               const std::string& other, int64_t fallback, int64_t most) {
  if (!config.has(own) && config.has(other)) return get_size(config, other, most);
  return get_size_or(config, own, fallback, most);
}

std::vector<uint32_t> grouped_qkv_order(int64_t heads, int64_t kv_heads, int64_t head_width) {
  const int64_t queries = heads / kv_heads;  // of a group, before its key and its value
  std::vector<uint32_t> order;
  const auto add = [&](int64_t group, int64_t head) {
    for (int64_t e = 0; e < head_width; ++e) {
      order.push_back(static_cast<uint32_t>((group * (queries + 2) + head) * head_width + e));
    }
  };
  for (int64_t h = 0; h < heads; ++h) add(h / queries, h % queries);
  for (int64_t g = 0; g < kv_heads; ++g) add(g, queries);
  for (int64_t g = 0; g < kv_heads; ++g) add(g, queries + 1);
  return order;
}

NamedDecoder::NamedDecoder(ModelFacts facts, GenerationFacts generation, DecoderConfig block,
                           DecoderNames names)
    : DecoderFamily(std::move(facts), std::move(generation), std::move(block)),
      names_(std::move(names)) {}

Status NamedDecoder::prepare(const Checkpoint& checkpoint) {
  names_.prefixes.insert(names_.prefixes.begin(), names_.prefix);
  names_.prefix.clear();
  for (const std::string& prefix : names_.prefixes) {
    if (checkpoint.find(prefix + names_.words) == nullptr) continue;
    names_.prefix = prefix;
    break;
  }
  names_.words = names_.prefix + names_.words;
  for (const std::string& prefix : names_.head_prefixes) {
    if (checkpoint.find(prefix + names_.head) == nullptr) continue;
    names_.head = prefix + names_.head;
    break;
  }
  const bool has_head = checkpoint.find(names_.head) != nullptr;
  if (!has_head && names_.tied == DecoderNames::Tied::kYes) names_.head = names_.words;
  const bool shared = !block().head.empty() && names_.head == names_.words;
  block().embedding.words = shared ? "head" : "embed";
  return block().pictures ? block().pictures->prepare(checkpoint) : Status{};
}

Result<WeightTable> NamedDecoder::weight_table(const Checkpoint& checkpoint) const {
  WeightTable table;
  const ModelFacts& f = facts();
  if (!block().head.empty()) {
    table.rows.push_back(embedding_row("head", names_.head, f.target_vocab, f.width));
    if (!names_.head_bias.empty()) table.rows.back().biases = {names_.head_bias};
  }
  if (!block().classes.empty()) add_class_rows(table);
  if (block().embedding.words == "embed") {
    table.rows.push_back(embedding_row("embed", names_.words, f.source_vocab, f.width));
  }
  add_rows(names_.prefix, table);
  if (block().pictures) VKF_CHECK(block().pictures->add_rows(checkpoint, table));
  // Heads that were saved beside the stack and are not used.
  for (const char* head : {"lm_head.*", "embed_out.*", "score.*", "classifier.*", "qa_outputs.*"}) {
    table.ignored.emplace_back(head);
    for (const std::string& prefix : names_.head_prefixes) table.ignored.push_back(prefix + head);
  }
  return table;
}

void NamedDecoder::add_class_rows(WeightTable& table) const {
  const ModelFacts& f = facts();
  table.rows.push_back(
      plain_linear_row(block().classes, {"score"}, static_cast<int64_t>(f.labels.size()), f.width));
}

}  // namespace vkformer
