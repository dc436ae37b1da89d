// Prompts that hold pictures, written as the processors of their models' families write them: each
// placeholder becomes the tokens whose places features of its picture take.
#pragma once

#include <vector>

#include "tasks/task_model.h"

namespace vkformer {

// Tokens of a prompt, and the tensors of its pictures.
struct ImagePrompt {
  Encoding encoding;
  TensorMap images;  // empty: a text alone
};

// What stands for a picture in a prompt; an error where the model reads none.
Result<std::string> image_placeholder(const TaskModel& task);

// The prompt number `index` of a call. A text without placeholders has its pictures in front.
Result<ImagePrompt> make_image_prompt(const TaskModel& task, const PromptWithPictures& prompt,
                                      size_t index, SpecialTokens special_tokens);

}  // namespace vkformer
