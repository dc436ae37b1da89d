// The guest: a Transformer that spells words out in phonemes, in slices of the renderer's own
// command buffers.
//
// Once a frame: record() appends at most so many microseconds of it to the frame's commands, and
// collect(), after the frame has run, takes what is finished.
#pragma once

#include <vkformer/session.h>
#include <vkformer/tokenizer.h>
#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sample {

// A word that somebody waits for.
struct Pronunciation {
  std::string word;      // letters as the model knows them
  std::string phonemes;  // as the model writes them; empty until `ready`
  bool ready = false;
};

class Pronouncer {
 public:
  // Loads the model onto the device and pronounces words in batches of all sizes, so that pipelines
  // and recordings are made before the first frame.
  static vkformer::Result<Pronouncer> create(const vkformer::Device& device,
                                             const std::string& directory);

  // Queues a word; the result fills itself in.
  std::shared_ptr<const Pronunciation> request(const std::string& word);
  // Whether there is anything left to compute.
  bool busy() const { return !waiting_.empty() || !running_.empty(); }

  // Appends the next slice, if there is work. True: something was recorded.
  vkformer::Result<bool> record(VkCommandBuffer commands, double microseconds);
  // Takes results; call it when the frame that record() wrote to has run.
  vkformer::Status collect();
  // Drops everything that waits or runs; recorded slices must have run.
  vkformer::Status stop();

  // Elements in all tensors of the model.
  int64_t parameters() const { return parameters_; }
  int words_done() const { return words_; }
  int phonemes_done() const { return phonemes_; }

 private:
  Pronouncer(vkformer::Tokenizer tokenizer, vkformer::Session session, int64_t parameters)
      : tokenizer_(std::move(tokenizer)), session_(std::move(session)), parameters_(parameters) {}
  vkformer::Status start_batch();
  vkformer::Status warm_up();

  vkformer::Tokenizer tokenizer_;
  vkformer::Session session_;
  int64_t parameters_ = 0;
  std::deque<std::shared_ptr<Pronunciation>> waiting_;
  std::vector<std::shared_ptr<Pronunciation>> running_;
  bool recorded_all_ = false;  // of what runs
  int words_ = 0, phonemes_ = 0;
};

// The letters of a word that a model of spelling knows: lower case, apostrophes, hyphens and dots
// inside. Empty where nothing is left ("--", "42").
std::string letters_of(const std::string& word);

}  // namespace sample
