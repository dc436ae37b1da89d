#include "model/tower_pictures.h"

#include "base/message.h"
#include "model/picture_language.h"

namespace vkformer {

Status TowerPictures::read(const TensorMap& inputs, std::vector<int64_t>& more,
                           FeedWords& words) const {
  VKF_ASSIGN(const int64_t count, read_pictures(inputs, tower_.embedding.picture, words));
  if (count > 0) more = {count};
  return {};
}

Result<int64_t> TowerPictures::image_tokens(int64_t height, int64_t width) const {
  const GridFacts& picture = tower_.embedding.picture;
  if (height == picture.height && width == picture.width) return tokens();
  return invalid_file(message({"[size] of the image processor makes images of ", height, " x ",
                               width, " pixels, but this model's tower reads ", picture.height,
                               " x ", picture.width, "; the files belong to different models."}));
}

Status TowerPictures::add_rows(const Checkpoint& checkpoint, WeightTable& table) const {
  const std::string from =
      present_prefix(checkpoint,
                     {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                      "vision_tower.", "model.vision_tower."},
                     "embeddings.patch_embedding.weight");
  VKF_CHECK(tower_.add_rows(checkpoint, from, table));
  add_projector_rows(
      present_prefix(checkpoint, {"multi_modal_projector.", "model.multi_modal_projector."},
                     projector_tensor()),
      table);
  return {};
}

}  // namespace vkformer
