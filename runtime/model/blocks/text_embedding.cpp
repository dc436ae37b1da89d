#include "model/blocks/text_embedding.h"

#include "ops/embedding.h"
#include "ops/gather_rows.h"
#include "params/matmul.h"

namespace vkformer {
namespace {

Result<EmbeddingAttrs> attrs_of(ModelBuilder& b, const TextEmbedding& e) {
  VKF_ASSIGN(LinearWeight table, b.linear(e.words));
  return EmbeddingAttrs{.vocabulary = table.n,
                        .width = table.k,
                        .row_stride = 1,
                        .col_stride = kPanelColumns,
                        .panel_stride = panel_stride(table.format, table.k),
                        .format = table.format,
                        .slice_rows = table.slices.empty() ? 0 : table.slices[0].n,
                        .scale = e.scale,
                        .position_offset = static_cast<uint32_t>(e.position_offset),
                        .from = e.types.empty() ? EmbeddingAttrs::Positions::kCounted
                                                : EmbeddingAttrs::Positions::kNone,
                        .types = static_cast<uint32_t>(e.tokens.types),
                        .row_scales = e.row_scales.empty() ? EmbeddingAttrs::RowScales::kNone
                                                           : EmbeddingAttrs::RowScales::kPlane};
}

Result<TensorId> embed(ModelBuilder& b, const TextEmbedding& e, EmbeddingInputs inputs,
                       const EmbeddingAttrs& attrs) {
  VKF_ASSIGN(LinearWeight table, b.linear(e.words));
  inputs.table = table.tensor;
  for (const LinearSlice& slice : table.slices) {
    if (slice.first > 0) inputs.slices.push_back(slice.tensor);
  }
  if (!e.positions.empty()) {
    VKF_ASSIGN(inputs.positions, b.table(e.positions));
  } else if (!e.types.empty()) {
    VKF_ASSIGN(inputs.positions, b.table(e.types));
  }
  b.graph().set_scope(e.words);
  return add_embedding(b.graph(), inputs, attrs);
}

// What is no part of the lookup. `positions` (..., D) is added to the projection, or absent.
Result<TensorId> finish(ModelBuilder& b, const StackConfig& stack, const TextEmbedding& e,
                        TensorId x, TensorId positions) {
  if (!e.norm.empty()) {
    VKF_ASSIGN(x, add_named_norm(b, stack, e.norm, x));
  }
  if (e.projection.empty()) return x;
  return add_named_linear(b, e.projection, x, {.residual = positions});
}

// The words alone, where positions come after the projection.
TextEmbedding words_of(const TextEmbedding& e) {
  return {.words = e.words, .scale = e.scale};
}

// The positions alone: every id is the row of zeros. `attrs` are the words'.
Result<TensorId> embed_positions(ModelBuilder& b, const TextEmbedding& e, EmbeddingInputs inputs,
                                 const EmbeddingAttrs& words) {
  VKF_ASSIGN(inputs.table, b.table(e.zeros));
  VKF_ASSIGN(inputs.positions, b.table(e.positions));
  const auto width = static_cast<uint32_t>(b.graph().tensor(inputs.table).shape.back());
  b.graph().set_scope(e.positions);
  return add_embedding(b.graph(), inputs,
                       {.vocabulary = words.vocabulary,
                        .width = width,
                        .row_stride = 0,
                        .col_stride = 1,
                        .position_offset = words.position_offset,
                        .from = words.from});
}

// Of a full pass or a prompt.
Result<EmbeddedTokens> add_positions_after(ModelBuilder& b, const StackConfig& stack,
                                           const TextEmbedding& e, const TokenFeeds& feeds,
                                           const Shape& tokens) {
  const TextEmbedding words = words_of(e);
  VKF_ASSIGN(EmbeddedTokens embedded, add_text_embedding(b, stack, words, feeds, tokens));
  VKF_ASSIGN(EmbeddingAttrs attrs, attrs_of(b, e));
  attrs.from = EmbeddingAttrs::Positions::kPlane;
  Shape planes = tokens;
  planes.insert(planes.begin(), embedding_planes(attrs));
  const TensorId ids = b.graph().add_external(feeds.prefix + "position_rows", DType::kU32, planes);
  b.feed(feeds.prefix + "input_ids", ids);
  b.feed(feeds.prefix + "position_ids", ids, static_cast<uint64_t>(element_count(tokens)));
  VKF_ASSIGN(const TensorId positions, embed_positions(b, e, {.ids = ids}, attrs));
  VKF_ASSIGN(embedded.x, finish(b, stack, e, embedded.x, positions));
  return embedded;
}

}  // namespace

Result<TensorId> hide_masked_rows(ModelBuilder& b, const std::string& prefix, TensorId x) {
  const std::string name = prefix + "kept_rows";
  Shape tokens = b.graph().tensor(x).shape;
  tokens.pop_back();
  TensorId rows = b.graph().find_external(name);
  if (rows == kNoTensor) {
    rows = b.graph().add_external(name, DType::kU32, std::move(tokens));
    b.feed(name, rows);
  }
  b.graph().set_scope(name);
  return add_gather_rows(b.graph(), {.x = x, .indices = rows});
}

Result<EmbeddedTokens> add_text_embedding(ModelBuilder& b, const StackConfig& stack,
                                          const TextEmbedding& e, const TokenFeeds& feeds,
                                          Shape tokens) {
  if (!e.zeros.empty()) return add_positions_after(b, stack, e, feeds, tokens);
  VKF_ASSIGN(EmbeddingAttrs attrs, attrs_of(b, e));
  const bool fed = feeds.positions == ForwardTaps::Tap::kOn ||
                   e.tokens.positions != TokenFacts::Positions::kCounted;
  const bool in_table = !e.positions.empty();
  if (fed && in_table) attrs.from = EmbeddingAttrs::Positions::kPlane;
  const uint32_t planes = embedding_planes(attrs);
  const auto rows = static_cast<uint64_t>(element_count(tokens));
  Shape shape = tokens;
  if (planes > 1) shape.insert(shape.begin(), planes);
  Graph& g = b.graph();
  const TensorId ids = g.add_external(feeds.prefix + "input_ids", DType::kU32, shape);
  b.feed(feeds.prefix + "input_ids", ids);
  EmbeddedTokens embedded;
  if (fed && in_table) {
    b.feed(feeds.prefix + "position_ids", ids, rows);
  } else if (fed && !stack.rotaries.empty()) {
    embedded.positions =
        g.add_external(feeds.prefix + "position_ids", DType::kU32, std::move(tokens));
    b.feed(feeds.prefix + "position_ids", embedded.positions);
  }
  uint64_t plane = planes;
  if (!e.row_scales.empty()) b.feed(e.row_scales, ids, rows * --plane);
  if (attrs.types > 0) b.feed(feeds.prefix + "token_type_ids", ids, rows * --plane);
  VKF_ASSIGN(embedded.x, embed(b, e, {.ids = ids}, attrs));
  if (feeds.form != nullptr) {
    VKF_ASSIGN(embedded.x, feeds.form->after_lookup(b, embedded.x));
  }
  VKF_ASSIGN(embedded.x, finish(b, stack, e, embedded.x, kNoTensor));
  if (e.masked == TextEmbedding::Masked::kZero) {
    VKF_ASSIGN(embedded.x, hide_masked_rows(b, feeds.prefix, embedded.x));
  }
  return embedded;
}

Result<TextStates> add_text_stack(ModelBuilder& b, const StackConfig& stack, const TextEmbedding& e,
                                  const ForwardShape& shape, const ForwardTaps& taps,
                                  const EncoderForm* form) {
  StackRun run{.batch = shape.batch, .tokens = shape.source, .taps = taps};
  VKF_ASSIGN(EmbeddedTokens embedded,
             add_text_embedding(b, stack, e, {.positions = taps.positions, .form = form},
                                {shape.batch, shape.source}));
  run.positions = embedded.positions;
  if (form != nullptr) {
    VKF_ASSIGN(embedded.x, form->append_tokens(b, stack, shape, embedded.x));
    run.tokens = b.graph().tensor(embedded.x).shape[1];
  }
  run.terms = add_stack_terms(b, stack, "key_mask", shape.batch, run.tokens);
  if (form != nullptr) {
    VKF_ASSIGN(run.attend, form->begin_pass(b, stack, shape, run.terms.words));
    run.after = [&](int64_t layer, TensorId input, TensorId output) {
      return form->after_layer(b, stack, {layer, input, output});
    };
  }
  VKF_ASSIGN(TensorId states, add_stack(b, stack, run, embedded.x));
  return TextStates{states, run.terms.words};
}

Result<TensorId> add_step_embedding(ModelBuilder& b, const StackConfig& stack,
                                    const TextEmbedding& e, const StepTensors& tensors) {
  VKF_ASSIGN(EmbeddingAttrs attrs, attrs_of(b, e));
  EmbeddingInputs inputs{.ids = tensors.ids};
  if (!e.zeros.empty()) {
    VKF_ASSIGN(const TensorId x, embed(b, words_of(e), inputs, attrs));
    inputs.state = tensors.state;
    VKF_ASSIGN(const TensorId positions, embed_positions(b, e, inputs, attrs));
    return finish(b, stack, e, x, positions);
  }
  if (!e.positions.empty()) inputs.state = tensors.state;
  if (e.tokens.positions == TokenFacts::Positions::kFromIds && e.position_offset > 0) {
    attrs.pad_id = static_cast<uint32_t>(e.tokens.pad);
  }
  VKF_ASSIGN(TensorId x, embed(b, e, inputs, attrs));
  return finish(b, stack, e, x, kNoTensor);
}

}  // namespace vkformer
