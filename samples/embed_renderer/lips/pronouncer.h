// The guest: a Transformer that spells words out in phonemes. It does so in slices of the
// renderer's own command buffers, in one session or in several at a time.
//
// Once a frame, begin() gives words to idle sessions, and saw() hears what the scheduler of the
// frame gave them. After the frame has run, collect() takes what is finished.
#pragma once

#include <vkformer/frame_scheduler.h>
#include <vkformer/tokenizer.h>
#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "guests/guests.h"

namespace sample {

// A word that somebody waits for.
struct Pronunciation {
  std::string word;      // letters as the model knows them
  std::string phonemes;  // as the model writes them; empty until `ready`
  bool ready = false;
};

class Pronouncer {
 public:
  // Loads the model onto the device; what batches of all sizes need is prepared before the first
  // frame.
  static vkformer::Result<Pronouncer> create(const vkformer::Device& device,
                                             const std::string& directory, int sessions);

  // Queues a word; the result fills itself in.
  std::shared_ptr<const Pronunciation> request(const std::string& word);
  vkformer::Status begin(vkformer::FrameScheduler& frames);
  vkformer::Result<bool> saw(const vkformer::FrameProgress& progress);
  vkformer::Status collect(vkformer::FrameScheduler& frames);
  // Drops everything that waits or runs; recorded slices must have run.
  vkformer::Status stop(vkformer::FrameScheduler& frames);

  // Elements in all tensors of the model.
  int64_t parameters() const { return parameters_; }
  int words_done() const { return words_; }
  int phonemes_done() const { return phonemes_; }

  // Frames from the start to the result of every batch so far.
  std::vector<int> lengths() const;

 private:
  // A session and the words that it is at.
  struct Lane {
    vkformer::Session session;
    std::vector<std::shared_ptr<Pronunciation>> running = {};
    Turn turn = {};
  };
  Pronouncer(vkformer::Tokenizer tokenizer, std::vector<Lane> lanes, int64_t parameters)
      : tokenizer_(std::move(tokenizer)), lanes_(std::move(lanes)), parameters_(parameters) {}
  vkformer::Status start_batch(Lane& lane);
  vkformer::Status finish_batch(Lane& lane);
  vkformer::Status warm_up();

  vkformer::Tokenizer tokenizer_;
  std::vector<Lane> lanes_;
  int64_t parameters_ = 0;
  std::deque<std::shared_ptr<Pronunciation>> waiting_;
  int words_ = 0, phonemes_ = 0;
};

// The letters of a word that a model of spelling knows: lower case, apostrophes, hyphens and dots
// inside. Empty where nothing is left ("--", "42").
std::string letters_of(const std::string& word);

}  // namespace sample
