// A model in one file: packing a directory, and what such a file holds. ModelSource::pack loads it,
// from the file or from a place inside a game's archive. docs/files.md has the format.
//
// Threading: plain functions without shared state; call them from any thread.
// Lifetime: nothing is kept after the call. Nothing throws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/choices.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"
#include "vkformer/result.h"

namespace vkformer {

struct PackOptions {
  // kQ8, kQ4, kQ4M, kBF16 or kF16: matrices as quantize_model writes them. Nothing: as they are.
  std::optional<WeightFormat> weights = std::nullopt;
  // With `weights` merged into them. Without, packed beside them, and merged whenever the model is
  // loaded; their scales can then be changed as those of other adapters.
  std::vector<AdapterChoice> adapters = {};
  // Weights lie in the file as GPUs read them, in place of the tensors they are made of. Loading
  // copies them or maps them (ModelOptions::copy_weights), on every device alike, and packs
  // nothing. Such a model takes no other format and no adapters, and another version of vkformer
  // may ask for packing it again.
  bool device_layout = false;
};

struct PackInfo {
  struct File {
    std::string name;
    uint64_t offset = 0;  // from the pack's first byte on
    uint64_t size = 0;
    std::string sha256;  // 64 hexadecimal digits
  };
  std::string sha256;  // of the header, which names all files with theirs: two packs with the same
                       // one hold the same
  uint64_t size = 0;   // bytes of the pack
  std::vector<File> files;
  std::vector<AdapterChoice> adapters;  // folders inside the pack
};

// Writes the files of a model directory that loading uses, or a GGUF file, into the file `target`.
// The file is whole or not there. With PackOptions::weights the result is held in memory and in a
// folder beside `target` first.
VKFORMER_API Result<PackInfo> pack_model(const std::string& model, const std::string& target,
                                         const PackOptions& options = {});

// What a packed model holds. PackLocation::verify: every file is compared with its hash.
VKFORMER_API Result<PackInfo> read_pack_info(const std::string& path,
                                             const PackLocation& location = {});

}  // namespace vkformer
