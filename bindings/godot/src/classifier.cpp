#include <algorithm>
#include <cmath>

#include "passes.h"

namespace vkf_godot {
namespace {

using gd::Variant;

class ClassifyJob : public Job {
 public:
  explicit ClassifyJob(int top) : top_(top) {}

  vkf_status finish(vkf_session* session, vkf_error* error) override {
    std::vector<float> logits;
    if (const vkf_status status = finish_logits(session, logits, error); status != VKF_OK) {
      return status;
    }
    tell_labels(logits);
    return VKF_OK;
  }

 protected:
  Tensors inputs_;

 private:
  void tell_labels(const std::vector<float>& logits) {
    std::vector<std::pair<double, size_t>> order;
    if (seat->model->many_labels()) {
      for (size_t i = 0; i < logits.size(); ++i) {
        order.emplace_back(-1 / (1 + std::exp(-static_cast<double>(logits[i]))), i);
      }
    } else {
      const auto most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
      double sum = 0;
      for (const float value : logits) sum += std::exp(static_cast<double>(value) - most);
      for (size_t i = 0; i < logits.size(); ++i) {
        order.emplace_back(-std::exp(static_cast<double>(logits[i]) - most) / sum, i);
      }
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    if (top_ > 0 && order.size() > static_cast<size_t>(top_)) {
      order.resize(static_cast<size_t>(top_));
    }
    const vkf_model_info& info = seat->model->info();
    std::vector<std::string> labels;
    std::vector<float> scores;
    for (const auto& [score, place] : order) {
      labels.push_back(place < info.label_count ? info.labels[place] : std::to_string(place));
      scores.push_back(static_cast<float>(-score));
    }
    tell("classified", {Variant::strings(labels), Variant::floats(scores.data(), scores.size())});
  }

  int top_;
};

class ClassifyTextJob : public ClassifyJob {
 public:
  ClassifyTextJob(std::string text, int top) : ClassifyJob(top), text_(std::move(text)) {}

  std::string prepare() override {
    std::vector<int64_t> ids;
    if (std::string error = encode(*seat->model, text_, 0, ids); !error.empty()) return error;
    Error error;
    const int64_t shape[] = {1, static_cast<int64_t>(ids.size())};
    auto tensor = sized<vkf_tensor>();
    tensor.dtype = VKF_I64;
    tensor.shape = shape;
    tensor.rank = 2;
    tensor.data = ids.data();
    tensor.bytes = ids.size() * sizeof(int64_t);
    if (vkf_tensors_create(made(inputs_), error) != VKF_OK) return error.message();
    if (vkf_tensors_set(inputs_.get(), "input_ids", &tensor, error) != VKF_OK) {
      return error.message();
    }
    return "";
  }
  vkf_status start(vkf_session* session, vkf_error* error) override {
    return vkf_session_start(session, inputs_.get(), nullptr, error);
  }

 private:
  std::string text_;
};

std::string no_pictures(const LoadedModel& model) {
  return "[" + model.name() + "] reads no images but " + model.info().source +
         "; name a model that classifies images.";
}

class ClassifyImageJob : public ClassifyJob {
 public:
  ClassifyImageJob(std::vector<uint8_t> pixels, int width, int height, int top)
      : ClassifyJob(top), pixels_(std::move(pixels)), width_(width), height_(height) {}

  std::string prepare() override {
    if (seat->model->pictures() == nullptr) return no_pictures(*seat->model);
    Error error;
    auto pixels = sized<vkf_pixels>();
    pixels.format = VKF_RGBA8;
    pixels.bytes = pixels_.data();
    pixels.byte_count = pixels_.size();
    pixels.width = width_;
    pixels.height = height_;
    Picture picture;
    if (vkf_picture_from_pixels(&pixels, made(picture), error) != VKF_OK) return error.message();
    const vkf_picture* const pictures[] = {picture.get()};
    if (vkf_picture_processor_run(seat->model->pictures(), pictures, 1, made(inputs_), error) !=
        VKF_OK) {
      return error.message();
    }
    return "";
  }
  vkf_status start(vkf_session* session, vkf_error* error) override {
    return vkf_session_start(session, inputs_.get(), nullptr, error);
  }

 private:
  std::vector<uint8_t> pixels_;
  int width_;
  int height_;
};

constexpr int kRgba8 = 36;  // RenderingDevice.DATA_FORMAT_R8G8B8A8_UNORM

Variant rendering_device() {
  return gd::singleton("RenderingServer").call("get_rendering_device");
}

// A texture of the engine's device that only we use, so that its layout is known. The engine leaves
// it as the destination of a copy.
class TextureCopy {
 public:
  TextureCopy(int64_t width, int64_t height) : width_(width), height_(height) {
    const Variant wanted = gd::instantiate("RDTextureFormat");
    wanted.call("set_width", {width});
    wanted.call("set_height", {height});
    wanted.call("set_format", {kRgba8});
    wanted.call("set_usage_bits", {1 | 128 | 256});  // sampled, copied from, copied to
    texture_ = rendering_device().call(
        "texture_create",
        {wanted, gd::instantiate("RDTextureView"), Variant::make(GDEXTENSION_VARIANT_TYPE_ARRAY)});
  }
  ~TextureCopy() { rendering_device().call("free_rid", {texture_}); }
  TextureCopy(const TextureCopy&) = delete;
  TextureCopy& operator=(const TextureCopy&) = delete;

  bool fits(int64_t width, int64_t height) const { return width == width_ && height == height_; }
  void take(const Variant& from) {
    const Variant zero = Variant::make(GDEXTENSION_VARIANT_TYPE_VECTOR3);
    const Variant size =
        Variant::make(GDEXTENSION_VARIANT_TYPE_VECTOR3,
                      {static_cast<double>(width_), static_cast<double>(height_), 1.0});
    rendering_device().call("texture_copy", {from, texture_, zero, zero, size, 0, 0, 0, 0});
  }
  vkf_image_input input() const {
    constexpr int kTexture = 5;                    // RenderingDevice.DRIVER_RESOURCE_TEXTURE
    constexpr uint32_t kTransferDestination = 7;   // VkImageLayout
    constexpr uint32_t kVulkanRgba8 = kRgba8 + 1;  // VK_FORMAT_R8G8B8A8_UNORM
    vkf_image_input image = {};
    image.image = static_cast<uint64_t>(
        rendering_device().call("get_driver_resource", {kTexture, texture_, 0}).as_int());
    image.format = kVulkanRgba8;
    image.layout = kTransferDestination;
    image.width = static_cast<uint32_t>(width_);
    image.height = static_cast<uint32_t>(height_);
    return image;
  }

 private:
  int64_t width_;
  int64_t height_;
  Variant texture_;
};

// A texture of the engine's own device, never read back. The engine copies it into a texture of
// ours in one frame; the pass begins in a later one, when that copy has been submitted.
class ClassifyTextureJob : public ClassifyJob {
 public:
  ClassifyTextureJob(Variant texture, int top) : ClassifyJob(top), texture_(std::move(texture)) {}

  std::string prepare() override {
    return seat->model->pictures() == nullptr ? no_pictures(*seat->model) : "";
  }

  bool ready() override {
    if (frames_ == 0) copy();
    return ++frames_ > 2 || !wrong_.empty();
  }
  std::string wrong() const override { return wrong_; }

  vkf_status start(vkf_session* session, vkf_error* error) override {
    auto images = sized<vkf_image_inputs>();
    images.images = &image_;
    images.count = 1;
    images.processor = seat->model->pictures();
    return vkf_session_start_on_images(session, nullptr, &images, nullptr, error);
  }

 private:
  void copy() {
    const Variant from =
        gd::singleton("RenderingServer").call("texture_get_rd_texture", {texture_.call("get_rid")});
    const Variant format = rendering_device().call("texture_get_format", {from});
    if (format.is_null() || format.call("get_format").as_int() != kRgba8) {
      wrong_ =
          "[texture] is not stored as 8-bit RGBA; classify_image() takes images of all formats, "
          "and "
          "viewports must not use HDR 2D.";
      return;
    }
    const int64_t width = format.call("get_width").as_int();
    const int64_t height = format.call("get_height").as_int();
    auto taken = std::static_pointer_cast<TextureCopy>(seat->texture);
    if (!taken || !taken->fits(width, height)) {
      // Recordings on the old one go before it does.
      vkf_session_forget_buffers(seat->session.get(), nullptr);
      taken = std::make_shared<TextureCopy>(width, height);
      seat->texture = taken;
    }
    taken->take(from);
    image_ = taken->input();
  }

  Variant texture_;
  vkf_image_input image_ = {};
  int frames_ = 0;
  std::string wrong_;
};

}  // namespace

vkf_status finish_logits(vkf_session* session, std::vector<float>& logits, vkf_error* error) {
  Tensors outputs;
  auto tensor = sized<vkf_tensor>();
  if (const vkf_status status = vkf_session_finish(session, made(outputs), error);
      status != VKF_OK) {
    return status;
  }
  if (const vkf_status status = vkf_tensors_get(outputs.get(), "logits", &tensor, error);
      status != VKF_OK) {
    return status;
  }
  logits.resize(static_cast<size_t>(tensor.shape[tensor.rank - 1]));
  return vkf_tensors_get_floats(outputs.get(), "logits", logits.data(), logits.size(), error);
}

Variant ClassifierNode::classify_text(const gd::Arguments& given) {
  submit(std::make_shared<ClassifyTextJob>(given[0].as_string(), top_));
  return {};
}

Variant ClassifierNode::classify_image(const gd::Arguments& given) {
  if (given[0].is_null() || given[0].call("is_empty").as_bool()) {
    fail("[image] is empty; give an Image with pixels.");
    return {};
  }
  const Variant image = given[0].call("duplicate");
  if (image.call("is_compressed").as_bool()) image.call("decompress");
  image.call("convert", {5});  // FORMAT_RGBA8
  submit(std::make_shared<ClassifyImageJob>(
      image.call("get_data").as_bytes(), static_cast<int>(image.call("get_width").as_int()),
      static_cast<int>(image.call("get_height").as_int()), top_));
  return {};
}

Variant ClassifierNode::classify_texture(const gd::Arguments& given) {
  if (given[0].is_null()) {
    fail("[texture] is null; give a Texture2D, such as a viewport's get_texture().");
    return {};
  }
  // Without the engine's device the picture has to be read back.
  if (!Host::get().on_engine_device()) return classify_image({given[0].call("get_image")});
  submit(std::make_shared<ClassifyTextureJob>(given[0], top_));
  return {};
}

std::unique_ptr<gd::Class> ClassifierNode::register_class() {
  using T = ClassifierNode;
  constexpr auto kObject = GDEXTENSION_VARIANT_TYPE_OBJECT;
  auto c =
      std::make_unique<gd::Class>("VkfClassifier", "Node", [] { return std::make_unique<T>(); });
  register_node<T>(*c);
  c->property<T>(
      "top", GDEXTENSION_VARIANT_TYPE_INT, gd::range("0,100,1,or_greater"),
      [](T& self) { return self.top_; },
      [](T& self, const Variant& value) {
        self.top_ = static_cast<int>(std::clamp<int64_t>(value.as_int(), 0, 1 << 20));
      });
  c->method("classify_text", GDEXTENSION_VARIANT_TYPE_NIL, {{"text"}}, &T::classify_text);
  c->method("classify_image", GDEXTENSION_VARIANT_TYPE_NIL, {{"image", kObject, "Image"}},
            &T::classify_image);
  c->method("classify_texture", GDEXTENSION_VARIANT_TYPE_NIL, {{"texture", kObject, "Texture2D"}},
            &T::classify_texture);
  c->signal("classified", {{"labels", GDEXTENSION_VARIANT_TYPE_PACKED_STRING_ARRAY},
                           {"scores", GDEXTENSION_VARIANT_TYPE_PACKED_FLOAT32_ARRAY}});
  return c;
}

}  // namespace vkf_godot
