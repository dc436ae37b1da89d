// Checks of the checks: kernels of reproducible precision with one fault of the kind that the
// rewriting is there to rule out. A fingerprint must then be another one, and name the operator.
#include <algorithm>
#include <set>

#include "conformance/planted.h"
#include "reproducible/pin_arithmetic.h"
#include "support/pinned_floats.h"
#include "support/test_device.h"
#include "vkformer/fingerprint.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

using Words = std::vector<uint32_t>;

Words pinned_kernel(const std::string& name) {
  const auto pinned = pin_arithmetic(kernel_spirv(kernel_named(name)), {});
  REQUIRE_MESSAGE(pinned.ok(), pinned.error().message);
  return *pinned;
}

// An instruction: where it begins, and its operands.
struct Instruction {
  size_t at;
  uint32_t op;
  Words in;
};
std::vector<Instruction> instructions_of(const Words& words) {
  std::vector<Instruction> list;
  for (size_t at = spirv::kHeaderWords; at < words.size(); at += words[at] >> 16) {
    const auto begin = words.begin() + static_cast<ptrdiff_t>(at);
    list.push_back({at, words[at] & 0xffffu, Words(begin + 1, begin + (words[at] >> 16))});
  }
  return list;
}

// The module with each instruction as `change` writes it.
template <class Change>
Words changed(const Words& words, const Change& change) {
  Words out(words.begin(), words.begin() + spirv::kHeaderWords);
  for (const Instruction& i : instructions_of(words)) change(i, out);
  return out;
}

void put_same(const Instruction& i, Words& out) {
  spirv::put_instruction(out, i.op, i.in);
}

// The module without the mark that forbids to join the operations `ids`.
Words without_marks(const Words& words, const std::set<uint32_t>& ids) {
  return changed(words, [&](const Instruction& i, Words& out) {
    const bool mark = i.op == spirv::kOpDecorate && i.in[1] == spirv::kNoContraction;
    if (!mark || ids.count(i.in[0]) == 0) put_same(i, out);
  });
}

uint32_t extended_set(const Words& words) {
  for (const Instruction& i : instructions_of(words)) {
    if (i.op == spirv::kOpExtInstImport) return i.in[0];
  }
  return 0;
}

// A product and the sum that takes it.
struct ProductSum {
  Words product, sum;  // operands of both: type, id, x, y
};
std::vector<ProductSum> product_sums(const Words& words) {
  std::vector<ProductSum> list;
  Words product;
  for (const Instruction& i : instructions_of(words)) {
    if (i.op == spirv::kOpFMul) product = i.in;
    if (i.op != spirv::kOpFAdd || product.empty()) continue;
    if (i.in[2] == product[1] && i.in[3] != product[1]) list.push_back({product, i.in});
  }
  return list;
}

// What a driver does that takes no notice of NoContraction: every product and its sum in one
// rounding.
Words contracted(const Words& words) {
  std::set<uint32_t> ids;
  std::map<uint32_t, ProductSum> by_sum;
  for (const ProductSum& p : product_sums(words)) {
    ids.insert({p.product[1], p.sum[1]});
    by_sum[p.sum[1]] = p;
  }
  if (ids.empty()) return {};
  const uint32_t set = extended_set(words);
  return changed(without_marks(words, ids), [&](const Instruction& i, Words& out) {
    if (i.op != spirv::kOpFAdd || by_sum.count(i.in[1]) == 0) return put_same(i, out);
    const ProductSum& p = by_sum.at(i.in[1]);
    spirv::put_instruction(
        out, spirv::kOpExtInst,
        Words{i.in[0], i.in[1], set, spirv::kExtFma, p.product[2], p.product[3], p.sum[3]});
  });
}

// Of two sums in a row, a + (b + c) in place of (a + b) + c, once. Empty where there are no two.
Words reordered(Words words) {
  std::map<uint32_t, Words> sums;
  Words last;
  for (const Instruction& i : instructions_of(words)) {
    if (i.op == spirv::kOpLabel) sums.clear();  // operands must be known where they are used
    if (i.op != spirv::kOpFAdd) continue;
    if (sums.count(i.in[2]) != 0 || sums.count(i.in[3]) != 0) last = i.in;
    sums[i.in[1]] = i.in;
    if (!last.empty()) break;
  }
  if (last.empty()) return {};
  const bool left = sums.count(last[2]) != 0;
  const Words first = sums.at(left ? last[2] : last[3]);
  const uint32_t other = left ? last[3] : last[2], tail = words[3]++;
  Words out = changed(words, [&](const Instruction& i, Words& to) {
    if (i.op != spirv::kOpFAdd || i.in[1] != last[1]) return put_same(i, to);
    spirv::put_instruction(to, spirv::kOpFAdd, Words{last[0], tail, other, first[2]});
    spirv::put_instruction(to, spirv::kOpFAdd, Words{last[0], last[1], tail, first[3]});
  });
  return out;
}

// The driver's own function in place of ours, wherever the kernel asks for it.
Words with_library_function(const std::string& kernel, uint32_t function) {
  std::map<uint32_t, Words> wanted;
  for (const Instruction& i : instructions_of(kernel_spirv(kernel_named(kernel)))) {
    if (i.op == spirv::kOpExtInst && i.in[3] == function) wanted[i.in[1]] = i.in;
  }
  REQUIRE(!wanted.empty());
  return changed(pinned_kernel(kernel), [&](const Instruction& i, Words& out) {
    const bool result = i.op == spirv::kOpCopyObject || i.op == spirv::kOpCompositeConstruct;
    if (!result || wanted.count(i.in[1]) == 0) return put_same(i, out);
    spirv::put_instruction(out, spirv::kOpExtInst, wanted.at(i.in[1]));
  });
}

constexpr const char* kMatmul = "matmul_tiled__f32_f32_f32";
constexpr const char* kSoftmax = "softmax_row__f32_none_f32";
constexpr const char* kLayerNorm = "layer_norm_row__f32_f32_f32";

// Without guards, so that faults stand where they are looked for.
Fingerprint fingerprint_with(const PlantedKernels& planted) {
  DeviceTweaks tweaks = test_device_tweaks();
  tweaks.planted_reproducible = planted;
  DeviceOptions options = test_device_options();
  options.cache_directory = "none";
  const auto device = make_test_device(options, tweaks);
  REQUIRE_MESSAGE(device.ok(), device.error().message);
  Context& context = vulkan_of(*device)->impl().context;
  context.arithmetic = {};
  context.arithmetic_is_proven = true;
  const auto taken = take_fingerprint(
      *device, {.filters = {"activation/gelu/5x33", "layer_norm/plain/5x33", "matmul/f32/5x",
                            "matmul/f32/12x", "matmul/f32/33x", "rms_norm/plain/7x64",
                            "softmax/plain/normal/2x3x5x33"}});
  REQUIRE_MESSAGE(taken.ok(), taken.error().message);
  CHECK(taken->entries.size() >= 5);
  return *taken;
}

// The operators whose digests differ.
std::set<std::string> operators_that_differ(const Fingerprint& a, const Fingerprint& b) {
  REQUIRE(a.entries.size() == b.entries.size());
  std::set<std::string> names;
  for (size_t i = 0; i < a.entries.size(); ++i) {
    if (a.entries[i].digest == b.entries[i].digest) continue;
    names.insert(a.entries[i].name.substr(0, a.entries[i].name.find('/')));
  }
  return names;
}

// Faults in every kernel of f32 products that has a place for one: which of them a device takes is
// its own choice.
template <class Change>
PlantedKernels products_with(const Change& change) {
  PlantedKernels planted;
  for (uint16_t i = 0; i < static_cast<uint16_t>(KernelId::kCount); ++i) {
    const auto id = static_cast<KernelId>(i);
    const std::string name(kernel_info(id).name);
    if (!name.starts_with("matmul_") || name.find("__f32_f32_f32") == std::string::npos) continue;
    const auto pinned = pin_arithmetic(kernel_spirv(id), {});
    if (!pinned) continue;  // it has operations that no reproducible kernel may have
    Words words = change(*pinned);
    if (!words.empty()) planted[id] = std::move(words);
  }
  CHECK(planted.size() >= 3);
  return planted;
}

Words without_marks_of_products(const Words& words) {
  std::set<uint32_t> ids;
  for (const ProductSum& p : product_sums(words)) ids.insert({p.product[1], p.sum[1]});
  return ids.empty() ? Words() : without_marks(words, ids);
}

using Names = std::set<std::string>;

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("one mark against contraction that is missing is seen in a kernel's SPIR-V") {
    for (const char* kernel : {kMatmul, kSoftmax, kLayerNorm}) {
      const Words words = pinned_kernel(kernel);
      CHECK(floats_in(words).contracted == 0);
      std::vector<uint32_t> marked;
      for (const Instruction& i : instructions_of(words)) {
        const bool mark = i.op == spirv::kOpDecorate && i.in[1] == spirv::kNoContraction;
        if (mark) marked.push_back(i.in[0]);
      }
      REQUIRE(marked.size() > 4);
      for (const uint32_t id : {marked.front(), marked[marked.size() / 2], marked.back()}) {
        CHECK(floats_in(without_marks(words, {id})).contracted == 1);
      }
    }
    CHECK(floats_in(contracted(pinned_kernel(kMatmul))).open > 0);
    CHECK(floats_in(with_library_function(kSoftmax, spirv::kExtExp)).open == 1);
  }
}

TEST_SUITE("gpu") {
  TEST_CASE("one sum in another order changes a fingerprint, which names the operator") {
    if (!have_test_device()) return;
    const Fingerprint right = fingerprint_with({});
    const Fingerprint again = fingerprint_with(products_with([](const Words& w) { return w; }));
    CHECK(operators_that_differ(right, again).empty());
    const Fingerprint wrong = fingerprint_with(products_with(reordered));
    CHECK(operators_that_differ(right, wrong) == Names{"matmul"});
    const auto difference = compare_fingerprints(right, wrong);
    REQUIRE(difference.has_value());
    CHECK_MESSAGE(difference->message.starts_with("[matmul/"), difference->message);
    // One device is enough for that, beside the host.
    CHECK_FALSE(right.host_difference.has_value());
    REQUIRE(wrong.host_difference.has_value());
    CHECK(wrong.host_difference->name.starts_with("matmul/"));
  }

  TEST_CASE("a driver's exp in place of ours changes a fingerprint, which names the operator") {
    if (!have_test_device()) return;
    const Fingerprint right = fingerprint_with({});
    const Fingerprint wrong = fingerprint_with(
        {{kernel_named(kSoftmax), with_library_function(kSoftmax, spirv::kExtExp)}});
    CHECK(operators_that_differ(right, wrong) == Names{"softmax"});
    REQUIRE(wrong.host_difference.has_value());
    CHECK(wrong.host_difference->name.starts_with("softmax/"));
  }

  // A driver joins operations where it likes to: one that does not join these shows no fault. A
  // fused multiply-add is the same with certainty, where the device has one of a single rounding.
  TEST_CASE("a contraction changes a fingerprint, which names the operator") {
    if (!have_test_device()) return;
    const Fingerprint right = fingerprint_with({});
    const Fingerprint joined = fingerprint_with(products_with(contracted));
    const Names names = operators_that_differ(right, joined);
    CHECK((names.empty() || names == Names{"matmul"}));
    CHECK(joined.host_difference.has_value() == !names.empty());
    if (names.empty()) MESSAGE("this device's fma rounds twice: a contraction shows nothing");
    const Fingerprint open = fingerprint_with(products_with(without_marks_of_products));
    const Names of_open = operators_that_differ(right, open);
    CHECK((of_open.empty() || of_open == Names{"matmul"}));
    if (of_open.empty()) MESSAGE("this driver joins no product and sum, marked or not");
  }
}

}  // namespace vkformer::testing
