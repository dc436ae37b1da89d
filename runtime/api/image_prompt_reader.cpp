#include "vkformer/image_prompt_reader.h"

#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "tasks/image_prompts.h"

namespace vkformer {

struct ImagePromptReader::Parts {
  std::unique_ptr<const TaskModel> task;
  std::string placeholder;
};

ImagePromptReader::ImagePromptReader(std::unique_ptr<const Parts> impl) : impl_(std::move(impl)) {}
ImagePromptReader::ImagePromptReader(ImagePromptReader&&) noexcept = default;
ImagePromptReader& ImagePromptReader::operator=(ImagePromptReader&&) noexcept = default;
ImagePromptReader::~ImagePromptReader() = default;

Result<ImagePromptReader> ImagePromptReader::load(const Model& model, const ModelSource& source) {
  return guarded([&]() -> Result<ImagePromptReader> {
    VKF_ASSIGN(std::unique_ptr<TaskModel> task,
               load_prompt_model(HandleAccess::impl(model), source));
    std::string placeholder;
    if (!describes_pictures(*task)) {
      VKF_ASSIGN(placeholder, image_placeholder(*task));
    }
    return ImagePromptReader(
        std::make_unique<const Parts>(Parts{std::move(task), std::move(placeholder)}));
  });
}

const std::string& ImagePromptReader::placeholder() const {
  return impl_->placeholder;
}

Result<ImagePromptInputs> ImagePromptReader::read(const PromptWithPictures& prompt) const {
  return guarded("The [pictures] of a prompt do not fit into memory; give fewer, or smaller ones.",
                 [&]() -> Result<ImagePromptInputs> {
                   const TaskModel& task = *impl_->task;
                   VKF_ASSIGN(ImagePrompt made,
                              describes_pictures(task)
                                  ? make_description_prompt(task, prompt)
                                  : make_image_prompt(task, prompt, 0, SpecialTokens::kInclude));
                   const std::vector<TokenId>& ids = made.encoding.ids;
                   return ImagePromptInputs{{ids.begin(), ids.end()}, std::move(made.images)};
                 });
}

}  // namespace vkformer
