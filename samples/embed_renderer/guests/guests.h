// Other work that wants a share of the frame. A classifier takes the last rendered picture without
// reading it back. A writer generates text that may take its time.
//
// Once a frame, as the Pronouncer. begin() starts what is idle. saw() hears what the scheduler
// gave. collect(), after the frame has run, takes what is finished.
#pragma once

#include <vkformer/frame_scheduler.h>
#include <vkformer/tokenizer.h>
#include <vkformer/vulkan_interop.h>

#include <optional>
#include <string>
#include <vector>

namespace sample {

// One session's turn: a job of the scheduler, from its start to its result.
class Turn {
 public:
  bool idle() const { return job_ == 0; }
  // What the session has just started becomes a job.
  vkformer::Status begin(vkformer::FrameScheduler& frames, vkformer::Session& session,
                         vkformer::FrameJob::Priority priority);
  // True: it was this job's.
  vkformer::Result<bool> saw(const vkformer::FrameProgress& progress);
  // Whether all of it was recorded, so that it is over once the frame has run; then it is idle.
  bool take(vkformer::FrameScheduler& frames);
  void stop(vkformer::FrameScheduler& frames);

  // Frames from the start to the result of each turn so far.
  const std::vector<int>& lengths() const { return lengths_; }

 private:
  uint64_t job_ = 0;
  bool recorded_all_ = false;
  int frames_ = 0;
  std::vector<int> lengths_;
};

// Says again and again what the picture shows.
class Watcher {
 public:
  // `picture` is read at the start of a frame's commands, in the layout of a copy's source.
  static vkformer::Result<Watcher> create(const vkformer::Device& device,
                                          const std::string& directory,
                                          const vkformer::ImageInput& picture);
  vkformer::Status begin(vkformer::FrameScheduler& frames);
  vkformer::Result<bool> saw(const vkformer::FrameProgress& progress) {
    return turn_.saw(progress);
  }
  vkformer::Status collect(vkformer::FrameScheduler& frames);
  vkformer::Status stop(vkformer::FrameScheduler& frames);

  const Turn& turn() const { return turn_; }
  const std::string& label() const { return label_; }  // empty until the first result

 private:
  Watcher(vkformer::Session session, vkformer::PictureProcessor processor,
          std::vector<std::string> labels, const vkformer::ImageInput& picture);

  vkformer::Session session_;
  vkformer::PictureProcessor processor_;
  std::vector<std::string> labels_;
  vkformer::ImageInput picture_;
  Turn turn_;
  std::string label_;
};

// Writes a text in the background.
class Writer {
 public:
  static vkformer::Result<Writer> create(const vkformer::Device& device,
                                         const std::string& directory);
  vkformer::Status begin(vkformer::FrameScheduler& frames);
  vkformer::Result<bool> saw(const vkformer::FrameProgress& progress) {
    return turn_.saw(progress);
  }
  vkformer::Status collect(vkformer::FrameScheduler& frames);
  vkformer::Status stop(vkformer::FrameScheduler& frames);

  const Turn& turn() const { return turn_; }
  const std::string& text() const { return text_; }
  int64_t tokens() const { return tokens_; }

 private:
  Writer(vkformer::Tokenizer tokenizer, vkformer::Session session);

  vkformer::Tokenizer tokenizer_;
  vkformer::Session session_;
  std::vector<vkformer::TokenId> context_;  // what is continued
  Turn turn_;
  std::string text_;
  int64_t tokens_ = 0;
};

}  // namespace sample
