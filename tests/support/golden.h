// Golden cases (tests/golden/README.md): where they are, what they hold, and the comparison.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "vkformer/tensor.h"

namespace vkformer::testing {

using Json = nlohmann::json;

inline Json read_json(const std::string& path) {
  std::ifstream stream(path);
  Json json = Json::parse(stream, nullptr, false);
  REQUIRE_MESSAGE(json.is_object(), path);
  return json;
}

struct GoldenCase {
  std::string name;
  std::string folder;
  Json facts;  // case.json

  std::string path(const std::string& file) const { return folder + "/" + file; }
  bool has(const std::string& file) const { return std::filesystem::exists(path(file)); }
  TensorMap tensors(const std::string& file) const {
    auto read = read_tensor_file(path(file));
    REQUIRE_MESSAGE(read.ok(), read.error().message);
    return std::move(read).value();
  }
  // The inputs of a pass: without the prompts of a generation, generate.*.
  TensorMap pass_inputs() const {
    TensorMap inputs = tensors("inputs.safetensors");
    std::erase_if(inputs, [](const auto& item) { return item.first.starts_with("generate."); });
    return inputs;
  }
};

inline std::string golden_folder() {
  return std::string(VKFORMER_SOURCE_DIR) + "/tests/golden";
}

inline GoldenCase golden_case(const std::string& name) {
  const std::string folder = golden_folder() + "/" + name;
  return {name, folder, read_json(folder + "/case.json")};
}

// Every case that holds `file`, in name order.
inline std::vector<GoldenCase> golden_cases_with(const std::string& file) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (std::filesystem::exists(entry.path() / file)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  std::vector<GoldenCase> cases;
  for (const std::string& name : names) cases.push_back(golden_case(name));
  return cases;
}

// Per element of `shape`, whether a mask with axes of 1 or that size lets it be compared.
inline std::vector<bool> compared_elements(const Shape& shape, const Tensor* mask) {
  std::vector<bool> keep(static_cast<size_t>(element_count(shape)), true);
  if (mask == nullptr) return keep;
  REQUIRE(mask->shape.size() == shape.size());
  for (size_t i = 0; i < keep.size(); ++i) {
    size_t rest = i;
    size_t at = 0;
    size_t stride = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
      const auto size = static_cast<size_t>(shape[axis]);
      const auto masked = static_cast<size_t>(mask->shape[axis]);
      at += masked == 1 ? 0 : rest % size * stride;
      stride *= masked;
      rest /= size;
    }
    keep[i] = mask->bytes[at] != std::byte{0};
  }
  return keep;
}

// |actual - expected| <= abs + rel |expected| of the case wherever its mask compares; NaN fails,
// infinity must meet the same infinity.
inline void check_golden_floats(const GoldenCase& golden, const std::string& name,
                                const Tensor& expected, const Tensor* mask, const Tensor& actual) {
  INFO(golden.name << ": " << name);
  REQUIRE(actual.shape == expected.shape);
  const auto a = actual.to_floats();
  const auto e = expected.to_floats();
  REQUIRE(a.ok());
  REQUIRE(e.ok());
  const double absolute = golden.facts.at("tolerance").at("abs").get<double>();
  const double relative = golden.facts.at("tolerance").at("rel").get<double>();
  const std::vector<bool> keep = compared_elements(expected.shape, mask);
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = 0; i < a->size(); ++i) {
    const double x = (*a)[i];
    const double y = (*e)[i];
    const bool close = x == y || (std::isfinite(x) && std::isfinite(y) &&
                                  std::abs(x - y) <= absolute + relative * std::abs(y));
    if (close || !keep[i]) continue;
    if (wrong++ == 0) first = i;
  }
  const double shown = a->empty() ? 0 : (*a)[first];
  const double wanted = e->empty() ? 0 : (*e)[first];
  CHECK_MESSAGE(wrong == 0, wrong << " of " << a->size() << " elements differ, the first at "
                                  << first << ": " << shown << " instead of " << wanted);
}

inline void check_golden_ints(const GoldenCase& golden, const std::string& name,
                              const Tensor& expected, const Tensor& actual) {
  INFO(golden.name << ": " << name);
  REQUIRE(actual.shape == expected.shape);
  const auto a = actual.to_ints();
  const auto e = expected.to_ints();
  REQUIRE(a.ok());
  REQUIRE(e.ok());
  CHECK(*a == *e);
}

}  // namespace vkformer::testing
