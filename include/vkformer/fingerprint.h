// Fingerprints: what a device computes in reproducible precision, as digests. Two devices that give
// the same results to the bit have the same fingerprint. Part of the conformance library.
//
// Threading: a run wants its device for itself. Lifetime: nothing outlives a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vkformer/device.h"
#include "vkformer/export.h"
#include "vkformer/model.h"
#include "vkformer/model_source.h"
#include "vkformer/tensor.h"

namespace vkformer {

// One tensor that an operator wrote.
struct FingerprintEntry {
  std::string name;    // of a check, "softmax/plain/normal/2x3x5x33", or of a layer of a model
  std::string tensor;  // of its output
  Shape shape;
  uint64_t digest = 0;  // Of all elements; every NaN counts as the same one.
  // Digests of up to 64 runs of elements of equal length.
  std::vector<uint32_t> parts;
  // All elements, as they lie in memory, until a fingerprint has 64 MiB of these; empty after that.
  std::vector<std::byte> values;
};

// The first entry that differs.
struct FingerprintDifference {
  std::string name, tensor;
  // The first element that differs, twice; of an entry without values the run that it is in.
  int64_t first = 0, last = 0;
  std::string message;  // a sentence
};

struct Fingerprint {
  std::string vkformer;  // version
  DeviceInfo device;
  std::vector<FingerprintEntry> entries;
  // Of the operators that the host computes as well (docs/reproducible.md): entries that were
  // compared with its bits, and the first that has others.
  int compared_with_host = 0;
  std::optional<FingerprintDifference> host_difference;

  // Of all entries. Devices that compute the same bits have the same one.
  VKFORMER_API uint64_t digest() const;
};

// A model whose passes are part of a fingerprint.
struct FingerprintModel {
  std::string name;  // in the entries
  ModelSource source;
  // Of Session::run, of the model when it is loaded.
  std::function<Result<TensorMap>(const ModelInfo& info)> inputs;
  // To generate from input_ids where the model does: greedily, by beams, at random, in a batch, and
  // with drafted tokens.
  int new_tokens = 0;
};

struct FingerprintOptions {
  // Parts of names of checks, of which one must have one; empty: the quick checks of all operators.
  std::vector<std::string> filters;
  std::vector<FingerprintModel> models;
  std::function<void(const std::string& name, int done, int all)> progress;
};

// Runs every quick check of every operator and `models` in reproducible precision, and notes what
// each operator wrote. An error where the device cannot
// compute in that precision.
VKFORMER_API Result<Fingerprint> take_fingerprint(const Device& device,
                                                  const FingerprintOptions& options = {});

VKFORMER_API std::string fingerprint_json(const Fingerprint& fingerprint);
// What fingerprint_json wrote; an error for anything else.
VKFORMER_API Result<Fingerprint> parse_fingerprint_json(const std::string& text);

VKFORMER_API std::optional<FingerprintDifference> compare_fingerprints(const Fingerprint& first,
                                                                       const Fingerprint& second);

}  // namespace vkformer
