// The hashes by which a hub names the content of files: SHA-256, and SHA-1 of git.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "vkformer/result.h"

namespace vkformer::cli {

enum class ContentHash : uint8_t {
  kSha256,   // of the bytes
  kGitBlob,  // SHA-1 of "blob SIZE", a zero byte, and the bytes
};

// Of a file, in lower-case hexadecimal digits. `step` is told how many bytes were read so far.
Result<std::string> hash_of_file(const std::string& path, ContentHash kind,
                                 const std::function<void(int64_t bytes)>& step);

}  // namespace vkformer::cli
