// The loop of frames: dialogue, crowd, a slice of inference, drawing, and what is written of it.
#pragma once

#include <vkformer/device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guests/guests.h"
#include "host/frame.h"
#include "host/renderer.h"
#include "host/window.h"
#include "lips/dialogue.h"
#include "options.h"
#include "overlay/frame_times.h"
#include "pictures/gif.h"
#include "scene/crowd.h"

namespace sample {

// What the crowd says unless it is told otherwise, with the size of the model that it runs on.
std::string default_text(int64_t parameters);

class Show {
 public:
  // `guest` is the device of `host`, adopted; `window` may be null. Both must outlive the show.
  static vkformer::Result<Show> create(const VulkanHost& host, const vkformer::Device& guest,
                                       const Options& options, Window* window);

  // Draws all frames and writes what was asked for.
  vkformer::Status run();
  // Words with their phonemes, and what frames took.
  void print_summary() const;

 private:
  struct Parts {
    Pronouncer pronouncer;
    std::optional<Watcher> watcher;
    std::optional<Writer> writer;
    Dialogue dialogue;
    Renderer renderer;
    Frame frame;
  };
  Show(const Options& options, std::string title, Parts parts, Window* window);

  bool over(int frame, double now) const;
  vkformer::Status warm_up();
  // The frame's share of inference, recorded; true: there was some.
  vkformer::Result<bool> record_guests(VkCommandBuffer commands);
  vkformer::Status collect_guests();
  vkformer::Status stop_guests();
  vkformer::Status write_report() const;
  vkformer::Status draw_frame(int frame, double now, double seconds);
  void lay_over(double now);
  Picture picture(double now) const;
  bool captures(int frame) const;
  vkformer::Status write_frame(int frame);

  Options options_;
  std::string title_;
  Parts parts_;
  Window* window_;
  // What draws texts keeps a pointer to the font, so it stays where it is.
  std::unique_ptr<Font> font_;
  Canvas canvas_;
  Crowd crowd_;
  Camera camera_;
  vkformer::FrameScheduler frames_;
  FrameTimes times_;
  std::vector<int> preparing_;  // jobs that were being prepared, by frame
  Gif gif_;
  uint32_t moving_vertices_ = 0;
};

}  // namespace sample
