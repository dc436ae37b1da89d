#include "ops/score_terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "base/message.h"

namespace vkformer {
namespace {

using Dims = std::span<const int64_t, 4>;

// Shape of a term with every leading dimension 1 or full, the last one full after expansion.
Result<Shape> term_shape(const char* name, const Tensor& t, Dims dims) {
  bool fits = t.shape.size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) fits = t.shape[i] == 1 || t.shape[i] == dims[i];
  if (!fits) {
    return invalid_argument(message({"[", name, "] has shape ", shape_text(t.shape),
                                     ", which does not broadcast to (B, H, T, S) = ",
                                     shape_text({dims[0], dims[1], dims[2], dims[3]})}));
  }
  return t.shape;
}

uint32_t broadcast_flags(const Shape& shape, Dims dims, uint32_t one_batch) {
  uint32_t flags = 0;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if (shape[axis] == 1 && dims[axis] != 1) flags |= one_batch << axis;
  }
  return flags;
}

void append_bit_rows(std::vector<uint32_t>& words, const std::vector<int64_t>& values,
                     int64_t columns, int64_t keys) {
  const size_t row_words = static_cast<size_t>((keys + 31) / 32);
  const size_t rows = columns == 0 ? 0 : values.size() / static_cast<size_t>(columns);
  for (size_t r = 0; r < rows; ++r) {
    const size_t begin = words.size();
    words.resize(begin + row_words, 0u);
    for (int64_t j = 0; j < keys; ++j) {
      const int64_t value =
          values[r * static_cast<size_t>(columns) + static_cast<size_t>(columns == 1 ? 0 : j)];
      if (value != 0) words[begin + static_cast<size_t>(j / 32)] |= 1u << (j % 32);
    }
  }
}

void append_float(std::vector<uint32_t>& words, float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, 4);
  words.push_back(bits);
}

Status add_key_mask(const Tensor& key_mask, Dims dims, std::vector<uint32_t>& words,
                    ScoreTermsParams& params) {
  if (key_mask.shape != Shape{dims[0], dims[3]}) {
    return invalid_argument(message({"[key_mask] has shape ", shape_text(key_mask.shape),
                                     ", but must be (B, S) = ", shape_text({dims[0], dims[3]})}));
  }
  VKF_ASSIGN(std::vector<int64_t> values, key_mask.to_ints());
  params.key_mask_offset = static_cast<uint32_t>(words.size());
  append_bit_rows(words, values, dims[3], dims[3]);
  return {};
}

Status add_mask(const Tensor& mask, Dims dims, std::vector<uint32_t>& words,
                ScoreTermsParams& params) {
  VKF_ASSIGN(Shape shape, term_shape("mask", mask, dims));
  VKF_ASSIGN(std::vector<int64_t> values, mask.to_ints());
  params.mask_offset = static_cast<uint32_t>(words.size());
  params.flags |= broadcast_flags(shape, dims, VKF_TERM_MASK_ONE_BATCH);
  append_bit_rows(words, values, shape[3], dims[3]);
  return {};
}

Status add_bias(const Tensor& bias, Dims dims, std::vector<uint32_t>& words,
                ScoreTermsParams& params) {
  VKF_ASSIGN(Shape shape, term_shape("bias", bias, dims));
  VKF_ASSIGN(std::vector<float> values, bias.to_floats());
  params.bias_offset = static_cast<uint32_t>(words.size());
  params.flags |= broadcast_flags(shape, dims, VKF_TERM_BIAS_ONE_BATCH);
  const int64_t repeat = shape[3] == dims[3] ? 1 : dims[3];
  for (float value : values) {
    for (int64_t i = 0; i < repeat; ++i) append_float(words, value);
  }
  return {};
}

Result<std::vector<int64_t>> token_values(const char* name, const Tensor& t, Dims dims) {
  if (t.shape != Shape{dims[0], dims[3]} || dims[2] != dims[3]) {
    return invalid_argument(
        message({"[", name, "] has shape ", shape_text(t.shape),
                 ", but must be (B, T) with as many queries as keys, and the scores "
                 "(B, H, T, S) are ",
                 shape_text({dims[0], dims[1], dims[2], dims[3]})}));
  }
  return t.to_ints();
}

// The sparse terms of one packing: `words` is that of all terms.
struct SparseTerms {
  std::vector<uint32_t>& words;
  ScoreTermsParams& params;

  // Where the next term begins; notes it in the table, which is made first.
  void begin(uint32_t flag, uint32_t which) {
    if (params.sparse_offset == VKF_NO_TERM) {
      params.sparse_offset = static_cast<uint32_t>(words.size());
      words.resize(words.size() + VKF_SPARSE_WORDS, 0u);
    }
    params.flags |= flag;
    words[params.sparse_offset + which] = static_cast<uint32_t>(words.size());
  }
};

Status add_global(const Tensor& global, Dims dims, SparseTerms sparse, uint32_t& most) {
  VKF_ASSIGN(std::vector<int64_t> values, token_values("global", global, dims));
  std::vector<uint8_t> flags(values.size());
  for (size_t i = 0; i < values.size(); ++i) flags[i] = values[i] != 0 ? 1 : 0;
  const std::vector<uint32_t> packed = pack_global_tokens(flags, dims[0], dims[3]);
  const size_t item = packed.size() / static_cast<size_t>(dims[0]);
  for (size_t at = 0; at < packed.size(); at += item) most = std::max(most, packed[at]);
  sparse.begin(VKF_TERM_GLOBAL, VKF_SPARSE_GLOBAL);
  sparse.words.insert(sparse.words.end(), packed.begin(), packed.end());
  return {};
}

Status add_documents(const Tensor& documents, Dims dims, SparseTerms sparse) {
  VKF_ASSIGN(std::vector<int64_t> values, token_values("documents", documents, dims));
  sparse.begin(VKF_TERM_DOCUMENTS, VKF_SPARSE_DOCUMENTS);
  const auto tokens = static_cast<size_t>(dims[3]);
  for (size_t row = 0; row < values.size(); row += tokens) {
    std::map<int64_t, std::pair<uint32_t, uint32_t>> extents;  // first token, one past the last
    for (size_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<uint32_t>(t);
      extents.try_emplace(values[row + t], at, at).first->second.second = at + 1;
    }
    for (size_t t = 0; t < tokens; ++t) {
      sparse.words.push_back(extents.at(values[row + t]).first);
    }
    for (size_t t = 0; t < tokens; ++t) {
      sparse.words.push_back(extents.at(values[row + t]).second);
    }
  }
  return {};
}

Status add_prefix(const Tensor& prefix, Dims dims, SparseTerms sparse) {
  if (prefix.shape != Shape{dims[0]}) {
    return invalid_argument(message({"[prefix] has shape ", shape_text(prefix.shape),
                                     ", but must be (B) = ", shape_text({dims[0]})}));
  }
  VKF_ASSIGN(std::vector<int64_t> values, prefix.to_ints());
  sparse.begin(VKF_TERM_PREFIX, VKF_SPARSE_PREFIX);
  for (int64_t value : values) {
    if (value < 0 || value > dims[3]) {
      return invalid_argument(message({"[prefix] is ", value, " tokens, but there are ", dims[3],
                                       " keys; give 0 to that many"}));
    }
    sparse.words.push_back(static_cast<uint32_t>(value));
  }
  return {};
}

Status check_block_map(const Tensor& map, int64_t size, Dims dims) {
  if (size < 1 || dims[2] % size != 0 || dims[3] % size != 0) {
    return invalid_argument(message({"[block_size] is ", size, ", but there are ", dims[2],
                                     " queries and ", dims[3], " keys; it must divide both"}));
  }
  const Shape& s = map.shape;
  const Shape wanted = {dims[0], dims[1], dims[2] / size, dims[3] / size};
  const bool fits = s.size() == 4 && (s[0] == 1 || s[0] == wanted[0]) &&
                    (s[1] == 1 || s[1] == wanted[1]) && s[2] == wanted[2] && s[3] == wanted[3];
  if (fits) return {};
  return invalid_argument(
      message({"[block_map] has shape ", shape_text(s), ", but with blocks of ", size,
               " tokens it must be (B or 1, H or 1, T / block, "
               "S / block) = ",
               shape_text(wanted)}));
}

// Does causal or a window hide every pair of a block of queries and a block of keys? What is global
// or in a prefix they do not hide.
bool hides_block(const ScoreTermsInput& input, int64_t query_block, int64_t key_block) {
  if (input.global || input.prefix) return false;
  const int64_t apart = (key_block - query_block) * input.block_size;
  const int64_t within = input.block_size - 1;
  return (input.most_distance && apart - within > *input.most_distance) ||
         (input.least_distance && apart + within < *input.least_distance);
}

Status add_block_map(const ScoreTermsInput& input, Dims dims, SparseTerms sparse,
                     ScoreTerms& terms) {
  const Tensor& map = *input.block_map;
  const int64_t size = input.block_size;
  VKF_CHECK(check_block_map(map, size, dims));
  VKF_ASSIGN(std::vector<int64_t> counts, map.to_ints());
  const auto columns = static_cast<size_t>(map.shape[3]);
  std::vector<std::vector<SeenBlock>> rows(counts.size() / columns);
  uint64_t seen = 0;
  for (size_t at = 0; at < counts.size(); ++at) {
    if (counts[at] < 0 || counts[at] > (1 << 24)) {
      return invalid_argument(
          message({"[block_map] holds ", counts[at], ", but a block counts 0 to 16777216 times"}));
    }
    const auto query_block = static_cast<int64_t>(at / columns) % map.shape[2];
    const auto key_block = static_cast<int64_t>(at % columns);
    if (counts[at] == 0 || hides_block(input, query_block, key_block)) continue;
    rows[at / columns].push_back(
        {static_cast<uint32_t>(at % columns), static_cast<uint32_t>(counts[at])});
    ++seen;
  }
  sparse.begin(VKF_TERM_BLOCKS, VKF_SPARSE_BLOCKS);
  if (map.shape[0] == 1) sparse.params.flags |= VKF_TERM_BLOCKS_ONE_BATCH;
  if (map.shape[1] == 1) sparse.params.flags |= VKF_TERM_BLOCKS_ONE_HEAD;
  const std::vector<uint32_t> packed = pack_block_map(static_cast<uint32_t>(size), rows);
  sparse.words.insert(sparse.words.end(), packed.begin(), packed.end());
  terms.keys_of_blocks =
      static_cast<uint32_t>(seen / rows.size() + 1) * static_cast<uint32_t>(size);
  terms.most_of_blocks =
      most_visited_keys(static_cast<uint32_t>(size), static_cast<size_t>(map.shape[2]), rows);
  return {};
}

Status add_sparse(const ScoreTermsInput& input, Dims dims, ScoreTerms& terms, SparseTerms sparse) {
  if (input.global) VKF_CHECK(add_global(*input.global, dims, sparse, terms.most_global));
  if (input.documents) VKF_CHECK(add_documents(*input.documents, dims, sparse));
  if (input.prefix) VKF_CHECK(add_prefix(*input.prefix, dims, sparse));
  if (!input.block_map) return {};
  return add_block_map(input, dims, sparse, terms);
}

// Rows of a term that has one slice where its flag is set.
uint64_t term_rows(std::span<const uint64_t, 4> dims, uint32_t flags, uint32_t one_batch) {
  uint64_t rows = 1;
  for (uint32_t axis = 0; axis < 3; ++axis) {
    if ((flags & (one_batch << axis)) == 0) rows *= dims[axis];
  }
  return rows;
}

struct TermExtent {
  const char* name;
  uint32_t offset;  // words; VKF_NO_TERM: there is none
  uint64_t words;   // at least
};

// What include/score_terms.glsl reads, except the sparse terms. The words themselves say how many
// slices a periodic bias has and how far a bias by distance reaches. The host knows them only where
// it packs them: then at least one must be there.
std::array<TermExtent, 4> dense_terms(const ScoreTermsParams& t,
                                      std::span<const uint64_t, 4> dims) {
  const uint64_t row_words = (dims[3] + 31) / 32;
  const bool periodic = (t.flags & VKF_TERM_BIAS_PERIODIC) != 0;
  const uint32_t bias_flags = t.flags | (periodic ? VKF_TERM_BIAS_ONE_BATCH : 0u);
  const bool by_distance = (t.flags & VKF_TERM_DISTANCE) != 0;
  const bool counted = (t.flags & VKF_TERM_KEY_POSITIONS) != 0;
  return {{{"key mask", t.key_mask_offset, dims[0] * row_words},
           {"mask", t.mask_offset, term_rows(dims, t.flags, VKF_TERM_MASK_ONE_BATCH) * row_words},
           {periodic ? "periodic bias" : "bias", t.bias_offset,
            term_rows(dims, bias_flags, VKF_TERM_BIAS_ONE_BATCH) * dims[3] + (periodic ? 1 : 0)},
           {by_distance ? "bias by distance"
            : counted   ? "ALiBi slopes with the positions of the keys"
                        : "ALiBi slopes",
            t.slopes_offset, dims[1] + (by_distance ? 1 : 0) + (counted ? dims[0] * dims[3] : 0)}}};
}

std::string sparse_terms_error(const ScoreTermsParams& params, uint64_t words,
                               std::span<const uint64_t, 4> dims) {
  const uint32_t by_token = VKF_TERM_GLOBAL | VKF_TERM_DOCUMENTS | VKF_TERM_MASKED_QUERIES;
  if ((params.flags & by_token) != 0 && dims[2] != dims[3]) {
    return "global tokens, documents and masked queries need as many queries as keys, but there "
           "are " +
           std::to_string(dims[2]) + " queries and " + std::to_string(dims[3]) + " keys";
  }
  if ((params.flags & VKF_TERM_MASKED_QUERIES) != 0 && params.key_mask_offset == VKF_NO_TERM) {
    return "masked queries need a key mask, but none is given";
  }
  if ((params.flags & VKF_TERM_SINKS) != 0) {
    if ((params.flags & VKF_TERM_SPARSE) != 0) return "sink scores are set beside sparse terms";
    if (uint64_t{params.sparse_offset} + dims[1] <= words) return {};
    return message({"the sink scores start at word ", params.sparse_offset, " and need ", dims[1],
                    " words, but terms has ", words});
  }
  if ((params.flags & VKF_TERM_SPARSE) == 0) return {};
  if (uint64_t{params.sparse_offset} + VKF_SPARSE_WORDS <= words) return {};
  return "the table of sparse terms starts at word " + std::to_string(params.sparse_offset) +
         " and needs " + std::to_string(VKF_SPARSE_WORDS) + " words, but terms has " +
         std::to_string(words);
}

Status add_sinks(const ScoreTermsInput& input, Dims dims, std::vector<uint32_t>& words,
                 ScoreTermsParams& params) {
  if (input.sink_scores.empty()) return {};
  if (static_cast<int64_t>(input.sink_scores.size()) != dims[1]) {
    return invalid_argument(message({"[sink_scores] has ", input.sink_scores.size(),
                                     " values, but there are ", dims[1], " heads"}));
  }
  if ((params.flags & VKF_TERM_SPARSE) != 0) {
    return unsupported(
        "[sink_scores] cannot be given with global, documents, prefix or block_map; use one of "
        "them");
  }
  params.flags |= VKF_TERM_SINKS;
  params.sparse_offset = static_cast<uint32_t>(words.size());
  for (const float score : input.sink_scores) append_float(words, score);
  return {};
}

}  // namespace

Result<ScoreTerms> pack_score_terms(const ScoreTermsInput& input, Dims dims) {
  std::vector<uint32_t> words;
  ScoreTerms terms{.words = {}, .params = no_score_terms()};
  ScoreTermsParams& params = terms.params;
  if (input.key_mask) VKF_CHECK(add_key_mask(*input.key_mask, dims, words, params));
  if (input.mask) VKF_CHECK(add_mask(*input.mask, dims, words, params));
  if (input.bias) VKF_CHECK(add_bias(*input.bias, dims, words, params));
  if (!input.alibi_slopes.empty()) {
    if (static_cast<int64_t>(input.alibi_slopes.size()) != dims[1]) {
      return invalid_argument(message({"[alibi_slopes] has ", input.alibi_slopes.size(),
                                       " values, but there are ", dims[1], " heads"}));
    }
    params.slopes_offset = static_cast<uint32_t>(words.size());
    for (float slope : input.alibi_slopes) append_float(words, slope);
  }
  VKF_CHECK(add_sparse(input, dims, terms, {words, params}));
  VKF_CHECK(add_sinks(input, dims, words, params));
  if (words.empty()) words.push_back(0);
  terms.words = Tensor::zeros(DType::kU32, {static_cast<int64_t>(words.size())});
  std::memcpy(terms.words.bytes.data(), words.data(), words.size() * 4);
  return terms;
}

std::vector<uint32_t> pack_global_tokens(std::span<const uint8_t> flags, int64_t batch,
                                         int64_t keys) {
  const auto item = static_cast<size_t>(global_token_words(1, keys));
  std::vector<uint32_t> words(item * static_cast<size_t>(batch), 0u);
  for (size_t b = 0; b < static_cast<size_t>(batch); ++b) {
    uint32_t* const own = words.data() + b * item;
    uint32_t* const list = own + item - static_cast<size_t>(keys);
    for (size_t j = 0; j < static_cast<size_t>(keys); ++j) {
      if (flags[b * static_cast<size_t>(keys) + j] == 0) continue;
      own[1 + j / 32] |= 1u << (j % 32);
      list[own[0]++] = static_cast<uint32_t>(j);
    }
  }
  return words;
}

std::vector<uint32_t> pack_block_map(uint32_t block_size,
                                     const std::vector<std::vector<SeenBlock>>& rows) {
  std::vector<uint32_t> words = {block_size};
  std::vector<uint32_t> entries;
  const size_t table = rows.size() + 2;  // the block size, and where rows begin and the last ends
  for (const std::vector<SeenBlock>& row : rows) {
    words.push_back(static_cast<uint32_t>(table + entries.size()));
    std::map<uint32_t, uint32_t> counts;
    for (const SeenBlock& seen : row) counts[seen.block] += seen.count;
    for (const auto& [block, count] : counts) {
      entries.push_back(block);
      append_float(entries, static_cast<float>(std::log(static_cast<double>(count))));
    }
  }
  words.push_back(static_cast<uint32_t>(table + entries.size()));
  words.insert(words.end(), entries.begin(), entries.end());
  return words;
}

uint32_t most_visited_keys(uint32_t block_size, size_t slice_rows,
                           const std::vector<std::vector<SeenBlock>>& rows) {
  const size_t reach = (kQueryNeighbors + block_size - 2) / block_size + 1;  // rows of neighbors
  uint64_t most = 0;
  uint64_t entries = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i % slice_rows == 0) entries = 0;
    entries += rows[i].size();
    if (i % slice_rows >= reach) entries -= rows[i - reach].size();
    most = std::max(most, entries);
  }
  return static_cast<uint32_t>(std::min<uint64_t>(most * block_size, 0xffffffffu));
}

std::string score_terms_error(const ScoreTermsParams& params, uint64_t words,
                              std::span<const uint64_t, 4> dims) {
  for (const int32_t reach : {params.causal_offset, params.window_left, params.window_right}) {
    if (reach >= -kMostScoreReach && reach <= kMostScoreReach) continue;
    return message({"a causal offset or window of ", reach, " tokens is beyond the limit of ",
                    kMostScoreReach});
  }
  for (const TermExtent& term : dense_terms(params, dims)) {
    if (term.offset == VKF_NO_TERM || term.offset + term.words <= words) continue;
    return message({"the ", term.name, " starts at word ", term.offset, " and needs ", term.words,
                    " words, but terms has ", words});
  }
  return sparse_terms_error(params, words, dims);
}

std::vector<uint32_t> pack_key_mask(std::span<const uint8_t> allowed, int64_t batch, int64_t keys) {
  const size_t row_words = static_cast<size_t>((keys + 31) / 32);
  std::vector<uint32_t> words(static_cast<size_t>(batch) * row_words, 0u);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t j = 0; j < keys; ++j) {
      if (allowed[static_cast<size_t>(b * keys + j)] == 0) continue;
      words[static_cast<size_t>(b) * row_words + static_cast<size_t>(j / 32)] |= 1u << (j % 32);
    }
  }
  return words;
}

}  // namespace vkformer
