#include "weights/weight_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"
#include "params/matmul.h"
#include "weights/quantize.h"
#include "weights/read_floats.h"

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
  return invalid_file(message({"[", name, "] in ", checkpoint.file_of(name), " ", what}));
}

Result<const TensorView*> find_float(const Checkpoint& checkpoint, const std::string& name,
                                     const WeightRow& row) {
  const TensorView* view = checkpoint.find(name);
  if (view == nullptr) {
    return invalid_file(message({"[", name, "] is missing from ", checkpoint.directory(),
                                 "; the model needs it as '", row.name, "'"}));
  }
  if (!holds_floats(*view)) {
    return tensor_error(checkpoint, name,
                        "has dtype " + std::string(dtype_name(view->dtype)) +
                            ", but weights must be F16, BF16, F32 or F64");
  }
  return view;
}

Status check_vector(const Checkpoint& checkpoint, const std::string& name, const WeightRow& row,
                    int64_t size) {
  VKF_ASSIGN(const TensorView* view, find_float(checkpoint, name, row));
  const int64_t matrices = row.stack == WeightRow::Stack::kStacked ? row.experts : 1;
  if (view->shape == Shape{matrices, size}) return {};
  // Marian stores final_logits_bias as (1, V).
  if (matrices == 1 && view->shape == Shape{size}) return {};
  return tensor_error(checkpoint, name,
                      "has shape " + shape_text(view->shape) +
                          ", but the configuration asks for (" + std::to_string(size) + ")");
}

// Rows that source `index` must have. A projection too wide must not hide one too narrow.
int64_t rows_of_source(const WeightRow& row, size_t index) {
  const size_t sources = sources_of_matrix(row);
  if (!row.source_rows.empty()) return row.source_rows[index % sources];
  return stored_rows(row) / static_cast<int64_t>(sources);
}

// A convolution's (out, in, kernel...) is a matrix (out, in * kernel).
Shape matrix_shape(const Shape& shape) {
  if (shape.size() <= 2) return shape;
  return {shape[0], shape[0] == 0 ? 0 : element_count(shape) / shape[0]};
}

Status check_stack(const Checkpoint& checkpoint, const WeightRow& row) {
  for (size_t i = 0; i < row.sources.size(); ++i) {
    VKF_ASSIGN(const TensorView* view, find_float(checkpoint, row.sources[i], row));
    Shape wanted = {rows_of_source(row, i), stored_width(row)};
    if (row.axes == WeightRow::Axes::kInOut) std::swap(wanted[0], wanted[1]);
    const bool stacked = row.stack == WeightRow::Stack::kStacked;
    if (view->blocks != nullptr && view->blocks->coded != nullptr &&
        !view->blocks->coded->follows_file() && row.axes == WeightRow::Axes::kInOut && !stacked) {
      return tensor_error(checkpoint, row.sources[i],
                          "is quantized by rows of output features, but this family stores rows "
                          "of input features; take the model as it was before");
    }
    if (stacked) wanted.insert(wanted.begin(), row.experts);
    // A vector is the rows of a table one after the other.
    const bool row_of_table =
        row.layout == WeightLayout::kTable && view->shape == Shape{wanted[0] * wanted[1]};
    const Shape shape = stacked ? view->shape : matrix_shape(view->shape);
    if (!row_of_table && shape != wanted) {
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

// The tensors that a matrix is computed of.
Status check_made(const Checkpoint& checkpoint, const WeightRow& row) {
  std::vector<std::string> names = row.sources;
  names.insert(names.end(), row.biases.begin(), row.biases.end());
  for (size_t i = 0; i < names.size(); ++i) {
    VKF_ASSIGN(const TensorView* view, find_float(checkpoint, names[i], row));
    if (view->shape == row.source_shapes[i]) continue;
    return tensor_error(checkpoint, names[i],
                        "has shape " + shape_text(view->shape) + ", but '" + row.name +
                            "' is made of " + shape_text(row.source_shapes[i]) +
                            " by the configuration");
  }
  return {};
}

// What a batch norm has beside its bias.
std::vector<std::string> batch_norm_tensors(const WeightRow& row) {
  const std::string& from = row.batch_norm;
  if (from.empty()) return {};
  return {from + ".weight", from + ".running_mean", from + ".running_var"};
}

Status check_row(const Checkpoint& checkpoint, const WeightRow& row) {
  if (!row.row_scale.empty()) {
    VKF_CHECK(check_vector(checkpoint, row.row_scale, row, row.rows));
  }
  for (const std::string& name : batch_norm_tensors(row)) {
    VKF_CHECK(check_vector(checkpoint, name, row, row.rows));
  }
  if (row.layout == WeightLayout::kNorm) {
    VKF_CHECK(check_vector(checkpoint, row.sources[0], row, row.width));
    if (!row.biases.empty()) VKF_CHECK(check_vector(checkpoint, row.biases[0], row, row.width));
    return {};
  }
  if (!row.computed.empty()) return {};
  return row.make ? check_made(checkpoint, row) : check_stack(checkpoint, row);
}

Status refuse_unknown(const WeightTable& table, const Checkpoint& checkpoint) {
  const std::set<std::string> known = tensor_names(table);
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

uint64_t linear_bytes(const WeightRow& row, int64_t columns, MatrixFormat format) {
  const uint64_t bias = row.biases.empty() ? 0 : 4ull * round_up(columns, 4);
  return 4 * matrix_words(format, columns, row.width) + bias;
}

// Columns [first, first + count) of a packed matrix in one format.
struct FormatRun {
  int64_t first;
  int64_t count;
  MatrixFormat format;
};

// Columns of each slice: as many whole panels as fit, but at least one.
int64_t slice_columns(const WeightRow& row, const FormatRun& run, uint64_t most_bytes) {
  if (linear_bytes(row, run.count, run.format) <= most_bytes) return run.count;
  const uint64_t panels = most_bytes / linear_bytes(row, kPanelColumns, run.format);
  return static_cast<int64_t>(std::max<uint64_t>(1, panels) * kPanelColumns);
}

MatrixFormat worthwhile(const WeightRow& row, MatrixFormat format) {
  return in_blocks(format) && !worth_blocks(row.rows, row.width) ? MatrixFormat::kF32 : format;
}

MatrixFormat source_format(const TensorView& view) {
  if (view.blocks != nullptr) return view.blocks->format;
  return view.dtype == DType::kF16 ? MatrixFormat::kF16 : MatrixFormat::kF32;
}

// Where the columns of a matrix are whole panels of one source's format each: of every panel.
std::optional<std::vector<MatrixFormat>> formats_of_panels(const WeightRow& row,
                                                           const Checkpoint& checkpoint) {
  if (row.experts > 0 || row.axes != WeightRow::Axes::kOutIn || row.first_row >= 0) return {};
  std::vector<MatrixFormat> of_rows;  // stacked
  for (const std::string& source : row.sources) {
    const TensorView& view = *checkpoint.find(source);
    of_rows.insert(of_rows.end(), static_cast<size_t>(view.shape[0]), source_format(view));
  }
  std::vector<MatrixFormat> panels;
  for (size_t column = 0; column < static_cast<size_t>(row.rows); ++column) {
    const size_t whole = row.part ? row.part->rows[column] : column;
    const MatrixFormat own = of_rows[row.row_order.empty() ? whole : row.row_order[whole]];
    if (column % kPanelColumns == 0) panels.push_back(own);
    if (panels.back() != own) return {};
  }
  return panels;
}

// As the file has it. What another program quantized stays exact: a matrix that is changed on the
// way, or whose panels have sources of several formats, is in f32.
std::vector<FormatRun> stored_formats(const WeightRow& row, const Checkpoint& checkpoint) {
  const MatrixFormat first = source_format(*checkpoint.find(row.sources[0]));
  bool foreign = false, differ = false;
  for (const std::string& source : row.sources) {
    const TensorView& view = *checkpoint.find(source);
    foreign = foreign || decodes_rows(view) || (view.blocks != nullptr && view.blocks->mxfp4);
    differ = differ || source_format(view) != first;
  }
  const bool changed =
      row.make || !row.row_scale.empty() || !row.row_scales.empty() || !row.batch_norm.empty();
  if (foreign && changed) return {{0, row.rows, MatrixFormat::kF32}};
  if (!foreign || !differ) return {{0, row.rows, worthwhile(row, first)}};
  const auto panels = formats_of_panels(row, checkpoint);
  if (!panels) return {{0, row.rows, MatrixFormat::kF32}};
  std::vector<FormatRun> runs;
  for (size_t i = 0; i < panels->size(); ++i) {
    const int64_t column = static_cast<int64_t>(i) * kPanelColumns;
    const MatrixFormat format = worthwhile(row, (*panels)[i]);
    if (runs.empty() || runs.back().format != format) runs.push_back({column, 0, format});
    runs.back().count = std::min(row.rows, column + kPanelColumns) - runs.back().first;
  }
  return runs;
}

// `checkpoint`: null where it is not there yet.
std::vector<FormatRun> formats_of(const WeightRow& row, const Checkpoint* checkpoint,
                                  WeightFormat wanted) {
  if (row.format == WeightRow::Format::kExact) return {{0, row.rows, MatrixFormat::kF32}};
  if (const auto format = matrix_format_of(wanted)) {
    return {{0, row.rows, worthwhile(row, *format)}};
  }
  if (checkpoint == nullptr) return {{0, row.rows, MatrixFormat::kF32}};
  return stored_formats(row, *checkpoint);
}

void add_linear_slices(const WeightRow& row, const std::vector<FormatRun>& runs,
                       uint64_t most_bytes, std::vector<PackedWeight>& resolved) {
  for (const FormatRun& run : runs) {
    const int64_t step = slice_columns(row, run, most_bytes);
    int64_t first = run.first;
    do {
      PackedWeight packed{.row = row, .first_column = first, .format = run.format};
      packed.columns = std::min(step, run.first + run.count - first);
      packed.bytes = linear_bytes(row, packed.columns, run.format);
      if (!row.biases.empty()) {
        packed.bias_offset =
            static_cast<uint32_t>(matrix_words(run.format, packed.columns, row.width));
      }
      resolved.push_back(std::move(packed));
      first += step;
    } while (first < run.first + run.count);
  }
}

// A part whose inputs begin within what is quantized together would have other weights than the
// undivided matrix.
Status check_part(const PackedWeight& weight) {
  const WeightRow& row = weight.row;
  if (!row.part || row.width == row.part->whole_width || !is_quantized(weight.format)) return {};
  const auto together = static_cast<int64_t>(quantized_together(weight.format));
  if (row.width % together == 0) return {};
  return unsupported(
      message({"[", row.name, "] has ", row.part->whole_width,
               " input features, of which each device gets ", row.width, ", but ",
               format_name(weight.format), " quantizes ", together,
               " together; use another number of devices, other weights (ModelOptions::weights, "
               "--weights), or split by layers (DeviceGroupOptions::split, --split layers)"}));
}

PackedWeight plain_layout(const WeightRow& row) {
  PackedWeight packed{.row = row, .columns = row.width};
  const int64_t rows = row.layout == WeightLayout::kNorm ? 2 : row.rows;
  packed.bytes = 4ull * static_cast<uint64_t>(row.width) * static_cast<uint64_t>(rows);
  return packed;
}

}  // namespace

std::set<std::string> tensor_names(const WeightTable& table) {
  std::set<std::string> names;
  for (const WeightRow& row : table.rows) {
    names.insert(row.sources.begin(), row.sources.end());
    names.insert(row.biases.begin(), row.biases.end());
    names.insert(row.row_scale);
    const std::vector<std::string> norm = batch_norm_tensors(row);
    names.insert(norm.begin(), norm.end());
  }
  names.erase("");
  return names;
}

size_t sources_of_matrix(const WeightRow& row) {
  const bool apart = row.experts > 0 && row.stack == WeightRow::Stack::kApart;
  return row.sources.size() / static_cast<size_t>(apart ? row.experts : 1);
}

int64_t matrix_rows(const WeightRow& row) {
  return row.experts > 0 ? row.expert_rows : row.rows;
}

int64_t stored_rows(const WeightRow& row) {
  return row.part ? row.part->whole_rows : matrix_rows(row);
}

int64_t stored_width(const WeightRow& row) {
  return row.part ? row.part->whole_width : row.width;
}

Result<std::vector<PackedWeight>> resolve_weights(const WeightTable& table,
                                                  const Checkpoint& checkpoint, WeightFormat format,
                                                  uint64_t most_bytes) {
  std::vector<PackedWeight> resolved;
  WeightTable named = table;
  for (WeightRow& row : named.rows) {
    if (row.layout == WeightLayout::kNorm) {
      for (std::string& name : row.sources) name = norm_name(checkpoint, name);
      for (std::string& name : row.biases) name = norm_name(checkpoint, name);
    }
    VKF_CHECK(check_row(checkpoint, row));
    if (row.layout == WeightLayout::kLinear) {
      const size_t first = resolved.size();
      add_linear_slices(row, formats_of(row, &checkpoint, format), most_bytes, resolved);
      for (size_t i = first; i < resolved.size(); ++i) VKF_CHECK(check_part(resolved[i]));
    } else {
      resolved.push_back(plain_layout(row));
    }
  }
  VKF_CHECK(refuse_unknown(named, checkpoint));
  return resolved;
}

std::vector<PackedWeight> planned_weights(const WeightTable& table, WeightFormat format,
                                          uint64_t most_bytes) {
  std::vector<PackedWeight> planned;
  for (const WeightRow& row : table.rows) {
    if (row.layout == WeightLayout::kLinear) {
      add_linear_slices(row, formats_of(row, nullptr, format), most_bytes, planned);
    } else {
      planned.push_back(plain_layout(row));
    }
  }
  return planned;
}

}  // namespace vkformer
