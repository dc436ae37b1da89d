#include "conformance/case_sizes.h"

namespace vkformer::conformance {
namespace {

constexpr std::pair<int64_t, int64_t> kRows[] = {
    {1, 1},   {2, 7},   {3, 31},  {4, 32},  {5, 33},   {6, 63},  {7, 64},   {8, 65},
    {9, 127}, {3, 128}, {1, 129}, {2, 257}, {1500, 5}, {3, 768}, {2, 1500}, {1, 4099}};
constexpr std::pair<int64_t, int64_t> kMoves[] = {
    {1, 1}, {3, 7}, {5, 32}, {7, 33}, {9, 64}, {2, 127}, {4, 129}, {6, 257}, {1500, 3}, {3, 768}};
constexpr int64_t kWidths[] = {1, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 768, 1500, 5003};

ScoreSize score_size(int64_t width, Content content, bool quick) {
  const bool wide = width >= 1000;
  return {{2, 3, wide ? 2 : 5, width},
          {wide ? 2 : 9, width},
          content,
          quick,
          content_name(content) + std::string("/")};
}

}  // namespace

std::vector<RowSize> row_sizes(int64_t factor) {
  std::vector<RowSize> sizes;
  for (const auto& [rows, columns] : kRows) {
    const bool quick = columns == 1 || columns == 33 || columns == 129 || rows == 1500;
    const Shape shape{rows, columns * factor};
    sizes.push_back({shape, Content::kNormal, quick, size_text(shape)});
  }
  for (const Content content : kOtherContents) {
    const Shape shape{5, 129 * factor};
    sizes.push_back({shape, content, true, content_name(content) + ("/" + size_text(shape))});
  }
  return sizes;
}

Array row_array(const RowSize& size) {
  return random_array(size.shape, size.content == Content::kNormal ? 7 : 11, size.content);
}

std::vector<RowSize> move_sizes() {
  std::vector<RowSize> sizes;
  for (const auto& [rows, columns] : kMoves) {
    const bool quick = columns == 1 || columns == 33 || rows == 1500;
    sizes.push_back({{rows, columns}, Content::kNormal, quick, size_text({rows, columns})});
  }
  return sizes;
}

std::vector<ScoreSize> score_sizes() {
  std::vector<ScoreSize> sizes;
  for (const int64_t width : kWidths) {
    const bool quick = width == 1 || width == 33 || width == 129 || width == 1500;
    sizes.push_back(score_size(width, Content::kNormal, quick));
  }
  for (const Content content : kOtherContents) sizes.push_back(score_size(200, content, true));
  return sizes;
}

}  // namespace vkformer::conformance
