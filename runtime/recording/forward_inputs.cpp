#include "recording/forward_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"
#include "base/name_list.h"
#include "base/nearest_name.h"
#include "model/mask_input.h"
#include "ops/score_terms.h"

namespace vkformer {
namespace {

using Tap = ForwardTaps::Tap;

// Positions of kFromIds, less the rows before the first: the index among tokens that are not pad,
// and -1 for those that are.
std::vector<uint32_t> positions_from_ids(const TokenRows& rows, int64_t pad) {
  std::vector<uint32_t> positions(rows.ids.size());
  for (int64_t b = 0; b < rows.batch; ++b) {
    uint32_t next = 0;
    for (int64_t t = 0; t < rows.tokens; ++t) {
      const auto at = static_cast<size_t>(b * rows.tokens + t);
      positions[at] = rows.ids[at] == static_cast<uint32_t>(pad) ? ~0u : next++;
    }
  }
  return positions;
}

// ALiBi's positions, and those of kFromMask: the index among the tokens that the mask keeps.
std::vector<uint32_t> positions_from_mask(const TokenRows& rows) {
  std::vector<uint32_t> positions(rows.ids.size());
  for (int64_t b = 0; b < rows.batch; ++b) {
    uint32_t next = 0;
    for (int64_t t = 0; t < rows.tokens; ++t) {
      const auto at = static_cast<size_t>(b * rows.tokens + t);
      positions[at] = rows.allowed[at] != 0 ? next++ : 0u;
    }
  }
  return positions;
}

// The index of each row whose token the mask keeps, and one that no row has for the others.
std::vector<uint32_t> kept_rows(const TokenRows& rows) {
  std::vector<uint32_t> kept(rows.ids.size());
  for (size_t i = 0; i < kept.size(); ++i) {
    kept[i] = rows.allowed[i] != 0 ? static_cast<uint32_t>(i) : ~0u;
  }
  return kept;
}

Result<std::vector<int64_t>> matching_ints(const TensorMap& inputs, const std::string& name,
                                           const TokenRows& rows) {
  const Tensor& tensor = inputs.at(name);
  if (tensor.shape != Shape{rows.batch, rows.tokens}) {
    return invalid_argument(
        message({"[", name, "] has shape ", shape_text(tensor.shape), ", but the token ids have ",
                 shape_text({rows.batch, rows.tokens})}));
  }
  return tensor.to_ints();
}

Status check_range(const std::string& name, const std::vector<int64_t>& values, int64_t end) {
  for (int64_t value : values) {
    if (value >= 0 && value < end) continue;
    return invalid_argument(
        message({"[", name, "] holds ", value, ", but this model knows 0 to ", end - 1}));
  }
  return {};
}

Status add_types(const ModelFacts& facts, const TensorMap& inputs, const TokenRows& rows,
                 FeedWords& words) {
  const std::string name = "token_type_ids";
  std::vector<uint32_t>& types = words[name];
  types.assign(rows.ids.size(), 0u);
  if (inputs.count(name) == 0) return {};
  VKF_ASSIGN(std::vector<int64_t> given, matching_ints(inputs, name, rows));
  // Models without types accept the zeros that tokenizers give.
  VKF_CHECK(check_range(name, given, std::max<int64_t>(1, facts.source_tokens.types)));
  types.assign(given.begin(), given.end());
  return {};
}

// Positions that the caller gives, by the family's way of counting.
Status add_positions(const ModelFacts& facts, const TensorMap& inputs, const TokenRows& rows,
                     ForwardInputs& result) {
  const std::string name = "position_ids";
  if (inputs.count(name) == 0) return {};
  VKF_ASSIGN(std::vector<int64_t> given, matching_ints(inputs, name, rows));
  const bool from_ids = facts.source_tokens.positions == TokenFacts::Positions::kFromIds;
  const int64_t first = from_ids ? facts.source_tokens.pad + 1 : 0;
  VKF_CHECK(check_range(name, given, facts.max_source + first));
  std::vector<uint32_t>& words = result.words[name];
  words.clear();
  for (int64_t value : given) words.push_back(static_cast<uint32_t>(value - first));
  result.positions = Tap::kOn;
  return {};
}

// Most tokens of rows that are longer than the model's positions.
constexpr int64_t kMostClampedTokens = int64_t{1} << 20;

// Positions by the family's way of counting, but none beyond its last.
void clamp_positions(const ModelFacts& facts, const TokenRows& rows, ForwardInputs& result) {
  std::vector<uint32_t>& positions = result.words["position_ids"];
  if (facts.source_tokens.positions == TokenFacts::Positions::kCounted) {
    positions.resize(rows.ids.size());
    for (size_t i = 0; i < positions.size(); ++i) {
      positions[i] = static_cast<uint32_t>(i % static_cast<size_t>(rows.tokens));
    }
  }
  const auto last = static_cast<uint32_t>(facts.max_source - 1);
  for (uint32_t& position : positions) {
    // ~0 is padding's row before the first.
    if (position != ~0u) position = std::min(position, last);
  }
  result.positions = Tap::kOn;
}

Result<ForwardInputs> read_tokens(const ModelFacts& facts, const TensorMap& inputs,
                                  RunOptions::LongInputs long_inputs) {
  const bool clamp =
      long_inputs == RunOptions::LongInputs::kClamp && facts.kind != ModelKind::kEncoderDecoder;
  const int64_t most = clamp ? std::max(facts.max_source, kMostClampedTokens) : facts.max_source;
  VKF_ASSIGN(TokenRows rows,
             token_rows(inputs, "input_ids", "attention_mask", {facts.source_vocab, most}));
  ForwardInputs result;
  result.shape = {.batch = rows.batch, .source = rows.tokens};
  result.words = token_words(rows, facts.source_tokens, "");
  VKF_CHECK(add_types(facts, inputs, rows, result.words));
  VKF_CHECK(add_positions(facts, inputs, rows, result));
  if (rows.tokens > facts.max_source && inputs.count("position_ids") == 0) {
    clamp_positions(facts, rows, result);
  }
  return result;
}

std::string wanted_size(int64_t size) {
  return size == 0 ? std::string("any") : std::to_string(size);
}

Status check_grid(const std::string& name, const Shape& shape, const GridFacts& grid,
                  bool pictures) {
  const size_t axes = pictures ? 4 : 3;
  bool fits = shape.size() == axes;
  for (int64_t size : shape) fits = fits && size >= 1;
  fits = fits && (grid.channels == 0 || shape[1] == grid.channels);
  fits = fits && (grid.width == 0 || shape.back() == grid.width);
  fits = fits && (!pictures || grid.height == 0 || shape[2] == grid.height);
  if (fits) return {};
  const std::string wanted = "(B, " + wanted_size(grid.channels) +
                             (pictures ? ", " + wanted_size(grid.height) : std::string()) + ", " +
                             wanted_size(grid.width) + ")";
  return invalid_argument(
      message({"[", name, "] has shape ", shape_text(shape), ", but this model takes ", wanted,
               (pictures ? "; resize the picture to that" : "; pad or cut to that")}));
}

Result<ForwardInputs> read_grid(const ModelFacts& facts, const TensorMap& inputs) {
  const bool pictures = facts.source == SourceKind::kPictures;
  const std::string name = pictures ? "pixel_values" : "input_features";
  const auto found = inputs.find(name);
  if (found == inputs.end()) return not_found(message({"[", name, "] is missing from the inputs"}));
  VKF_CHECK(check_grid(name, found->second.shape, facts.grid, pictures));
  VKF_ASSIGN(std::vector<float> values, found->second.to_floats());
  ForwardInputs result;
  const Shape& shape = found->second.shape;
  result.shape = {.batch = shape[0], .height = pictures ? shape[2] : 1, .width = shape.back()};
  result.words[name] = float_words(values);
  return result;
}

// The tokens of a sentence embedding, in rows as wide as the family made them.
Status read_pooling_mask(const TensorMap& inputs, ForwardInputs& result) {
  const std::string name = "pooling_mask";
  const auto found = inputs.find(name);
  if (found == inputs.end()) return {};
  const Shape& ids = inputs.at("input_ids").shape;
  if (found->second.shape != ids) {
    return invalid_argument(message({"[", name, "] has shape ", shape_text(found->second.shape),
                                     ", but input_ids has ", shape_text(ids), "."}));
  }
  VKF_ASSIGN(const std::vector<uint8_t> flags, mask_flags(name, found->second));
  const int64_t tokens = result.shape.source;
  std::vector<uint8_t> rows(static_cast<size_t>(ids[0] * tokens), 0);
  for (int64_t b = 0; b < ids[0]; ++b) {
    std::copy_n(flags.begin() + b * ids[1], ids[1], rows.begin() + b * tokens);
  }
  result.words[name] = pack_key_mask(rows, ids[0], tokens);
  result.pooling_mask = Tap::kOn;
  return {};
}

// Sorted.
std::vector<std::string> known_inputs(const ModelFamily& family, InputUse use) {
  const ModelFacts& facts = family.facts();
  std::vector<std::string> known = family.input_names();
  switch (facts.source) {
    case SourceKind::kTokens:
      known.insert(known.end(), {"input_ids", "attention_mask", "token_type_ids"});
      if (use == InputUse::kPass) known.emplace_back("position_ids");
      break;
    case SourceKind::kPictures:
      known.emplace_back("pixel_values");
      break;
    case SourceKind::kFeatures:
      known.emplace_back("input_features");
      break;
    case SourceKind::kWaveform:
      known.insert(known.end(), {"input_values", "attention_mask"});
      break;
    case SourceKind::kArrays:
      break;
  }
  if (use == InputUse::kPass && facts.sentence.pools()) known.emplace_back("pooling_mask");
  if (use == InputUse::kPass && facts.kind == ModelKind::kEncoderDecoder) {
    known.insert(known.end(), {"decoder_input_ids", "decoder_attention_mask"});
    if (facts.target_names == ModelFacts::TargetNames::kEither) {
      known.insert(known.end(), {"input_ids", "attention_mask"});
    }
  }
  std::sort(known.begin(), known.end());
  return known;
}

// What the names of a decoder's inputs begin with.
std::string target_prefix(const ModelFacts& facts, const TensorMap& inputs) {
  const bool plain = facts.target_names == ModelFacts::TargetNames::kEither &&
                     inputs.count("decoder_input_ids") == 0 && inputs.count("input_ids") != 0;
  return plain ? "" : "decoder_";
}

// A decoder's mask belongs to tokens, and those have one name.
Status check_target_names(const ModelFacts& facts, const TensorMap& inputs,
                          const std::string& names) {
  if (facts.kind != ModelKind::kEncoderDecoder) return {};
  const bool either = facts.target_names == ModelFacts::TargetNames::kEither;
  for (const std::string prefix : {"decoder_", ""}) {
    if (prefix.empty() && !either) continue;
    if (prefix == names && inputs.count(names + "input_ids") != 0) continue;
    const std::string mask = prefix + "attention_mask";
    if (inputs.count(mask) != 0) {
      return invalid_argument(message({"[", mask, "] was given without ", prefix,
                                       "input_ids, which it masks; give both or neither."}));
    }
    if (inputs.count(prefix + "input_ids") != 0) {
      return invalid_argument(message({"[", prefix, "input_ids] was given beside ", names,
                                       "input_ids; both are the decoder's tokens, so give one."}));
    }
  }
  return {};
}

}  // namespace

Status check_input_names(const ModelFamily& family, const TensorMap& inputs, InputUse use) {
  const std::vector<std::string> known = known_inputs(family, use);
  for (const auto& [name, tensor] : inputs) {
    if (std::binary_search(known.begin(), known.end(), name)) continue;
    return invalid_argument(message(
        {"[", name, "] is not an input of a ", (use == InputUse::kPass ? "pass" : "generation"),
         " of ", family.facts().architecture, "; the nearest is ", nearest_name(name, known),
         ". Its inputs are ", name_list(known), "."}));
  }
  return {};
}

Status check_zero_types(const TensorMap& inputs, const TokenRows& rows) {
  const std::string name = "token_type_ids";
  if (inputs.count(name) == 0) return {};
  VKF_ASSIGN(const std::vector<int64_t> given, matching_ints(inputs, name, rows));
  for (const int64_t value : given) {
    if (value == 0) continue;
    return invalid_argument(message({"[", name, "] holds ", value,
                                     ", but a generation takes no token types; omit the tensor "
                                     "or give zeros."}));
  }
  return {};
}

FeedWords token_words(const TokenRows& rows, const TokenFacts& facts, const std::string& prefix) {
  FeedWords words;
  words[prefix + "input_ids"] = rows.ids;
  words[prefix + "key_mask"] = rows.mask_words();
  if (facts.positions == TokenFacts::Positions::kFromIds) {
    words[prefix + "position_ids"] = positions_from_ids(rows, facts.pad);
  }
  words[prefix + "key_positions"] = positions_from_mask(rows);
  words[prefix + "kept_rows"] = kept_rows(rows);
  if (facts.positions == TokenFacts::Positions::kFromMask) {
    words[prefix + "position_ids"] = words[prefix + "key_positions"];
  }
  return words;
}

Result<ForwardInputs> read_source(const ModelFacts& facts, const TensorMap& inputs,
                                  RunOptions::LongInputs long_inputs) {
  switch (facts.source) {
    case SourceKind::kTokens:
      return read_tokens(facts, inputs, long_inputs);
    case SourceKind::kPictures:
    case SourceKind::kFeatures:
      return read_grid(facts, inputs);
    case SourceKind::kArrays:
    case SourceKind::kWaveform:
      break;
  }
  return ForwardInputs{};
}

Result<ForwardInputs> read_forward_inputs(const ModelFamily& family, const TensorMap& inputs,
                                          RunOptions::LongInputs long_inputs) {
  const ModelFacts& facts = family.facts();
  const std::string names = target_prefix(facts, inputs);
  const bool has_target = inputs.count(names + "input_ids") != 0;
  if (has_target && facts.kind != ModelKind::kEncoderDecoder) {
    return invalid_argument(message({"[decoder_input_ids] was given, but a ", facts.architecture,
                                     " has no decoder beside its one stack; pass input_ids"}));
  }
  VKF_CHECK(check_input_names(family, inputs, InputUse::kPass));
  VKF_CHECK(check_target_names(facts, inputs, names));
  VKF_ASSIGN(ForwardInputs result, read_source(facts, inputs, long_inputs));
  VKF_CHECK(family.read_inputs(inputs, result));
  VKF_CHECK(read_pooling_mask(inputs, result));
  if (!has_target) return result;
  VKF_ASSIGN(TokenRows target, token_rows(inputs, names + "input_ids", names + "attention_mask",
                                          {facts.target_vocab, facts.max_target}));
  if (target.batch != result.shape.batch) {
    return invalid_argument(message({"[", names, "input_ids] has ", target.batch,
                                     " rows, but the encoder's input has ", result.shape.batch}));
  }
  result.shape.target = target.tokens;
  if (target.masked) result.decoder_mask = Tap::kOn;
  result.words.merge(token_words(target, facts.target_tokens, "decoder_"));
  return result;
}

}  // namespace vkformer
