#include "generate/generation_sizes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/message.h"
#include "generate/token_choice.h"
#include "params/decode_state.h"
#include "recording/forward_inputs.h"

namespace vkformer {
namespace {

constexpr int64_t kSourceBucket = 16;  // tokens of an encoder's input
constexpr int64_t kTargetBucket = 32;  // positions of a cache
constexpr int64_t kPromptBucket = 16;  // tokens
constexpr uint32_t kRuleBucket = 256;  // words
// New tokens where neither the caller nor the model says how many: a cache has a limit.
constexpr int64_t kMostDefaultTokens = 1024;
// Where keys give way to others no position is the last; histories and tables end somewhere.
constexpr int64_t kMostRolledTokens = int64_t{1} << 20;

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// The real tokens of each row, without padding wherever it stands.
std::vector<std::vector<int64_t>> unpadded(const TokenRows& rows) {
  std::vector<std::vector<int64_t>> lists(static_cast<size_t>(rows.batch));
  for (size_t i = 0; i < rows.ids.size(); ++i) {
    if (rows.allowed[i] == 0) continue;
    lists[i / static_cast<size_t>(rows.tokens)].push_back(rows.ids[i]);
  }
  return lists;
}

// A prompt beyond the context comes one by one, through steps, which feed words alone.
Status check_pictures(const GenerationInputs& read, const GenerateOptions& options) {
  const PromptPictures& pictures = read.pictures;
  if (pictures.more.empty()) return {};
  for (const auto& prompt : read.prompts) {
    if (prompt.back() != pictures.image_token) continue;
    return unsupported(
        message({"[input_ids] a prompt ends with the image token ", pictures.image_token,
                 ", but its last token must be one of text; add one."}));
  }
  if (!options.context) return {};
  return unsupported(message({"[context] is ", *options.context,
                              ", but the prompts hold images or see themselves both ways, and are "
                              "read in one pass; omit context."}));
}

Status check_rows(int64_t rows, int64_t times) {
  if (rows <= VKF_MAX_SLOTS / times) return {};
  return invalid_argument(
      message({"[generate] ", rows, " inputs with ", times,
               " sequences or beam groups each are more than the ", VKF_MAX_SLOTS,
               " rows that can run together; use smaller batches"}));
}

// Each so often, one after the other.
template <class T>
void repeat(std::vector<T>& values, int64_t times) {
  std::vector<T> all;
  for (const T& value : values) all.insert(all.end(), static_cast<size_t>(times), value);
  values = std::move(all);
}

}  // namespace

int64_t prompt_bucket(int64_t tokens, bool exact) {
  return exact ? tokens : round_up(tokens, kPromptBucket);
}

int64_t capacity_bucket(int64_t positions) {
  return round_up(positions, kTargetBucket);
}

int64_t generation_limit(const ModelFacts& facts, const GenerateOptions& options) {
  const bool rolls = options.context && facts.rolling == ModelFacts::Rolling::kFree;
  return rolls ? kMostRolledTokens : facts.max_target;
}

Result<GenerationInputs> read_single_inputs(const ModelFamily& family, const TensorMap& inputs,
                                            const GenerateOptions& options, StepShape& shape) {
  const ModelFacts& facts = family.facts();
  GenerationInputs result;
  if (facts.kind == ModelKind::kEncoder) {
    return unsupported(message({"[generate] a ", facts.architecture,
                                " has no decoder and generates nothing; use Session::run"}));
  }
  VKF_CHECK(check_input_names(family, inputs, InputUse::kGeneration));
  if (facts.kind == ModelKind::kDecoder) {
    const int64_t most = std::max(facts.max_source, generation_limit(facts, options));
    VKF_ASSIGN(TokenRows rows,
               token_rows(inputs, "input_ids", "attention_mask", {facts.source_vocab, most}));
    if (facts.source_tokens.types == 0) VKF_CHECK(check_zero_types(inputs, rows));
    result.prompts = unpadded(rows);
    for (size_t i = 0; i < result.prompts.size(); ++i) {
      if (!result.prompts[i].empty()) continue;
      return invalid_argument(
          message({"[input_ids] row ", i,
                   " has no token that its mask keeps; a prompt needs at least one"}));
    }
    shape.batch = rows.batch;
    VKF_ASSIGN(result.pictures,
               family.read_pictures(inputs, {rows.batch, rows.tokens, rows.ids, rows.allowed}));
    VKF_CHECK(check_pictures(result, options));
    shape.more = result.pictures.more;
    result.words = result.pictures.words;
    return result;
  }
  ForwardInputs source;
  if (facts.source == SourceKind::kTokens) {
    VKF_ASSIGN(TokenRows rows, token_rows(inputs, "input_ids", "attention_mask",
                                          {facts.source_vocab, facts.max_source}));
    VKF_CHECK(check_zero_types(inputs, rows));
    shape.source = std::min(round_up(rows.tokens, kSourceBucket), facts.max_source);
    source.shape = {.batch = rows.batch, .source = shape.source};
    source.words =
        token_words(rows.padded(shape.source, facts.source_tokens.pad), facts.source_tokens, "");
    source.words["token_type_ids"].assign(static_cast<size_t>(rows.batch * shape.source), 0u);
  } else {
    VKF_ASSIGN(source, read_source(facts, inputs));
  }
  VKF_CHECK(family.read_inputs(inputs, source));
  shape.batch = source.shape.batch;
  shape.height = source.shape.height;
  shape.width = source.shape.width;
  if (facts.source == SourceKind::kWaveform) shape.source = source.shape.source;
  shape.more = source.shape.more;
  result.words = std::move(source.words);
  const std::vector<int64_t> start = {options.decoder_start};
  result.prompts.assign(static_cast<size_t>(shape.batch),
                        options.decoder_prompt.empty() ? start : options.decoder_prompt);
  return result;
}

GenerateOptions generation_defaults(const ModelFamily& family) {
  const GenerationFacts& g = family.generation();
  GenerateOptions o;
  // What is too many is refused by name when it is used, and not made fewer here.
  const auto whole = [](int64_t value) {
    return static_cast<int>(std::clamp<int64_t>(value, 1, std::numeric_limits<int>::max()));
  };
  o.beams = whole(g.beams);
  o.max_new_tokens = static_cast<int>(std::clamp<int64_t>(g.max_new_tokens, 0, 1 << 20));
  o.min_new_tokens = static_cast<int>(std::clamp<int64_t>(g.min_new_tokens, 0, 1 << 20));
  o.length_penalty = g.length_penalty;
  o.early_stopping = g.early_stopping;
  o.eos = g.eos;
  o.pad = g.pad;
  o.decoder_start = g.decoder_start;
  o.forced_bos = g.forced_bos.value_or(-1);
  o.forced_eos = g.forced_eos.value_or(-1);
  o.suppress = g.suppress;
  o.begin_suppress = g.begin_suppress;
  o.choice = g.choice;
  o.sampling = g.sampling;
  o.penalties = g.penalties;
  o.return_sequences = whole(g.return_sequences);
  o.beam_groups = whole(g.beam_groups);
  o.diversity = g.diversity;
  o.contrastive_tokens = static_cast<int>(g.contrastive_tokens);
  if (g.contrastive_tokens > 0) o.contrast = g.contrast;
  // A prompt with a token still to be chosen is the caller's to complete.
  const auto& prompt = g.decoder_prompt;
  if (std::find(prompt.begin(), prompt.end(), -1) == prompt.end()) o.decoder_prompt = prompt;
  return o;
}

size_t items_per_input(const GenerateOptions& options) {
  const int items = options.beams == 1 ? options.return_sequences : options.beam_groups;
  return static_cast<size_t>(items);
}

Result<TensorMap> repeated_inputs(const TensorMap& inputs, int64_t times) {
  TensorMap made;
  for (const auto& [name, tensor] : inputs) {
    const int64_t rows = tensor.shape.empty() ? 0 : tensor.shape[0];
    VKF_CHECK(check_rows(rows, times));
    Tensor copy{tensor.dtype, tensor.shape, {}};
    if (rows > 0) copy.shape[0] *= times;
    const int64_t bytes = rows == 0 ? 0 : static_cast<int64_t>(tensor.bytes.size()) / rows;
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = tensor.bytes.begin() + row * bytes;
      for (int64_t time = 0; time < times; ++time) {
        copy.bytes.insert(copy.bytes.end(), begin, begin + bytes);
      }
    }
    made.emplace(name, std::move(copy));
  }
  return made;
}

Result<GenerationInputs> read_generation_inputs(const ModelFamily& family, const TensorMap& inputs,
                                                const GenerateOptions& options, StepShape& shape) {
  const auto times = static_cast<int64_t>(items_per_input(options));
  if (times == 1) return read_single_inputs(family, inputs, options, shape);
  if (family.facts().kind == ModelKind::kDecoder) {
    // Images of a prompt are the same ones for all its sequences.
    VKF_ASSIGN(GenerationInputs read, read_single_inputs(family, inputs, options, shape));
    VKF_CHECK(check_rows(shape.batch, times));
    repeat(read.prompts, times);
    repeat(read.pictures.rows, times);
    shape.batch *= times;
    return read;
  }
  VKF_ASSIGN(const TensorMap all, repeated_inputs(inputs, times));
  return read_single_inputs(family, all, options, shape);
}

Result<GenerationSizes> generation_sizes(const ModelFacts& facts, int64_t prompt, GenerationKey key,
                                         const GenerateOptions& options) {
  const int64_t limit = generation_limit(facts, options);
  const int64_t room = limit - prompt;
  if (options.max_new_tokens > room || room < 1) {
    return invalid_argument(
        message({"[max_new_tokens] is ", options.max_new_tokens, " after a prompt of ", prompt,
                 " tokens, but ",
                 (limit > facts.max_target ? "one call takes " : "this model has positions for "),
                 limit, " tokens in all"}));
  }
  const int64_t new_tokens =
      options.max_new_tokens == 0 ? std::min(room, kMostDefaultTokens) : options.max_new_tokens;
  const bool exact = prompt == 1 || facts.prompts == ModelFacts::Prompts::kExact;
  key.shape.prompt = prompt_bucket(prompt, exact);
  // A context that no row fills changes nothing; a prompt beyond it is fed by steps from there on.
  if (options.context && *options.context < prompt + new_tokens) {
    key.shape.context = *options.context;
    key.shape.sinks = options.sinks;
    if (prompt > key.shape.context) key.shape.prompt = key.shape.context;
  }
  key.shape.capacity = capacity_bucket(std::max(prompt, key.shape.prompt) + new_tokens);
  if (options.beams > 1) {
    const auto ends = std::max(2u, 1 + static_cast<uint32_t>(options.eos.size()));
    const auto beams = static_cast<uint32_t>(key.shape.beams);
    key.groups = static_cast<uint32_t>(options.beam_groups);
    key.picks = ends * beams;
    // Tokens of other groups may rank lower by their penalty.
    key.candidates = key.picks + (key.groups - 1) * beams;
  }
  if (needs_choice(options)) {
    const bool sampled_beams = options.beams > 1 && options.choice == TokenChoice::kSampled &&
                               options.sampling.temperature > 0;
    key.choice =
        sampled_beams ? GenerationKey::Choice::kSampledBeams : GenerationKey::Choice::kScored;
    key.filters = SampleFilters::of(choice_row(options, 0, 0));
    // Rounded up, so that other words reuse the recording.
    const auto words = static_cast<uint32_t>(rule_list(token_rules(options.penalties)).size());
    key.rule_words = words <= 1 ? 0 : std::bit_ceil(std::max(words, kRuleBucket));
  }
  return GenerationSizes{key, new_tokens};
}

}  // namespace vkformer
