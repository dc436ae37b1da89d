#include "generate/generation_jobs.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>

#include "base/message.h"
#include "params/decode_state.h"

namespace vkformer {

void scatter(Generation& from, const std::vector<size_t>& items, Generation& to) {
  for (size_t i = 0; i < items.size(); ++i) {
    to.resize(std::max(to.size(), items[i] + 1));
    to[items[i]] = std::move(from[i]);
  }
}

Generation by_input(Generation items, const GenerateOptions& options) {
  const auto sequences = static_cast<size_t>(options.return_sequences);
  const size_t parts = items_per_input(options);
  Generation result(items.size() / parts);
  for (size_t i = 0; i < items.size(); ++i) {
    auto& found = result[i / parts];
    std::move(items[i].begin(), items[i].end(), std::back_inserter(found));
  }
  if (options.beams == 1) return result;
  for (auto& found : result) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    if (found.size() > sequences) found.resize(sequences);
  }
  return result;
}

Result<std::vector<GenerationJob>> plan_jobs(const ModelFamily& family, CacheFormat cache,
                                             const TensorMap& inputs,
                                             const GenerateOptions& options) {
  GenerationKey key;
  key.shape.beams = options.beams / options.beam_groups;
  key.shape.cache = cache;
  VKF_ASSIGN(GenerationInputs read, read_generation_inputs(family, inputs, options, key.shape));
  if (key.shape.batch * key.shape.beams > VKF_MAX_SLOTS) {
    return invalid_argument(message({"[generate] ", key.shape.batch, " inputs with ",
                                     key.shape.beams, " beams are more than the ", VKF_MAX_SLOTS,
                                     " rows that can run together; use smaller batches"}));
  }
  const bool exact = family.facts().prompts == ModelFacts::Prompts::kExact;
  std::map<size_t, std::vector<size_t>> groups;  // by the length of their prompts; 0: any
  for (size_t i = 0; i < read.prompts.size(); ++i) {
    const size_t length = read.prompts[i].size();
    const bool apart = exact || (options.context && length > static_cast<size_t>(*options.context));
    groups[apart ? length : 0].push_back(i);
  }
  std::vector<GenerationJob> jobs;
  for (auto& [length, items] : groups) {
    GenerationInputs part;
    for (size_t i : items) part.prompts.push_back(read.prompts[i]);
    part.items = items;
    // The sequences of a decoder with an encoder have one length, and their words stay together.
    if (groups.size() == 1) part.words = std::move(read.words);
    // Images are made features of for all of them.
    if (groups.size() > 1) part.words = read.pictures.words;
    part.pictures.more = read.pictures.more;
    for (size_t i : items) {
      if (!read.pictures.rows.empty()) part.pictures.rows.push_back(read.pictures.rows[i]);
    }
    key.shape.batch = static_cast<int64_t>(items.size());
    VKF_ASSIGN(const GenerationSizes sizes,
               generation_sizes(family.facts(), part.longest(), key, options));
    jobs.push_back({sizes.key, std::move(part), sizes.new_tokens});
  }
  return jobs;
}

void cut_prompts(const LoadedModel& model, std::vector<GenerationJob>& jobs) {
  const ModelSplit* split = model.split();
  if (split == nullptr || split->plan.split != GroupSplit::kLayers) return;
  std::set<size_t> members;  // with layers
  for (const auto& [place, member] : split->member_of) {
    const bool layer = place.starts_with("decoder.") && std::isdigit(place.back()) != 0;
    if (layer) members.insert(member);
  }
  const ModelFacts& facts = model.family().facts();
  const int64_t part = split->group->prompt_part;
  const bool cuts = facts.kind == ModelKind::kDecoder && facts.slots == ModelFacts::Slots::kYes &&
                    facts.prompts == ModelFacts::Prompts::kRounded &&
                    facts.states == ModelFacts::States::kNo;
  if (members.size() < 2 || part == 0 || !cuts) return;
  for (GenerationJob& job : jobs) {
    StepShape& shape = job.key.shape;
    if (shape.cache != CacheFormat::kF32 || shape.context > 0 || !shape.more.empty()) continue;
    int64_t tokens = 0;  // the last one of each is a step's
    for (const auto& prompt : job.inputs.prompts) tokens += static_cast<int64_t>(prompt.size()) - 1;
    if (tokens <= part) continue;
    job.key.part = part;
    shape.ahead = part - 1;
  }
}

}  // namespace vkformer
