#include "checkpoint/ggml_store.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace vkformer {
namespace {

// The bytes of one block, to which bits are added. What they mean is said in ggml_types.cpp, at the
// reader of each type.
class BlockBytes {
 public:
  explicit BlockBytes(std::span<std::byte> bytes) : bytes_(bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
  }
  void add(size_t at, int32_t bits) {
    bytes_[at] |= static_cast<std::byte>(static_cast<uint32_t>(bits) & 255u);
  }
  void half(size_t at, float value) {
    const uint16_t bits = half_from_float(value);
    add(at, bits & 255);
    add(at + 1, bits >> 8);
  }
  // The lower 4 bits of 16 bytes are the first 16 of 32 weights.
  void nibbles(size_t at, const WeightBlock& block) {
    for (size_t i = 0; i < 16; ++i) {
      add(at + i, (block.values[i] & 15) | (block.values[i + 16] & 15) << 4);
    }
  }
  void fifth_bits(size_t at, const WeightBlock& block) {
    for (size_t i = 0; i < 32; ++i) add(at + i / 8, (block.values[i] >> 4 & 1) << (i % 8));
  }

 private:
  std::span<std::byte> bytes_;
};

using Blocks = std::span<const WeightBlock>;

void store_q8_0(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  for (size_t i = 0; i < 32; ++i) b.add(2 + i, blocks[0].values[i]);
}

void store_q4_0(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.nibbles(2, blocks[0]);
}

void store_q4_1(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.half(2, blocks[0].minimum);
  b.nibbles(4, blocks[0]);
}

void store_q5_0(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.fifth_bits(2, blocks[0]);
  b.nibbles(6, blocks[0]);
}

void store_q5_1(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.half(2, blocks[0].minimum);
  b.fifth_bits(4, blocks[0]);
  b.nibbles(8, blocks[0]);
}

void store_mxfp4(Blocks blocks, BlockBytes& b) {
  b.add(0, std::ilogb(blocks[0].scale) + 128);
  b.nibbles(1, blocks[0]);
}

void store_q2_k(Blocks blocks, BlockBytes& b) {
  b.half(80, blocks[0].scale);
  b.half(82, blocks[0].minimum);
  for (size_t part = 0; part < blocks.size(); ++part) {
    const WeightBlock& block = blocks[part];
    for (size_t h = 0; h < 2; ++h) {
      b.add(2 * part + h, block.parts[h] | block.minimum_parts[h] << 4);
    }
    for (size_t i = 0; i < 32; ++i) {
      b.add(16 + part / 4 * 32 + i, block.values[i] << (part % 4 * 2));
    }
  }
}

void store_q3_k(Blocks blocks, BlockBytes& b) {
  b.half(108, blocks[0].scale);
  for (size_t part = 0; part < blocks.size(); ++part) {
    const WeightBlock& block = blocks[part];
    for (size_t h = 0; h < 2; ++h) {
      const size_t s = 2 * part + h;
      const int32_t scale = block.parts[h] + 32;
      b.add(96 + s % 8, (scale & 15) << (s / 8 * 4));
      b.add(104 + s % 4, scale >> 4 << (s / 4 * 2));
    }
    for (size_t i = 0; i < 32; ++i) {
      b.add(32 + part / 4 * 32 + i, (block.values[i] & 3) << (part % 4 * 2));
      b.add(i, block.values[i] >> 2 << part);
    }
  }
}

// Scale and minimum of 6 bits each of 8 blocks, in 12 bytes from `at` on.
void store_packed_scales(Blocks blocks, size_t at, BlockBytes& b) {
  for (size_t part = 0; part < blocks.size(); ++part) {
    const int32_t scale = blocks[part].parts[0], minimum = blocks[part].minimum_parts[0];
    if (part < 4) {
      b.add(at + part, scale);
      b.add(at + 4 + part, minimum);
    } else {
      b.add(at + 4 + part, (scale & 15) | (minimum & 15) << 4);
      b.add(at + part - 4, scale >> 4 << 6);
      b.add(at + part, minimum >> 4 << 6);
    }
  }
}

void store_q4_k(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.half(2, blocks[0].minimum);
  store_packed_scales(blocks, 4, b);
  for (size_t part = 0; part < blocks.size(); ++part) {
    for (size_t i = 0; i < 32; ++i) {
      b.add(16 + part / 2 * 32 + i, blocks[part].values[i] << (part % 2 * 4));
    }
  }
}

void store_q5_k(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  b.half(2, blocks[0].minimum);
  store_packed_scales(blocks, 4, b);
  for (size_t part = 0; part < blocks.size(); ++part) {
    for (size_t i = 0; i < 32; ++i) {
      b.add(16 + i, (blocks[part].values[i] >> 4) << part);
      b.add(48 + part / 2 * 32 + i, (blocks[part].values[i] & 15) << (part % 2 * 4));
    }
  }
}

void store_q6_k(Blocks blocks, BlockBytes& b) {
  b.half(208, blocks[0].scale);
  for (size_t part = 0; part < blocks.size(); ++part) {
    const WeightBlock& block = blocks[part];
    for (size_t h = 0; h < 2; ++h) b.add(192 + 2 * part + h, block.parts[h]);
    for (size_t i = 0; i < 32; ++i) {
      b.add(part / 4 * 64 + part % 2 * 32 + i, (block.values[i] & 15) << (part % 4 / 2 * 4));
      b.add(128 + part / 4 * 32 + i, (block.values[i] >> 4) << (part % 4 * 2));
    }
  }
}

void store_iq4_xs(Blocks blocks, BlockBytes& b) {
  b.half(0, blocks[0].scale);
  for (size_t part = 0; part < blocks.size(); ++part) {
    const int32_t scale = blocks[part].parts[0] + 32;
    b.add(4 + part / 2, (scale & 15) << (part % 2 * 4));
    b.add(2 + part / 4, scale >> 4 << (part % 4 * 2));
    b.nibbles(8 + 16 * part, blocks[part]);
  }
}

}  // namespace

void store_ggml_block(GgmlType type, Blocks blocks, std::span<std::byte> out) {
  BlockBytes bytes(out);
  switch (type) {
    case GgmlType::kQ8_0:
      return store_q8_0(blocks, bytes);
    case GgmlType::kQ4_0:
    case GgmlType::kIq4Nl:
      return store_q4_0(blocks, bytes);
    case GgmlType::kQ4_1:
      return store_q4_1(blocks, bytes);
    case GgmlType::kQ5_0:
      return store_q5_0(blocks, bytes);
    case GgmlType::kQ5_1:
      return store_q5_1(blocks, bytes);
    case GgmlType::kMxfp4:
      return store_mxfp4(blocks, bytes);
    case GgmlType::kQ2K:
      return store_q2_k(blocks, bytes);
    case GgmlType::kQ3K:
      return store_q3_k(blocks, bytes);
    case GgmlType::kQ4K:
      return store_q4_k(blocks, bytes);
    case GgmlType::kQ5K:
      return store_q5_k(blocks, bytes);
    case GgmlType::kQ6K:
      return store_q6_k(blocks, bytes);
    case GgmlType::kIq4Xs:
      return store_iq4_xs(blocks, bytes);
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kF64:
    case GgmlType::kBf16:
      return;  // no blocks
  }
}

}  // namespace vkformer
