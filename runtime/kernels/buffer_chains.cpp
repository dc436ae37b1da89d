#include "kernels/buffer_chains.h"

#include <array>
#include <map>
#include <optional>

#include "kernels/spirv.h"

namespace vkformer {
namespace {

using namespace spirv;

// Of the pointers to members, which nobody strides over: OpPtrAccessChain alone would read it.
constexpr uint32_t kStride = 4;

class ChainSharer {
 public:
  explicit ChainSharer(std::span<const uint32_t> words) : words_(words), next_id_(words[3]) {}

  std::vector<uint32_t> run() {
    for_each([&](uint32_t op, std::span<const uint32_t> in) { learn(op, in); });
    // Pointer types come to light with the chains, but stand in front of them.
    std::vector<uint32_t> functions;
    bool inside = false;
    for_each([&](uint32_t op, std::span<const uint32_t> in) {
      inside = inside || op == kOpFunction;
      if (inside) rewrite(functions, op, in);
    });
    std::vector<uint32_t> out(words_.begin(), words_.begin() + kHeaderWords);
    out[3] = next_id_;
    bool decorated = false;
    inside = false;
    for_each([&](uint32_t op, std::span<const uint32_t> in) {
      inside = inside || op == kOpFunction;
      if (inside) return;
      if (!decorated && op >= kOpTypeVoid && op <= kOpTypePointer) {
        for (const auto& [member, type] : member_pointers_) {
          put(out, kOpDecorate, std::array{type, kArrayStride, kStride});
        }
        decorated = true;
      }
      put(out, op, in);
    });
    for (const auto& [member, type] : member_pointers_) {
      put(out, kOpTypePointer, std::array{type, kClassStorageBuffer, member});
    }
    out.insert(out.end(), functions.begin(), functions.end());
    return out;
  }

 private:
  template <class F>
  void for_each(const F& f) const {
    for (size_t at = kHeaderWords; at < words_.size();) {
      const size_t count = words_[at] >> 16;
      f(words_[at] & 0xffffu, words_.subspan(at + 1, count - 1));
      at += count;
    }
  }

  static void put(std::vector<uint32_t>& out, uint32_t op, std::span<const uint32_t> in) {
    out.push_back(static_cast<uint32_t>(in.size() + 1) << 16 | op);
    out.insert(out.end(), in.begin(), in.end());
  }

  void learn(uint32_t op, std::span<const uint32_t> in) {
    switch (op) {
      case kOpTypePointer:
        if (in[1] == kClassStorageBuffer) pointees_[in[0]] = in[2];
        break;
      case kOpTypeArray:
      case kOpTypeRuntimeArray:
        elements_[in[0]] = in[1];
        break;
      case kOpTypeStruct:
        members_[in[0]].assign(in.begin() + 1, in.end());
        break;
      case kOpConstant:
        if (in.size() == 3) constants_[in[1]] = in[2];
        break;
      case kOpVariable:
        if (in[2] == kClassStorageBuffer && pointees_.count(in[0]) != 0) {
          buffers_[in[1]] = pointees_[in[0]];
        }
        break;
      default:
        break;
    }
  }

  // How many indices of a chain lead to a member of a buffer, and the member's type. Nothing where
  // the chain starts elsewhere, or ends there already.
  struct Way {
    size_t indices;
    uint32_t member;
  };
  std::optional<Way> way_of(std::span<const uint32_t> in) const {
    const auto buffer = buffers_.find(in[2]);
    if (buffer == buffers_.end()) return std::nullopt;
    uint32_t block = buffer->second;
    size_t indices = 1;
    if (const auto array = elements_.find(block); array != elements_.end()) {
      block = array->second;
      indices = 2;
    }
    const auto members = members_.find(block);
    if (members == members_.end() || in.size() <= 3 + indices) return std::nullopt;
    const auto index = constants_.find(in[2 + indices]);
    if (index == constants_.end() || index->second >= members->second.size()) return std::nullopt;
    return Way{indices, members->second[index->second]};
  }

  void rewrite(std::vector<uint32_t>& out, uint32_t op, std::span<const uint32_t> in) {
    if (op == kOpLabel) shared_.clear();
    const bool chain = op == kOpAccessChain || op == kOpInBoundsAccessChain;
    const std::optional<Way> way = chain ? way_of(in) : std::nullopt;
    if (!way) return put(out, op, in);
    const std::span<const uint32_t> head = in.subspan(2, 1 + way->indices);
    const auto [base, added] = shared_.try_emplace({head.begin(), head.end()}, next_id_);
    if (added) {
      ++next_id_;
      const auto [type, first] = member_pointers_.try_emplace(way->member, next_id_);
      if (first) ++next_id_;
      std::vector<uint32_t> words{type->second, base->second};
      words.insert(words.end(), head.begin(), head.end());
      put(out, op, words);
    }
    std::vector<uint32_t> words{in[0], in[1], base->second};
    words.insert(words.end(), in.begin() + 3 + static_cast<std::ptrdiff_t>(way->indices), in.end());
    put(out, op, words);
  }

  std::span<const uint32_t> words_;
  uint32_t next_id_;
  std::map<uint32_t, uint32_t> pointees_;              // of pointers into storage buffers, by type
  std::map<uint32_t, uint32_t> elements_;              // of arrays, by type
  std::map<uint32_t, std::vector<uint32_t>> members_;  // of structs, by type
  std::map<uint32_t, uint32_t> constants_;             // of one word, by id
  std::map<uint32_t, uint32_t> buffers_;               // what a variable is, by id
  std::map<std::vector<uint32_t>, uint32_t> shared_;   // chains of this block, by their words
  std::map<uint32_t, uint32_t> member_pointers_;       // pointer types, by member type
};

}  // namespace

std::vector<uint32_t> share_buffer_chains(std::span<const uint32_t> words) {
  return ChainSharer(words).run();
}

}  // namespace vkformer
