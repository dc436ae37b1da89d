// Reranker: documents in the order of how well they fit a query.
//
// Threading and lifetime: as all tasks (tasks.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "vkformer/tasks.h"

namespace vkformer {

struct RankedDocument {
  size_t index = 0;  // in the documents given
  double score = 0;
};

struct RerankOptions {
  // The best `top` documents; 0: all.
  int top = 0;
  // kModel: as sentence-transformers' entries in config.json say ("sentence_transformers" or
  // "sbert_ce_default_activation_function"), the probability without them. kLogit is the model's
  // output, kProbability its sigmoid.
  enum class Score : uint8_t { kModel, kLogit, kProbability } score = Score::kModel;
  // Of a language model: which documents are asked for, in words; empty: those that answer the
  // query of a web search.
  std::string instruction = {};
};

// Documents by how well they fit a query. A cross-encoder, that is a model that classifies texts
// and has one class, reads each document together with the query. A language model whose tokenizer
// has the tokens <|im_start|> and <|im_end|> is asked in the words of Qwen3-Reranker whether the
// document fits. The logit is that of "yes" less that of "no" for the first token of an answer.
class VKFORMER_API Reranker : public Task {
 public:
  using Task::Task;
  static Result<Reranker> load(const Device& device, const ModelSource& source,
                               const TaskOptions& options = {});
  // The documents with their scores, highest first; equal ones keep their order.
  Result<std::vector<RankedDocument>> rank(const std::string& query,
                                           std::span<const std::string> documents,
                                           const RerankOptions& options = {});
};

}  // namespace vkformer
