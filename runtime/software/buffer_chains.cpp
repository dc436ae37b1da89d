#include "software/buffer_chains.h"

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
    // The chains tell the pointer types, but the types must precede them.
    std::vector<uint32_t> functions;
    size_t types_at = 0, functions_at = 0;  // words, of the first type and the first function
    for_each_instruction(words_, [&](uint32_t op, std::span<const uint32_t> in) {
      const auto at = static_cast<size_t>(in.data() - words_.data()) - 1;
      if (types_at == 0 && op >= kOpTypeVoid && op <= kOpTypePointer) types_at = at;
      if (functions_at == 0 && op == kOpFunction) functions_at = at;
      if (functions_at == 0) return learn(op, in);
      rewrite(functions, op, in);
    });
    std::vector<uint32_t> out(words_.begin(), words_.begin() + static_cast<ptrdiff_t>(types_at));
    out[3] = next_id_;
    for (const auto& [member, type] : member_pointers_) {
      put_instruction(out, kOpDecorate, std::array{type, kArrayStride, kStride});
    }
    const std::span<const uint32_t> types = words_.subspan(types_at, functions_at - types_at);
    out.insert(out.end(), types.begin(), types.end());
    for (const auto& [member, type] : member_pointers_) {
      put_instruction(out, kOpTypePointer, std::array{type, kClassStorageBuffer, member});
    }
    out.insert(out.end(), functions.begin(), functions.end());
    return out;
  }

 private:
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
    if (!way) return put_instruction(out, op, in);
    const std::span<const uint32_t> head = in.subspan(2, 1 + way->indices);
    const auto [base, added] = shared_.try_emplace({head.begin(), head.end()}, next_id_);
    if (added) {
      ++next_id_;
      const auto [type, first] = member_pointers_.try_emplace(way->member, next_id_);
      if (first) ++next_id_;
      std::vector<uint32_t> words{type->second, base->second};
      words.insert(words.end(), head.begin(), head.end());
      put_instruction(out, op, words);
    }
    std::vector<uint32_t> words{in[0], in[1], base->second};
    words.insert(words.end(), in.begin() + 3 + static_cast<std::ptrdiff_t>(way->indices), in.end());
    put_instruction(out, op, words);
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
