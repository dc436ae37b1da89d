#include "weights/weight_table.h"

#include <set>

#include "base/check.h"
#include "weights/pack_matrix.h"

namespace vkformer {
namespace {

// Whether the name fits the pattern, in which '*' matches any run of characters.
bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t skip = star; skip <= name.size(); ++skip) {
    if (matches(rest, name.substr(skip))) return true;
  }
  return false;
}

// The name that the file has for a norm's tensor: checkpoints converted from TensorFlow say gamma
// and beta.
std::string norm_name(const Checkpoint& checkpoint, const std::string& name) {
  for (const auto& [now, then] : {std::pair{".weight", ".gamma"}, std::pair{".bias", ".beta"}}) {
    const size_t at = name.rfind(now);
    if (at == std::string::npos || checkpoint.find(name) != nullptr) continue;
    const std::string old = name.substr(0, at) + then;
    if (checkpoint.find(old) != nullptr) return old;
  }
  return name;
}

Error tensor_error(const Checkpoint& checkpoint, const std::string& name, const std::string& what) {
  return invalid_file("[" + name + "] in " + checkpoint.file_of(name) + " " + what);
}

Result<const TensorView*> find_float(const Checkpoint& checkpoint, const std::string& name,
                                     const WeightRow& row) {
  const TensorView* view = checkpoint.find(name);
  if (view == nullptr) {
    return invalid_file("[" + name + "] is missing from " + checkpoint.directory() +
                        "; the model needs it as '" + row.name + "'");
  }
  const bool is_float = view->dtype == DType::kF32 || view->dtype == DType::kF16 ||
                        view->dtype == DType::kBF16 || view->dtype == DType::kF64;
  if (!is_float) {
    return tensor_error(checkpoint, name,
                        "has dtype " + std::string(dtype_name(view->dtype)) +
                            ", but weights must be F16, BF16, F32 or F64");
  }
  return view;
}

Status check_vector(const Checkpoint& checkpoint, const std::string& name, const WeightRow& row,
                    int64_t size) {
  VKF_ASSIGN(const TensorView* view, find_float(checkpoint, name, row));
  // Marian stores final_logits_bias as (1, V).
  if (view->shape == Shape{size} || view->shape == Shape{1, size}) return {};
  return tensor_error(checkpoint, name,
                      "has shape " + shape_text(view->shape) +
                          ", but the configuration asks for (" + std::to_string(size) + ")");
}

// Rows that source `index` must have. A projection too wide must not hide one too narrow.
int64_t rows_of_source(const WeightRow& row, size_t index) {
  if (!row.source_rows.empty()) return row.source_rows[index];
  return row.rows / static_cast<int64_t>(row.sources.size());
}

// A convolution's (out, in, kernel...) is a matrix (out, in * kernel).
Shape matrix_shape(const Shape& shape) {
  if (shape.size() <= 2) return shape;
  return {shape[0], shape[0] == 0 ? 0 : element_count(shape) / shape[0]};
}

Status check_stack(const Checkpoint& checkpoint, const WeightRow& row) {
  for (size_t i = 0; i < row.sources.size(); ++i) {
    VKF_ASSIGN(const TensorView* view, find_float(checkpoint, row.sources[i], row));
    Shape wanted = {rows_of_source(row, i), row.width};
    if (row.axes == WeightRow::Axes::kInOut) std::swap(wanted[0], wanted[1]);
    if (matrix_shape(view->shape) != wanted) {
      return tensor_error(checkpoint, row.sources[i],
                          "has shape " + shape_text(view->shape) + ", but '" + row.name +
                              "' needs " + shape_text(wanted) + " by the configuration");
    }
    if (i < row.biases.size() && !row.biases[i].empty()) {
      VKF_CHECK(check_vector(checkpoint, row.biases[i], row, rows_of_source(row, i)));
    }
  }
  return {};
}

Status check_row(const Checkpoint& checkpoint, const WeightRow& row) {
  if (row.layout == WeightLayout::kNorm) {
    VKF_CHECK(check_vector(checkpoint, row.sources[0], row, row.width));
    if (!row.biases.empty()) VKF_CHECK(check_vector(checkpoint, row.biases[0], row, row.width));
    return {};
  }
  if (!row.computed.empty()) return {};
  return check_stack(checkpoint, row);
}

Status refuse_unknown(const WeightTable& table, const Checkpoint& checkpoint) {
  std::set<std::string> known;
  for (const WeightRow& row : table.rows) {
    known.insert(row.sources.begin(), row.sources.end());
    known.insert(row.biases.begin(), row.biases.end());
  }
  for (const std::string& name : checkpoint.names()) {
    if (known.count(name) != 0) continue;
    bool ignored = false;
    for (const std::string& pattern : table.ignored) ignored = ignored || matches(pattern, name);
    if (!ignored) {
      return tensor_error(checkpoint, name,
                          "is not a tensor that this model family knows; the configuration and the "
                          "weights do not belong together, or the file holds something else");
    }
  }
  return {};
}

uint32_t round_up(int64_t value, uint32_t to) {
  return (static_cast<uint32_t>(value) + to - 1) / to * to;
}

PackedWeight layout_of(const WeightRow& row, const Checkpoint& checkpoint, WeightFormat format) {
  PackedWeight packed{.row = row};
  if (row.layout == WeightLayout::kNorm) {
    packed.bytes = 8ull * static_cast<uint64_t>(row.width);
    return packed;
  }
  if (row.layout == WeightLayout::kTable) {
    packed.bytes = 4ull * static_cast<uint64_t>(row.width) * static_cast<uint64_t>(row.rows);
    return packed;
  }
  const bool stored_half = checkpoint.find(row.sources[0])->dtype == DType::kF16;
  const bool half =
      format == WeightFormat::kF16 || (format == WeightFormat::kAsStored && stored_half);
  packed.dtype = half ? DType::kF16 : DType::kF32;
  const uint64_t words = packed_elements(row.rows, row.width) / (half ? 2 : 1);
  packed.bytes = words * 4;
  if (!row.biases.empty()) {
    packed.bias_offset = static_cast<uint32_t>(words);
    packed.bytes += 4ull * round_up(row.rows, 4);
  }
  return packed;
}

}  // namespace

Result<std::vector<PackedWeight>> resolve_weights(const WeightTable& table,
                                                  const Checkpoint& checkpoint,
                                                  WeightFormat format) {
  std::vector<PackedWeight> resolved;
  WeightTable named = table;
  for (WeightRow& row : named.rows) {
    if (row.layout == WeightLayout::kNorm) {
      for (std::string& name : row.sources) name = norm_name(checkpoint, name);
      for (std::string& name : row.biases) name = norm_name(checkpoint, name);
    }
    VKF_CHECK(check_row(checkpoint, row));
    resolved.push_back(layout_of(row, checkpoint, format));
  }
  VKF_CHECK(refuse_unknown(named, checkpoint));
  return resolved;
}

}  // namespace vkformer
