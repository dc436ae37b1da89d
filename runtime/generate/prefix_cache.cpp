#include "generate/prefix_cache.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/message.h"

namespace vkformer {
namespace {

// Tokens of a step, and sequences at most. One number for all calls: what a text gets must not
// depend on how many others a call has. More would read prompts sooner. But kernels for more tokens
// compute rows that a conversation does not use: it goes on by one token at a time.
constexpr int kStepTokens = 8;
// Positions that a sequence has at least, so that a conversation does not outgrow it at once.
constexpr int64_t kLeastCapacity = 256;
// Tokens that a sequence can go back where new keys take the place of old ones. They have room for
// a last message and its answer, which may be asked for again in other words.
constexpr int64_t kBack = 256;
constexpr int kMostWaiting = 1 << 20;

}  // namespace

// What becomes of the requests of one call.
struct PrefixCache::Call {
  const GenerateOptions& options;
  std::map<uint64_t, size_t> inputs;  // by the number of the request
  Generation found;
  Status status;

  TokenVerdict take(size_t input, const NewToken& token) {
    if (!status) return TokenVerdict::kCancel;
    Hypothesis& to = found[input][token.sequence];
    to.ids.push_back(token.id);
    to.log_probabilities.push_back(static_cast<float>(token.log_probability));
    if (!options.on_token) return TokenVerdict::kGoOn;
    const TokenVerdict verdict =
        options.on_token({input, token.sequence, token.id, token.log_probability});
    if (verdict == TokenVerdict::kCancel) {
      status = cancelled(message({"[generate] the caller asked to stop after token ",
                                  to.log_probabilities.size(), " of input ", input}));
    }
    return verdict;
  }

  void end(const BatchUpdate& update) {
    const size_t input = inputs.at(update.request);
    found[input][update.sequence].score = update.score;
    if (update.state != BatchUpdate::State::kFailed || !status) return;
    status = update.error.with_context(message({"input ", input}));
  }
};

bool PrefixCache::serves(const ModelFacts& facts, const GenerateOptions& o, CacheFormat cache) {
  // Rotated keys go into a packed cache by way of one line a row, where a step has several tokens.
  return cache == CacheFormat::kF32 && o.beams == 1 && facts.kind == ModelKind::kDecoder &&
         facts.slots == ModelFacts::Slots::kYes && facts.head == HeadKind::kLanguage &&
         facts.prompts == ModelFacts::Prompts::kRounded;
}

Status PrefixCache::make(int64_t sequences, int64_t tokens, const GenerateOptions& o,
                         GenerationCounters& counters) {
  const bool fits = batch_ != nullptr && room_.rows >= sequences && room_.capacity >= tokens &&
                    room_.context == o.context && room_.sinks == o.sinks;
  if (fits) return {};
  const ModelFacts& facts = model_->family().facts();
  const auto most = static_cast<uint64_t>(std::max(tokens, generation_limit(facts, o)));
  const auto wanted = static_cast<uint64_t>(std::max(tokens, kLeastCapacity));
  BatchOptions options{.rows = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(sequences)))};
  options.capacity = static_cast<int>(std::min(std::bit_ceil(wanted), most));
  options.step_tokens = kStepTokens;
  options.waiting = kMostWaiting;
  options.context = o.context;
  options.sinks = o.sinks;
  batch_.reset();
  VKF_ASSIGN(batch_, BatchState::create(model_, options, kBack));
  room_ = {options.rows, options.capacity, o.context, o.sinks};
  ++counters.recordings;
  return {};
}

Status PrefixCache::run(Call& call, GenerationCounters& counters) {
  const BatchCounters before = batch_->counters();
  const int64_t submits = batch_->submits();
  while (!batch_->idle()) {
    for (const auto& [number, input] : call.inputs) {
      // Those that have ended are not known any more.
      if (!call.status) (void)batch_->cancel(number);
    }
    VKF_ASSIGN(const std::vector<BatchUpdate> updates, batch_->step());
    for (const BatchUpdate& update : updates) call.end(update);
  }
  const BatchCounters after = batch_->counters();
  counters.steps = after.work.steps - before.work.steps;
  counters.submits = batch_->submits() - submits;
  counters.reused_tokens = after.work.reused_tokens - before.work.reused_tokens;
  counters.cache_bytes = after.cache_bytes;
  return {};
}

Result<Generation> PrefixCache::generate(const TensorMap& inputs, const GenerateOptions& options,
                                         GenerationCounters& counters) {
  StepShape shape;
  VKF_ASSIGN(const GenerationInputs read,
             read_single_inputs(model_->family(), inputs, options, shape));
  VKF_ASSIGN(const GenerationSizes sizes,
             generation_sizes(model_->family().facts(), read.longest(), {.shape = shape}, options));
  const int64_t texts = shape.batch * options.return_sequences;
  VKF_CHECK(make(std::min<int64_t>(texts, kStepTokens), read.longest() + sizes.new_tokens, options,
                 counters));
  Call call{.options = options, .inputs = {}, .found = {}, .status = {}};
  call.found.resize(read.prompts.size());
  BatchRequest request{.prompt = {}, .options = options, .client = {}};
  request.options.context.reset();
  request.options.max_new_tokens = static_cast<int>(sizes.new_tokens);
  for (size_t i = 0; call.status && i < read.prompts.size(); ++i) {
    request.prompt = read.prompts[i];
    request.options.on_token = [&call, i](const NewToken& token) { return call.take(i, token); };
    call.found[i].resize(static_cast<size_t>(options.return_sequences));
    for (Hypothesis& one : call.found[i]) one.ids = request.prompt;
    const Result<uint64_t> number = batch_->submit(request);
    if (number) call.inputs.emplace(*number, i);
    if (!number) call.status = number.error();
  }
  const Status ran = run(call, counters);
  // After an error of the device a batch is of no more use.
  if (!ran) clear();
  VKF_CHECK(ran);
  VKF_CHECK(call.status);
  return std::move(call.found);
}

}  // namespace vkformer
