// How one class of matrix products with a packed weight is computed. It is a row of the table of
// choices (ops/matmul_table.h), as a device's class has it or as the tuner found it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vkformer {

enum class MatmulStrategy : uint8_t {
  kRows,     // a few rows: streams B once
  kStream,   // a few rows: streams B once by loads that all lanes share
  kWide,     // software devices: large register tiles, no shared memory
  kLiteral,  // the same with a tile that is written into the SPIR-V; subgroups of 4
  kSlabs,    // the same compiler, weights in f32: every 8 steps of a panel from one address
  // The same compiler, many rows: weights stay, rows pass, 128 steps of each from one address.
  kStationary,
  kStrided,   // software devices, any strides of f32 operands: the same tiles, element loads
  kTiled,     // GPUs, any strides: shared-memory tiles
  kUnits,     // cooperative matrices, only where halves may be multiplied
  kDots,      // precision int8: rows in bytes times weights in blocks, a few rows
  kDotTiles,  // the same by shared-memory tiles
};

// Numbers that a strategy does not use are 0.
struct MatmulChoice {
  uint32_t max_rows = 0;  // rows of the largest product that it holds for
  MatmulStrategy strategy = MatmulStrategy::kRows;
  uint8_t rows = 0;    // of a tile or block
  uint8_t lanes = 0;   // kRows, kDots: groups of 8 columns of a workgroup; kWide: groups of an
                       // invocation; kUnits: which of DeviceCaps::matrix_units
  uint8_t slices = 0;  // kRows, kDots: parts of K, summed in order

  bool operator==(const MatmulChoice&) const = default;
};

inline constexpr uint32_t kAnyRows = 0xffffffffu;  // MatmulChoice::max_rows of the last row

// Rows by ascending max_rows, for weights in f32 and in f16.
using MatmulTuning = std::array<std::vector<MatmulChoice>, 2>;

const char* strategy_name(MatmulStrategy strategy);  // "rows", "stream", ...
std::optional<MatmulStrategy> strategy_from_name(std::string_view name);

// "wide 16x1", for tables and messages.
std::string choice_text(const MatmulChoice& choice);

}  // namespace vkformer
