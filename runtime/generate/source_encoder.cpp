#include "generate/source_encoder.h"

#include <bit>

#include "base/message.h"
#include "generate/generation_sizes.h"
#include "recording/token_rows.h"

namespace vkformer {
namespace {

// Lengths of inputs that recordings are kept for.
constexpr size_t kMostEncoders = 8;
constexpr const char* kKeys = "cross_kv.";

}  // namespace

Result<std::shared_ptr<const EncoderInput>> SourceEncoder::read(
    const std::vector<int64_t>& tokens, const GenerateOptions& options,
    std::vector<int64_t>& prompt) const {
  const int64_t most = slots_.shape().source;
  if (static_cast<int64_t>(tokens.size()) > most) {
    return invalid_argument(message({"[prompt] has ", tokens.size(),
                                     " tokens, but an input of this batch has room for ", most,
                                     "; shorten it or make the batch's source larger"}));
  }
  VKF_ASSIGN(const TensorMap inputs, pad_rows({tokens}));
  const auto input = std::make_shared<EncoderInput>();
  input->shape.beams = 1;
  VKF_ASSIGN(GenerationInputs read,
             read_single_inputs(model_->family(), inputs, options, input->shape));
  input->words = std::move(read.words);
  input->tokens = tokens;
  prompt = std::move(read.prompts[0]);
  return std::shared_ptr<const EncoderInput>(input);
}

Result<SourceEncoder::Encoder*> SourceEncoder::encoder_for(const StepShape& shape) {
  for (auto it = encoders_.begin(); it != encoders_.end(); ++it) {
    if (!(it->shape == shape)) continue;
    encoders_.splice(encoders_.begin(), encoders_, it);
    return &encoders_.front();
  }
  std::list<Encoder> made;
  Encoder& encoder = made.emplace_back(model_->device());
  encoder.shape = shape;
  VKF_ASSIGN(std::optional<PlannedGraph> planned, plan_prompt(*model_, shape, step_access({})));
  VKF_ASSIGN(encoder.graph, RecordedGraph::record(encoder.memory, std::move(planned).value()));
  VKF_CHECK(encoder.graph->write_words(encoder.memory));
  encoders_.splice(encoders_.begin(), made);
  if (encoders_.size() > kMostEncoders) encoders_.pop_back();
  return &encoders_.front();
}

Status SourceEncoder::encode(const EncoderInput& input, uint32_t row,
                             std::span<const float> adapters) {
  VKF_ASSIGN(Encoder * encoder, encoder_for(input.shape));
  if (encoder->memory.has(kAdapterScales)) {
    std::vector<uint32_t> words;
    for (const float scale : adapters) words.push_back(std::bit_cast<uint32_t>(scale));
    VKF_CHECK(encoder->memory.write(kAdapterScales, 0, words));
  }
  VKF_CHECK(encoder->graph->feed(encoder->memory, input.words));
  PassMemory& slots = slots_.memory().only();
  std::vector<BufferCopy> copies;
  for (const PlanBuffer& b : encoder->graph->plan().buffers) {
    if (!b.name.starts_with(kKeys)) continue;
    const Buffer& to = slots.buffer(b.name);
    const uint64_t each = to.bytes() / static_cast<uint64_t>(slots_.shape().batch);
    copies.push_back({{&encoder->memory.buffer(b.name), 0, b.bytes}, &to, row * each});
  }
  std::vector<uint32_t> mask = input.words.at("key_mask");
  mask.resize(static_cast<size_t>((slots_.shape().source + 31) / 32), 0u);
  VKF_CHECK(slots.write("key_mask", row * mask.size(), mask));
  const RecordingRange all[] = {encoder->graph->all()};
  return encoder->memory.submit(all, {}, copies);
}

Status SourceEncoder::clear(uint32_t row) {
  for (int64_t layer = 0; layer < model_->family().facts().decoder_layers; ++layer) {
    const Buffer& keys = slots_.memory().only().buffer(kKeys + std::to_string(layer));
    const uint64_t each = keys.bytes() / static_cast<uint64_t>(slots_.shape().batch);
    VKF_CHECK(model_->device()->fill(keys, row * each, each, 0));
  }
  return {};
}

}  // namespace vkformer
