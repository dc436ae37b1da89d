#include "file_marks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace vkformer::cli {

namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kWholeBytes = uintmax_t{64} << 20;  // files up to this are read whole
constexpr uintmax_t kPieces = 64;                       // of a larger one
constexpr uintmax_t kPieceBytes = uintmax_t{256} << 10;

// What a model is read from; notes and pictures beside it may differ.
bool is_model_file(const fs::path& path) {
  constexpr std::array<std::string_view, 8> kEndings = {
      ".json", ".safetensors", ".gguf", ".model", ".txt", ".jinja", ".tiktoken", ".bin"};
  const std::string ending = path.extension().string();
  return !path.filename().string().starts_with('.') &&
         std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

Error mark_error(const std::string& path, const std::string& why) {
  return {ErrorCode::kInvalidFile, "[" + path + "] could not be read: " + why + "."};
}

}  // namespace

uint64_t digest_of(std::string_view text) {
  // A multiplication and a rotation for every 8 bytes, so that every bit reaches all others.
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  uint64_t digest = kFactor ^ text.size();
  while (!text.empty()) {
    uint64_t word = 0;
    const size_t bytes = std::min(text.size(), sizeof word);
    for (size_t i = 0; i < bytes; ++i)
      word |= static_cast<uint64_t>(static_cast<unsigned char>(text[i])) << (8 * i);
    text.remove_prefix(bytes);
    digest = (digest ^ word) * kFactor;
    digest ^= digest >> 29;
  }
  digest *= 0xBF58476D1CE4E5B9u;
  return digest ^ (digest >> 32);
}

std::string digest_text(std::string_view text) {
  char hex[20];
  std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(digest_of(text)));
  return hex;
}

Result<std::string> file_mark(const std::string& path) {
  std::error_code code;
  const uintmax_t size = fs::file_size(path, code);
  if (code) return mark_error(path, code.message());
  const bool whole = size <= kWholeBytes;
  const uintmax_t pieces = whole ? (size + kPieceBytes - 1) / kPieceBytes : kPieces;
  std::ifstream file(path, std::ios::binary);
  std::string piece, digests;
  for (uintmax_t i = 0; i < pieces; ++i) {
    // Those of a large file are spread evenly over it.
    const uintmax_t offset = whole ? i * kPieceBytes : (size - kPieceBytes) / (kPieces - 1) * i;
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, size - offset)));
    file.seekg(static_cast<std::streamoff>(offset));
    if (!file.read(piece.data(), static_cast<std::streamsize>(piece.size())))
      return mark_error(path, "it ends early");
    digests += digest_text(piece);
  }
  return std::to_string(size) + " bytes, digest " + digest_text(digests);
}

Result<Json> path_marks(const std::string& path) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    Result<std::string> mark = file_mark(path);
    return mark ? Result<Json>(Json(std::move(*mark))) : Result<Json>(mark.error());
  }
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator entry(path, code), end; !code && entry != end;
       entry.increment(code)) {
    if (entry->path().filename().string().starts_with('.')) {
      if (entry->is_directory(code)) entry.disable_recursion_pending();
    } else if (is_model_file(entry->path()) && fs::is_regular_file(entry->path(), code)) {
      files.push_back(entry->path());
    }
  }
  if (code) return mark_error(path, code.message());
  std::sort(files.begin(), files.end());
  Json marks = Json::object();
  for (const fs::path& file : files) {
    const Result<std::string> mark = file_mark(file.string());
    if (!mark) return mark.error();
    marks[file.lexically_relative(path).generic_string()] = *mark;
  }
  return marks;
}

}  // namespace vkformer::cli
