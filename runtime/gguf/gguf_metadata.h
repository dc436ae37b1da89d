// The keys and small tensors of a GGUF model's files, read with the architecture's name in front.
//
// Threading: const functions may be called at the same time.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/gguf.h"

namespace vkformer {

// The metadata of one model, by keys without the architecture in front.
class GgufMetadata {
 public:
  GgufMetadata(const std::vector<const GgufFile*>& files, std::string architecture)
      : files_(files), architecture_(std::move(architecture)) {}

  const GgufFile& file() const { return *files_.front(); }
  const std::string& architecture() const { return architecture_; }
  std::string key(const char* name) const { return architecture_ + "." + name; }
  bool has(const char* name) const { return file().has(key(name)); }
  Result<double> number_or(const char* name, double fallback) const {
    return file().get_double_or(key(name), fallback);
  }
  Result<std::string> text_or(const char* name, const char* fallback) const {
    return file().get_string_or(key(name), fallback);
  }
  // A size of at least 1. A list by layer counts as one number where all of them are the same.
  Result<int64_t> size(const char* name) const;
  // Of a list by layer: the size that all entries but zeros have.
  Result<int64_t> size_of_some(const char* name) const;
  Result<int64_t> size_or(const char* name, int64_t fallback) const {
    if (!has(name)) return fallback;
    return size(name);
  }
  // The tensor of that name in any of the files, or null.
  const GgufTensor* tensor(const char* name) const {
    for (const GgufFile* file : files_) {
      const auto found = file->tensors().find(name);
      if (found != file->tensors().end()) return &found->second;
    }
    return nullptr;
  }
  // Rows of a matrix that there must be.
  Result<int64_t> rows(const char* name) const;
  // The values of a small tensor, in double.
  Result<std::vector<double>> values(const char* name) const;
  Error refused(const char* name, const std::string& what) const {
    return unsupported(message({"File [", file().path(), "] has [", key(name), "] ", what}));
  }

 private:
  const std::vector<const GgufFile*>& files_;
  std::string architecture_;
};

}  // namespace vkformer
