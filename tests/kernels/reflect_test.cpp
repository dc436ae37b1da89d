// Reflection of real kernels, of hand-made modules, and of damaged ones.
#include "kernels/reflect.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <random>

#include "kernels/catalogue.h"

using namespace vkformer;

namespace {

// Writes SPIR-V instructions; ids are chosen by the test.
struct Assembler {
  std::vector<uint32_t> words = {0x07230203, 0x00010300, 0, 100, 0};

  Assembler& op(uint32_t opcode, std::initializer_list<uint32_t> operands) {
    words.push_back(static_cast<uint32_t>(operands.size() + 1) << 16 | opcode);
    words.insert(words.end(), operands);
    return *this;
  }
  // OpEntryPoint GLCompute %1 "main", with a literal local size.
  Assembler& entry() {
    op(15, {5, 1, 0x6e69616d, 0});
    return op(16, {1, 17, 8, 4, 2});
  }
  // f32 = %10, u32 = %11, struct of a runtime array of f32 = %12.
  Assembler& types() {
    op(22, {10, 32}).op(21, {11, 32, 0}).op(29, {13, 10}).op(30, {12, 13});
    return op(71, {13, 6, 4}).op(72, {12, 0, 35, 0}).op(71, {12, 2});
  }
  // A storage buffer variable of block `type` at that binding; the pointer type is id + 1.
  Assembler& storage(uint32_t id, uint32_t type, uint32_t binding) {
    op(71, {id, 34, 0}).op(71, {id, 33, binding});
    return op(32, {id + 1, 12, type}).op(59, {id + 1, id, 12});
  }
  Result<KernelInterface> reflect() const { return reflect_spirv(words); }
};

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("the fill kernels reflect as their source declares") {
    auto fill = kernel_interface(KernelId::fill_words__u32);
    REQUIRE(fill);
    REQUIRE(fill->bindings.size() == 1);
    CHECK(fill->bindings[0].type == BindingType::kStorage);
    CHECK(fill->bindings[0].writeonly);
    CHECK_FALSE(fill->bindings[0].readonly);
    CHECK(fill->push_bytes == 8);
    CHECK(fill->spec_ids == std::vector<uint32_t>{0});
    CHECK(fill->local_size == std::array<uint32_t, 3>{64, 1, 1});
    CHECK(fill->local_size_spec_id == std::array<uint32_t, 3>{0, ~0u, ~0u});
    auto add = kernel_interface(KernelId::fill_add__u32);
    REQUIRE(add);
    REQUIRE(add->bindings.size() == 2);
    CHECK_FALSE(add->bindings[0].readonly);
    CHECK_FALSE(add->bindings[0].writeonly);
    CHECK(add->bindings[1].type == BindingType::kUniform);
    CHECK(add->bindings[1].readonly);
  }

  TEST_CASE("every kernel of the catalogue reflects, within the baseline's limits") {
    for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
      const auto id = static_cast<KernelId>(i);
      CAPTURE(kernel_info(id).name);
      // Not every compiler knows cooperative matrices. A build lacks these kernels and those that
      // its options omit, and no others.
      constexpr uint32_t kMayLack = kFeature_matrix | kFeature_absent;
      if (kernel_info(id).words == 0 && (kernel_info(id).features & kMayLack) != 0) continue;
      const auto interface = kernel_interface(id);
      if (!interface) FAIL_CHECK(interface.error().message);
      if (!interface) continue;
      CHECK(interface->push_bytes <= 128);
      size_t storage = 0;
      for (const KernelBinding& b : interface->bindings) {
        if (b.type == BindingType::kStorage) ++storage;
      }
      CHECK(storage <= 4);
    }
  }

  TEST_CASE("access is the weakest of all blocks at a binding") {
    Assembler a;
    // %12 is read-only by its member, %20's variable by its own decoration.
    a.entry().types().op(72, {12, 0, 24}).storage(30, 12, 0);
    SUBCASE("both views read-only") {
      a.op(30, {20, 13}).op(72, {20, 0, 35, 0}).op(71, {40, 24}).storage(40, 20, 0);
      const auto r = a.reflect();
      REQUIRE(r);
      REQUIRE(r->bindings.size() == 1);
      CHECK(r->bindings[0].readonly);
    }
    SUBCASE("one view writable") {
      a.op(30, {20, 13}).op(72, {20, 0, 35, 0}).storage(40, 20, 0);
      const auto r = a.reflect();
      REQUIRE(r);
      CHECK_FALSE(r->bindings[0].readonly);
    }
    SUBCASE("only one of two members is read-only") {
      a.op(30, {20, 10, 13}).op(72, {20, 0, 24}).storage(40, 20, 1);
      const auto r = a.reflect();
      REQUIRE(r);
      REQUIRE(r->bindings.size() == 2);
      CHECK(r->bindings[0].readonly);
      CHECK_FALSE(r->bindings[1].readonly);
    }
    SUBCASE("all members write-only") {
      a.op(30, {20, 10, 13}).op(72, {20, 0, 25}).op(72, {20, 1, 25}).storage(40, 20, 1);
      const auto r = a.reflect();
      REQUIRE(r);
      CHECK(r->bindings[1].writeonly);
    }
  }

  TEST_CASE("the push block's size counts arrays, vectors, matrices and nested structs") {
    Assembler a;
    a.entry().types();
    a.op(43, {11, 50, 3});                      // length 3
    a.op(28, {51, 10, 50}).op(71, {51, 6, 4});  // f32[3], stride 4
    a.op(23, {52, 10, 4});                      // vec4
    a.op(24, {53, 52, 2});                      // mat2x4
    a.op(30, {54, 10, 10}).op(72, {54, 0, 35, 0}).op(72, {54, 1, 35, 4});
    a.op(30, {55, 51, 52, 53, 54});
    a.op(72, {55, 0, 35, 0}).op(72, {55, 1, 35, 16}).op(72, {55, 2, 35, 32});
    a.op(72, {55, 2, 7, 16}).op(72, {55, 2, 5}).op(72, {55, 3, 35, 64});
    a.op(32, {56, 9, 55}).op(59, {56, 57, 9});
    const auto r = a.reflect();
    REQUIRE(r);
    CHECK(r->push_bytes == 72);
    CHECK(r->local_size == std::array<uint32_t, 3>{8, 4, 2});
    CHECK(r->spec_ids.empty());
  }

  TEST_CASE("the local size may come from ids and the WorkgroupSize built-in") {
    Assembler a;
    a.op(15, {5, 1, 0x6e69616d, 0}).types();
    a.op(50, {11, 60, 32}).op(71, {60, 1, 7}).op(43, {11, 61, 2}).op(50, {11, 62, 5});
    a.op(71, {62, 1, 3});
    SUBCASE("execution mode with ids") {
      a.op(331, {1, 38, 60, 61, 62});
    }
    SUBCASE("built-in composite wins over a literal") {
      a.op(16, {1, 17, 9, 9, 9}).op(71, {64, 11, 25}).op(51, {11, 64, 60, 61, 62});
    }
    const auto r = a.reflect();
    REQUIRE(r);
    CHECK(r->local_size == std::array<uint32_t, 3>{32, 2, 5});
    CHECK(r->local_size_spec_id == std::array<uint32_t, 3>{7, ~0u, 3});
    CHECK(r->spec_ids == std::vector<uint32_t>{3, 7});
  }

  TEST_CASE("an array of readonly buffers in set 1 is a table, and nothing else may lie there") {
    // f32[] blocks in an array of type %15 in variable %30, at that binding of set 1.
    const auto table = [](uint32_t array_op, uint32_t binding, bool readonly, uint32_t storage) {
      Assembler a;
      a.entry().types().op(43, {11, 14, 3});
      if (array_op == 29) a.op(29, {15, 12});
      if (array_op == 28) a.op(28, {15, 12, 14});
      if (readonly) a.op(72, {12, 0, 24});
      a.op(71, {30, 34, 1}).op(71, {30, 33, binding});
      return a.op(32, {31, storage, array_op == 0 ? 12u : 15u}).op(59, {31, 30, storage});
    };
    const auto found = table(29, 0, true, 12).reflect();
    REQUIRE_MESSAGE(found, found.error().message);
    CHECK(found->has_table);
    CHECK(found->bindings.empty());
    CHECK_FALSE(kernel_interface(KernelId::fill_words__u32)->has_table);
    for (const Assembler& a :
         {table(29, 1, true, 12), table(29, 0, false, 12), table(28, 0, true, 12),
          table(0, 0, true, 12), table(29, 0, true, 2)}) {
      const auto refused = a.reflect();
      REQUIRE_FALSE(refused);
      CHECK(refused.error().message.find("one array of readonly") != std::string::npos);
    }
  }

  TEST_CASE("what cannot be used is refused with its reason") {
    auto says = [](const Assembler& a, const char* what) {
      const auto r = a.reflect();
      REQUIRE_FALSE(r);
      CAPTURE(r.error().message);
      CHECK(r.error().message.find(what) != std::string::npos);
    };
    says(Assembler().types(), "0 compute entry points");
    says(Assembler().op(15, {5, 1, 0x6e69616d, 0}), "no local size");
    says(Assembler().entry().types().storage(30, 12, 1), "binding 0 is missing");
    says(Assembler()
             .entry()
             .types()
             .op(71, {30, 33, 0})
             .op(71, {30, 34, 2})
             .op(32, {31, 12, 12})
             .op(59, {31, 30, 12}),
         "neither descriptor set 0 nor 1");
    says(Assembler().entry().types().op(32, {31, 0, 12}).op(59, {31, 30, 0}), "images");
    says(Assembler().entry().types().op(71, {30, 33, 0}).op(32, {31, 12, 13}).op(59, {31, 30, 12}),
         "arrays of descriptors");
    // A struct that contains itself.
    says(Assembler()
             .entry()
             .op(30, {70, 70})
             .op(72, {70, 0, 35, 0})
             .op(32, {71, 9, 70})
             .op(59, {71, 72, 9}),
         "cyclic");
    Assembler zero;
    zero.words = {0x07230203, 0x00010300, 0, 100, 0, 0};
    says(zero, "claims 0 words");
    Assembler magic;
    magic.words[0] = 1;
    says(magic, "magic");
    CHECK_FALSE(reflect_spirv({}));
  }

  TEST_CASE("damaged modules never crash") {
    const std::vector<uint32_t> words = kernel_spirv(KernelId::fill_add__u32);
    for (size_t length = 0; length < words.size(); ++length) {
      (void)reflect_spirv(std::span(words).first(length));
    }
    std::mt19937 random(1);
    size_t refused = 0;
    for (int i = 0; i < 20000; ++i) {
      std::vector<uint32_t> damaged(words.begin(), words.end());
      for (int k = 0; k < 3; ++k) {
        uint32_t& word = damaged[random() % damaged.size()];
        word = random() % 2 ? random() : word ^ (1u << random() % 32);
      }
      if (!reflect_spirv(damaged)) ++refused;
    }
    CHECK(refused > 1000);
  }
}
