// Pictures in requests to a batch: data URLs inside of messages or beside a text.
#pragma once

#include <string>
#include <vector>

#include "output.h"
#include "vkformer/picture.h"

namespace vkformer::cli {

// Of one request. All of them are checked before a picture is decoded.
struct PictureLimits {
  int count = 16;                      // pictures
  int64_t bytes = int64_t{8} << 20;    // of their files together
  int64_t pixels = int64_t{16} << 20;  // of one picture
};

// The pictures of a request, as they are read.
class RequestPictures {
 public:
  explicit RequestPictures(const PictureLimits& limits) : limits_(limits) {}

  // Decodes a data URL. kInvalidArgument or kInvalidFile: it is another URL, no picture, or over a
  // limit. `where` names it in messages.
  Status add(const Json& url, const std::string& where);
  // A list of data URLs.
  Status add_all(const Json& urls, const std::string& where);
  const std::vector<Picture>& all() const { return pictures_; }

 private:
  PictureLimits limits_;
  int64_t bytes_ = 0;  // of files so far
  std::vector<Picture> pictures_;
};

// How a chat template takes the content of a message: as a text, or as parts, which templates of
// models that read images want.
enum class MessageContent : uint8_t { kText, kParts };

// The field "messages", in the notation of OpenAI's chat completions. It has objects with "role"
// and "content", which is a text or a list of parts {"type": "text", "text": ...} and {"type":
// "image_url", "image_url": {"url": ...}}. Gives what a chat template takes, and adds the pictures
// in their order.
Result<Json> read_messages(const Json& given, MessageContent content, RequestPictures& pictures);
// The same field for a model that describes a picture: one message of a user, whose picture is
// added. Gives its texts, which the description begins with.
Result<std::string> read_described(const Json& given, RequestPictures& pictures);

}  // namespace vkformer::cli
