// Fuzz target: messages of a request to `vkformer serve`, and data URLs of pictures.
#include <cstddef>
#include <cstdint>
#include <string>

#include "data_url.h"
#include "files.h"
#include "request_pictures.h"

using namespace vkformer::cli;

namespace {

constexpr PictureLimits kLimits{.count = 3, .bytes = 4096, .pixels = 4096};

size_t images_of(const Json& messages) {
  size_t images = 0;
  for (const Json& message : messages) {
    if (!message["content"].is_array()) continue;
    for (const Json& part : message["content"]) images += part["type"] == "image" ? 1 : 0;
  }
  return images;
}

void check_messages(const Json& given) {
  RequestPictures pictures(kLimits);
  const auto read = read_messages(given, MessageContent::kParts, pictures);
  for (const vkformer::Picture& picture : pictures.all()) {
    if (int64_t{picture.width()} * picture.height() > kLimits.pixels) __builtin_trap();
  }
  if (pictures.all().size() > static_cast<size_t>(kLimits.count)) __builtin_trap();
  if (read && images_of(*read) != pictures.all().size()) __builtin_trap();
  RequestPictures none(kLimits);
  const auto texts = read_messages(given, MessageContent::kText, none);
  if (!none.all().empty()) __builtin_trap();
  if (!texts) return;
  for (const Json& message : *texts) {
    if (!message["content"].is_string()) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto bytes = read_image_url(text, 64, "fuzz");
  if (bytes && bytes->size() > 66) __builtin_trap();
  const Json json = parse_json(text);
  check_messages(json);
  RequestPictures pictures(kLimits);
  const vkformer::Status added = pictures.add_all(json, "fuzz");
  if (added && (!json.is_array() || pictures.all().size() != json.size())) __builtin_trap();
  return 0;
}
