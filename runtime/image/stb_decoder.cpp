#include "image/stb_decoder.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "base/message.h"
#include "image/picture.h"
#include "image/picture_processor.h"

// Internal functions only: a host may link its own copy of stb. Sides are checked against our own
// limit before decoding; the limit here only keeps products of sides inside 32 bits.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MAX_DIMENSIONS 65536
#define STBI_ASSERT(x) ((void)0)
// A scan may name a table that the file never defines: zeros, then, not what lay in memory.
#define STBI_MALLOC(size) std::calloc(1, size)
#define STBI_REALLOC(pointer, size) std::realloc(pointer, size)
#define STBI_FREE(pointer) std::free(pointer)
#include <stb/stb_image.h>

namespace vkformer {
namespace {

// Feeds stb, and remembers whether it asked for bytes after the end: it takes zeros for them and
// decodes a shortened file without a word.
struct Feed {
  std::span<const std::byte> bytes;
  size_t at = 0;
  bool past_end = false;

  static int read(void* user, char* data, int size) {
    auto& feed = *static_cast<Feed*>(user);
    const size_t count = std::min(static_cast<size_t>(size), feed.bytes.size() - feed.at);
    feed.past_end = feed.past_end || count == 0;
    if (count > 0) std::memcpy(data, feed.bytes.data() + feed.at, count);
    feed.at += count;
    return static_cast<int>(count);
  }
  static void skip(void* user, int count) {
    auto& feed = *static_cast<Feed*>(user);
    feed.at += std::min(static_cast<size_t>(std::max(count, 0)), feed.bytes.size() - feed.at);
  }
  static int eof(void* user) {
    const auto& feed = *static_cast<Feed*>(user);
    return feed.at == feed.bytes.size() ? 1 : 0;
  }
};
constexpr stbi_io_callbacks kFeedCallbacks = {&Feed::read, &Feed::skip, &Feed::eof};

// stb's short reasons, of the thread that decoded last, as an error.
Error stb_error(const char* format, const std::string& name) {
  const char* reason = stbi_failure_reason();
  const std::string_view text = reason == nullptr ? "no reason given" : reason;
  if (text == "outofmem") {
    return {ErrorCode::kOutOfMemory, "Picture " + name + " does not fit into memory."};
  }
  if (text == "too large") {
    return invalid_argument(message({"Picture ", name, " is larger than ", kMaxPictureSide,
                                     " pixels a side, the limit; make it smaller."}));
  }
  constexpr std::array kKinds = {"BMP RLE", "BMP JPEG/PNG", "only 8-bit", "no header height"};
  if (std::find(kKinds.begin(), kKinds.end(), text) != kKinds.end()) {
    return unsupported(
        message({"Picture ", name, " is a ", format, " file of a kind that cannot be read (", text,
                 "); save it as PNG."}));
  }
  return invalid_file(message(
      {"Picture ", name, " is a damaged ", format, " file (", text, "); give one that is whole."}));
}

}  // namespace

Result<RgbPicture> decode_with_stb(std::span<const std::byte> bytes, const char* format,
                                   const std::string& name, int64_t most_pixels) {
  int width = 0, height = 0, channels = 0;
  Feed header{bytes};
  if (stbi_info_from_callbacks(&kFeedCallbacks, &header, &width, &height, &channels) == 0) {
    return stb_error(format, name);
  }
  VKF_CHECK(check_picture_size(width, height, name, most_pixels));
  int decoded_width = 0, decoded_height = 0;
  Feed feed{bytes};
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_callbacks(&kFeedCallbacks, &feed, &decoded_width, &decoded_height, &channels,
                               3),
      &stbi_image_free);
  if (pixels == nullptr && !feed.past_end) return stb_error(format, name);
  if (feed.past_end) {
    return invalid_file(message({"Picture ", name, " is a damaged ", format,
                                 " file: it ends before its last pixel; give one that is whole."}));
  }
  if (decoded_width != width || decoded_height != height) {
    return invalid_file(message({"Picture ", name, " is a damaged ", format, " file: it claims ",
                                 width, " x ", height, " pixels and holds ", decoded_width, " x ",
                                 decoded_height, "; give one that is whole."}));
  }
  RgbPicture picture;
  picture.width = width;
  picture.height = height;
  const size_t count = static_cast<size_t>(width) * static_cast<size_t>(height) * 3;
  picture.pixels.assign(pixels.get(), pixels.get() + count);
  return picture;
}

}  // namespace vkformer
