// Prompts with pictures. Those of a decoder hold them, written as the processors of their models'
// families write them. Each placeholder becomes the tokens whose places features of its picture
// take. An encoder-decoder describes a picture, and its prompt is what the description begins with.
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

// Whether a model's encoder reads pictures, which its decoder describes.
bool describes_pictures(const TaskModel& task);

// What a description begins with, as tokens of up to `room`. No special tokens are added.
Result<std::vector<TokenId>> description_beginning(const TaskModel& task, const std::string& text,
                                                   int64_t room);

// The pixel_values of pictures that a model describes.
Result<Tensor> described_pixels(const TaskModel& task, std::span<const Picture> pictures);

// The prompt of a model that describes pictures: its tokens, which may be none, and pixel_values.
Result<ImagePrompt> make_description_prompt(const TaskModel& task,
                                            const PromptWithPictures& prompt);

// The prompt number `index` of a call. A text without placeholders has its pictures in front.
Result<ImagePrompt> make_image_prompt(const TaskModel& task, const PromptWithPictures& prompt,
                                      size_t index, SpecialTokens special_tokens);

}  // namespace vkformer
