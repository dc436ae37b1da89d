#include "gguf/gguf_tensors.h"

#include <algorithm>
#include <cmath>
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

// A file's name in parts: "blk.{}.attn_q", "3", ".weight", and of adapters ".lora_a".
struct NameParts {
  std::string stem;
  std::string layer;
  std::string ending;
  std::string factor;
};

NameParts parts_of(std::string_view name, bool adapter) {
  NameParts parts;
  for (const char* factor : {kGgufDown, kGgufUp}) {
    if (!adapter || !name.ends_with(factor)) continue;
    parts.factor = factor;
    name.remove_suffix(parts.factor.size());
    break;
  }
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

// The number that stands in a name where its pattern has a place for one.
struct PatternMatch {
  std::string layer;
  std::string expert;
};

// Whether `name` is `pattern` with a number in each of its places.
std::optional<PatternMatch> match_pattern(std::string_view pattern, std::string_view name) {
  PatternMatch match;
  while (!pattern.empty()) {
    const bool layer = pattern.starts_with(kLayer), expert = pattern.starts_with(kExpert);
    if (!layer && !expert) {
      if (name.empty() || name.front() != pattern.front()) return std::nullopt;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
      continue;
    }
    const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    if (digits == 0 || digits > 6) return std::nullopt;
    (layer ? match.layer : match.expert) = name.substr(0, digits);
    name.remove_prefix(digits);
    pattern.remove_prefix((layer ? kLayer : kExpert).size());
  }
  if (!name.empty()) return std::nullopt;
  return match;
}

std::optional<GgufPlace> place_by_rule(const GgufName& rule, std::string_view name) {
  if (rule.use == GgufUse::kIgnored) return std::nullopt;
  for (std::string_view ending : {std::string_view(".weight"), std::string_view(".bias")}) {
    if (rule.whole) ending = {};
    if (!name.ends_with(ending)) continue;
    std::string_view stem = name;
    stem.remove_suffix(ending.size());
    const auto match = match_pattern(rule.to, stem);
    if (!match) return std::nullopt;
    GgufPlace place{.name = replaced(rule.from, kLayer, match->layer) + std::string(ending),
                    .use = rule.use};
    if (rule.use == GgufUse::kExperts) place.expert = std::stoll(match->expert);
    return place;
  }
  return std::nullopt;
}

std::optional<GgufPlace> place_of_name(const GgufNaming& naming, std::string_view name) {
  for (const GgufName& rule : naming.names) {
    if (auto place = place_by_rule(rule, name)) return place;
  }
  return std::nullopt;
}

class Collector {
 public:
  Collector(const GgufNaming& naming, StoredTensors& out) : naming_(naming), out_(out) {}

  Status add_file(const std::string& path, const GgufTensorMap& tensors);

 private:
  Status add(const std::string& name, const GgufTensor& tensor);
  // Puts a tensor under a name; no other may have it.
  Status put(const std::string& name, GgmlType type, Shape shape, std::span<const std::byte> bytes);
  Status put_f32(const std::string& name, Shape shape, std::span<const float> values);
  Status put_rows(const std::string& name, const GgufTensor& tensor, GgufUse use);
  Status put_rates(const std::string& name, const GgufTensor& tensor);
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
  std::string name_;    // in the file
  bool stored_ = true;  // GgufTensor::stored
};

Status Collector::put(const std::string& name, GgmlType type, Shape shape,
                      std::span<const std::byte> bytes) {
  const auto [position, is_new] = out_.tensors.try_emplace(name);
  if (!is_new) return error("for " + bracketed(name) + ", which another tensor is already.");
  StoredTensors::Entry& entry = position->second;
  entry.tensor = join_ggml(type, std::move(shape), bytes);
  if (entry.tensor.view.dtype == DType::kU8) entry.tensor.view.blocks = &entry.tensor.blocks;
  entry.file = out_.files.size() - 1;
  entry.has_values = stored_;
  return {};
}

Status Collector::put_f32(const std::string& name, Shape shape, std::span<const float> values) {
  const std::span<std::byte> to = own(values.size_bytes());
  std::memcpy(to.data(), values.data(), to.size());
  return put(name, GgmlType::kF32, std::move(shape), to);
}

Status Collector::put_rows(const std::string& name, const GgufTensor& tensor, GgufUse use) {
  const Result<GgufRows> order = GgufRows::make(naming_, use, tensor.shape[0]);
  if (!order.ok()) return error(order.error().message);
  if (tensor.shape.size() == 1 && ggml_dtype(tensor.type) == DType::kU8) {
    return error(message({"in ", tensor.type_name, ", but biases are in F32, F16 or BF16."}));
  }
  if (!tensor.stored) return put(name, tensor.type, tensor.shape, tensor.bytes);
  const auto rows = static_cast<size_t>(tensor.shape[0]);
  const size_t row_bytes = tensor.bytes.size() / rows;
  const std::span<std::byte> to = own(tensor.bytes.size());
  for (size_t row = 0; row < rows; ++row) {
    std::memcpy(to.data() + order->of_model(row) * row_bytes, tensor.bytes.data() + row * row_bytes,
                row_bytes);
  }
  return put(name, tensor.type, tensor.shape, to);
}

Status Collector::put_rates(const std::string& name, const GgufTensor& tensor) {
  const int64_t count = element_count(tensor.shape);
  if (!tensor.stored) return put(name, tensor.type, {count}, tensor.bytes);
  std::vector<float> values(static_cast<size_t>(count));
  decode_ggml(tensor.type, tensor.bytes, 0, values);
  for (float& value : values) {
    if (!(value < 0)) {
      return error(message({"with ", value, ", but the rates of a state must be below 0."}));
    }
    value = static_cast<float>(std::log(-static_cast<double>(value)));
  }
  return put_f32(name, {count}, values);
}

Status Collector::put_gain(const std::string& name, const GgufTensor& tensor) {
  const auto count = static_cast<size_t>(element_count(tensor.shape));
  std::vector<float> values(count);
  decode_ggml(tensor.type, tensor.bytes, 0, values);
  for (float& value : values) value -= 1.0f;
  return put_f32(name, tensor.shape, values);
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

Status Collector::add(const std::string& name, const GgufTensor& tensor) {
  name_ = name;
  stored_ = tensor.stored;
  const NameParts parts = parts_of(name, naming_.adapter);
  const auto rule =
      std::find_if(naming_.names.begin(), naming_.names.end(), [&](const GgufName& one) {
        return one.from == parts.stem + (one.whole ? parts.ending : "");
      });
  if (rule == naming_.names.end() ||
      (parts.ending.empty() && !rule->whole && rule->use != GgufUse::kIgnored)) {
    return unsupported(message({"File [", *path_, "] has the tensor ", bracketed(name),
                                ", which vkformer does not know in the architecture ",
                                naming_.architecture, "."}));
  }
  const std::string to = replaced(rule->to, kLayer, parts.layer) +
                         (rule->whole ? std::string() : parts.ending) + parts.factor;
  const bool by_rows =
      rule->use == GgufUse::kQueries || rule->use == GgufUse::kKeys || rule->use == GgufUse::kFused;
  switch (by_rows && parts.factor == kGgufDown ? GgufUse::kPlain : rule->use) {
    case GgufUse::kIgnored:
      return {};
    case GgufUse::kQueries:
    case GgufUse::kKeys:
    case GgufUse::kFused:
      return put_rows(to, tensor, rule->use);
    case GgufUse::kGain:
      return put_gain(to, tensor);
    case GgufUse::kExperts:
      return put_experts(to, tensor);
    case GgufUse::kTaps:
      return put(to, tensor.type,
                 {tensor.shape[0], 1, element_count(tensor.shape) / tensor.shape[0]}, tensor.bytes);
    case GgufUse::kFlat:
      return put(to, tensor.type, {element_count(tensor.shape)}, tensor.bytes);
    case GgufUse::kRates:
      return put_rates(to, tensor);
    case GgufUse::kPlain:
      break;
  }
  return put(to, tensor.type, tensor.shape, tensor.bytes);
}

Status Collector::add_file(const std::string& path, const GgufTensorMap& tensors) {
  path_ = &path;
  out_.files.push_back(path);
  for (const auto& [name, tensor] : tensors) VKF_CHECK(add(name, tensor));
  return {};
}

}  // namespace

std::optional<GgufPlace> gguf_place(const GgufNaming& naming, const std::string& name) {
  if (auto place = place_of_name(naming, name)) return place;
  if (auto place = place_of_name(naming, "model." + name)) return place;
  std::string_view rest = name;
  for (size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    rest.remove_prefix(dot + 1);
    if (auto place = place_of_name(naming, rest)) return place;
  }
  return std::nullopt;
}

bool gguf_ignores(const GgufNaming& naming, const std::string& file_name) {
  const NameParts parts = parts_of(file_name, false);
  return std::any_of(naming.names.begin(), naming.names.end(), [&](const GgufName& one) {
    return one.use == GgufUse::kIgnored && parts.stem == one.from;
  });
}

Result<GgufRows> GgufRows::make(const GgufNaming& naming, GgufUse use, int64_t rows) {
  const bool fused = use == GgufUse::kFused;
  GgufRows order;
  if (!fused && use != GgufUse::kQueries && use != GgufUse::kKeys) return order;
  const int64_t heads = use == GgufUse::kKeys ? naming.kv_heads : naming.heads;
  const int64_t groups = fused ? naming.kv_heads : 0, all = heads + 2 * groups;
  const bool grouped = !fused || (groups >= 1 && heads % groups == 0);
  if (heads < 1 || !grouped || rows % all != 0 || (!fused && rows / all % 2 != 0)) {
    return invalid_file(
        fused ? message({"of ", rows, " rows, but there are ", heads, " heads of queries and ",
                         groups, " of keys and of values, which must each have as many of them."})
              : message({"of ", rows, " rows, but there are ", heads,
                         " heads, which must each have the same even number of them."}));
  }
  order.width_ = static_cast<size_t>(rows / all);
  if (!fused) return order;
  order.queries_ = static_cast<size_t>(heads / groups);
  order.heads_ = static_cast<size_t>(heads);
  order.groups_ = static_cast<size_t>(groups);
  return order;
}

size_t GgufRows::of_model(size_t row) const {
  if (same()) return row;
  const size_t place = row % width_, head = row / width_;
  // Row h E + 2 j + s of a file, of head h, is row h E + s E / 2 + j of the model.
  if (queries_ == 0) return row - place + place % 2 * (width_ / 2) + place / 2;
  size_t group = head / queries_, part = head % queries_;
  if (head >= heads_) {
    group = (head - heads_) % groups_;
    part = queries_ + (head - heads_) / groups_;
  }
  return (group * (queries_ + 2) + part) * width_ + place;
}

Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::vector<const GgufFile*>& files,
                                                          const GgufNaming& naming) {
  auto stored = std::make_shared<StoredTensors>();
  Collector collector(naming, *stored);
  for (const GgufFile* file : files) {
    VKF_CHECK(collector.add_file(file->path(), file->tensors()));
  }
  return std::shared_ptr<const StoredTensors>(std::move(stored));
}

Result<std::shared_ptr<const StoredTensors>> gguf_tensors(const std::string& path,
                                                          const GgufTensorMap& tensors,
                                                          const GgufNaming& naming) {
  auto stored = std::make_shared<StoredTensors>();
  VKF_CHECK(Collector(naming, *stored).add_file(path, tensors));
  return std::shared_ptr<const StoredTensors>(std::move(stored));
}

}  // namespace vkformer
