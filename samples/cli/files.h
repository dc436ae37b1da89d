// Small text and JSON files, read and written whole.
#pragma once

#include <string>
#include <string_view>

#include "output.h"
#include "vkformer/result.h"

namespace vkformer::cli {

Result<std::string> read_text_file(const std::string& path);
Status write_text_file(const std::string& path, const std::string& text);
// JSON of at most 64 levels, as config.json may have; is_discarded() where the text is none.
Json parse_json(std::string_view text);
// Content of a JSON file whose top level is an object.
Result<Json> read_json_file(const std::string& path);
bool file_exists(const std::string& path);

// Members of a JSON object. A missing or null one gives the fallback; one of another type is an
// error that names `file` and the key.
Result<int64_t> json_integer(const Json& object, const char* key, int64_t fallback,
                             const std::string& file);
Result<double> json_number(const Json& object, const char* key, double fallback,
                           const std::string& file);

}  // namespace vkformer::cli
