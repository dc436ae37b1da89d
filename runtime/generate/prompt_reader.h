// Prompts that a batch reads in one pass each, because steps feed words alone: prompts with images,
// and prompts whose tokens attend to later ones. The pass is that of Session::generate; the keys
// and values that it computes are copied into the request's row, from which steps go on.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "generate/prompt_pass.h"
#include "generate/slot_pass.h"
#include "vkformer/generation.h"

namespace vkformer {

// A prompt that was checked.
struct PromptInput {
  StepShape shape;        // of its pass
  GenerationInputs read;  // one prompt, with the words of its images
  // SHA-256 of what its keys depend on beside the tokens before them. Keys of a prompt with another
  // content are never reused.
  std::string content;
  // Tokens from the beginning on that only such a pass computes. A row that holds fewer of them is
  // computed anew.
  size_t settled = 0;
  // Tokens whose keys the pass computes: all but the last, which is a step's.
  size_t tokens() const { return read.prompts[0].size() - 1; }
};

class PromptReader {
 public:
  // Reads for rows of `slots`. Keeps both.
  PromptReader(std::shared_ptr<const LoadedModel> model, SlotPass& slots)
      : model_(std::move(model)), slots_(slots) {}

  // Checks a prompt with the tensors of its images, named and shaped as Session::generate takes
  // them. Null: steps can read it.
  Result<std::shared_ptr<const PromptInput>> check(const std::vector<int64_t>& prompt,
                                                   const TensorMap& inputs) const;
  // Records the pass of such a prompt, if none of its sizes is there. An error is of this prompt,
  // such as kOutOfMemory, and leaves the batch as it was.
  Status prepare(const PromptInput& input);
  // Computes the keys and values of a prepared prompt for a row, before whatever is submitted next.
  Status read(const PromptInput& input, uint32_t row);

 private:
  // A pass recorded for prompts of near lengths whose images have the same sizes.
  struct Pass {
    explicit Pass(const std::shared_ptr<VulkanDevice>& device) : memory(device) {}
    StepShape shape;
    PassMemory memory;
    std::optional<RecordedGraph> graph;
  };
  Status record(const StepShape& shape);

  std::shared_ptr<const LoadedModel> model_;
  SlotPass& slots_;
  std::list<Pass> passes_;  // the last used one first
};

}  // namespace vkformer
