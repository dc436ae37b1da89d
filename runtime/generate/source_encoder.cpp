#include "generate/source_encoder.h"

#include <bit>

#include "base/message.h"
#include "generate/generation_sizes.h"
#include "generate/input_content.h"
#include "ops/score_terms.h"
#include "recording/token_rows.h"

namespace vkformer {
namespace {

// Sizes of inputs that recordings are kept for.
constexpr size_t kMostEncoders = 8;
constexpr const char* kCrossKeys = "cross_kv.";

}  // namespace

Status SourceEncoder::read_tokens(const BatchRequest& given, EncoderInput& input,
                                  std::vector<int64_t>& prompt) const {
  const int64_t most = slots_.shape().source;
  if (static_cast<int64_t>(given.prompt.size()) > most) {
    return invalid_argument(message({"[prompt] has ", given.prompt.size(),
                                     " tokens, but an input of this batch has room for ", most,
                                     "; shorten it or make the batch's source larger"}));
  }
  VKF_ASSIGN(const TensorMap inputs, pad_rows({given.prompt}));
  VKF_ASSIGN(GenerationInputs read,
             read_single_inputs(model_->family(), inputs, given.options, input.shape));
  input.tokens = given.prompt.size();
  input.mask = read.words.at("key_mask");
  input.content = input_content({}, given.prompt);
  input.words = std::move(read.words);
  prompt = std::move(read.prompts[0]);
  return {};
}

Status SourceEncoder::read_picture(const BatchRequest& given, EncoderInput& input,
                                   std::vector<int64_t>& prompt) const {
  VKF_ASSIGN(GenerationInputs read,
             read_single_inputs(model_->family(), given.inputs, given.options, input.shape));
  if (input.shape.batch != 1) {
    return invalid_argument(message({"[pixel_values] holds ", input.shape.batch,
                                     " pictures, but a request of a batch describes one; submit a "
                                     "request for each."}));
  }
  const int64_t most = slots_.shape().source;
  const int64_t tokens =
      model_->family().source_tokens({.height = input.shape.height, .width = input.shape.width});
  if (tokens > most) {
    return invalid_argument(message({"[pixel_values] is a picture of ", input.shape.height, " x ",
                                     input.shape.width, " pixels, which the encoder makes ", tokens,
                                     " tokens of, but an input of this batch has room for ", most,
                                     "; make the picture smaller or the batch's source larger."}));
  }
  input.tokens = static_cast<size_t>(tokens);
  input.mask = pack_key_mask(std::vector<uint8_t>(input.tokens, 1), 1, tokens);
  input.content = input_content(given.inputs);
  input.words = std::move(read.words);
  prompt = std::move(read.prompts[0]);
  prompt.insert(prompt.end(), given.prompt.begin(), given.prompt.end());
  return {};
}

Result<std::shared_ptr<const EncoderInput>> SourceEncoder::read(
    const BatchRequest& given, std::vector<int64_t>& prompt) const {
  const auto input = std::make_shared<EncoderInput>();
  input->shape.beams = 1;
  VKF_CHECK(reads_pictures() ? read_picture(given, *input, prompt)
                             : read_tokens(given, *input, prompt));
  return std::shared_ptr<const EncoderInput>(input);
}

Status SourceEncoder::record(const StepShape& shape) {
  std::list<Encoder> made;
  Encoder& encoder = made.emplace_back(model_->device());
  encoder.shape = shape;
  VKF_ASSIGN(std::optional<PlannedGraph> planned, plan_prompt(*model_, shape, step_access({})));
  VKF_ASSIGN(encoder.graph, RecordedGraph::record(encoder.memory, std::move(planned).value()));
  VKF_CHECK(encoder.graph->write_words(encoder.memory));
  encoders_.splice(encoders_.begin(), made);
  if (encoders_.size() > kMostEncoders) encoders_.pop_back();
  return {};
}

Status SourceEncoder::prepare(const EncoderInput& input) {
  for (auto it = encoders_.begin(); it != encoders_.end(); ++it) {
    if (!(it->shape == input.shape)) continue;
    encoders_.splice(encoders_.begin(), encoders_, it);
    return {};
  }
  const Status recorded = record(input.shape);
  if (recorded || recorded.error().code != ErrorCode::kOutOfMemory || encoders_.empty()) {
    return recorded;
  }
  // What is kept for other sizes may be what this one lacks.
  encoders_.clear();
  return record(input.shape);
}

Status SourceEncoder::encode(const EncoderInput& input, uint32_t row,
                             std::span<const float> adapters) {
  Encoder& encoder = encoders_.front();
  if (encoder.memory.has(kAdapterScales)) {
    std::vector<uint32_t> words;
    for (const float scale : adapters) words.push_back(std::bit_cast<uint32_t>(scale));
    VKF_CHECK(encoder.memory.write(kAdapterScales, 0, words));
  }
  VKF_CHECK(encoder.graph->feed(encoder.memory, input.words));
  PassMemory& slots = slots_.memory().only();
  std::vector<BufferCopy> copies;
  for (const PlanBuffer& b : encoder.graph->plan().buffers) {
    if (!b.name.starts_with(kCrossKeys)) continue;
    const Buffer& to = slots.buffer(b.name);
    const uint64_t each = to.bytes() / static_cast<uint64_t>(slots_.shape().batch);
    copies.push_back({{&encoder.memory.buffer(b.name), 0, b.bytes}, &to, row * each});
  }
  std::vector<uint32_t> mask = input.mask;
  mask.resize(static_cast<size_t>((slots_.shape().source + 31) / 32), 0u);
  VKF_CHECK(slots.write("key_mask", row * mask.size(), mask));
  const RecordingRange all[] = {encoder.graph->all()};
  return encoder.memory.submit(all, {}, copies);
}

Status SourceEncoder::clear(uint32_t row) {
  for (int64_t layer = 0; layer < model_->family().facts().decoder_layers; ++layer) {
    const Buffer& keys = slots_.memory().only().buffer(kCrossKeys + std::to_string(layer));
    const uint64_t each = keys.bytes() / static_cast<uint64_t>(slots_.shape().batch);
    VKF_CHECK(model_->device()->fill(keys, row * each, each, 0));
  }
  return {};
}

}  // namespace vkformer
