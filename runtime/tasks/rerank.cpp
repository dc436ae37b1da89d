// A query and documents, read in pairs, to documents by score.
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// Whether scores are probabilities where the caller leaves that to the model: sentence-transformers
// saves the class of its activation, and takes a sigmoid where it saved none.
Result<bool> model_takes_sigmoid(const JsonConfig& config) {
  const JsonConfig saved = config.object("sentence_transformers");
  VKF_CHECK(saved.status());
  std::string key = "sbert_ce_default_activation_function";
  VKF_ASSIGN(std::string given, config.get_string_or(key, ""));
  if (saved.has("activation_fn")) {
    key = "activation_fn";
    VKF_ASSIGN(given, saved.get_string(key));
  }
  const std::string name = given.substr(given.rfind('.') + 1);
  if (name.empty() || name == "Sigmoid") return true;
  if (name == "Identity") return false;
  return unsupported(message({"[", key, "] in ", config.where(), " is '", given,
                              "'; supported are Sigmoid and Identity of torch.nn. Ask for logits "
                              "or probabilities instead of the model's own scores."}));
}

Result<bool> takes_sigmoid(const TaskModel& task, RerankOptions::Score score) {
  if (score != RerankOptions::Score::kModel) return score == RerankOptions::Score::kProbability;
  return model_takes_sigmoid(task.config);
}

}  // namespace

Result<std::vector<RankedDocument>> rank_documents(TaskModel& task, const std::string& query,
                                                   std::span<const std::string> documents,
                                                   const RerankOptions& options) {
  if (options.top < 0) {
    return invalid_argument(
        message({"[top] is ", options.top, "; give a number of documents, or 0 for all."}));
  }
  VKF_ASSIGN(const bool sigmoid, takes_sigmoid(task, options.score));
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < documents.size(); ++i) {
    VKF_ASSIGN(Encoding encoding,
               encode_task_pair(task, query, documents[i], i, TruncationStrategy::kLongestFirst));
    encodings.push_back(std::move(encoding));
  }
  VKF_ASSIGN(const auto logits, sequence_logits(task, encodings));
  // Sorted by logit: near 0 and 1 probabilities of different logits are equal.
  std::vector<double> scores;
  for (const std::vector<float>& row : logits) scores.push_back(static_cast<double>(row[0]));
  std::vector<RankedDocument> ranking;
  for (const size_t i : largest(scores, static_cast<size_t>(options.top))) {
    ranking.push_back({i, sigmoid ? 1 / (1 + std::exp(-scores[i])) : scores[i]});
  }
  return ranking;
}

}  // namespace vkformer
