#include "model/blocks/decoder_only.h"

#include <algorithm>

#include "base/message.h"
#include "base/narrow.h"
#include "model/blocks/stack_parts.h"
#include "ops/combine.h"
#include "ops/gather_rows.h"

namespace vkformer {

DecoderFamily::DecoderFamily(ModelFacts facts, GenerationFacts generation, DecoderConfig block)
    : facts_(std::move(facts)), generation_(std::move(generation)), block_(std::move(block)) {
  facts_.rolling = block_.embedding.positions.empty() ? ModelFacts::Rolling::kFree
                                                      : ModelFacts::Rolling::kInTable;
  const bool at_once =
      block_.pictures && block_.pictures->spans() == PicturePrompt::Spans::kPrompts;
  facts_.slots = at_once ? ModelFacts::Slots::kAfterPrompt : ModelFacts::Slots::kYes;
  if (!block_.stack.states.any()) return;
  facts_.states = ModelFacts::States::kYes;
  facts_.rolling = ModelFacts::Rolling::kNo;
}

Status DecoderFamily::divide(int64_t parts, WeightTable& table) {
  if (block_.pictures) return ModelFamily::divide(parts, table);
  VKF_CHECK(check_divisible(block_.stack, parts));
  block_.stack.parts = parts;
  return divide_rows(block_.stack, table);
}

// The mask of tokens that a classifying head may read: those that the key mask keeps, less padding.
// A text may end with the token that also pads, and the head then reads the token before it.
void DecoderFamily::add_class_words(ForwardInputs& result) const {
  const std::vector<uint32_t>& ids = result.words["input_ids"];
  std::vector<uint32_t> mask = result.words["key_mask"];
  const auto tokens = static_cast<size_t>(result.shape.source);
  const size_t words = (tokens + 31) / 32;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (static_cast<int64_t>(ids[i]) != *block_.padding) continue;
    mask[i / tokens * words + i % tokens / 32] &= ~(1u << i % tokens % 32);
  }
  // Of a row of padding alone the first token counts.
  for (auto row = mask.begin(); row != mask.end(); row += static_cast<ptrdiff_t>(words)) {
    const auto end = row + static_cast<ptrdiff_t>(words);
    if (std::all_of(row, end, [](uint32_t word) { return word == 0; })) *row = 1;
  }
  result.words["class_mask"] = std::move(mask);
}

std::vector<std::string> DecoderFamily::input_names() const {
  if (!block_.pictures) return {};
  std::vector<std::string> names = block_.pictures->input_names();
  const std::string& types = block_.pictures->settings().types;
  if (!types.empty() && types != "token_type_ids") names.push_back(types);
  return names;
}

Status DecoderFamily::read_inputs(const TensorMap& inputs, ForwardInputs& result) const {
  if (!block_.classes.empty() && block_.padding) add_class_words(result);
  if (!block_.pictures) return {};
  const std::vector<uint32_t>& ids = result.words["input_ids"];
  const std::vector<uint32_t>& mask = result.words["key_mask"];
  const auto tokens = static_cast<size_t>(result.shape.source);
  std::vector<uint8_t> kept(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t word = i / tokens * ((tokens + 31) / 32) + i % tokens / 32;
    kept[i] = (mask[word] >> (i % tokens % 32) & 1u) != 0 ? 1 : 0;
  }
  const PromptTokens given{result.shape.batch, result.shape.source, ids, kept};
  VKF_ASSIGN(PromptPictures pictures, read_pictures(inputs, given));
  if (pictures.more.empty()) return {};
  if (!block_.pictures->settings().sections.empty() && inputs.count("position_ids") != 0) {
    return unsupported(
        "[position_ids] was given beside images, whose positions have three components; omit it, "
        "and they are counted.");
  }
  result.shape.more = pictures.more;
  FeedWords words = std::move(pictures.words);
  VKF_CHECK(add_words(pictures, given, PicturePrompt::Shift::kNone, words));
  result.words.merge(words);
  return {};
}

Result<PromptPictures> DecoderFamily::read_pictures(const TensorMap& inputs,
                                                    const PromptTokens& tokens) const {
  PromptPictures result;
  if (!block_.pictures) return result;
  const PicturePrompt& pictures = *block_.pictures;
  VKF_CHECK(pictures.read(inputs, result.more, result.words));
  VKF_ASSIGN(const std::vector<uint8_t> types, pictures.token_types(inputs, tokens));
  const bool spans = pictures.spans() == PicturePrompt::Spans::kPrompts ||
                     (pictures.spans() == PicturePrompt::Spans::kImages &&
                      inputs.count(pictures.settings().types) != 0);
  // Spans without a picture are a pass of their own as well.
  if (result.more.empty() && spans) result.more = {0};
  if (result.more.empty()) return result;
  result.image_token = pictures.settings().image_token;
  VKF_ASSIGN(const std::vector<uint32_t> first, pictures.first_features(tokens, result.more));
  result.rows.resize(first.size());
  for (size_t i = 0; i < types.size(); ++i) {
    PromptPictures::Row& row = result.rows[i / static_cast<size_t>(tokens.tokens)];
    if (tokens.kept[i] != 0) row.types.push_back(types[i]);
  }
  for (size_t b = 0; b < first.size(); ++b) result.rows[b].first = first[b];
  return result;
}

Result<int64_t> DecoderFamily::image_tokens(int64_t height, int64_t width) const {
  return block_.pictures ? block_.pictures->image_tokens(height, width)
                         : ModelFamily::image_tokens(height, width);
}

int64_t DecoderFamily::prompt_tokens(const StepShape& shape) const {
  const bool all = !shape.more.empty() && shape.prompt > 1 &&
                   block_.pictures->spans() != PicturePrompt::Spans::kNone;
  return all ? shape.prompt : shape.prompt - 1;
}

Status DecoderFamily::add_words(const PromptPictures& given, const PromptTokens& tokens,
                                PicturePrompt::Shift shift, FeedWords& words) const {
  const PicturePrompt& pictures = *block_.pictures;
  if (pictures.features(given.more) > 0) pictures.add_rows_words(tokens, given.rows, words);
  if (pictures.spans() != PicturePrompt::Spans::kNone) {
    pictures.add_span_words(tokens, given.rows, block_.stack, words);
  }
  if (pictures.settings().sections.empty()) return {};
  return pictures.add_turning_words(tokens, given.rows, given.more, block_.stack.rotaries[0], shift,
                                    words);
}

// The last token of a prompt is a step's, where windows hide what it would see of its span.
Status DecoderFamily::check_spans(const PromptPictures& given) const {
  using Spans = PicturePrompt::Spans;
  int64_t window = -1;
  for (const AttentionKind& kind : block_.stack.kinds) {
    window = std::max(window, kind.window_left);
  }
  if (window < 0) return {};
  for (const PromptPictures::Row& row : given.rows) {
    if (block_.pictures->spans() == Spans::kPrompts &&
        static_cast<int64_t>(row.types.size()) > window + 1) {
      return unsupported(message({"[input_ids] a prompt has ", row.types.size(),
                                  " tokens, which see each other both ways, but layers with "
                                  "windows see ",
                                  window + 1, " keys; shorten it to that."}));
    }
    if (block_.pictures->spans() == Spans::kImages && row.types.back() == 1) {
      return unsupported(
          "[token_type_ids] a prompt ends with a token of an image (type 1), whose tokens see each "
          "other both ways; end it with a token of text.");
    }
  }
  return {};
}

Status DecoderFamily::add_prompt_words(const PromptPictures& given, const PromptTokens& tokens,
                                       FeedWords& words) const {
  if (given.more.empty()) return {};
  VKF_CHECK(check_spans(given));
  return add_words(given, tokens, PicturePrompt::Shift::kLast, words);
}

// The last layer's states in the width of the embeddings.
Result<TensorId> DecoderFamily::project(ModelBuilder& b, TensorId states) const {
  if (block_.projection.empty()) return states;
  b.graph().set_scope(block_.projection);
  return add_named_linear(b, block_.projection, states);
}

HeadConfig DecoderFamily::head() const {
  return {.dense = block_.head_dense,
          .activation = block_.head_activation,
          .norm = block_.head_norm,
          .output = block_.head,
          .scale = block_.head_scale,
          .cap = block_.logit_cap};
}

Status DecoderFamily::add_classes(ModelBuilder& b, const HeadInput& input) const {
  const HeadConfig config{.input = HeadConfig::Input::kLast,
                          .dense = block_.head_dense,
                          .activation = block_.head_activation,
                          .norm = block_.head_norm,
                          .output = block_.classes};
  HeadInput selected = input;
  if (block_.padding) {
    const Shape& states = b.graph().tensor(input.states).shape;
    selected.mask =
        b.graph().add_external("class_mask", DType::kU32, {states[0], (states[1] + 31) / 32});
    b.feed("class_mask", selected.mask);
  }
  VKF_CHECK(add_head(b, block_.stack, config, selected));
  return {};
}

// x with rows of features in the place of image tokens.
Result<TensorId> DecoderFamily::splice_rows(ModelBuilder& b, TensorId rows, TensorId x) const {
  Graph& g = b.graph();
  const Shape shape = g.tensor(x).shape;
  const Shape tokens = {shape[0], shape[1]};
  const TensorId text = g.add_external("text_rows", DType::kU32, tokens);
  const TensorId pictures = g.add_external("picture_rows", DType::kU32, tokens);
  b.feed("text_rows", text);
  b.feed("picture_rows", pictures);
  g.set_scope("text_rows");
  VKF_ASSIGN(TensorId words, add_gather_rows(g, {.x = x, .indices = text}));
  g.tensor(words).shape = {shape[0] * shape[1], shape[2]};
  g.set_scope("picture_rows");
  return add_gather_rows(g, {.x = rows, .indices = pictures, .addend = words});
}

Result<TensorId> DecoderFamily::splice(ModelBuilder& b, const std::vector<int64_t>& more, Pass pass,
                                       StackRun& run, TensorId x) const {
  const PicturePrompt& pictures = *block_.pictures;
  Graph& g = b.graph();
  const int64_t tokens = run.batch * run.tokens;
  if (pictures.spans() != PicturePrompt::Spans::kNone) {
    run.terms = add_span_terms(b, block_.stack, pass == Pass::kFull ? "key_mask" : "", run.batch,
                               run.tokens);
  }
  if (!pictures.settings().sections.empty()) {
    run.turning = g.add_external("turning_rows", DType::kF32,
                                 {tokens, int64_t{block_.stack.rotaries[0].width}});
    b.feed("turning_rows", run.turning);
  }
  if (pictures.features(more) == 0) return x;
  VKF_ASSIGN(const PicturePrompt::Features features, pictures.build(b, more));
  if (pass == Pass::kFull) b.mark_output(features.rows, "image_hidden_states");
  VKF_ASSIGN(x, splice_rows(b, features.rows, x));
  if (features.deep.empty()) return x;
  run.tapped = StackRun::Tapped::kOutputs;
  run.after = [&b, deep = features.deep](int64_t layer, TensorId, TensorId y) -> Result<TensorId> {
    if (layer >= static_cast<int64_t>(deep.size())) return y;
    Graph& graph = b.graph();
    graph.set_scope("deepstack." + std::to_string(layer));
    VKF_ASSIGN(const TensorId rows,
               add_gather_rows(graph, {.x = deep[static_cast<size_t>(layer)],
                                       .indices = graph.find_external("picture_rows")}));
    return add_combine(graph, y, rows, {});
  };
  return x;
}

Result<TextStates> DecoderFamily::text_states(ModelBuilder& b, const ForwardShape& shape,
                                              const ForwardTaps& taps) const {
  if (shape.more.empty()) return add_text_stack(b, block_.stack, block_.embedding, shape, taps);
  StackRun run{.batch = shape.batch, .tokens = shape.source, .taps = taps};
  VKF_ASSIGN(const EmbeddedTokens embedded,
             add_text_embedding(b, block_.stack, block_.embedding, {.positions = taps.positions},
                                {shape.batch, shape.source}));
  run.positions = embedded.positions;
  run.terms = add_stack_terms(b, block_.stack, "key_mask", shape.batch, shape.source);
  const TensorId mask = run.terms.words;
  VKF_ASSIGN(const TensorId x, splice(b, shape.more, Pass::kFull, run, embedded.x));
  VKF_ASSIGN(const TensorId states, add_stack(b, block_.stack, run, x));
  return TextStates{states, mask};
}

Status DecoderFamily::build_forward(ModelBuilder& b, const ForwardShape& shape,
                                    const ForwardTaps& taps) const {
  VKF_ASSIGN(TextStates text, text_states(b, shape, taps));
  VKF_ASSIGN(text.states, project(b, text.states));
  b.mark_output(text.states, "last_hidden_state");
  const HeadInput input{text.states, text.mask};
  if (!block_.head.empty()) {
    HeadConfig config = head();
    if (taps.last_logits == ForwardTaps::Tap::kOn) config.input = HeadConfig::Input::kLast;
    VKF_CHECK(add_head(b, block_.stack, config, input));
  }
  if (!block_.classes.empty()) VKF_CHECK(add_classes(b, input));
  return add_sentence_embedding(b, facts_.sentence, taps, input);
}

Status DecoderFamily::build_prompt(ModelBuilder& b, const StepShape& shape) const {
  const int64_t tokens = prompt_tokens(shape);
  if (tokens == 0) return {};
  const StackConfig& stack = block_.stack;
  StackRun run{.mode = StackRun::Mode::kPrompt, .batch = shape.batch, .tokens = tokens};
  run.step = shape;
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, stack, block_.embedding, {}, {shape.batch, tokens}));
  run.positions = embedded.positions;
  // Prompts are padded on the right, after what a causal query sees and what states take in: no
  // mask is needed.
  run.terms = add_stack_terms(b, stack, "", shape.batch, tokens);
  if (!shape.more.empty()) {
    VKF_ASSIGN(embedded.x, splice(b, shape.more, Pass::kPrompt, run, embedded.x));
  }
  // Where a prompt is longer than the context, its last tokens come one by one, through steps. Each
  // then finds the keys that it would find as a generated token.
  VKF_CHECK(add_stack(b, stack, run, embedded.x));
  return {};
}

Result<StepResult> DecoderFamily::build_step(ModelBuilder& b, const StepShape& shape) const {
  if (block_.head.empty()) return ModelFamily::build_step(b, shape);
  b.graph().set_step(static_cast<uint32_t>(shape.step_rows()));
  const StepTensors tensors = add_step_tensors(b, block_.stack, shape);
  StackRun run{.mode = StackRun::Mode::kStep, .batch = shape.batch, .tokens = 1};
  run.step = shape;
  run.state = tensors.state;
  run.ancestry = tensors.ancestry;
  VKF_ASSIGN(TensorId x, add_step_embedding(b, block_.stack, block_.embedding, tensors));
  VKF_ASSIGN(x, add_stack(b, block_.stack, run, x));
  VKF_ASSIGN(x, project(b, x));
  StepResult result{.states = x};
  VKF_ASSIGN(result.logits, add_head_layers(b, block_.stack, head(), {x, kNoTensor}));
  return result;
}

}  // namespace vkformer
