// The encoder of an encoder-decoder, for requests of a batch. Each is encoded by itself, so that it
// gets the bits it would have got alone. What its decoder attends to is stored in its row.
#pragma once

#include <list>

#include "generate/slot_pass.h"

namespace vkformer {

// An input and what a generation from it starts with.
struct EncoderInput {
  StepShape shape;  // of the encoder's pass
  FeedWords words;
  std::vector<int64_t> tokens;
};

class SourceEncoder {
 public:
  // Encodes for rows of `slots`, which have shape().source keys each. Keeps both.
  SourceEncoder(std::shared_ptr<const LoadedModel> model, SlotPass& slots)
      : model_(std::move(model)), slots_(slots) {}

  // Checks an input; `prompt` gets the tokens that the decoder starts with.
  Result<std::shared_ptr<const EncoderInput>> read(const std::vector<int64_t>& tokens,
                                                   const GenerateOptions& options,
                                                   std::vector<int64_t>& prompt) const;
  // Encodes it for a row, with these scales of the model's request adapters, before whatever is
  // submitted next.
  Status encode(const EncoderInput& input, uint32_t row, std::span<const float> adapters);
  // Writes zeros over a row whose keys may be NaN: whoever comes next masks what it does not use,
  // but NaN goes through a mask.
  Status clear(uint32_t row);

 private:
  // An encoder recorded for inputs of one length.
  struct Encoder {
    explicit Encoder(const std::shared_ptr<VulkanDevice>& device) : memory(device) {}
    StepShape shape;
    PassMemory memory;
    std::optional<RecordedGraph> graph;
  };
  Result<Encoder*> encoder_for(const StepShape& shape);

  std::shared_ptr<const LoadedModel> model_;
  SlotPass& slots_;
  std::list<Encoder> encoders_;  // the last used one first
};

}  // namespace vkformer
