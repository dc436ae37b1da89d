#include "show.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <glm/gtc/matrix_inverse.hpp>

#include "overlay/bubbles.h"
#include "scene/head_shape.h"

namespace sample {

namespace {

const glm::vec3 kSun = glm::normalize(glm::vec3(-0.55F, 0.75F, 0.62F));

// One frame in this number is left to drawing alone, so that the two kinds of frames can be
// compared at any time.
constexpr int kRestEvery = 4;

// The device's name without what stands in brackets.
std::string short_name(const std::string& name) {
  const size_t bracket = name.find(" (");
  return bracket == std::string::npos ? name : name.substr(0, bracket);
}

// Large heads get finer meshes.
float detail_for(const Options& options) {
  const float rows = 1.0F + std::sqrt(static_cast<float>(options.heads) / 4.0F);
  const float head_height = static_cast<float>(options.height) / rows;  // pixels, roughly
  return std::clamp(head_height / 380.0F, 0.36F, 1.0F);
}

// "Five million" of 5.3 million: words, because that is what the model pronounces.
std::string size_words(int64_t parameters) {
  constexpr const char* kNumbers[] = {"Less than a", "One",   "Two",   "Three", "Four", "Five",
                                      "Six",         "Seven", "Eight", "Nine",  "Ten"};
  const int64_t millions = (parameters + 500'000) / 1'000'000;
  const bool known = millions < static_cast<int64_t>(std::size(kNumbers));
  return std::string(known ? kNumbers[millions] : "Many") + " million";
}

PixelRows rows_of(const Renderer& renderer) {
  return {renderer.pixels(), static_cast<int>(renderer.size().width),
          static_cast<int>(renderer.size().height)};
}

}  // namespace

std::string default_text(int64_t parameters) {
  return "Hello everybody. Who taught you to speak? A transformer did. " + size_words(parameters) +
         " numbers. On your graphics card. Inside your renderer. Nobody noticed anything. "
         "Frame after frame. My lips know what to do. Letters become sounds. "
         "Attention is all you need.";
}

Show::Show(const Options& options, std::string title, Parts parts, Window* window)
    : options_(options),
      title_(std::move(title)),
      parts_(std::move(parts)),
      window_(window),
      font_(std::make_unique<Font>()),
      canvas_(*font_),
      crowd_(options.heads),
      times_(1000.0 / options.fps),
      gif_(options.gif_width) {
  camera_ = crowd_.camera(static_cast<float>(options.width) / static_cast<float>(options.height));
}

vkformer::Result<Show> Show::create(const VulkanHost& host, const vkformer::Device& guest,
                                    const Options& options, Window* window) {
  std::string text = options.text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  if (!options.out.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(options.out, problem);
    if (problem) {
      return vkformer::Error{
          vkformer::ErrorCode::kInvalidArgument,
          "--out [" + options.out + "] cannot be made: " + problem.message() + "."};
    }
  }
  auto pronouncer = Pronouncer::create(guest, options.model, options.sessions);
  if (!pronouncer) return pronouncer.error();
  if (text.empty()) text = default_text(pronouncer->parameters());
  auto dialogue = Dialogue::create(text, options.heads, options.voices);
  if (!dialogue) return dialogue.error();
  const HeadMesh mesh = make_head_mesh(detail_for(options));
  const VkExtent2D size{static_cast<uint32_t>(options.width),
                        static_cast<uint32_t>(options.height)};
  auto renderer = Renderer::create(host, size, mesh, Font());
  if (!renderer) return renderer.error();
  auto frame = Frame::create(host);
  if (!frame) return frame.error();
  std::optional<Watcher> watcher;
  if (!options.watch.empty()) {
    auto made = Watcher::create(guest, options.watch,
                                {renderer->image(), kColorFormat,
                                 VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, size.width, size.height});
    if (!made) return made.error();
    watcher = std::move(*made);
  }
  std::optional<Writer> writer;
  if (!options.story.empty()) {
    auto made = Writer::create(guest, options.story);
    if (!made) return made.error();
    writer = std::move(*made);
  }
  const std::string title = short_name(guest.info().name) + ", " + std::to_string(options.heads) +
                            " heads, " + options.size;
  Show show(options, title,
            {std::move(*pronouncer), std::move(watcher), std::move(writer), std::move(*dialogue),
             std::move(*renderer), std::move(*frame)},
            window);
  show.moving_vertices_ = mesh.moving;
  return show;
}

bool Show::over(int frame, double now) const {
  if (window_ != nullptr && window_->closed()) return true;
  if (options_.frames > 0) return frame >= options_.frames;
  return window_ == nullptr && parts_.dialogue.finished(now);
}

vkformer::Status Show::run() {
  if (auto status = warm_up(); !status) return status.error();
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const double step = 1.0 / options_.fps;
  double now = 0.0;
  for (int frame = 0; !over(frame, now); ++frame) {
    // Off-screen each frame stands for the same time, so that pictures do not depend on the
    // machine.
    const double next = window_ != nullptr
                            ? std::chrono::duration<double>(Clock::now() - start).count()
                            : now + step;
    if (auto status = draw_frame(frame, next, next - now); !status) return status.error();
    now = next;
    if (parts_.dialogue.finished(now) && (options_.frames > 0 || window_ != nullptr)) {
      parts_.dialogue.restart();
    }
  }
  if (auto status = stop_guests(); !status) return status;
  if (auto status = write_report(); !status) return status;
  return options_.gif.empty() ? vkformer::Status() : gif_.write(options_.gif);
}

// Paints what stays, and draws twice: drivers finish pipelines when they first draw with them.
// These frames are not counted.
vkformer::Status Show::warm_up() {
  crowd_.update(0.0, 1.0, parts_.dialogue);
  for (int i = 0; i < 3; ++i) {
    const auto commands = parts_.frame.begin();
    if (!commands) return commands.error();
    parts_.frame.mark(Moment::kSliceDone);
    lay_over(0.0);
    if (i == 0) {
      parts_.renderer.paint_backdrop(*commands, picture(0.0).scene);
    } else {
      parts_.renderer.draw(*commands, picture(0.0));
    }
    parts_.frame.mark(Moment::kEnd);
    if (auto status = parts_.frame.run({}); !status) return status.error();
    if (i == 0) parts_.renderer.keep_backdrop();
  }
  return {};
}

vkformer::Status Show::draw_frame(int frame, double now, double seconds) {
  parts_.dialogue.update(now, parts_.pronouncer);
  crowd_.update(now, seconds, parts_.dialogue);
  FrameSemaphores semaphores;
  if (window_ != nullptr) {
    auto acquired = window_->acquire();
    if (!acquired) return acquired.error();
    semaphores = *acquired;
  }
  const auto commands = parts_.frame.begin();
  if (!commands) return commands.error();
  vkformer::Result<bool> guest = false;
  if (frame % kRestEvery != 0) guest = record_guests(*commands);
  if (!guest) return guest.error();
  parts_.frame.mark(Moment::kSliceDone);
  lay_over(now);
  parts_.renderer.draw(*commands, picture(now));
  if (captures(frame)) parts_.renderer.copy_out(*commands);
  if (window_ != nullptr) window_->copy(*commands, parts_.renderer.image());
  parts_.frame.mark(Moment::kEnd);
  if (auto status = parts_.frame.run(semaphores); !status) return status.error();
  const double slice = *guest ? parts_.frame.slice_ms() : 0.0;
  times_.add({parts_.frame.total_ms(), slice, *guest});
  if (auto status = collect_guests(); !status) return status;
  if (captures(frame)) {
    if (auto status = write_frame(frame); !status) return status.error();
  }
  return window_ != nullptr ? window_->present() : vkformer::Status();
}

vkformer::Result<bool> Show::record_guests(VkCommandBuffer commands) {
  if (auto begun = parts_.pronouncer.begin(frames_); !begun) return begun.error();
  if (parts_.watcher) {
    if (auto begun = parts_.watcher->begin(frames_); !begun) return begun.error();
  }
  if (parts_.writer) {
    if (auto begun = parts_.writer->begin(frames_); !begun) return begun.error();
  }
  if (frames_.jobs() == 0) return false;
  const auto recorded = frames_.record(commands, options_.budget_us);
  if (!recorded) return recorded.error();
  bool any = false;
  int preparing = 0;
  for (const vkformer::FrameProgress& progress : *recorded) {
    auto own = parts_.pronouncer.saw(progress);
    if (own && !*own && parts_.watcher) own = parts_.watcher->saw(progress);
    if (own && !*own && parts_.writer) own = parts_.writer->saw(progress);
    if (!own) return own.error();
    const bool prepares = progress.advance->progress == vkformer::Advance::Progress::kPreparing;
    preparing += prepares ? 1 : 0;
    any = any || !prepares;
  }
  preparing_.push_back(preparing);
  return any;
}

vkformer::Status Show::collect_guests() {
  if (auto status = parts_.pronouncer.collect(frames_); !status) return status;
  if (parts_.watcher) {
    if (auto status = parts_.watcher->collect(frames_); !status) return status;
  }
  return parts_.writer ? parts_.writer->collect(frames_) : vkformer::Status();
}

vkformer::Status Show::stop_guests() {
  if (auto status = parts_.pronouncer.stop(frames_); !status) return status;
  if (parts_.watcher) {
    if (auto status = parts_.watcher->stop(frames_); !status) return status;
  }
  return parts_.writer ? parts_.writer->stop(frames_) : vkformer::Status();
}

vkformer::Status Show::write_report() const {
  if (options_.report.empty()) return {};
  using Which = FrameTimes::Which;
  std::FILE* file = std::fopen(options_.report.c_str(), "w");
  if (file == nullptr) {
    return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                           "--report [" + options_.report + "] cannot be written."};
  }
  const auto frames_of = [&](const char* name, std::vector<int> lengths) {
    std::sort(lengths.begin(), lengths.end());
    const auto at = [&](double share) {
      const auto last = static_cast<double>(lengths.size()) - 1.0;
      return lengths.empty() ? 0 : lengths[static_cast<size_t>(share * last + 0.5)];
    };
    std::fprintf(file, " \"%s\": {\"results\": %zu, \"frames_p50\": %d, \"frames_max\": %d,\n",
                 name, lengths.size(), at(0.5), at(1.0));
    std::fprintf(file, "  \"frames\": [");
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::fprintf(file, "%s%d", i == 0 ? "" : ", ", lengths[i]);
    }
    std::fprintf(file, "]},\n");
  };
  std::fprintf(file, "{\"budget_us\": %.0f, \"sessions\": %d,\n", options_.budget_us,
               options_.sessions);
  std::fprintf(file, " \"frame_ms\": {\"with_p50\": %.3f, \"with_p99\": %.3f,",
               times_.total(Which::kWith, 0.5), times_.total(Which::kWith, 0.99));
  std::fprintf(file, " \"without_p50\": %.3f, \"without_p99\": %.3f},\n",
               times_.total(Which::kWithout, 0.5), times_.total(Which::kWithout, 0.99));
  std::fprintf(file, " \"slice_ms\": {\"p50\": %.3f, \"p99\": %.3f},\n", times_.slice(0.5),
               times_.slice(0.99));
  frames_of("words", parts_.pronouncer.lengths());
  if (parts_.watcher) frames_of("looks", parts_.watcher->turn().lengths());
  if (parts_.writer) frames_of("texts", parts_.writer->turn().lengths());
  const auto preparing =
      std::count_if(preparing_.begin(), preparing_.end(), [](int jobs) { return jobs > 0; });
  std::fprintf(file, " \"times\": [");  // of each frame: all of it and our slice, in milliseconds
  for (size_t i = 0; i < times_.all().size(); ++i) {
    const auto& frame = times_.all()[i];
    std::fprintf(file, "%s[%.3f, %.3f]", i == 0 ? "" : ", ", frame.total, frame.slice);
  }
  std::fprintf(file, "],\n \"frames\": %zu, \"frames_with_preparing\": %d}\n", times_.all().size(),
               static_cast<int>(preparing));
  const bool written = std::ferror(file) == 0;
  std::fclose(file);
  if (written) return {};
  return vkformer::Error{vkformer::ErrorCode::kInvalidArgument,
                         "--report [" + options_.report + "] could not be written whole."};
}

void Show::lay_over(double now) {
  canvas_.clear();
  const auto width = static_cast<float>(options_.width),
             height = static_cast<float>(options_.height);
  const float unit = height / 360.0F;
  const Box panel{8.0F * unit, height - 52.0F * unit, width - 8.0F * unit, height - 8.0F * unit};
  times_.draw(canvas_, panel, unit, title_);
  for (int head = 0; head < crowd_.size(); ++head) {
    const bool front = crowd_.in_front(head);
    const glm::vec3 at = front ? crowd_.chest(head) : crowd_.above(head);
    const glm::vec4 clip = camera_.view_projection * glm::vec4(at, 1.0F);
    BubblePlace place;
    place.anchor = {(clip.x / clip.w * 0.5F + 0.5F) * width,
                    (clip.y / clip.w * 0.5F + 0.5F) * height};
    place.side = front ? BubblePlace::Side::kBelow : BubblePlace::Side::kAbove;
    place.scale = unit;
    place.right_edge = width;
    draw_bubble(canvas_, place, parts_.dialogue.speech_of(head, now), now);
  }
}

Picture Show::picture(double now) const {
  Picture picture;
  SceneData& scene = picture.scene;
  scene.view_projection = camera_.view_projection;
  scene.world_of_clip = glm::inverse(camera_.view_projection);
  scene.camera = {camera_.position, static_cast<float>(crowd_.size())};
  scene.sun = {kSun, 0.0F};
  scene.screen = {static_cast<float>(options_.width), static_cast<float>(options_.height),
                  static_cast<float>(now), 0.0F};
  scene.eye_left = {kEye, kEyeRadius};
  scene.morphs = {static_cast<float>(moving_vertices_), 0.0F, 0.0F, 0.0F};
  const std::vector<glm::vec4> occluders = crowd_.occluders();
  scene.occluders.fill(glm::vec4(0.0F));
  std::copy(occluders.begin(), occluders.end(), scene.occluders.begin());
  picture.heads = crowd_.gpu_data();
  picture.styles = crowd_.styles();
  picture.overlay = &canvas_.pieces();
  return picture;
}

bool Show::captures(int frame) const {
  const bool still =
      !options_.still.empty() && (options_.still_frame < 0 || options_.still_frame == frame);
  return still || !options_.out.empty() || (!options_.gif.empty() && frame % 2 == 0);
}

vkformer::Status Show::write_frame(int frame) {
  const PixelRows rows = rows_of(parts_.renderer);
  if (!options_.gif.empty() && frame % 2 == 0) gif_.add(rows, 2.0 / options_.fps);
  if (!options_.out.empty()) {
    char name[32];
    std::snprintf(name, sizeof name, "/frame_%05d.png", frame);
    if (auto status = write_png(options_.out + name, rows); !status) return status.error();
  }
  // Without a number every frame is written over the one before, and the last stays.
  const bool still =
      !options_.still.empty() && (options_.still_frame < 0 || options_.still_frame == frame);
  return still ? write_png(options_.still, rows) : vkformer::Status();
}

void Show::print_summary() const {
  for (const LineWord* word : parts_.dialogue.words()) {
    const Pronunciation* known = word->known();
    if (known != nullptr) std::printf("%s\t%s\n", known->word.c_str(), known->phonemes.c_str());
  }
  using Which = FrameTimes::Which;
  const size_t with = times_.count(Which::kWith), without = times_.count(Which::kWithout);
  std::printf(
      "%zu frames of %s, %d heads, %d words, %d phonemes, a model of %.1f million numbers\n",
      with + without, options_.size.c_str(), crowd_.size(), parts_.pronouncer.words_done(),
      parts_.pronouncer.phonemes_done(),
      static_cast<double>(parts_.pronouncer.parameters()) * 1e-6);
  std::printf("%-22s %8s %12s %10s\n", "", "frames", "median ms", "99% ms");
  std::printf("%-22s %8zu %12.2f %10.2f\n", "rendering alone", without,
              times_.total(Which::kWithout, 0.5), times_.total(Which::kWithout, 0.99));
  std::printf("%-22s %8zu %12.2f %10.2f\n", "with inference", with, times_.total(Which::kWith, 0.5),
              times_.total(Which::kWith, 0.99));
  std::printf("%-22s %8s %12.2f %10.2f\n", "slices of inference", "", times_.slice(0.5),
              times_.slice(0.99));
  if (parts_.watcher) {
    std::printf("the picture was looked at %zu times; last it was \"%s\"\n",
                parts_.watcher->turn().lengths().size(), parts_.watcher->label().c_str());
  }
  if (parts_.writer) {
    std::printf("%lld tokens were written in the background:\n%s\n",
                static_cast<long long>(parts_.writer->tokens()), parts_.writer->text().c_str());
  }
  std::printf("%zu frames took longer than %.1f ms\n", times_.over_budget(), times_.budget());
}

}  // namespace sample
