#include "gguf/gguf_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

constexpr std::string_view kLayer = "{}";
constexpr std::string_view kExpert = "{x}";
constexpr int64_t kMostExperts = 4096;  // of a tensor

std::string replaced(std::string_view text, std::string_view part, std::string_view by) {
  const size_t at = text.find(part);
  if (at == std::string_view::npos) return std::string(text);
  return std::string(text.substr(0, at)) + std::string(by) +
         std::string(text.substr(at + part.size()));
}

// A file's name in parts: "blk.{}.attn_q", "3", ".weight".
struct NameParts {
  std::string stem;
  std::string layer;
  std::string ending;
};

NameParts parts_of(std::string_view name) {
  NameParts parts;
  for (const char* ending : {".weight", ".bias"}) {
    if (!name.ends_with(ending)) continue;
    parts.ending = ending;
    name.remove_suffix(parts.ending.size());
    break;
  }
  constexpr std::string_view kBlock = "blk.";
  const size_t block = name.find(kBlock);
  if (block == std::string_view::npos || (block != 0 && name[block - 1] != '.')) {
    parts.stem = name;
    return parts;
  }
  const size_t first = block + kBlock.size();
  size_t end = first;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  parts.layer = name.substr(first, end - first);
  parts.stem =
      std::string(name.substr(0, first)) + std::string(kLayer) + std::string(name.substr(end));
  return parts;
}

class Collector {
 public:
  Collector(const GgufNaming& naming, StoredTensors& out) : naming_(naming), out_(out) {}

  Status add(const GgufFile& file, const std::string& name, const GgufTensor& tensor);

 private:
  // Puts a tensor under a name; no other may have it.
  Status put(const std::string& name, GgmlType type, Shape shape, std::span<const std::byte> bytes);
  Status put_halves(const std::string& name, const GgufTensor& tensor, int64_t heads);
  Status put_gain(const std::string& name, const GgufTensor& tensor);
  Status put_experts(const std::string& name, const GgufTensor& tensor);
  std::span<std::byte> own(size_t bytes) {
    out_.owned.emplace_back(bytes);
    return out_.owned.back();
  }
  Error error(const std::string& what) const {
    return invalid_file(
        message({"File [", *path_, "] has the tensor ", bracketed(name_), " ", what}));
  }

  const GgufNaming& naming_;
  StoredTensors& out_;
  const std::string* path_ = nullptr;
  std::string name_;  // in the file
};

Status Collector::put(const std::string& name, GgmlType type, Shape shape,
                      std::span<const std::byte> bytes) {
  const auto [position, is_new] = out_.tensors.try_emplace(name);
  if (!is_new) return error("for " + bracketed(name) + ", which another tensor is already.");
  StoredTensors::Entry& entry = position->second;
  entry.tensor = join_ggml(type, std::move(shape), bytes);
  if (entry.tensor.view.dtype == DType::kU8) entry.tensor.view.blocks = &entry.tensor.blocks;
  entry.file = out_.files.size() - 1;
  return {};
}

// Row h E + 2 j + s of the file, of head h, is row h E + s E / 2 + j here.
Status Collector::put_halves(const std::string& name, const GgufTensor& tensor, int64_t heads) {
  const int64_t rows = tensor.shape[0];
  if (heads < 1 || rows % heads != 0 || rows / heads % 2 != 0) {
    return error(message({"of ", rows, " rows, but there are ", heads,
                          " heads, which must each have the same even number of them."}));
  }
  if (tensor.shape.size() == 1 && ggml_dtype(tensor.type) == DType::kU8) {
    return error(message({"in ", tensor.type_name, ", but biases are in F32, F16 or BF16."}));
  }
  const auto row_bytes = tensor.bytes.size() / static_cast<size_t>(rows);
  const auto width = static_cast<size_t>(rows / heads);
  const std::span<std::byte> to = own(tensor.bytes.size());
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const size_t head = row / width, place = row % width;
    const size_t from = head * width + place % (width / 2) * 2 + place / (width / 2);
    std::memcpy(to.data() + row * row_bytes, tensor.bytes.data() + from * row_bytes, row_bytes);
  }
  return put(name, tensor.type, tensor.shape, to);
}

Status Collector::put_gain(const std::string& name, const GgufTensor& tensor) {
  const auto count = static_cast<size_t>(element_count(tensor.shape));
  std::vector<float> values(count);
  decode_ggml(tensor.type, tensor.bytes, 0, values);
  for (float& value : values) value -= 1.0f;
  const std::span<std::byte> to = own(4 * count);
  std::memcpy(to.data(), values.data(), to.size());
  return put(name, GgmlType::kF32, tensor.shape, to);
}

Status Collector::put_experts(const std::string& name, const GgufTensor& tensor) {
  if (tensor.shape.size() < 2 || tensor.shape[0] > kMostExperts) {
    return error(message({"of shape ", shape_text(tensor.shape),
                          ", but it must have an axis of up to ", kMostExperts, " experts."}));
  }
  const auto experts = static_cast<size_t>(tensor.shape[0]);
  const size_t bytes = tensor.bytes.size() / experts;
  const Shape shape(tensor.shape.begin() + 1, tensor.shape.end());
  for (size_t x = 0; x < experts; ++x) {
    VKF_CHECK(put(replaced(name, kExpert, std::to_string(x)), tensor.type, shape,
                  tensor.bytes.subspan(x * bytes, bytes)));
  }
  return {};
}

Status Collector::add(const GgufFile& file, const std::string& name, const GgufTensor& tensor) {
  path_ = &file.path();
  name_ = name;
  const NameParts parts = parts_of(name);
  const auto rule = std::find_if(naming_.names.begin(), naming_.names.end(),
                                 [&](const GgufName& one) { return parts.stem == one.from; });
  if (rule == naming_.names.end() || (parts.ending.empty() && rule->use != GgufUse::kIgnored)) {
    return unsupported(message({"File [", file.path(), "] has the tensor ", bracketed(name),
                                ", which vkformer does not know in the architecture ",
                                naming_.architecture, "."}));
  }
  const std::string to =
      replaced(rule->to, kLayer, parts.layer) + (rule->whole ? std::string() : parts.ending);
  switch (rule->use) {
    case GgufUse::kIgnored:
      return {};
    case GgufUse::kQueries:
      return put_halves(to, tensor, naming_.heads);
    case GgufUse::kKeys:
      return put_halves(to, tensor, naming_.kv_heads);
    case GgufUse::kGain:
      return put_gain(to, tensor);
    case GgufUse::kExperts:
      return put_experts(to, tensor);
    case GgufUse::kPlain:
      break;
  }
  return put(to, tensor.type, tensor.shape, tensor.bytes);
}

}  // namespace

Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::vector<const GgufFile*>& files,
                                                          const GgufNaming& naming) {
  auto stored = std::make_shared<StoredTensors>();
  Collector collector(naming, *stored);
  for (const GgufFile* file : files) {
    stored->files.push_back(file->path());
    for (const auto& [name, tensor] : file->tensors()) {
      VKF_CHECK(collector.add(*file, name, tensor));
    }
  }
  return std::shared_ptr<const StoredTensors>(std::move(stored));
}

}  // namespace vkformer
