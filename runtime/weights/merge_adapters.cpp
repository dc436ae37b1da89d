#include "weights/merge_adapters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "weights/adapter_names.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// What one adapter adds to a matrix (rows, columns) as it lies in the file: left times right.
struct LowRank {
  std::vector<double> left;    // (rows, r), the scale in it
  std::vector<float> right;    // (r, columns)
  std::vector<double> factor;  // of DoRA: what every output feature is multiplied with; or empty
  size_t rank = 0;
  bool rows_are_inputs = false;  // the file's matrix is (K, N): factors are of columns
};

class MergedMatrix : public CodedMatrix {
 public:
  MergedMatrix(const TensorView& base, size_t columns, std::vector<LowRank> parts, uint64_t bytes)
      : CodedMatrix("with adapters", columns, bytes), base_(base), parts_(std::move(parts)) {}

  void read(size_t n, size_t first, std::span<float> out) const override {
    read_elements(base_, n * k() + first, 1, out);
    std::array<double, kPiece> sum{}, added{};
    for (size_t begin = 0; begin < out.size(); begin += kPiece) {
      const size_t count = std::min(kPiece, out.size() - begin);
      for (size_t i = 0; i < count; ++i) sum[i] = out[begin + i];
      for (const LowRank& part : parts_) {
        product(part, n, first + begin, {added.data(), count});
        for (size_t i = 0; i < count; ++i) {
          const double base = out[begin + i];
          if (part.factor.empty()) {
            sum[i] += added[i];
          } else {
            const double c = part.factor[part.rows_are_inputs ? first + begin + i : n];
            sum[i] += (c - 1) * base + c * added[i];
          }
        }
      }
      for (size_t i = 0; i < count; ++i) out[begin + i] = static_cast<float>(sum[i]);
    }
  }

  // The model's own format where that is a plain one; blocks are widened, so that nothing of them
  // is lost.
  MatrixFormat exact_format() const override {
    return base_.blocks == nullptr && base_.dtype == DType::kF16 ? MatrixFormat::kF16
                                                                 : MatrixFormat::kF32;
  }
  bool follows_file() const override { return true; }

  static void product(const LowRank& part, size_t row, size_t first, std::span<double> out) {
    const size_t columns = part.right.size() / part.rank;
    std::fill(out.begin(), out.end(), 0.0);
    for (size_t j = 0; j < part.rank; ++j) {
      const double left = part.left[row * part.rank + j];
      const float* right = part.right.data() + j * columns + first;
      for (size_t i = 0; i < out.size(); ++i) out[i] += left * double{right[i]};
    }
  }

 private:
  static constexpr size_t kPiece = 256;
  TensorView base_;
  std::vector<LowRank> parts_;
};

std::vector<float> values_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(element_count(view.shape)));
  read_elements(view, 0, 1, values);
  return values;
}

std::vector<float> transposed(const std::vector<float>& values, size_t rows) {
  const size_t columns = values.size() / rows;
  std::vector<float> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) out[i % columns * rows + i / columns] = values[i];
  return out;
}

struct FileMatrix {
  size_t rows = 0;
  size_t columns = 0;
};

FileMatrix matrix_of(const TensorView& view) {
  const auto rows = static_cast<size_t>(view.shape[0]);
  return {rows, static_cast<size_t>(element_count(view.shape)) / rows};
}

// The factor of every output feature: its magnitude over the length of what the adapter makes of
// the model's own weights.
std::vector<double> dora_factors(const TensorView& base, const FileMatrix& matrix,
                                 const LowRank& part, const std::vector<float>& magnitude) {
  std::vector<double> squares(magnitude.size(), 0.0), added(matrix.columns);
  std::vector<float> line(matrix.columns);
  for (size_t row = 0; row < matrix.rows; ++row) {
    read_elements(base, row * matrix.columns, 1, line);
    MergedMatrix::product(part, row, 0, added);
    for (size_t i = 0; i < line.size(); ++i) {
      const double value = double{line[i]} + added[i];
      squares[part.rows_are_inputs ? i : row] += value * value;
    }
  }
  for (size_t i = 0; i < squares.size(); ++i) {
    squares[i] = double{magnitude[i]} / std::sqrt(squares[i]);
  }
  return squares;
}

// One module of an adapter for a tensor of the file.
Result<LowRank> low_rank(const AdapterModule& module, float scale, const TensorView& base,
                         bool rows_are_inputs, const std::string& where) {
  const FileMatrix matrix = matrix_of(base);
  const auto rank = static_cast<size_t>(module.down.shape[0]);
  const auto outputs = static_cast<size_t>(module.up.shape[0]);
  const size_t inputs = static_cast<size_t>(element_count(module.down.shape)) / rank;
  const size_t rows = rows_are_inputs ? inputs : outputs;
  const size_t columns = rows_are_inputs ? outputs : inputs;
  if (rows != matrix.rows || columns != matrix.columns) {
    return invalid_file(message({where, " changes a matrix of ", outputs, " outputs and ", inputs,
                                 " inputs, but the model's is ", shape_text(base.shape),
                                 "; the adapter is of another model."}));
  }
  LowRank part{.rank = rank, .rows_are_inputs = rows_are_inputs};
  std::vector<float> down = values_of(module.down), up = values_of(module.up);
  const std::vector<float> left = rows_are_inputs ? transposed(down, rank) : up;
  part.right = rows_are_inputs ? transposed(up, outputs) : std::move(down);
  for (const float value : left) {
    part.left.push_back(double{value} * module.scale * double{scale});
  }
  if (!module.magnitude.bytes.empty()) {
    part.factor = dora_factors(base, matrix, part, values_of(module.magnitude));
  }
  return part;
}

class Merger {
 public:
  Merger(const WeightTable& table, Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const WeightRow& row : table.rows) {
      for (const std::string& source : row.sources) {
        if (row.layout == WeightLayout::kLinear && row.axes == WeightRow::Axes::kInOut) {
          in_out_.insert(source);
        }
      }
    }
    names_ = checkpoint.names();
  }

  Status add(const ScaledAdapter& adapter);
  std::set<std::string> finish();

 private:
  struct Merged {
    std::vector<LowRank> parts;
    uint64_t bytes = 0;
  };
  Result<std::string> find(const std::string& name, const std::string& where) const {
    return adapted_tensor(checkpoint_, names_, name, where);
  }

  Checkpoint& checkpoint_;
  std::vector<std::string> names_;
  std::set<std::string> in_out_;  // matrices (K, N) in the file
  std::map<std::string, Merged> merged_;
  std::map<std::string, TensorView> replaced_;
};

Status Merger::add(const ScaledAdapter& adapter) {
  const std::string& label = adapter.files->label;
  if (!std::isfinite(adapter.scale)) {
    return invalid_argument(message({"The scale of the adapter ", label, " is ", adapter.scale,
                                     ", but must be a finite number."}));
  }
  for (const AdapterModule& module : adapter.files->modules) {
    const std::string where = bracketed(module.module) + " in " + label;
    VKF_ASSIGN(const std::string name, find(module.module + ".weight", where));
    const TensorView& base = checkpoint_.unmerged(name);
    if (!holds_floats(base) || base.shape.size() < 2 || element_count(base.shape) == 0) {
      return invalid_file(message({where, " changes ", bracketed(name), " of shape ",
                                   shape_text(base.shape), ", which is not a matrix of floats."}));
    }
    Merged& merged = merged_[name];
    if (adapter.scale == 0) continue;
    VKF_ASSIGN(LowRank part, low_rank(module, adapter.scale, base,
                                      module.embedding || in_out_.count(name) != 0, where));
    merged.bytes += module.down.bytes.size() + module.up.bytes.size();
    merged.parts.push_back(std::move(part));
  }
  for (const ReplacedTensor& tensor : adapter.files->replaced) {
    const std::string where = bracketed(tensor.name) + " in " + label;
    VKF_ASSIGN(const std::string name, find(tensor.name, where));
    if (tensor.view.shape != checkpoint_.unmerged(name).shape) {
      return invalid_file(
          message({where, " has shape ", shape_text(tensor.view.shape), ", but the model's is ",
                   shape_text(checkpoint_.unmerged(name).shape), "."}));
    }
    if (adapter.scale == 0) {
      replaced_.emplace(name, checkpoint_.unmerged(name));
      continue;
    }
    const auto [known, is_new] = replaced_.insert_or_assign(name, tensor.view);
    (void)known;
    (void)is_new;
  }
  return {};
}

std::set<std::string> Merger::finish() {
  std::set<std::string> changed;
  for (auto& [name, merged] : merged_) {
    const TensorView& base = checkpoint_.unmerged(name);
    auto matrix = std::make_shared<MergedMatrix>(
        base, matrix_of(base).columns, std::move(merged.parts), merged.bytes + base.bytes.size());
    checkpoint_.put_merged(name, join_coded(std::move(matrix), base.shape, base));
    changed.insert(name);
  }
  for (const auto& [name, view] : replaced_) {
    QuantizedTensor tensor{.blocks = {}, .view = view};
    checkpoint_.put_merged(name, std::move(tensor));
    changed.insert(name);
  }
  return changed;
}

}  // namespace

Result<std::set<std::string>> merge_adapters(const WeightTable& table,
                                             const std::vector<ScaledAdapter>& adapters,
                                             Checkpoint& checkpoint) {
  Merger merger(table, checkpoint);
  for (const ScaledAdapter& adapter : adapters) VKF_CHECK(merger.add(adapter));
  return merger.finish();
}

}  // namespace vkformer
