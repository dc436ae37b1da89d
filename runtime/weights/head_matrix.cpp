#include "weights/head_matrix.h"

#include "base/check.h"
#include "weights/read_floats.h"

namespace vkformer {

Result<MadeMatrix> HeadMatrix::operator()(const Checkpoint& checkpoint) const {
  VKF_ASSIGN(const std::vector<float> all, read_floats(checkpoint, file, {heads * rows, width}));
  MadeMatrix made;
  made.values.resize(static_cast<size_t>(heads * count * width));
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < width; ++k) {
        const int64_t at = transposed == Transposed::kYes ? k * count + i : i * width + k;
        made.values[static_cast<size_t>(head * count * width + at)] =
            all[static_cast<size_t>((head * rows + first + i) * width + k)];
      }
    }
  }
  return made;
}

const HeadMatrix* head_matrix_of(const WeightRow& row) {
  return row.make ? row.make.target<HeadMatrix>() : nullptr;
}

}  // namespace vkformer
