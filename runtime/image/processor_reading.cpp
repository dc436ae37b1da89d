#include "image/processor_reading.h"

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/file_store.h"
#include "checkpoint/message_text.h"
#include "image/picture_processor.h"

namespace vkformer {
namespace {

using std::to_string;

Status read_triple(const JsonConfig& config, const std::string& key,
                   const std::array<double, 3>& fallback, std::array<double, 3>& values) {
  VKF_ASSIGN(const auto list, config.get_double_list_or(key, {fallback.begin(), fallback.end()}));
  if (list.size() != 1 && list.size() != 3) {
    return wrong_value(config, key,
                       "has " + to_string(list.size()) +
                           " numbers; give one, or one for each of red, green and "
                           "blue.");
  }
  for (size_t i = 0; i < values.size(); ++i) values[i] = list[list.size() == 1 ? 0 : i];
  return {};
}

}  // namespace

Result<JsonConfig> load_processor_config(const FileStore& files) {
  const char* own = "preprocessor_config.json";
  const char* nested = "processor_config.json";
  if (files.has(own) || !files.has(nested)) return JsonConfig::load_from(files, own);
  VKF_ASSIGN(const JsonConfig file, JsonConfig::load_from(files, nested));
  const JsonConfig config = file.object("image_processor");
  VKF_CHECK(config.status());
  if (!config.keys().empty()) return config;
  return not_found(message({"File ", bracketed(file.where()),
                            " has no [image_processor], and the model no "
                            "preprocessor_config.json; add one of them."}));
}

Result<std::string> processor_class(const JsonConfig& config) {
  VKF_ASSIGN(const std::string old_type, config.get_string_or("feature_extractor_type", ""));
  return config.get_string_or("image_processor_type", old_type);
}

std::string_view class_stem(std::string_view type) {
  for (const std::string_view end : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"}) {
    if (type.ends_with(end)) type.remove_suffix(end.size());
  }
  return type;
}

Error wrong_value(const JsonConfig& config, const std::string& key, const std::string& problem) {
  return invalid_file(message({"File ", bracketed(config.where()), ": [", key, "] ", problem}));
}

Error not_supported(const JsonConfig& config, const std::string& key, const std::string& problem) {
  return unsupported(message({"File ", bracketed(config.where()), ": [", key, "] ", problem}));
}

Result<int> to_side(const JsonConfig& config, const std::string& key, int64_t value) {
  if (value >= 1 && value <= kMaxPictureSide) return static_cast<int>(value);
  return wrong_value(
      config, key,
      "is " + to_string(value) + "; a side is 1 to " + to_string(kMaxPictureSide) + " pixels.");
}

Status read_resampling(const JsonConfig& config, Resampling fallback, PictureSettings& settings) {
  VKF_ASSIGN(const int64_t filter, config.get_int_or("resample", static_cast<int64_t>(fallback)));
  if (filter < 0 || filter > static_cast<int64_t>(Resampling::kHamming)) {
    return not_supported(config, "resample",
                         "is " + to_string(filter) + "; the filters are numbered 0 to 5.");
  }
  settings.resampling = static_cast<Resampling>(filter);
  return {};
}

Status read_factor(const JsonConfig& config, PictureSettings& settings) {
  VKF_ASSIGN(const bool rescales, config.get_bool_or("do_rescale", true));
  settings.rescale = 1.0;
  if (rescales) {
    VKF_ASSIGN(settings.rescale, config.get_double_or("rescale_factor", 1.0 / 255.0));
  }
  settings.image_mean = {0.0, 0.0, 0.0};
  settings.image_std = {1.0, 1.0, 1.0};
  return {};
}

Status read_values(const JsonConfig& config, const std::array<double, 3>& mean,
                   const std::array<double, 3>& deviation, PictureSettings& settings) {
  VKF_CHECK(read_factor(config, settings));
  VKF_ASSIGN(const bool normalizes, config.get_bool_or("do_normalize", true));
  if (!normalizes) return {};
  VKF_CHECK(read_triple(config, "image_mean", mean, settings.image_mean));
  return read_triple(config, "image_std", deviation, settings.image_std);
}

Status check_read_settings(const JsonConfig& config, const PictureSettings& settings) {
  const Status checked = check_picture_settings(settings);
  if (checked) return {};
  return invalid_file(checked.error().with_context(config.where()).message);
}

}  // namespace vkformer
