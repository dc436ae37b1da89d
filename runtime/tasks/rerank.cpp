// A query and documents, read in pairs or asked about one by one, to documents by score.
#include <cmath>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

// Whether scores are probabilities where the caller leaves that to the model. sentence-transformers
// saves the class of its activation, in another place from version to version. It takes a sigmoid
// where it saved none.
Result<bool> model_takes_sigmoid(const TaskModel& task) {
  const JsonConfig saved = task.config.object("sentence_transformers");
  VKF_CHECK(saved.status());
  std::string key = "sbert_ce_default_activation_function";
  std::string where = task.config.where();
  VKF_ASSIGN(std::string given, task.config.get_string_or(key, ""));
  for (const JsonConfig* newer : {&saved, &task.sentence_config}) {
    if (!newer->has("activation_fn")) continue;
    key = "activation_fn";
    where = newer->where();
    VKF_ASSIGN(given, newer->get_string(key));
  }
  const std::string name = given.substr(given.rfind('.') + 1);
  if (name.empty() || name == "Sigmoid") return true;
  if (name == "Identity") return false;
  return unsupported(message({"[", key, "] in ", where, " is '", given,
                              "'; supported are Sigmoid and Identity of torch.nn. Ask for logits "
                              "or probabilities instead of the model's own scores."}));
}

Result<bool> takes_sigmoid(const TaskModel& task, RerankOptions::Score score) {
  if (score != RerankOptions::Score::kModel) return score == RerankOptions::Score::kProbability;
  return model_takes_sigmoid(task);
}

// What Qwen3-Reranker was trained with: a system message, a user's message with the document, and
// the start of an answer without thinking.
constexpr std::string_view kBefore =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n";
constexpr std::string_view kAfter = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
constexpr const char* kInstruction =
    "Given a web search query, retrieve relevant passages that answer the query";

Result<std::vector<double>> class_logits(TaskModel& task, const std::string& query,
                                         std::span<const std::string> documents) {
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < documents.size(); ++i) {
    VKF_ASSIGN(Encoding encoding,
               encode_task_pair(task, query, documents[i], i, TruncationStrategy::kLongestFirst));
    encodings.push_back(std::move(encoding));
  }
  VKF_ASSIGN(const auto logits, sequence_logits(task, encodings));
  std::vector<double> scores;
  for (const std::vector<float>& row : logits) scores.push_back(static_cast<double>(row[0]));
  return scores;
}

// The question about document number `index` of a call. A text that is cut loses its end, never
// the question around it.
Result<Encoding> encode_question(const TaskModel& task, const std::string& text, size_t index) {
  const JudgeTokens& judge = *task.judge;
  const auto around = static_cast<int64_t>(judge.before.size() + judge.after.size());
  const int64_t limit = task.token_limit() - around;
  if (limit < 1) {
    return unsupported(message({"[rerank] the question around a document has ", around,
                                " tokens, but the model takes at most ", task.token_limit(),
                                "; use a model with a longer context."}));
  }
  const std::string_view view = text;
  VKF_ASSIGN(Encoding question,
             encode_task_text(task, {&view, 1}, index, limit, SpecialTokens::kExclude));
  question.ids.insert(question.ids.begin(), judge.before.begin(), judge.before.end());
  question.ids.insert(question.ids.end(), judge.after.begin(), judge.after.end());
  question.type_ids.assign(question.ids.size(), 0);
  return question;
}

// Of each document the logit of "yes" less that of "no", for the token after the question.
Result<std::vector<double>> judge_logits(TaskModel& task, const std::string& query,
                                         std::span<const std::string> documents,
                                         const std::string& instruction) {
  std::vector<Encoding> encodings;
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string text =
        "<Instruct>: " + (instruction.empty() ? std::string(kInstruction) : instruction) +
        "\n<Query>: " + query + "\n<Document>: " + documents[i];
    VKF_ASSIGN(Encoding question, encode_question(task, text, i));
    encodings.push_back(std::move(question));
  }
  std::vector<double> scores(documents.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run_last(token_inputs(task, encodings, places)));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    const auto words = static_cast<size_t>(logits.shape.back());
    for (size_t row = 0; row < places.size(); ++row) {
      const size_t last = logits.shape.size() == 3 ? encodings[places[row]].ids.size() - 1 : 0;
      const std::span<const float> found = logits.row(row).subspan(last * words, words);
      scores[places[row]] = static_cast<double>(found[static_cast<size_t>(task.judge->yes)]) -
                            static_cast<double>(found[static_cast<size_t>(task.judge->no)]);
    }
    return {};
  };
  VKF_CHECK(run_batches(token_counts(encodings), task.batch, run));
  return scores;
}

// The tokens that a LogitScore module compares belong to questions of its model's; ours are
// answered by yes and no.
Status check_answer(const JsonConfig& score, const std::string& key, TokenId known,
                    const char* answer) {
  if (score.keys().empty()) return {};
  VKF_ASSIGN(const int64_t given, score.get_int_or(key, -1));
  if (given == known) return {};
  return unsupported(message({"[", key, "] in ", score.where(), " is ",
                              (given < 0 ? std::string("null") : std::to_string(given)),
                              ", but the tokenizer's '", answer, "' is ", known,
                              "; only models that answer yes or no, as Qwen3-Reranker, rank "
                              "documents."}));
}

}  // namespace

Result<JudgeTokens> read_judge(const TokenizerEngine& tokenizer, const JsonConfig& score) {
  const auto id_of = [&](const char* token) -> Result<TokenId> {
    if (const auto id = tokenizer.token_to_id(token)) return *id;
    return unsupported(
        message({"[rerank] asks a language model for yes or no in messages between <|im_start|> "
                 "and <|im_end|>, but its tokenizer lacks the token '",
                 token, "'; use Qwen3-Reranker or a cross-encoder."}));
  };
  for (const char* token : {"<|im_start|>", "<|im_end|>"}) VKF_CHECK(id_of(token));
  JudgeTokens judge;
  VKF_ASSIGN(judge.yes, id_of("yes"));
  VKF_ASSIGN(judge.no, id_of("no"));
  VKF_CHECK(check_answer(score, "true_token_id", judge.yes, "yes"));
  VKF_CHECK(check_answer(score, "false_token_id", judge.no, "no"));
  const EncodeOptions plain{.special_tokens = SpecialTokens::kExclude};
  VKF_ASSIGN(Encoding before, tokenizer.encode({&kBefore, 1}, plain));
  VKF_ASSIGN(Encoding after, tokenizer.encode({&kAfter, 1}, plain));
  judge.before = std::move(before.ids);
  judge.after = std::move(after.ids);
  return judge;
}

Result<std::vector<RankedDocument>> rank_documents(TaskModel& task, const std::string& query,
                                                   std::span<const std::string> documents,
                                                   const RerankOptions& options) {
  if (options.top < 0) {
    return invalid_argument(
        message({"[top] is ", options.top, "; give a number of documents, or 0 for all."}));
  }
  VKF_ASSIGN(const bool sigmoid, takes_sigmoid(task, options.score));
  if (!task.judge && !options.instruction.empty()) {
    return invalid_argument(
        "[instruction] is for language models that rank documents; this model is a cross-encoder, "
        "which takes none. Leave it empty.");
  }
  // Sorted by logit: near 0 and 1 probabilities of different logits are equal.
  VKF_ASSIGN(const std::vector<double> scores,
             task.judge ? judge_logits(task, query, documents, options.instruction)
                        : class_logits(task, query, documents));
  std::vector<RankedDocument> ranking;
  for (const size_t i : largest(scores, static_cast<size_t>(options.top))) {
    ranking.push_back({i, sigmoid ? 1 / (1 + std::exp(-scores[i])) : scores[i]});
  }
  return ranking;
}

}  // namespace vkformer
