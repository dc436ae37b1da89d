// Fuzz target: a packed model. An input that begins as one is taken as it is. Of another one, what
// precedes the first zero byte is the header, whose hash is made, and the rest are the files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/pack_file.h"
#include "gguf/gguf_store.h"
#include "model/model.h"
#include "weights/device_weights.h"

namespace {

using namespace vkformer;

std::vector<std::byte> with_head(std::span<const std::byte> input) {
  const auto end = std::find(input.begin(), input.end(), std::byte{0});
  const auto length = static_cast<size_t>(end - input.begin());
  const auto header = input.first(length);
  std::vector<std::byte> pack(kPackHead);
  std::memcpy(pack.data(), "VKFPACK1", 8);
  for (size_t i = 0; i < 8; ++i) pack[8 + i] = static_cast<std::byte>(uint64_t{length} >> (8 * i));
  const auto digest = sha256(header);
  std::copy(digest.begin(), digest.end(), pack.begin() + 16);
  pack.insert(pack.end(), header.begin(), header.end());
  if (length < input.size()) pack.insert(pack.end(), end + 1, input.end());
  return pack;
}

void read_all(const FileStore& files, const std::vector<PackedFile>& names) {
  unsigned sum = 0;
  for (const PackedFile& name : names) {
    const auto file = files.open(name.name);
    if (!file.ok()) continue;
    for (const std::byte byte : file->bytes()) sum += std::to_integer<unsigned>(byte);
    if (file->bytes().size() != name.size) __builtin_trap();
  }
  if (sum == 1) (void)files.label();  // so that no compiler drops the reads
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const std::vector<std::byte> pack =
      begins_as_pack(input) ? std::vector<std::byte>(input.begin(), input.end()) : with_head(input);
  const auto content = read_pack(pack, "fuzz");
  if (content.ok()) {
    uint64_t shown = 0;
    for (const PackedFile& file : content->files) shown += file.size;
    // Files share no byte, so together they are no longer than the pack.
    if (shown > pack.size()) __builtin_trap();
    for (const bool verify : {false, true}) {
      read_all(*make_pack_store(MappedFile::from_bytes(pack, "fuzz"), 0, verify), content->files);
    }
  }
  const auto store = with_gguf(make_pack_store(MappedFile::from_bytes(pack, "fuzz"), 0, false));
  for (const StoredAdapter& adapter : store->adapters()) {
    (void)adapter.files->open("adapter_config.json");
  }
  (void)load_family(*store);
  (void)Checkpoint::open_store(*store);
  if (store->has(kDeviceWeightsIndex)) (void)DeviceWeights::open(*store, {});
  return 0;
}
