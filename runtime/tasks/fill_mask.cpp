// Texts with gaps to what may stand there, as Hugging Face's fill-mask pipeline gives it.
#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "tasks/task_model.h"

namespace vkformer {
namespace {

using Candidates = std::vector<MaskCandidate>;

Result<Candidates> candidates(const TaskModel& task, const Encoding& encoding, size_t place,
                              std::span<const float> logits, size_t top) {
  const TokenId mask = encoding.ids[place];
  // The gaps that stay open are to be seen.
  const bool several = std::count(encoding.ids.begin(), encoding.ids.end(), mask) > 1;
  const std::vector<double> scores = softmax_of(logits);
  Candidates found;
  for (size_t best : largest(scores, top)) {
    MaskCandidate candidate{static_cast<TokenId>(best), "", scores[best], ""};
    VKF_ASSIGN(candidate.token_text,
               task.tokenizer->decode({&candidate.token, 1}, SpecialTokens::kInclude));
    std::vector<TokenId> ids = encoding.ids;
    ids[place] = candidate.token;
    VKF_ASSIGN(candidate.text, task.tokenizer->decode(ids, several ? SpecialTokens::kInclude
                                                                   : SpecialTokens::kExclude));
    found.push_back(std::move(candidate));
  }
  return found;
}

}  // namespace

Result<std::vector<std::vector<Candidates>>> fill_masks(TaskModel& task,
                                                        std::span<const std::string> texts,
                                                        int top) {
  const TokenId mask = task.tokenizer->token_to_id(task.mask_token).value_or(-1);
  VKF_ASSIGN(const auto encodings, encode_task_texts(task, texts, task.token_limit()));
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<TokenId>& ids = encodings[i].ids;
    if (std::find(ids.begin(), ids.end(), mask) != ids.end()) continue;
    return invalid_argument(message(
        {"[text ", i + 1, "] has no ", task.mask_token, "; put one where a token is to be found"}));
  }
  std::vector<std::vector<Candidates>> filled(texts.size());
  const auto run = [&](std::span<const size_t> places) -> Status {
    VKF_ASSIGN(const TensorMap outputs,
               task.session->run(token_inputs(task, encodings, places), {}));
    VKF_ASSIGN(const TaskOutput logits, task_output(outputs, "logits"));
    const auto vocab = static_cast<size_t>(logits.shape.back());
    for (size_t row = 0; row < places.size(); ++row) {
      const Encoding& encoding = encodings[places[row]];
      for (size_t i = 0; i < encoding.ids.size(); ++i) {
        if (encoding.ids[i] != mask) continue;
        VKF_ASSIGN(Candidates found,
                   candidates(task, encoding, i, logits.row(row).subspan(i * vocab, vocab),
                              static_cast<size_t>(std::max(1, top))));
        filled[places[row]].push_back(std::move(found));
      }
    }
    return {};
  };
  const std::vector<size_t> lengths = token_counts(encodings);
  VKF_CHECK(run_batches(lengths, logits_batch(task, lengths), run));
  return filled;
}

}  // namespace vkformer
