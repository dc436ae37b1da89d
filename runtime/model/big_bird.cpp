// BigBird (Zaheer et al., "Big Bird: Transformers for longer sequences", 2020) is a BERT with
// sparse attention. Blocks of tokens attend to the first and the last block, their neighbors and a
// few random ones. Its time is linear in the number of blocks.
#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "model/blocks/bert_layers.h"
#include "model/blocks/stack_attention.h"
#include "model/config_reading.h"
#include "model/family_list.h"
#include "model/weight_rows.h"
#include "ops/combine.h"

namespace vkformer {
namespace {

// What a question's tokens lose of their logits as ends of an answer.
constexpr float kQuestionPenalty = -1e6f;

struct BigBirdConfig {
  int64_t block = 64;   // tokens of a block
  int64_t random = 3;   // random blocks of a block
  int64_t heads = 12;   // H
  int64_t layers = 12;  // L
  bool sparse = true;   // attention_type is block_sparse
  HeadKind head = HeadKind::kNone;
  ActivationKind activation = ActivationKind::kGeluTanh;
  int64_t separator = 66;  // token id that ends a question
};

class BigBirdForm : public EncoderForm {
 public:
  explicit BigBirdForm(BigBirdConfig config) : c_(std::move(config)) {}

  std::vector<std::string> input_names() const override;
  Status read_inputs(const TensorMap& inputs, ForwardInputs& result) const override;
  Result<StackRun::Attend> begin_pass(ModelBuilder& builder, const StackConfig& stack,
                                      const ForwardShape& shape, TensorId mask) const override;
  Status add_heads(ModelBuilder& builder, const StackConfig& stack, const ForwardShape& shape,
                   const HeadInput& input) const override;

 private:
  using Rows = std::vector<std::vector<SeenBlock>>;
  int64_t blocks(int64_t tokens) const { return (tokens + c_.block - 1) / c_.block; }
  // Shorter inputs have ordinary attention.
  bool is_sparse(int64_t tokens) const {
    return c_.sparse && tokens > (5 + 2 * c_.random) * c_.block;
  }
  Rows seen_blocks(int64_t count, int64_t slices, const std::vector<int64_t>& random) const;
  // Words of a block map with separate patterns in every head, at the most.
  size_t map_words(int64_t count) const;
  Status read_patterns(const TensorMap& inputs, ForwardInputs& result) const;
  Status read_question(const TensorMap& inputs, ForwardInputs& result) const;
  StackTerms add_terms(ModelBuilder& b, const std::string& feed, const ForwardShape& shape) const;

  BigBirdConfig c_;
};

// Rows (slices, blocks of queries); `random` is (slices, n - 2, r), or empty: all zeros, which is
// what the library does at inference.
BigBirdForm::Rows BigBirdForm::seen_blocks(int64_t n, int64_t slices,
                                           const std::vector<int64_t>& random) const {
  Rows rows;
  for (int64_t slice = 0; slice < slices; ++slice) {
    for (int64_t i = 0; i < n; ++i) {
      std::vector<SeenBlock>& row = rows.emplace_back();
      const auto see = [&](int64_t block) { row.push_back({static_cast<uint32_t>(block), 1}); };
      if (i == 0 || i == n - 1) {
        for (int64_t j = 0; j < n; ++j) see(j);
        continue;
      }
      for (int64_t j = std::max<int64_t>(i - 1, 1); j <= std::min(i + 1, n - 2); ++j) see(j);
      see(0);
      see(n - 1);
      for (int64_t r = 0; r < c_.random; ++r) {
        const int64_t at = (slice * (n - 2) + i - 1) * c_.random + r;
        see(random.empty() ? 0 : random[static_cast<size_t>(at)]);
      }
    }
  }
  return rows;
}

size_t BigBirdForm::map_words(int64_t n) const {
  const int64_t entries = 2 * n + (n - 2) * std::min(n, 5 + c_.random);
  return static_cast<size_t>(2 + c_.heads * (n + 2 * entries));
}

Status BigBirdForm::read_patterns(const TensorMap& inputs, ForwardInputs& result) const {
  const int64_t n = blocks(result.shape.source);
  const Shape wanted = {c_.heads, n - 2, c_.random};
  bool any = false;
  for (int64_t l = 0; l < c_.layers; ++l) {
    any = any || inputs.count("rand_blocks." + std::to_string(l)) != 0;
  }
  result.shape.more = {any ? 1 : 0};
  for (int64_t l = 0; any && l < c_.layers; ++l) {
    const std::string name = "rand_blocks." + std::to_string(l);
    const auto found = inputs.find(name);
    std::vector<int64_t> random;
    if (found != inputs.end()) {
      if (found->second.shape != wanted) {
        return invalid_argument(message(
            {"[", name, "] has shape ", shape_text(found->second.shape), ", but for ", n,
             " blocks of ", c_.block,
             " tokens it must be (H, blocks - 2, num_random_blocks) = ", shape_text(wanted)}));
      }
      VKF_ASSIGN(random, found->second.to_ints());
    }
    for (int64_t block : random) {
      if (block >= 0 && block < n) continue;
      return invalid_argument(
          message({"[", name, "] holds block ", block, ", but there are blocks 0 to ", n - 1}));
    }
    std::vector<uint32_t>& words = result.words["block_map." + std::to_string(l)];
    words = pack_block_map(static_cast<uint32_t>(c_.block), seen_blocks(n, c_.heads, random));
    words.resize(map_words(n), 0u);
  }
  return {};
}

// The question is what stands before the context: up to the first separator, or as long as the
// caller says. Its tokens have type 0, those after it 1, and it is no answer.
Status BigBirdForm::read_question(const TensorMap& inputs, ForwardInputs& result) const {
  const int64_t batch = result.shape.batch;
  const int64_t tokens = result.shape.source;
  const std::vector<uint32_t>& ids = result.words.at("input_ids");
  std::vector<int64_t> lengths;
  const auto given = inputs.find("question_lengths");
  if (given != inputs.end()) {
    if (given->second.shape != Shape{batch, 1} && given->second.shape != Shape{batch}) {
      return invalid_argument(
          message({"[question_lengths] has shape ", shape_text(given->second.shape),
                   ", but must be (B, 1) = ", shape_text({batch, 1})}));
    }
    VKF_ASSIGN(lengths, given->second.to_ints());
  }
  const bool typed = inputs.count("token_type_ids") != 0;
  std::vector<float> penalty(ids.size(), 0.0f);
  for (int64_t b = 0; b < batch; ++b) {
    const auto row = ids.begin() + b * tokens;
    const auto found = std::find(row, row + tokens, static_cast<uint32_t>(c_.separator));
    int64_t length = found == row + tokens ? 1 : found - row + 1;
    if (!lengths.empty()) length = lengths[static_cast<size_t>(b)];
    for (int64_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<size_t>(b * tokens + t);
      if (t > 0 && t < length) penalty[at] = kQuestionPenalty;
      if (!typed) result.words["token_type_ids"][at] = t < length ? 0u : 1u;
    }
  }
  result.words["question_penalty"] = float_words(penalty);
  return {};
}

std::vector<std::string> BigBirdForm::input_names() const {
  std::vector<std::string> names;
  for (int64_t l = 0; l < c_.layers; ++l) names.push_back("rand_blocks." + std::to_string(l));
  if (c_.head == HeadKind::kSpans) names.emplace_back("question_lengths");
  return names;
}

Status BigBirdForm::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  if (c_.head == HeadKind::kSpans) VKF_CHECK(read_question(inputs, result));
  if (!is_sparse(result.shape.source)) return {};
  return read_patterns(inputs, result);
}

// The key mask, then a block map: fed as `feed`, or where that is empty one for all heads and
// layers.
StackTerms BigBirdForm::add_terms(ModelBuilder& b, const std::string& feed,
                                  const ForwardShape& shape) const {
  const int64_t n = blocks(shape.source);
  const int64_t mask = shape.batch * ((shape.source + 31) / 32);
  const int64_t first = mask + int64_t{VKF_SPARSE_WORDS};
  std::vector<uint32_t> map;
  if (feed.empty()) map = pack_block_map(static_cast<uint32_t>(c_.block), seen_blocks(n, 1, {}));
  const size_t size = feed.empty() ? map.size() : map_words(n);
  StackTerms terms;
  terms.words = b.graph().add_external("terms." + (feed.empty() ? "block_map" : feed), DType::kU32,
                                       {first + static_cast<int64_t>(size)});
  b.feed("key_mask", terms.words);
  std::vector<uint32_t> table(VKF_SPARSE_WORDS, 0u);
  table[VKF_SPARSE_BLOCKS] = static_cast<uint32_t>(first);
  table.insert(table.end(), map.begin(), map.end());
  b.host_words(terms.words, static_cast<uint64_t>(mask), std::move(table));
  if (!feed.empty()) b.feed(feed, terms.words, static_cast<uint64_t>(first));
  terms.params.key_mask_offset = 0;
  terms.params.sparse_offset = static_cast<uint32_t>(mask);
  terms.params.flags = VKF_TERM_BLOCKS | VKF_TERM_BLOCKS_ONE_BATCH | VKF_TERM_MASKED_QUERIES |
                       (feed.empty() ? VKF_TERM_BLOCKS_ONE_HEAD : 0u);
  return terms;
}

Result<StackRun::Attend> BigBirdForm::begin_pass(ModelBuilder& b, const StackConfig&,
                                                 const ForwardShape& shape, TensorId) const {
  if (!is_sparse(shape.source)) return StackRun::Attend();
  std::vector<StackTerms> terms;
  const bool given = !shape.more.empty() && shape.more[0] != 0;
  for (int64_t l = 0; l < (given ? c_.layers : 1); ++l) {
    terms.push_back(add_terms(b, given ? "block_map." + std::to_string(l) : "", shape));
  }
  const int64_t n = blocks(shape.source);
  // The first and the last block see everything, which is as much as two more keys for every query.
  const auto visited = static_cast<uint32_t>((2 * n + (n - 2) * (5 + c_.random)) / n * c_.block);
  // A group of queries touches one of those two, but where both are few tokens, and blocks of 5 +
  // r.
  const auto most = static_cast<uint32_t>(n * c_.block + (int64_t{kQueryNeighbors} + 2 * c_.block) *
                                                             (5 + c_.random));
  return StackRun::Attend([terms, visited, most](const LayerSite& site, TensorId, TensorId qkv) {
    const StackTerms& own = terms[terms.size() == 1 ? 0 : static_cast<size_t>(site.layer)];
    AttentionAttrs attrs = own_attrs(site);
    attrs.terms = own.params;
    attrs.visited = visited;
    attrs.most_visited = most;
    return attend(site, {.q = qkv, .kv = qkv, .terms = own.words}, attrs,
                  tap_of(site, site.c.taps));
  });
}

// Spans: a feed-forward layer with residual and norm, then one output each for start and end, from
// which the question's tokens are taken out.
Status BigBirdForm::add_heads(ModelBuilder& b, const StackConfig& stack, const ForwardShape&,
                              const HeadInput& input) const {
  if (c_.head != HeadKind::kSpans) return {};
  VKF_ASSIGN(TensorId x, add_named_linear(b, "qa.up", input.states, {.activation = c_.activation}));
  VKF_ASSIGN(x, add_named_linear(b, "qa.down", x));
  VKF_ASSIGN(x, add_named_norm(b, stack, "qa.norm", x, input.states));
  TensorId penalty = kNoTensor;
  for (const char* name : {"start_logits", "end_logits"}) {
    VKF_ASSIGN(TensorId y, add_named_linear(b, name, x));
    if (penalty == kNoTensor) {
      penalty = b.graph().add_external("question_penalty", DType::kF32, b.graph().tensor(y).shape);
      b.feed("question_penalty", penalty);
    }
    VKF_ASSIGN(y, add_combine(b.graph(), y, penalty, {}));
    b.mark_output(y, name);
    b.graph().tensor(y).shape.pop_back();
  }
  return {};
}

BertNames big_bird_names(int64_t layers, bool biases) {
  BertNames names{.pooler = "pooler"};
  for (int64_t i = 0; i < layers; ++i) {
    names.layers.push_back("encoder.layer." + std::to_string(i));
  }
  names.decoder = "cls.predictions.decoder";
  names.decoder_biases = {"cls.predictions.decoder.bias", "cls.predictions.bias"};
  names.ignored = {"cls.*", "classifier.*", "qa_classifier.*"};
  if (!biases) names.qkv_bias = BertNames::Bias::kNo;
  return names;
}

Result<BigBirdConfig> read_form(const JsonConfig& config, const BertConfig& bert) {
  BigBirdConfig c{.heads = bert.block.stack.heads,
                  .layers = bert.block.stack.layers,
                  .head = bert.facts.head,
                  .activation = bert.block.stack.activation};
  VKF_ASSIGN(std::string type, config.get_string_or("attention_type", "block_sparse"));
  if (type != "block_sparse" && type != "original_full") {
    return unsupported(message({"[attention_type] is '", type, "' in ", config.where(),
                                "; only 'block_sparse' and 'original_full' are supported"}));
  }
  c.sparse = type == "block_sparse";
  VKF_ASSIGN(c.block, get_size_or(config, "block_size", 64, kMostPositions));
  VKF_ASSIGN(c.random, config.get_int_or("num_random_blocks", 3));
  if (c.random < 0 || c.random > kMostPositions) {
    return invalid_file(message({"[num_random_blocks] in ", config.where(), " is ", c.random,
                                 ", but must be 0 to ", kMostPositions}));
  }
  VKF_ASSIGN(c.separator, config.get_int_or("sep_token_id", 66));
  if (c.head == HeadKind::kSpans && bert.facts.source_tokens.types < 2) {
    return unsupported(message({"[type_vocab_size] is 1 in ", config.where(),
                                ", but question answering needs 2: question and context"}));
  }
  return c;
}

void add_span_head(BertConfig& bert) {
  const int64_t d = bert.facts.width;
  const int64_t ffn = bert.block.stack.ffn;
  const std::string from = "qa_classifier.";
  bert.head_rows = span_rows(from + "qa_outputs", d);
  bert.head_rows.push_back(linear_row("qa.up", {from + "intermediate.dense"}, ffn, d));
  bert.head_rows.push_back(linear_row("qa.down", {from + "output.dense"}, d, ffn));
  bert.head_rows.push_back(norm_row("qa.norm", from + "output.LayerNorm", d));
}

}  // namespace

Result<std::unique_ptr<ModelFamily>> load_big_bird(const ModelFiles& files) {
  const JsonConfig& config = files.config;
  VKF_ASSIGN(BertConfig bert,
             read_bert_config(files, {.vocab = 50358, .positions = 4096, .activation = "gelu_new"},
                              "BigBirdModel"));
  VKF_ASSIGN(BigBirdConfig form, read_form(config, bert));
  VKF_ASSIGN(bool biases, config.get_bool_or("use_bias", true));
  VKF_ASSIGN(bool scaled, config.get_bool_or("rescale_embeddings", false));
  if (scaled) bert.block.embedding.scale = std::sqrt(static_cast<float>(bert.facts.width));
  // Whether its patterns are used, and which, depends on the length.
  bert.facts.padding = ModelFacts::Padding::kSeen;
  bert.names = big_bird_names(form.layers, biases);
  switch (form.head) {
    case HeadKind::kMasked:
      add_masked_head(bert, "cls.predictions.transform.dense", form.activation,
                      "cls.predictions.transform.LayerNorm");
      break;
    case HeadKind::kSequence:
      add_sequence_head(bert, "classifier.dense", form.activation, "classifier.out_proj");
      break;
    case HeadKind::kSpans:
      add_span_head(bert);
      break;
    default:
      add_shared_head(bert);
  }
  bert.block.form = std::make_shared<BigBirdForm>(std::move(form));
  return make_bert(std::move(bert));
}

}  // namespace vkformer
