#include "base/check.h"
#include "base/guarded.h"
#include "image/picture_processor.h"
#include "image/processor_reading.h"
#include "tasks/task_model.h"

namespace vkformer {

Result<PictureProcessor> load_task_pictures(const FileStore& files, const JsonConfig& config) {
  return guarded([&]() -> Result<PictureProcessor> {
    VKF_ASSIGN(const JsonConfig settings, load_processor_config(files));
    VKF_ASSIGN(const std::string type, config.get_string_or("model_type", ""));
    VKF_ASSIGN(const PictureSettings parsed, parse_picture_settings(settings, type));
    return PictureProcessor::from_settings(parsed);
  });
}

Result<std::optional<DocumentPages>> load_task_pages(const FileStore& files) {
  return guarded([&]() -> Result<std::optional<DocumentPages>> {
    VKF_ASSIGN(const JsonConfig settings, load_processor_config(files));
    VKF_ASSIGN(const bool named, DocumentPages::named_by(settings));
    std::optional<DocumentPages> pages;
    if (named) {
      VKF_ASSIGN(DocumentPages made, DocumentPages::parse(settings));
      pages.emplace(std::move(made));
    }
    return pages;
  });
}

}  // namespace vkformer
