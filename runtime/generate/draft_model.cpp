#include "generate/draft_model.h"

#include <algorithm>
#include <cmath>

namespace vkformer {

Result<std::unique_ptr<DraftModel>> DraftModel::create(std::shared_ptr<const LoadedModel> model,
                                                       const StepShape& shape) {
  std::unique_ptr<DraftModel> made(new DraftModel());
  StepShape own = shape;
  const ModelFacts& facts = model->family().facts();
  const bool rolls = own.context > 0 && facts.rolling == ModelFacts::Rolling::kFree;
  if (!rolls) own.capacity = std::min(own.capacity, facts.max_target);
  VKF_ASSIGN(made->pass_, SlotPass::create(std::move(model), own));
  made->rows_.resize(static_cast<size_t>(shape.batch));
  return made;
}

bool DraftModel::wants_more(const DraftWish& wish, size_t drafts) const {
  return drafts < wish.drafts &&
         static_cast<int64_t>(wish.text.size() + drafts) <= pass_->shape().capacity;
}

Status DraftModel::step(std::span<const DraftWish> wishes, std::span<const FedToken> fed,
                        std::span<const size_t> chosen,
                        std::vector<std::vector<uint32_t>>& drafts) {
  if (fed.empty()) return {};
  std::vector<SlotChoice> choices;
  std::vector<uint32_t> text;
  for (size_t i : chosen) {
    const DraftWish& wish = wishes[i];
    text.assign(wish.text.begin(), wish.text.end());
    text.insert(text.end(), drafts[i].begin(), drafts[i].end());
    choices.push_back(wish.choice->at(text, wish.generated + drafts[i].size()));
  }
  VKF_ASSIGN(const std::vector<ChosenToken> found, pass_->run(fed, choices));
  ++steps_;
  for (const FedToken& f : fed) rows_[f.row].wrote(f.position + 1);
  for (size_t i = 0; i < found.size(); ++i) {
    // A token that is none ends the draft; the large model says what is wrong.
    const bool usable = !std::isnan(found[i].log_probability) && found[i].token < pass_->vocab();
    if (usable) drafts[chosen[i]].push_back(found[i].token);
  }
  return {};
}

Status DraftModel::read_texts(std::span<const DraftWish> wishes,
                              std::vector<std::vector<uint32_t>>& drafts) {
  const StepShape& shape = pass_->shape();
  const CacheReach reach = pass_->reach();
  std::vector<FedToken> last, before;
  std::vector<size_t> chosen;
  size_t rows_left = wishes.size();
  auto room = static_cast<size_t>(shape.slots);
  for (size_t i = 0; i < wishes.size(); ++i) {
    const DraftWish& wish = wishes[i];
    --rows_left;
    if (static_cast<int64_t>(wish.text.size()) > shape.capacity) continue;
    CachedRow& row = rows_[wish.row];
    const size_t most = wish.text.size() - 1;
    row.trim(row.shared(wish.text.first(most), reach));
    const size_t begin = row.size();
    // A slot stays free for every row that follows.
    const size_t end = std::min(wish.text.size(), begin + (room - rows_left));
    const bool read = end == wish.text.size();
    // The last token is fed only where something is chosen after it: nothing is gained before.
    const size_t fed_end = read && wish.drafts == 0 ? most : end;
    for (size_t at = begin; at < fed_end; ++at) {
      const FedToken fed{wish.row, static_cast<uint32_t>(at), wish.text[at]};
      const bool chooses = at + 1 == wish.text.size();
      (chooses ? last : before).push_back(fed);
      if (chooses) chosen.push_back(i);
      row.append(wish.text[at]);
    }
    room -= fed_end - begin;
  }
  last.insert(last.end(), before.begin(), before.end());
  return step(wishes, last, chosen, drafts);
}

Result<bool> DraftModel::go_on(std::span<const DraftWish> wishes,
                               std::vector<std::vector<uint32_t>>& drafts) {
  std::vector<FedToken> fed;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < wishes.size(); ++i) {
    const DraftWish& wish = wishes[i];
    if (drafts[i].empty() || !wants_more(wish, drafts[i].size())) continue;
    CachedRow& row = rows_[wish.row];
    const size_t at = wish.text.size() + drafts[i].size() - 1;
    if (row.size() != at) continue;  // its last step gave no token
    fed.push_back({wish.row, static_cast<uint32_t>(at), drafts[i].back()});
    chosen.push_back(i);
    row.append(drafts[i].back());
  }
  VKF_CHECK(step(wishes, fed, chosen, drafts));
  return !fed.empty();
}

Result<std::vector<std::vector<uint32_t>>> DraftModel::propose(std::span<const DraftWish> wishes) {
  std::vector<std::vector<uint32_t>> drafts(wishes.size());
  if (wishes.empty()) return drafts;
  VKF_CHECK(read_texts(wishes, drafts));
  for (bool more = true; more;) {
    VKF_ASSIGN(more, go_on(wishes, drafts));
  }
  return drafts;
}

}  // namespace vkformer
