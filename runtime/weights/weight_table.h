// The weights of a model as a table. It says what each is called here, which tensors of the
// checkpoint it is made of, and how it lies in GPU memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/matrix_format.h"
#include "base/work_sharing.h"
#include "checkpoint/checkpoint.h"

namespace vkformer {

// How a weight lies in memory.
enum class WeightLayout : uint8_t {
  kLinear,  // panels of 64 columns of the transposed (K, N) matrix; then the bias (N) in f32
  kNorm,    // (2, D): gain, then bias, both f32
  kTable,   // (rows, D) f32, as in the file: positions, token types
};

// A matrix that is computed when it is packed.
struct MadeMatrix {
  std::vector<float> values;  // (N, K); of experts (X, expert_rows, K)
  std::vector<float> bias;    // (N), or empty where the row has none
};

// What one of several devices has of a kLinear that is divided among them.
struct MatrixPart {
  int64_t whole_rows = 0;      // N of the undivided matrix;
  int64_t whole_width = 0;     // its K.
  std::vector<uint32_t> rows;  // Of its rows, in the order of ours.
  int64_t first_input = 0;     // Of its K; ours follow from there on.
};

// One row: logical name, source names, axes, shape.
struct WeightRow {
  std::string name;  // "encoder.0.self.qkv"
  WeightLayout layout = WeightLayout::kLinear;
  // Sources, stacked along the first axis (merged projections). Empty for kTable: `computed`. Axes
  // beyond the second count as one (convolutions).
  std::vector<std::string> sources;
  // As many biases as sources, or none; an empty name stands for zeros.
  std::vector<std::string> biases;
  int64_t rows = 0;             // kLinear: N in all; kNorm: ignored; kTable: rows
  int64_t width = 0;            // kLinear: K; kNorm and kTable: D
  std::vector<float> computed;  // (rows, D), a table that no file holds
  // First of the sources' first axis (rows) to take, for a matrix that holds several (in_proj).
  // They are rows [first_row, first_row + rows) of the one source. -1 takes all.
  int64_t first_row = -1;
  // Rows that each source must have in its file; empty: equal shares of `rows`.
  std::vector<int64_t> source_rows = {};
  // The axes of each source's matrix: kInOut is (K, N), as GPT-2 stores them; of a kTable (D,
  // rows), whose columns become our rows.
  enum class Axes : uint8_t { kOutIn, kInOut } axes = Axes::kOutIn;
  // Our row r is row row_order[r] of the stacked sources (projections grouped by head); empty: r.
  std::vector<uint32_t> row_order = {};
  // Added to every gain of a kNorm, and to every value of a kTable from a file. Families whose
  // files hold how far a gain is from 1 have 1 here.
  float gain_offset = 0.0f;
  float bias_scale = 1.0f;  // multiplies the biases of a kLinear
  // A tensor (N) that multiplies the rows of a kLinear with one source, and its biases
  // (LayerScale); or empty.
  std::string row_scale = {};
  std::vector<float> row_scales = {};  // multiply our rows of a kLinear, and their biases; or empty
  // A batch norm after a kLinear with one source, folded into it. It is the module of its running
  // statistics and gain, whose bias is the one of `biases`. It is empty if there is none
  // (conv_norm_row).
  std::string batch_norm = {};
  float batch_norm_epsilon = 1e-5f;  // added to the variance
  // A kLinear of `experts` matrices (expert_rows, width): the sources of each in turn, as many for
  // every expert. With kStacked each source has all experts as its first axis. Biases and row_order
  // are one expert's likewise. `rows` counts whole panels of 64 for each (expert_row).
  int64_t experts = 0;      // X; 0: one matrix
  int64_t expert_rows = 0;  // N of one expert
  enum class Stack : uint8_t { kApart, kStacked } stack = Stack::kApart;
  // Computes a kLinear of its sources and biases, which then have the shapes `source_shapes`:
  // lengths and directions of a weight norm, transposed convolutions. Null: it is in the file as it
  // is.
  std::function<Result<MadeMatrix>(const Checkpoint& checkpoint)> make = nullptr;
  std::vector<Shape> source_shapes = {};  // of the sources, then of the biases
  // kExact: in f32 whatever format is asked for, and multiplied so (routers).
  enum class Format : uint8_t { kAsked, kExact } format = Format::kAsked;
  // Of a kLinear of one matrix from files: `rows` and `width` are the part's, and row_order is the
  // undivided matrix's. Absent: the row is all of it.
  std::optional<MatrixPart> part = {};
};

// Sources that make up one matrix, and its rows: of an expert, or of all.
size_t sources_of_matrix(const WeightRow& row);
int64_t matrix_rows(const WeightRow& row);
// Rows and inputs of the matrix that the sources make up, divided or not.
int64_t stored_rows(const WeightRow& row);
int64_t stored_width(const WeightRow& row);

struct WeightTable {
  std::vector<WeightRow> rows;
  // Tensors that checkpoints of this family may hold and inference does not use; '*' matches any
  // run of characters.
  std::vector<std::string> ignored;
};

// The tensors of a file that the rows read.
std::set<std::string> tensor_names(const WeightTable& table);

// A weight's place in memory, decided before any byte is moved. A matrix too large for one binding,
// or stored in several formats, is several of them, one after the other. These are slices of its
// columns, each with its own bias.
struct PackedWeight {
  WeightRow row;
  int64_t first_column = 0;  // of the slice, in the packed (K, N) matrix; a multiple of 64
  int64_t columns = 0;       // of the slice; N where the matrix is one
  MatrixFormat format = MatrixFormat::kF32;  // bias, norms and tables are always f32
  uint32_t bias_offset = ~0u;                // 32-bit words, kLinear; ~0 = none
  uint64_t bytes = 0;
};

// Checks every row against the checkpoint (each error names file and tensor), refuses tensors that
// neither a row nor `ignored` knows, and decides the layouts. A matrix of more than `most_bytes` is
// sliced, as far as whole panels allow.
Result<std::vector<PackedWeight>> resolve_weights(const WeightTable& table,
                                                  const Checkpoint& checkpoint, WeightFormat format,
                                                  uint64_t most_bytes = ~uint64_t{0});

// The same without a checkpoint: matrices have the format that is asked for, kAsStored f32.
std::vector<PackedWeight> planned_weights(const WeightTable& table, WeightFormat format,
                                          uint64_t most_bytes = ~uint64_t{0});

// Writes the packed form of one weight; `out` has `weight.bytes` bytes. Helpers pack panels of a
// matrix beside the calling thread.
Status pack_weight(const PackedWeight& weight, const Checkpoint& checkpoint,
                   std::span<std::byte> out, const Helpers& helpers = {});

}  // namespace vkformer
