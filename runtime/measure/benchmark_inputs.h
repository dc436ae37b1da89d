// A graph whose external tensors have random contents, the same on every machine.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "measure/timed_plan.h"
#include "ops/matmul.h"

namespace vkformer {

// Numbers uniform in [-1, 1), the same on every machine: SplitMix64 (Steele, Lea and Flood, 2014).
// Standard distributions differ between libraries.
class UniformNoise {
 public:
  explicit UniformNoise(uint32_t seed) : state_(uint64_t{seed} << 32) {}
  float next();

 private:
  uint64_t state_;
};

class BenchmarkInputs {
 public:
  Graph& graph() { return graph_; }

  // Uniform in [-1, 1). -> (rows, columns)
  TensorId uniform(const std::string& name, int64_t rows, int64_t columns);
  // A weight (K, N), uniform with variance 1 / (3 K), so that products of unit inputs stay small.
  // It is laid out as weights/pack.cpp does it: rows padded to a multiple of 8 columns.
  enum class Bias : uint8_t { kNo, kYes };
  LinearWeight linear(const std::string& name, int64_t k, int64_t n, MatrixFormat format,
                      Bias bias);
  // Gains around 1 and biases around 0. -> (2, D)
  TensorId norm(const std::string& name, int64_t width);

  // Makes a temporary an output of that name.
  void name_output(TensorId tensor, const std::string& name);
  // Fills every input of a plan of this graph.
  Status upload_to(TimedPlan& plan) const;

 private:
  // Rows of `columns` random elements, scaled and shifted, every row padded with zeros to `stride`
  // elements.
  struct Part {
    uint64_t rows, columns, stride;
    float scale, shift;
    DType dtype;
  };
  struct Input {
    TensorId tensor;
    std::vector<Part> parts;
    MatrixFormat blocks = MatrixFormat::kF32;  // or the first part's, which is a matrix in blocks
  };
  static void append_blocks(const Input& input, UniformNoise& random,
                            std::vector<std::byte>& bytes);
  static void append(const Part& part, UniformNoise& random, std::vector<std::byte>& bytes);

  Graph graph_;
  std::vector<Input> inputs_;
};

// Whether `value` is from 1 to `most`; the error names the option.
Status check_benchmark_size(const char* benchmark, const char* option, int64_t value, int64_t most);

}  // namespace vkformer
