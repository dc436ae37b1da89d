// Marks by which processes see that their files have the same content, without the same paths.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "output.h"
#include "vkformer/result.h"

namespace vkformer::cli {

// 64 bits of `text`; no protection against people who want two texts to have the same.
uint64_t digest_of(std::string_view text);
std::string digest_text(std::string_view text);

// "SIZE bytes, digest HEX" of a file. Of one above 64 MiB the digest is that of 64 pieces.
Result<std::string> file_mark(const std::string& path);
// Of a file, its mark. Of a folder, an object with the marks of the files of a model in
// it, by their paths in the folder.
Result<Json> path_marks(const std::string& path);

}  // namespace vkformer::cli
