#include "checkpoint/coded_tensors.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

constexpr size_t kMostRank = 3;

Error misfit(const std::string& name, const std::string& what) {
  return invalid_file(message({bracketed(name), " is quantized, but ", what,
                               "; the file and its config.json do not belong together."}));
}

std::string described(const TensorView& view) {
  const char* type = view.float8 == Float8::kE4m3   ? "F8_E4M3"
                     : view.float8 == Float8::kE5m2 ? "F8_E5M2"
                     : view.float8 == Float8::kE8m0 ? "F8_E8M0"
                                                    : dtype_name(view.dtype);
  return message({type, " ", shape_text(view.shape)});
}

int64_t ceil_div(int64_t value, int64_t by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

bool is_words(const TensorView& view) {
  return (view.dtype == DType::kI32 || view.dtype == DType::kU32) && view.shape.size() == 2 &&
         !view.bytes.empty();
}

size_t as_size(int64_t value) {
  return static_cast<size_t>(value);
}

// Collects what one matrix is made of.
class Parts {
 public:
  Parts(std::string name, const TensorFinder& find) : name_(std::move(name)), find_(find) {}

  const TensorView* maybe(const std::string& part) {
    const TensorView* view = find_(part);
    if (view == nullptr) return nullptr;
    names_.push_back(part);
    bytes_ += view->bytes.size();
    return view;
  }
  Result<const TensorView*> need(const std::string& part) {
    const TensorView* view = maybe(part);
    if (view == nullptr) return misfit(name_, message({bracketed(part), " is missing"}));
    return view;
  }

  const std::string& name() const { return name_; }
  uint64_t bytes() const { return bytes_; }
  CodedTensor made(Shape shape, std::shared_ptr<const CodedMatrix> matrix) const {
    return {name_, std::move(shape), names_.front(), names_, std::move(matrix), nullptr};
  }

 private:
  std::string name_;  // of the matrix
  const TensorFinder& find_;
  std::vector<std::string> names_;
  uint64_t bytes_ = 0;
};

struct MatrixSize {
  int64_t n = 0;
  int64_t k = 0;
};

// Columns of a group where K columns have `groups` of them: as the configuration says, if it fits.
Result<size_t> group_width(const Parts& parts, const QuantizationMethod& method, int64_t k,
                           int64_t groups) {
  if (groups == 1) return as_size(k);
  for (const int64_t said : method.group_sizes) {
    if (said > 0 && ceil_div(k, said) == groups) return as_size(said);
  }
  if (method.group_sizes.empty() && groups > 0 && k % groups == 0) return as_size(k / groups);
  return misfit(parts.name(), message({"its ", groups, " groups of scales do not divide ", k,
                                       " input features by the [group_size] of config.json"}));
}

// The blocks of columns that an index gives; nothing where they are in turn.
Result<std::vector<uint32_t>> read_blocks(const Parts& parts, const TensorView* index, int64_t k,
                                          int64_t groups, size_t width) {
  std::vector<uint32_t> blocks;
  if (index == nullptr) return blocks;
  if (index->dtype != DType::kI32 || index->shape != Shape{k}) {
    return misfit(parts.name(), message({"its index of groups is ", described(*index),
                                         " and not I32 (", k, ")"}));
  }
  bool unset = true, in_turn = true;
  for (int64_t i = 0; i < k; ++i) {
    int32_t block = 0;
    std::memcpy(&block, index->bytes.data() + 4 * as_size(i), 4);
    unset = unset && block == -1;
    in_turn = in_turn && block == static_cast<int64_t>(as_size(i) / width);
    blocks.push_back(static_cast<uint32_t>(block));
  }
  // compressed-tensors has -1 throughout where the order was not changed.
  if (unset || in_turn) return std::vector<uint32_t>();
  for (const uint32_t block : blocks) {
    if (block < static_cast<uint64_t>(groups)) continue;
    return misfit(parts.name(), message({"its index of groups has ", static_cast<int32_t>(block),
                                         ", but there are ", groups, " groups"}));
  }
  return blocks;
}

// Scales (G, N) of groups of columns, as GPTQ and AWQ store them.
Result<ScaleGrid> scales_down(const Parts& parts, const QuantizationMethod& method,
                              const TensorView& scales, MatrixSize size) {
  if (!is_scale(scales) || scales.shape.size() != 2 || scales.shape[1] != size.n ||
      scales.shape[0] < 1) {
    return misfit(parts.name(), message({"its scales are ", described(scales),
                                         " and not floats (groups, ", size.n, ")"}));
  }
  ScaleGrid grid{.view = scales, .row_stride = 1, .column_stride = as_size(size.n)};
  VKF_ASSIGN(grid.columns, group_width(parts, method, size.k, scales.shape[0]));
  return grid;
}

Result<CodedTensor> join_gptq(const QuantizationMethod& method, const std::string& module,
                              const TensorFinder& find) {
  Parts parts(module + ".weight", find);
  VKF_ASSIGN(const TensorView* codes, parts.need(module + ".qweight"));
  VKF_ASSIGN(const TensorView* zeros, parts.need(module + ".qzeros"));
  VKF_ASSIGN(const TensorView* scales, parts.need(module + ".scales"));
  const TensorView* index = parts.maybe(module + ".g_idx");
  if (!is_words(*codes) || !is_words(*zeros)) {
    return misfit(parts.name(), message({"its codes are ", described(*codes), " and its zeros ",
                                         described(*zeros), " and not matrices of I32"}));
  }
  const int64_t n = codes->shape[1];
  // Zeros are N numbers in words, which says how many bits each has.
  const int64_t bits = zeros->shape[1] > n ? 0 : zeros->shape[1] * 32 / n;
  const bool known = bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (!known || zeros->shape[1] * 32 != n * bits || codes->shape[0] * 32 % bits != 0 ||
      (!method.bits_vary && method.bits != std::vector<int64_t>{bits})) {
    return misfit(parts.name(),
                  message({"its codes ", shape_text(codes->shape), " and zeros ",
                           shape_text(zeros->shape), " are not of the [bits] of config.json"}));
  }
  const MatrixSize size{n, codes->shape[0] * 32 / bits};
  CodedIntegers integers{.codes = {codes->bytes, 1, as_size(n), static_cast<uint32_t>(bits)}};
  VKF_ASSIGN(integers.scales, scales_down(parts, method, *scales, size));
  if (zeros->shape[0] != scales->shape[0]) {
    return misfit(parts.name(), message({"it has zeros of ", zeros->shape[0],
                                         " groups and scales of ", scales->shape[0]}));
  }
  integers.zeros =
      PackedInts{zeros->bytes, as_size(zeros->shape[1]), 1, static_cast<uint32_t>(bits)};
  integers.zero = method.zeros_less_one ? 1 : 0;
  VKF_ASSIGN(integers.blocks,
             read_blocks(parts, index, size.k, scales->shape[0], integers.scales.columns));
  return parts.made({size.n, size.k},
                    coded_integers(message({"GPTQ ", bits, " bits"}), as_size(size.k),
                                   parts.bytes(), std::move(integers)));
}

Result<CodedTensor> join_awq(const QuantizationMethod& method, const std::string& module,
                             const TensorFinder& find) {
  Parts parts(module + ".weight", find);
  VKF_ASSIGN(const TensorView* codes, parts.need(module + ".qweight"));
  VKF_ASSIGN(const TensorView* zeros, parts.need(module + ".qzeros"));
  VKF_ASSIGN(const TensorView* scales, parts.need(module + ".scales"));
  if (!is_words(*codes) || !is_words(*zeros) || zeros->shape[1] != codes->shape[1] ||
      scales->shape.size() != 2 || zeros->shape[0] != scales->shape[0]) {
    return misfit(parts.name(),
                  message({"its codes are ", described(*codes), ", its zeros ", described(*zeros),
                           " and its scales ", described(*scales),
                           " and not I32 (K, N / 8), I32 (groups, N / 8) and (groups, N)"}));
  }
  if (codes->shape[1] > INT32_MAX) return misfit(parts.name(), "it is too wide");
  const MatrixSize size{codes->shape[1] * 8, codes->shape[0]};
  const auto line = as_size(codes->shape[1]);
  CodedIntegers integers{.codes = {codes->bytes, line, 1, 4, PackedInts::Order::kAwq},
                         .lines = CodedIntegers::Lines::kColumns,
                         .zeros = PackedInts{zeros->bytes, line, 1, 4, PackedInts::Order::kAwq}};
  VKF_ASSIGN(integers.scales, scales_down(parts, method, *scales, size));
  return parts.made({size.n, size.k}, coded_integers("AWQ 4 bits", as_size(size.k), parts.bytes(),
                                                     std::move(integers)));
}

// Scales over the last two axes of `shape`: one, one a row, one a group of columns, or one a block
// of `block`.
Result<ScaleGrid> scales_of_rows(const Parts& parts, const QuantizationMethod& method,
                                 const std::string& scale, const TensorView& scales,
                                 const Shape& shape) {
  const int64_t n = shape[shape.size() - 2], k = shape.back();
  const int64_t matrices = shape.size() == 3 ? shape[0] : 1;
  ScaleGrid grid{.view = scales, .rows = 1, .columns = as_size(k)};
  const int64_t count = element_count(scales.shape);
  if (!is_scale(scales)) {
    return misfit(parts.name(),
                  message({"its scales [", scale, "] are ", described(scales), " and no floats"}));
  }
  if (count == 1) return grid;
  Shape own = scales.shape;
  if (shape.size() == 3 && !own.empty() && own[0] == matrices) {
    grid.matrix_rows = as_size(n);
    grid.matrix_stride = as_size(count / matrices);
    own.erase(own.begin());
    if (element_count(own) == 1) return grid;
  } else if (shape.size() == 3) {
    own.clear();
  }
  if (own == Shape{n} || own == Shape{n, 1}) {
    grid.row_stride = 1;
    return grid;
  }
  if (method.block.size() == 2 &&
      own == Shape{ceil_div(n, method.block[0]), ceil_div(k, method.block[1])}) {
    grid.rows = as_size(method.block[0]);
    grid.columns = as_size(method.block[1]);
  } else if (own.size() == 2 && own[0] == n && own[1] > 0) {
    VKF_ASSIGN(grid.columns, group_width(parts, method, k, own[1]));
  } else {
    return misfit(parts.name(), message({"its scales [", scale, "] are ", described(scales),
                                         " for weights ", shape_text(shape)}));
  }
  grid.row_stride = as_size(own[1]);
  grid.column_stride = 1;
  return grid;
}

// (N, K) that X.weight_shape says.
Result<MatrixSize> read_shape(const Parts& parts, const TensorView& view) {
  int64_t sizes[2] = {0, 0};
  const bool wide = view.dtype == DType::kI64;
  if ((!wide && view.dtype != DType::kI32) || view.shape != Shape{2}) {
    return misfit(parts.name(), message({"its shape is ", described(view), " and not I64 (2)"}));
  }
  for (size_t i = 0; i < 2; ++i) {
    if (wide) {
      std::memcpy(&sizes[i], view.bytes.data() + 8 * i, 8);
    } else {
      int32_t narrow = 0;
      std::memcpy(&narrow, view.bytes.data() + 4 * i, 4);
      sizes[i] = narrow;
    }
    if (sizes[i] >= 1 && sizes[i] <= INT32_MAX) continue;
    return misfit(parts.name(), message({"its shape has the size ", sizes[i]}));
  }
  return MatrixSize{sizes[0], sizes[1]};
}

// Codes of compressed-tensors in 32-bit words.
Result<CodedTensor> join_packed(const QuantizationMethod& method, const std::string& module,
                                const TensorFinder& find) {
  Parts parts(module + ".weight", find);
  VKF_ASSIGN(const TensorView* codes, parts.need(module + ".weight_packed"));
  VKF_ASSIGN(const TensorView* scales, parts.need(module + ".weight_scale"));
  VKF_ASSIGN(const TensorView* said, parts.need(module + ".weight_shape"));
  const TensorView* zeros = parts.maybe(module + ".weight_zero_point");
  const TensorView* index = parts.maybe(module + ".weight_g_idx");
  VKF_ASSIGN(const MatrixSize size, read_shape(parts, *said));
  int64_t bits = 0;
  for (const int64_t some : method.bits) {
    if ((some == 2 || some == 4 || some == 8) &&
        codes->shape == Shape{size.n, ceil_div(size.k * some, 32)}) {
      bits = some;
      break;
    }
  }
  if (bits == 0 || !is_words(*codes)) {
    return misfit(parts.name(),
                  message({"its codes are ", described(*codes), " for ", size.n, " x ", size.k,
                           " weights, which is not I32 of [num_bits] 2, 4 or 8"}));
  }
  CodedIntegers integers{
      .codes = {codes->bytes, as_size(codes->shape[1]), 1, static_cast<uint32_t>(bits)}};
  VKF_ASSIGN(integers.scales,
             scales_of_rows(parts, method, module + ".weight_scale", *scales, {size.n, size.k}));
  const int64_t groups = scales->shape.size() == 2 ? scales->shape[1] : 1;
  if (zeros == nullptr) {
    integers.zero = 1 << (bits - 1);
  } else {
    if (!is_words(*zeros) || zeros->shape != Shape{ceil_div(size.n * bits, 32), groups} ||
        element_count(scales->shape) != size.n * groups) {
      return misfit(parts.name(), message({"its zeros are ", described(*zeros), " for scales ",
                                           shape_text(scales->shape)}));
    }
    integers.zeros = PackedInts{zeros->bytes, 1, as_size(groups), static_cast<uint32_t>(bits)};
  }
  VKF_ASSIGN(integers.blocks, read_blocks(parts, index, size.k, groups, integers.scales.columns));
  return parts.made({size.n, size.k},
                    coded_integers(message({"compressed-tensors ", bits, " bits"}), as_size(size.k),
                                   parts.bytes(), std::move(integers)));
}

// Floats of 4 bits of compressed-tensors: NVFP4, or MXFP4.
Result<CodedTensor> join_float4(const QuantizationMethod& method, const std::string& module,
                                const TensorFinder& find) {
  Parts parts(module + ".weight", find);
  VKF_ASSIGN(const TensorView* codes, parts.need(module + ".weight_packed"));
  VKF_ASSIGN(const TensorView* scales, parts.need(module + ".weight_scale"));
  const TensorView* global = parts.maybe(module + ".weight_global_scale");
  if (codes->shape.size() != 2 || codes->bytes.empty() || codes->shape[1] > INT32_MAX) {
    return misfit(parts.name(), message({"its codes are ", described(*codes)}));
  }
  const Shape shape = {codes->shape[0], codes->shape[1] * 2};
  if (scales->float8 != Float8::kE4m3) {
    if (scales->dtype != DType::kU8 || scales->shape != Shape{shape[0], shape[1] / 32} ||
        shape[1] % 32 != 0 || global != nullptr) {
      return misfit(parts.name(), message({"its scales are ", described(*scales), " for weights ",
                                           shape_text(shape), " in MXFP4"}));
    }
    CodedTensor tensor = parts.made(shape, nullptr);
    tensor.mxfp4_scales = scales;
    return tensor;
  }
  CodedFloats floats{.codes = codes->bytes, .table = float4_table()};
  VKF_ASSIGN(floats.scales,
             scales_of_rows(parts, method, module + ".weight_scale", *scales, shape));
  if (global == nullptr || !is_scale(*global) || element_count(global->shape) != 1) {
    return misfit(parts.name(), "its [weight_global_scale] is not one float");
  }
  floats.scales->divisor = scale_element(*global, 0);
  return parts.made(shape, coded_floats("NVFP4", as_size(shape[1]), parts.bytes(), floats));
}

// Weights of one byte each: X.weight in I8 or F8_E4M3, of compressed-tensors and fp8. `scale` is
// the name of its scales.
Result<CodedTensor> join_bytes(const QuantizationMethod& method, const std::string& name,
                               const std::string& scale, const std::string& zero,
                               const TensorFinder& find) {
  Parts parts(name, find);
  VKF_ASSIGN(const TensorView* codes, parts.need(name));
  VKF_ASSIGN(const TensorView* scales, parts.need(scale));
  const TensorView* zeros = zero.empty() ? nullptr : parts.maybe(zero);
  const size_t rank = codes->shape.size();
  const bool floats = codes->float8 == Float8::kE4m3 || codes->float8 == Float8::kE5m2;
  if ((!floats && codes->dtype != DType::kI8) || rank < 2 || rank > kMostRank ||
      codes->bytes.empty() || (rank != 2 && !floats)) {
    return misfit(name, message({"its codes are ", described(*codes),
                                 " and not I8 (N, K) or F8_E4M3 (N, K)"}));
  }
  VKF_ASSIGN(const ScaleGrid grid, scales_of_rows(parts, method, scale, *scales, codes->shape));
  const size_t k = as_size(codes->shape.back());
  if (floats) {
    CodedFloats coded{.codes = codes->bytes, .table = float8_table(codes->float8), .scales = grid};
    const char* type = codes->float8 == Float8::kE4m3 ? "FP8 E4M3" : "FP8 E5M2";
    return parts.made(codes->shape, coded_floats(type, k, parts.bytes(), std::move(coded)));
  }
  CodedIntegers coded{.signed_codes = codes->bytes, .scales = grid};
  if (zeros != nullptr) {
    if (zeros->dtype != DType::kI8 || zeros->shape != scales->shape) {
      return misfit(name, message({"its zeros [", zero, "] are ", described(*zeros), " for scales ",
                                   shape_text(scales->shape), " and not I8"}));
    }
    coded.signed_zeros = zeros;
  }
  return parts.made(codes->shape, coded_integers("int8", k, parts.bytes(), std::move(coded)));
}

// bitsandbytes' 8 bits: a row's largest weight is 127.
Result<CodedTensor> join_rows(const std::string& module, const TensorFinder& find) {
  Parts parts(module + ".weight", find);
  VKF_ASSIGN(const TensorView* codes, parts.need(parts.name()));
  VKF_ASSIGN(const TensorView* largest, parts.need(module + ".SCB"));
  const TensorView* layout = parts.maybe(module + ".weight_format");
  if (layout != nullptr && (layout->bytes.size() != 1 || layout->bytes[0] != std::byte{0})) {
    return misfit(parts.name(), "its [weight_format] is not 0, which is rows");
  }
  if (codes->dtype != DType::kI8 || codes->shape.size() != 2 || codes->bytes.empty() ||
      largest->dtype != DType::kF32 || largest->shape != Shape{codes->shape[0]}) {
    return misfit(parts.name(), message({"its codes are ", described(*codes), " and its [SCB] ",
                                         described(*largest), " and not I8 (N, K) and F32 (N)"}));
  }
  const auto k = as_size(codes->shape[1]);
  CodedIntegers integers{
      .signed_codes = codes->bytes,
      .scales = {.view = *largest, .columns = k, .row_stride = 1, .divisor = 127}};
  return parts.made(codes->shape,
                    coded_integers("bitsandbytes int8", k, parts.bytes(), std::move(integers)));
}

bool is_floats(const TensorView& view, int64_t count) {
  return view.dtype == DType::kF32 && element_count(view.shape) == count;
}

// A size of a run of weights, which a file gives.
Result<size_t> read_run(const Parts& parts, const JsonConfig& state, const std::string& key) {
  VKF_ASSIGN(const int64_t size, state.get_int(key));
  if (size >= 1 && size <= (1 << 20)) return as_size(size);
  return misfit(parts.name(), message({"[", key, "] is ", size, " and not 1 to ", 1 << 20}));
}

Status read_nested(Parts& parts, const JsonConfig& state, int64_t blocks, CodedTable& table) {
  VKF_ASSIGN(const TensorView* nested, parts.need(parts.name() + ".nested_absmax"));
  VKF_ASSIGN(const TensorView* map, parts.need(parts.name() + ".nested_quant_map"));
  VKF_ASSIGN(table.nested_block, read_run(parts, state, "nested_blocksize"));
  VKF_ASSIGN(table.nested_offset, state.get_double("nested_offset"));
  const int64_t runs = ceil_div(blocks, static_cast<int64_t>(table.nested_block));
  if (!is_floats(*map, 256) || !is_floats(*nested, runs) ||
      element_count(table.absmax.shape) != blocks) {
    return misfit(parts.name(),
                  message({"its [nested_absmax] ", described(*nested), " and [nested_quant_map] ",
                           described(*map), " do not go with ", blocks, " blocks"}));
  }
  table.nested = *nested;
  table.nested_table = *map;
  return {};
}

// bitsandbytes' 4 bits (nf4, fp4).
Result<CodedTensor> join_table(const std::string& name, const std::string& state_name,
                               const TensorFinder& find) {
  Parts parts(name, find);
  VKF_ASSIGN(const TensorView* codes, parts.need(name));
  VKF_ASSIGN(const TensorView* absmax, parts.need(name + ".absmax"));
  VKF_ASSIGN(const TensorView* map, parts.need(name + ".quant_map"));
  VKF_ASSIGN(const TensorView* text, parts.need(state_name));
  constexpr size_t kLongest = 65536;
  if (text->bytes.size() > kLongest) {
    return misfit(name,
                  message({"its state has ", text->bytes.size(), " bytes, above ", kLongest}));
  }
  VKF_ASSIGN(
      const JsonConfig state,
      JsonConfig::parse({reinterpret_cast<const char*>(text->bytes.data()), text->bytes.size()},
                        bracketed(state_name)));
  VKF_ASSIGN(const std::vector<int64_t> shape, state.get_int_list_or("shape", {}));
  if (shape.size() != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX ||
      shape[1] > INT32_MAX) {
    return misfit(name, "the [shape] of its state is not two sizes");
  }
  const int64_t weights = shape[0] * shape[1];
  CodedTable table{.codes = codes->bytes, .table = *map, .absmax = *absmax};
  VKF_ASSIGN(table.block, read_run(parts, state, "blocksize"));
  const int64_t blocks = ceil_div(weights, static_cast<int64_t>(table.block));
  if (static_cast<uint64_t>(ceil_div(weights, 2)) != codes->bytes.size() || !is_floats(*map, 16)) {
    return misfit(name, message({"its codes are ", described(*codes), " and its [quant_map] ",
                                 described(*map), " for weights ", shape_text(shape)}));
  }
  if (absmax->dtype == DType::kU8 && absmax->float8 == Float8::kNone) {
    VKF_CHECK(read_nested(parts, state, blocks, table));
  } else if (!is_floats(*absmax, blocks)) {
    return misfit(name,
                  message({"its [absmax] is ", described(*absmax), " for ", blocks, " blocks"}));
  }
  const bool nf4 = state_name.ends_with("nf4");
  return parts.made(shape, coded_table(nf4 ? "bitsandbytes nf4" : "bitsandbytes fp4",
                                       as_size(shape[1]), parts.bytes(), table));
}

// What stands before `ending` in `name`; false where it does not end so.
bool split(const std::string& name, const std::string& ending, std::string& front) {
  if (!name.ends_with(ending)) return false;
  front = name.substr(0, name.size() - ending.size());
  return true;
}

// The matrix that a tensor of that name is a part of, found by one part of each kind; or nothing.
Result<std::optional<CodedTensor>> join_of(const QuantizationMethod& method,
                                           const std::string& name, const TensorFinder& find) {
  using Kind = QuantizationKind;
  std::string front;
  Result<CodedTensor> made = CodedTensor{};
  if ((method.kind == Kind::kGptq || method.kind == Kind::kAwq) && split(name, ".qweight", front)) {
    made =
        method.kind == Kind::kGptq ? join_gptq(method, front, find) : join_awq(method, front, find);
  } else if (method.kind == Kind::kCompressedTensors && split(name, ".weight_packed", front)) {
    const bool words = find(name)->dtype == DType::kI32 || find(name)->dtype == DType::kU32;
    made = words ? join_packed(method, front, find) : join_float4(method, front, find);
  } else if (method.kind == Kind::kCompressedTensors && split(name, ".weight_scale", front) &&
             find(front + ".weight_packed") == nullptr) {
    made = join_bytes(method, front + ".weight", name, front + ".weight_zero_point", find);
  } else if (method.kind == Kind::kFloat8 &&
             (split(name, "_scale_inv", front) || split(name, ".weight_scale", front))) {
    const std::string codes = name.ends_with("_scale_inv") ? front : front + ".weight";
    made = join_bytes(method, codes, name, "", find);
  } else if (method.kind == Kind::kBitsAndBytes && split(name, ".SCB", front)) {
    made = join_rows(front, find);
  } else if (method.kind == Kind::kBitsAndBytes &&
             (split(name, ".quant_state.bitsandbytes__nf4", front) ||
              split(name, ".quant_state.bitsandbytes__fp4", front))) {
    made = join_table(front, name, find);
  } else {
    return std::optional<CodedTensor>();
  }
  if (!made) return made.error();
  return std::optional<CodedTensor>(std::move(made).value());
}

bool of_activations(const std::string& name) {
  for (const char* ending :
       {".input_scale", ".input_zero_point", ".input_global_scale", ".output_scale",
        ".output_zero_point", "activation_scale", ".k_scale", ".v_scale", ".q_scale"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace

Result<CodedTensors> find_coded_tensors(const QuantizationMethod& method,
                                        const std::vector<std::string>& names,
                                        const TensorFinder& find) {
  CodedTensors found;
  if (method.kind == QuantizationKind::kNone || method.kind == QuantizationKind::kMxfp4) {
    return found;
  }
  for (const std::string& name : names) {
    if (of_activations(name)) {
      found.dropped.push_back(name);
      continue;
    }
    VKF_ASSIGN(std::optional<CodedTensor> made, join_of(method, name, find));
    if (made) found.tensors.push_back(std::move(*made));
  }
  return found;
}

CodedTensor plain_float8(const std::string& name, const TensorView& view) {
  CodedFloats floats{.codes = view.bytes, .table = float8_table(view.float8)};
  const size_t k = view.shape.empty() ? 1 : as_size(view.shape.back());
  const char* type = view.float8 == Float8::kE4m3 ? "FP8 E4M3" : "FP8 E5M2";
  return {name,   view.shape, name, {name}, coded_floats(type, k, view.bytes.size(), floats),
          nullptr};
}

}  // namespace vkformer
