// Specialization constants given their values in SPIR-V: of every kernel, and of hand-made modules.
#include "software/specialize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <random>

#include "kernels/catalogue.h"
#include "kernels/spirv_instructions.h"

using namespace vkformer;

namespace {

std::vector<uint32_t> module_of(std::initializer_list<Instruction> list) {
  std::vector<uint32_t> words = {0x07230203, 0x00010300, 0, 1000, 0};
  for (const Instruction& in : list) {
    words.push_back(static_cast<uint32_t>(in.operands.size() + 1) << 16 | in.op);
    words.insert(words.end(), in.operands.begin(), in.operands.end());
  }
  return words;
}

// u32 = %1, bool = %2; specialization constants %10 and %11 of ids 0 and 1, 7 and 3 by default.
std::vector<uint32_t> module_with(const Instruction& operation) {
  return module_of({{71, {10, 1, 0}},
                    {71, {11, 1, 1}},
                    {21, {1, 32, 0}},
                    {20, {2}},
                    {50, {1, 10, 7}},
                    {50, {1, 11, 3}},
                    operation});
}

// What the operation of two words, or truth values, becomes.
Instruction folded(uint32_t op, uint32_t type, std::initializer_list<uint32_t> values = {}) {
  const std::vector<uint32_t> of(values);
  const auto words = specialize_spirv(module_with({52, {type, 20, op, 10, 11}}), of);
  REQUIRE_MESSAGE(words, words.error().message);
  return instructions(*words).back();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every kernel can be given the values of its constants") {
    std::mt19937 random(5);
    for (size_t k = 0; k < static_cast<size_t>(KernelId::kCount); ++k) {
      const auto id = static_cast<KernelId>(k);
      if (kernel_info(id).words == 0) continue;  // needs a feature that this build omits
      INFO(std::string(kernel_info(id).name));
      const std::vector<uint32_t> words = kernel_spirv(id);
      const auto before = reflect_spirv(words);
      REQUIRE(before);
      std::vector<uint32_t> values(before->spec_ids.empty() ? 0 : before->spec_ids.back() + 1);
      for (uint32_t& value : values) value = 1 + random() % 64;
      const auto made = specialize_spirv(words, values);
      REQUIRE_MESSAGE(made, made.error().message);
      const auto after = reflect_spirv(*made);
      REQUIRE(after);
      CHECK(after->spec_ids.empty());
      CHECK(after->push_bytes == before->push_bytes);
      CHECK(after->bindings.size() == before->bindings.size());
      for (size_t axis = 0; axis < 3; ++axis) {
        const uint32_t spec = before->local_size_spec_id[axis];
        CHECK(after->local_size[axis] ==
              (spec < values.size() ? values[spec] : before->local_size[axis]));
      }
      const std::vector<Instruction> list = instructions(*made);
      CHECK(std::none_of(list.begin(), list.end(), [](const Instruction& in) {
        return (in.op >= 48 && in.op <= 52) || (in.op == 71 && in.operands[1] == 1);
      }));
    }
  }

  TEST_CASE("specialization constants become constants, of their values or their defaults") {
    const std::vector<uint32_t> words = module_of({{71, {10, 1, 4}},
                                                   {71, {11, 1, 0}},
                                                   {71, {12, 1, 1}},
                                                   {71, {12, 33, 2}},
                                                   {21, {1, 32, 0}},
                                                   {20, {2}},
                                                   {50, {1, 10, 7}},
                                                   {48, {2, 11}},
                                                   {49, {2, 12}},
                                                   {51, {3, 13, 10, 10, 10}}});
    const std::vector<uint32_t> values = {0, 5};
    const auto made = specialize_spirv(words, values);
    REQUIRE(made);
    const std::vector<Instruction> expected = {
        {71, {12, 33, 2}}, {21, {1, 32, 0}},         {20, {2}}, {43, {1, 10, 7}}, {42, {2, 11}},
        {41, {2, 12}},     {44, {3, 13, 10, 10, 10}}};
    CHECK(instructions(*made) == expected);
    CHECK(std::equal(words.begin(), words.begin() + 5, made->begin()));
  }

  TEST_CASE("operations on specialization constants are computed") {
    const auto word = [](uint32_t value) { return Instruction{43, {1, 20, value}}; };
    const auto truth = [](bool value) { return Instruction{value ? 41u : 42u, {2, 20}}; };
    CHECK(folded(128, 1) == word(10));
    CHECK(folded(130, 1) == word(4));
    CHECK(folded(130, 1, {3, 7}) == word(~3u));
    CHECK(folded(132, 1) == word(21));
    CHECK(folded(134, 1) == word(2));
    CHECK(folded(137, 1) == word(1));
    CHECK(folded(194, 1) == word(0));
    CHECK(folded(196, 1) == word(56));
    CHECK(folded(197, 1, {5, 2}) == word(7));
    CHECK(folded(199, 1, {5, 4}) == word(4));
    // Not defined, and not to be computed by the host's instructions.
    CHECK(folded(134, 1, {7, 0}) == word(0));
    CHECK(folded(194, 1, {7, 40}) == word(0));
    CHECK(folded(166, 2, {0, 0}) == truth(false));
    CHECK(folded(167, 2, {1, 1}) == truth(true));
    CHECK(folded(170, 2) == truth(false));
    CHECK(folded(171, 2) == truth(true));
    CHECK(folded(172, 2) == truth(true));
    CHECK(folded(174, 2, {3, 3}) == truth(true));
    CHECK(folded(176, 2) == truth(false));
    CHECK(folded(178, 2, {3, 3}) == truth(true));
    const auto of_one = [](uint32_t op, uint32_t type) {
      return instructions(*specialize_spirv(module_with({52, {type, 20, op, 10}}), {})).back();
    };
    CHECK(of_one(200, 1) == word(~7u));
    CHECK(of_one(168, 2) == truth(false));
    const auto chosen = specialize_spirv(module_with({52, {1, 20, 169, 10, 11, 10}}), {});
    CHECK(instructions(*chosen).back() == word(3));
  }

  TEST_CASE("an operation that is not known is an error that names it") {
    const auto made = specialize_spirv(module_with({52, {1, 20, 135, 10, 11}}), {});
    REQUIRE_FALSE(made);
    CHECK(made.error().message.find("operation 135") != std::string::npos);
    const auto no_constant = specialize_spirv(module_with({52, {1, 20, 128, 10, 99}}), {});
    CHECK_FALSE(no_constant);
  }
}
