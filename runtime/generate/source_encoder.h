// The encoder of an encoder-decoder, for requests of a batch. Each is encoded by itself, so that it
// gets the bits it would have got alone. What its decoder attends to is stored in its row.
#pragma once

#include <list>
#include <string>

#include "generate/slot_pass.h"
#include "vkformer/generation_batch.h"

namespace vkformer {

// An input and what a generation from it starts with.
struct EncoderInput {
  StepShape shape;  // of the encoder's pass
  FeedWords words;
  size_t tokens = 0;           // keys that the decoder attends to, padding excluded
  std::vector<uint32_t> mask;  // (ceil(S/32)) of those keys
  std::string content;         // SHA-256; of equal ones, keys are reused
};

class SourceEncoder {
 public:
  // Encodes for rows of `slots`, which have shape().source keys each. Keeps both.
  SourceEncoder(std::shared_ptr<const LoadedModel> model, SlotPass& slots)
      : model_(std::move(model)), slots_(slots) {}

  // Whether a request's input is a picture and its prompt is what the text begins with; else the
  // prompt is the input.
  bool reads_pictures() const { return model_->family().facts().source == SourceKind::kPictures; }
  // Checks an input; `prompt` gets the tokens that the decoder starts with.
  Result<std::shared_ptr<const EncoderInput>> read(const BatchRequest& given,
                                                   std::vector<int64_t>& prompt) const;
  // Records the pass of such an input, if none of its sizes is there. An error is of this input,
  // such as kOutOfMemory, and leaves the batch as it was.
  Status prepare(const EncoderInput& input);
  // Encodes a prepared input for a row, with these scales of the model's request adapters, before
  // whatever is submitted next.
  Status encode(const EncoderInput& input, uint32_t row, std::span<const float> adapters);
  // Writes zeros over a row whose keys may be NaN: whoever comes next masks what it does not use,
  // but NaN goes through a mask.
  Status clear(uint32_t row);

 private:
  // An encoder recorded for inputs of one size.
  struct Encoder {
    explicit Encoder(const std::shared_ptr<VulkanDevice>& device) : memory(device) {}
    StepShape shape;
    PassMemory memory;
    std::optional<RecordedGraph> graph;
  };
  Status read_tokens(const BatchRequest& given, EncoderInput& input,
                     std::vector<int64_t>& prompt) const;
  Status read_picture(const BatchRequest& given, EncoderInput& input,
                      std::vector<int64_t>& prompt) const;
  Status record(const StepShape& shape);

  std::shared_ptr<const LoadedModel> model_;
  SlotPass& slots_;
  std::list<Encoder> encoders_;  // the last used one first
};

}  // namespace vkformer
