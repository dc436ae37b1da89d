#include "conformance/models.h"

#include <memory>

#include "base/check.h"
#include "conformance/content.h"
#include "conformance/seeded_model.h"
#include "reference/beam_search.h"
#include "vkformer/session.h"

namespace vkformer::conformance {
namespace {

struct Subject {
  const char* name;
  Family family;
  ModelSizes sizes;
};
// Odd widths of heads, grouped heads, more layers than two; small enough for loops in double.
const Subject kSubjects[] = {
    {"bert", Family::kBert, {.vocab = 61, .width = 36, .heads = 3, .ffn = 70}},
    {"gpt2", Family::kGpt2, {.vocab = 67, .width = 40, .heads = 4, .ffn = 160, .layers = 3}},
    {"llama",
     Family::kLlama,
     {.vocab = 71, .width = 48, .heads = 4, .kv_heads = 2, .ffn = 100, .layers = 2}},
};

std::vector<TokenId> some_ids(int64_t count, int64_t vocab, uint64_t seed) {
  Noise noise(seed);
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(1 + noise.below(vocab - 1));
  return ids;
}

Result<Session> open(const Device& device, const SeededModel& model, WeightFormat weights) {
  VKF_ASSIGN(const Model loaded, Model::load_from(device, model.source(), {.weights = weights}));
  return Session::create(loaded);
}

// Two rows at once; the output's first `count` tokens of row `row`.
Result<Comparison> check_pass(const Device& device, const Subject& subject, WeightFormat weights) {
  const SeededModel model(subject.family, subject.sizes);
  VKF_ASSIGN(Session session, open(device, model, weights));
  const bool bert = subject.family == Family::kBert;
  const std::vector<TokenId> ids = some_ids(33, subject.sizes.vocab, 5);
  Tensor tensor = Tensor::from_ints({1, static_cast<int64_t>(ids.size())}, ids);
  VKF_ASSIGN(const TensorMap outputs, session.run({{"input_ids", std::move(tensor)}}));
  const char* name = bert ? "last_hidden_state" : "logits";
  const auto found = outputs.find(name);
  if (found == outputs.end()) return internal_error("[conformance] There is no such output.");
  VKF_ASSIGN(Array expected, bert ? model.hidden(ids) : model.logits(ids));
  expected.shape.insert(expected.shape.begin(), 1);
  // Rounding adds up over layers; weights in f16 differ by 2^-11 each.
  const bool half = weights == WeightFormat::kF16;
  const Tolerance bound = half ? Tolerance{0.05, 0.02} : Tolerance{1e-4, 1e-4};
  return compare(name, found->second, {std::move(expected), bound});
}

Result<std::vector<std::vector<TokenId>>> expected_tokens(
    const SeededModel& model, const std::vector<std::vector<TokenId>>& prompts,
    const reference::SearchOptions& options) {
  const reference::NextLogits next =
      [&](const std::vector<TokenId>& prefix) -> Result<std::vector<double>> {
    VKF_ASSIGN(const Array all, model.logits(prefix));
    return std::vector<double>(all.data.end() - model.sizes().vocab, all.data.end());
  };
  std::vector<std::vector<TokenId>> rows;
  for (const std::vector<TokenId>& prompt : prompts) {
    if (options.num_beams == 1) {
      VKF_ASSIGN(std::vector<TokenId> ids, reference::greedy_search(prompt, next, options));
      rows.push_back(std::move(ids));
    } else {
      VKF_ASSIGN(std::vector<reference::Hypothesis> found,
                 reference::beam_search(prompt, next, options));
      rows.push_back(std::move(found.front().ids));
    }
  }
  return rows;
}

// Prompts of several lengths in one batch.
Result<Comparison> check_search(const Device& device, const Subject& subject, int beams) {
  const SeededModel model(subject.family, subject.sizes);
  VKF_ASSIGN(Session session, open(device, model, WeightFormat::kF32));
  const int64_t vocab = subject.sizes.vocab;
  const std::vector<std::vector<TokenId>> prompts = {some_ids(1, vocab, 1), some_ids(5, vocab, 2),
                                                     some_ids(9, vocab, 3)};
  constexpr int kTokens = 12;
  GenerateOptions options;
  options.beams = beams;
  options.max_new_tokens = kTokens;
  options.eos = {};
  VKF_ASSIGN(const Generation found, session.generate(prompts, options));
  VKF_ASSIGN(const auto expected,
             expected_tokens(model, prompts, {.max_new_tokens = kTokens, .num_beams = beams}));
  Comparison result;
  for (size_t row = 0; row < prompts.size(); ++row) {
    const std::vector<TokenId>& ids = found[row].front().ids;
    result.elements += static_cast<int64_t>(ids.size());
    if (ids == expected[row] || !result.message.empty()) continue;
    size_t at = 0;
    while (at < ids.size() && at < expected[row].size() && ids[at] == expected[row][at]) ++at;
    result.error = 1e9;
    result.message = "[tokens] Row " + std::to_string(row) + " differs from token " +
                     std::to_string(at) + " on.";
  }
  return result;
}

}  // namespace

std::vector<ModelCheck> model_checks() {
  std::vector<ModelCheck> list;
  for (const Subject& subject : kSubjects) {
    const std::string name = std::string("model/") + subject.name;
    for (const WeightFormat weights : {WeightFormat::kF32, WeightFormat::kF16}) {
      list.push_back(
          {name + "/pass-" + choice_name(weights), true, [&subject, weights](const Device& device) {
             return check_pass(device, subject, weights);
           }});
    }
    if (subject.family == Family::kBert) continue;
    for (const int beams : {1, 4}) {
      list.push_back({name + (beams == 1 ? "/greedy" : "/beams"), true,
                      [&subject, beams](const Device& device) {
                        return check_search(device, subject, beams);
                      }});
    }
  }
  return list;
}

}  // namespace vkformer::conformance
