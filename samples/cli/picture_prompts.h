// Prompts with pictures of the commands that generate texts.
#pragma once

#include <memory>

#include "output.h"
#include "vkformer/chat.h"
#include "vkformer/tasks.h"

namespace vkformer::cli {

// A picture and the file that it came from.
struct NamedPicture {
  std::string path;
  Picture picture;
};
using SharedPicture = std::shared_ptr<const NamedPicture>;
Result<SharedPicture> load_named_picture(const std::string& path);

// The content of a chat message, as templates of models that read images take it: a part for each
// picture, then the text.
Json content_parts(const std::string& text, size_t pictures);

// Writes prompts as one model wants them.
class PicturePrompts {
 public:
  // `placeholder` is what stands for a picture in a prompt of the model in that directory. Without
  // a chat template, texts stay as they are.
  static Result<PicturePrompts> open(const std::string& placeholder, const std::string& model);

  // A text that has placeholders is the whole prompt; else it is what a user says. The pictures
  // need to stay as long as the prompt.
  Result<PromptWithPictures> prompt(const std::string& text,
                                    std::vector<const Picture*> pictures) const;

 private:
  explicit PicturePrompts(std::string placeholder) : placeholder_(std::move(placeholder)) {}

  std::string placeholder_;
  std::shared_ptr<const ChatTemplate> template_;  // null: the model has none
};

}  // namespace vkformer::cli
