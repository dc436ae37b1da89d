#include "picture_prompts.h"

#include <utility>

namespace vkformer::cli {

Result<SharedPicture> load_named_picture(const std::string& path) {
  Result<Picture> picture = Picture::load(path);
  if (!picture) return picture.error();
  return SharedPicture(std::make_shared<NamedPicture>(NamedPicture{path, std::move(*picture)}));
}

Json content_parts(const std::string& text, size_t pictures) {
  Json parts = Json::array();
  for (size_t i = 0; i < pictures; ++i) parts.push_back({{"type", "image"}});
  parts.push_back({{"type", "text"}, {"text", text}});
  return parts;
}

Result<PicturePrompts> PicturePrompts::open(const std::string& placeholder,
                                            const std::string& model) {
  PicturePrompts made(placeholder);
  Result<ChatTemplate> found = ChatTemplate::load(ModelSource::directory(model));
  if (found) {
    made.template_ = std::make_shared<ChatTemplate>(std::move(*found));
  } else if (found.error().code != ErrorCode::kNotFound) {
    return found.error();
  }
  return made;
}

Result<PromptWithPictures> PicturePrompts::prompt(const std::string& text,
                                                  std::vector<const Picture*> pictures) const {
  PromptWithPictures made{text, std::move(pictures)};
  if (!template_ || text.find(placeholder_) != std::string::npos) return made;
  Json message;
  message["role"] = "user";
  message["content"] = content_parts(text, made.pictures.size());
  Result<std::string> rendered = template_->render_json(json_text(Json::array({message})));
  if (!rendered) return rendered.error();
  made.text = std::move(*rendered);
  return made;
}

}  // namespace vkformer::cli
