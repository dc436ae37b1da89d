// Pictures of the C interface.
#include <algorithm>
#include <iterator>

#include "base/message.h"
#include "c_api/enums.h"
#include "vkformer/attention_view.h"
#include "vkformer/picture.h"

namespace vkformer {

std::vector<Picture> copy_pictures(const vkf_picture* const* pictures, size_t count) {
  if (count != 0) need(pictures, "pictures");
  std::vector<Picture> copies;
  copies.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    need(pictures[i], "picture");
    const Picture& from = pictures[i]->picture;
    Picture copy = take(Picture::from_rgb(from.width(), from.height(), from.rgb()));
    copies.push_back(std::move(copy));
  }
  return copies;
}

namespace {

// By vkf_picture_settings::resampling.
constexpr Resampling kFilters[] = {
    Resampling::kBilinear, Resampling::kLanczos, Resampling::kBilinear, Resampling::kBicubic,
    Resampling::kBox,      Resampling::kHamming, Resampling::kNearest};

Resampling filter_of(int32_t number) {
  if (number >= 0 && static_cast<size_t>(number) < std::size(kFilters)) return kFilters[number];
  refuse(invalid_argument(message(
      {"[resampling] is ", number, "; choices run from 0 to ", std::size(kFilters) - 1, "."})));
}

PictureSettings picture_settings(const vkf_picture_settings* settings) {
  const vkf_picture_settings given = read_struct(settings, "picture settings");
  PictureSettings made;
  made.fit = value_of<PictureFit>(given.fit, "fit");
  made.resampling = filter_of(given.resampling);
  if (given.width != 0) made.width = given.width;
  if (given.height != 0) made.height = given.height;
  if (given.shortest_edge != 0) made.shortest_edge = given.shortest_edge;
  made.longest_edge = given.longest_edge;
  if (given.side_multiple != 0) made.side_multiple = given.side_multiple;
  if (given.max_patches != 0) made.max_patches = given.max_patches;
  made.crop_width = given.crop_width;
  made.crop_height = given.crop_height;
  if (given.rescale != 0) made.rescale = given.rescale;
  if (given.std[0] != 0 || given.std[1] != 0 || given.std[2] != 0) {
    std::copy_n(given.mean, 3, made.image_mean.begin());
    std::copy_n(given.std, 3, made.image_std.begin());
  }
  return made;
}

vkf_picture_settings view_settings(const PictureSettings& from) {
  vkf_picture_settings c{};
  c.fit = number_of(from.fit);
  for (size_t i = 1; i < std::size(kFilters); ++i) {
    if (kFilters[i] == from.resampling) c.resampling = static_cast<int32_t>(i);
  }
  c.width = from.width;
  c.height = from.height;
  c.shortest_edge = from.shortest_edge;
  c.longest_edge = from.longest_edge;
  c.side_multiple = from.side_multiple;
  c.max_patches = from.max_patches;
  c.crop_width = from.crop_width;
  c.crop_height = from.crop_height;
  c.rescale = from.rescale;
  std::copy_n(from.image_mean.begin(), 3, c.mean);
  std::copy_n(from.image_std.begin(), 3, c.std);
  return c;
}

std::unique_ptr<vkf_picture> picture_handle(Result<Picture> made) {
  Picture picture = take(std::move(made));
  return handle(vkf_picture{std::move(picture)});
}

}  // namespace
}  // namespace vkformer

using namespace vkformer;

vkf_status vkf_picture_load(const char* path, vkf_picture** picture, vkf_error* error) {
  return make_handle(picture, error, [&] {
    need(path, "path");
    return picture_handle(Picture::load(path));
  });
}

vkf_status vkf_picture_decode(const void* data, size_t size, const char* name,
                              vkf_picture** picture, vkf_error* error) {
  return make_handle(picture, error, [&] {
    need(data, "data");
    return picture_handle(
        Picture::decode({static_cast<const std::byte*>(data), size}, text_or(name, "memory")));
  });
}

vkf_status vkf_picture_from_pixels(const vkf_pixels* pixels, vkf_picture** picture,
                                   vkf_error* error) {
  return make_handle(picture, error, [&] {
    const vkf_pixels given = read_needed(pixels, "pixels");
    need(given.bytes, "bytes of the pixels");
    PixelView view;
    view.bytes = {static_cast<const uint8_t*>(given.bytes), given.byte_count};
    view.width = given.width;
    view.height = given.height;
    view.stride = given.stride;
    view.format = value_of<PixelFormat>(given.format, "format");
    return picture_handle(Picture::from_pixels(view));
  });
}

vkf_status vkf_picture_get(const vkf_picture* picture, vkf_pixels* pixels, vkf_error* error) {
  return guard(error, [&] {
    need(picture, "picture");
    const Picture& from = picture->picture;
    vkf_pixels c{};
    c.format = VKF_RGB8;
    c.bytes = from.rgb().data();
    c.byte_count = from.rgb().size();
    c.width = from.width();
    c.height = from.height();
    c.stride = int64_t{3} * from.width();
    return write_struct(pixels, c, "pixels");
  });
}

void vkf_picture_free(vkf_picture* picture) {
  delete picture;
}

vkf_status vkf_picture_processor_load(const char* directory, vkf_picture_processor** processor,
                                      vkf_error* error) {
  return make_handle(processor, error, [&] {
    need(directory, "directory");
    PictureProcessor made = take(PictureProcessor::load(directory));
    return handle(vkf_picture_processor{std::move(made)});
  });
}

vkf_status vkf_picture_processor_create(const vkf_picture_settings* settings,
                                        vkf_picture_processor** processor, vkf_error* error) {
  return make_handle(processor, error, [&] {
    const PictureSettings read = picture_settings(settings);
    PictureProcessor made = take(PictureProcessor::from_settings(read));
    return handle(vkf_picture_processor{std::move(made)});
  });
}

vkf_status vkf_picture_processor_settings(const vkf_picture_processor* processor,
                                          vkf_picture_settings* settings, vkf_error* error) {
  return guard(error, [&] {
    need(processor, "processor");
    return write_struct(settings, view_settings(processor->processor.settings()),
                        "picture settings");
  });
}

vkf_status vkf_picture_processor_seen(const vkf_picture_processor* processor, int32_t width,
                                      int32_t height, double region[4], vkf_error* error) {
  return guard(error, [&] {
    need_all({{processor, "processor"}, {region, "region"}});
    const PictureRegion seen = take(seen_region(processor->processor.settings(), width, height));
    region[0] = seen.left;
    region[1] = seen.top;
    region[2] = seen.width;
    region[3] = seen.height;
  });
}

vkf_status vkf_picture_processor_run(const vkf_picture_processor* processor,
                                     const vkf_picture* const* pictures, size_t count,
                                     vkf_tensors** tensors, vkf_error* error) {
  return make_handle(tensors, error, [&] {
    need(processor, "processor");
    const std::vector<Picture> copies = copy_pictures(pictures, count);
    Tensor values = take(processor->processor.process(copies));
    return one_tensor("pixel_values", std::move(values));
  });
}

void vkf_picture_processor_free(vkf_picture_processor* processor) {
  delete processor;
}
