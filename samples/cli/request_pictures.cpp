#include "request_pictures.h"

#include <utility>

#include "data_url.h"

namespace vkformer::cli {

namespace {

Error bad_field(const std::string& where, const std::string& what) {
  return {ErrorCode::kInvalidArgument, "[" + where + "] " + what};
}

std::string numbered(const std::string& list, size_t index) {
  return list + "." + std::to_string(index);
}

// Refuses a field that nothing reads.
Status check_keys(const Json& object, std::initializer_list<const char*> known,
                  const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    bool found = false;
    for (const char* name : known) found = found || key == name;
    if (found) continue;
    std::string names;
    for (const char* name : known) names += (names.empty() ? "" : ", ") + std::string(name);
    return bad_field(where, "has a field '" + key.substr(0, 40) +
                                "', but only these are known: " + names + "; omit it.");
  }
  return {};
}

Result<Json> read_part(const Json& given, const std::string& where, MessageContent content,
                       RequestPictures& pictures) {
  const std::string type = given.is_object() && given.contains("type") && given["type"].is_string()
                               ? given["type"].get<std::string>()
                               : "";
  if (type == "text") {
    if (const Status known = check_keys(given, {"type", "text"}, where); !known) {
      return known.error();
    }
    if (given.contains("text") && given["text"].is_string()) return given;
    return bad_field(where, "needs a text in [text].");
  }
  if (type == "image_url") {
    if (content == MessageContent::kText) {
      return Error{ErrorCode::kUnsupported, "[" + where +
                                                "] is an image, but this model reads none; give "
                                                "texts alone."};
    }
    if (const Status known = check_keys(given, {"type", "image_url"}, where); !known) {
      return known.error();
    }
    const Json image = given.value("image_url", Json());
    if (!image.is_object() || !image.contains("url")) {
      return bad_field(where, R"(needs [image_url], an object {"url": "data:..."}.)");
    }
    if (const Status known = check_keys(image, {"url", "detail"}, where + ".image_url"); !known) {
      return known.error();
    }
    // What size a model reads is the model's.
    if (image.contains("detail") && image["detail"] != "auto") {
      return bad_field(where + ".image_url.detail",
                       "must be 'auto': the model decides how large it reads an image.");
    }
    const Status added = pictures.add(image["url"], where + ".image_url.url");
    if (!added) return added.error();
    return Json({{"type", "image"}});
  }
  return bad_field(where, R"(must be an object whose [type] is "text" or "image_url".)");
}

Result<Json> read_content(const Json& given, const std::string& where, MessageContent content,
                          RequestPictures& pictures) {
  Json parts = Json::array();
  std::string text;
  if (given.is_string()) {
    text = given.get<std::string>();
    parts.push_back({{"type", "text"}, {"text", text}});
  } else if (given.is_array()) {
    for (size_t i = 0; i < given.size(); ++i) {
      Result<Json> part = read_part(given[i], numbered(where, i), content, pictures);
      if (!part) return part.error();
      if (content == MessageContent::kText) text += (*part)["text"].get<std::string>();
      parts.push_back(std::move(*part));
    }
  } else {
    return bad_field(where, "must be a text or a list of parts.");
  }
  return content == MessageContent::kText ? Json(text) : parts;
}

}  // namespace

Status RequestPictures::add(const Json& url, const std::string& where) {
  if (static_cast<int>(pictures_.size()) >= limits_.count) {
    return bad_field(where, "is one picture too many: a request may have " +
                                std::to_string(limits_.count) + " (--max-pictures).");
  }
  if (!url.is_string()) return bad_field(where, "must be a text, data:image/png;base64,...");
  const auto left = static_cast<size_t>(limits_.bytes - bytes_);
  const Result<std::vector<std::byte>> file =
      read_image_url(url.get_ref<const std::string&>(), left, where);
  if (!file) return file.error();
  bytes_ += static_cast<int64_t>(file->size());
  if (bytes_ > limits_.bytes) {
    return bad_field(where, "makes the pictures of the request larger than " +
                                std::to_string(limits_.bytes) +
                                " bytes (--max-picture-bytes); make them smaller.");
  }
  Result<Picture> picture = Picture::decode(*file, where, limits_.pixels);
  // A kind of file that is not read is the request's mistake, as a damaged one is.
  if (!picture && picture.error().code == ErrorCode::kUnsupported) {
    return Error{ErrorCode::kInvalidArgument, picture.error().message};
  }
  if (!picture) return picture.error();
  pictures_.push_back(std::move(*picture));
  return {};
}

Status RequestPictures::add_all(const Json& urls, const std::string& where) {
  if (!urls.is_array()) return bad_field(where, "must be a list of data URLs.");
  for (size_t i = 0; i < urls.size(); ++i) {
    if (const Status added = add(urls[i], numbered(where, i)); !added) return added;
  }
  return {};
}

Result<Json> read_messages(const Json& given, MessageContent content, RequestPictures& pictures) {
  if (!given.is_array() || given.empty()) {
    return bad_field("messages", "must be a list of at least one message.");
  }
  Json messages = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string where = numbered("messages", i);
    const Json& message = given[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string() ||
        !message.contains("content")) {
      return bad_field(where, "must be an object with [role], a text, and [content].");
    }
    Json made = message;
    Result<Json> read = read_content(message["content"], where + ".content", content, pictures);
    if (!read) return read.error();
    made["content"] = std::move(*read);
    messages.push_back(std::move(made));
  }
  return messages;
}

Result<std::string> read_described(const Json& given, RequestPictures& pictures) {
  const Result<Json> messages = read_messages(given, MessageContent::kParts, pictures);
  if (!messages) return messages.error();
  if (messages->size() != 1 || (*messages)[0]["role"] != "user") {
    return bad_field("messages",
                     "must be one message with the [role] 'user', because this model describes a "
                     "picture and holds no conversation.");
  }
  std::string text;
  for (const Json& part : (*messages)[0]["content"]) text += part.value("text", std::string());
  return text;
}

}  // namespace vkformer::cli
