// A file of which only some ranges are stored. A pack with weights as GPUs read them has such
// safetensors or GGUF files of the model. Their headers are there, and the few tensors that loading
// reads. docs/files.md has the format.
//
// Threading: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/mapped_file.h"

namespace vkformer {

// Endings, added to the name of the whole file, of the two that stand for it. They are which ranges
// are stored (JSON), and their bytes, one range after the other.
inline constexpr const char* kRangesEnding = ".ranges.json";
inline constexpr const char* kStoredEnding = ".stored";

// The files of such a pack that have the weights: what each is and where (JSON), and their bytes.
inline constexpr const char* kDeviceWeightsIndex = "device_weights.json";
inline constexpr const char* kDeviceWeightsName = "device_weights.bin";

struct SparseFile {
  std::string ranges;
  std::vector<std::byte> stored;
};
// `stored`: ranges of `file`, in order and apart.
SparseFile make_sparse(std::span<const std::byte> file, const std::vector<ByteRange>& stored);

// The file, with zeros where nothing is stored (MappedFile::stores). `label` stands for it in
// messages; an error says what is damaged.
Result<MappedFile> read_sparse(std::string_view ranges, std::span<const std::byte> stored,
                               const std::string& label);

}  // namespace vkformer
