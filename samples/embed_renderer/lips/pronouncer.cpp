#include "lips/pronouncer.h"

#include <algorithm>
#include <cctype>

namespace sample {

namespace {

// Words that are pronounced in one batch: more of them take less time each, and more until the
// first is there.
constexpr size_t kBatch = 4;

// Words side by side, padded, and which of their letters are real.
vkformer::TensorMap batch_of(const std::vector<vkformer::Encoding>& words) {
  size_t longest = 0;
  for (const auto& word : words) longest = std::max(longest, word.ids.size());
  std::vector<vkformer::TokenId> ids, mask;
  for (const auto& word : words) {
    for (size_t i = 0; i < longest; ++i) {
      const bool real = i < word.ids.size();
      ids.push_back(real ? word.ids[i] : 0);
      mask.push_back(real ? 1 : 0);
    }
  }
  const vkformer::Shape shape = {static_cast<int64_t>(words.size()), static_cast<int64_t>(longest)};
  return {{"input_ids", vkformer::Tensor::from_ints(shape, ids)},
          {"attention_mask", vkformer::Tensor::from_ints(shape, mask)}};
}

}  // namespace

std::string letters_of(const std::string& word) {
  std::string letters;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && std::isalpha(byte) != 0) {
      letters += static_cast<char>(std::tolower(byte));
    } else if ((c == '\'' || c == '-' || c == '.') && !letters.empty()) {
      letters += c;
    }
  }
  while (!letters.empty() && std::isalpha(static_cast<unsigned char>(letters.back())) == 0) {
    letters.pop_back();
  }
  return letters;
}

vkformer::Result<Pronouncer> Pronouncer::create(const vkformer::Device& device,
                                                const std::string& directory, int sessions) {
  auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  // One recording for each size of batch, with words up to 15 letters and with longer ones.
  vkformer::SessionOptions session_options;
  session_options.recordings = 2 * static_cast<int>(kBatch);
  std::vector<Lane> lanes;
  for (int i = 0; i < sessions; ++i) {
    auto session = vkformer::Session::create(*model, session_options);
    if (!session) return session.error();
    lanes.push_back({std::move(*session)});
  }
  Pronouncer pronouncer(std::move(*tokenizer), std::move(lanes), model->info().parameters);
  if (auto warm = pronouncer.warm_up(); !warm) return warm.error();
  return pronouncer;
}

// All sessions prepare side by side.
vkformer::Status Pronouncer::warm_up() {
  for (Lane& lane : lanes_) {
    vkformer::SessionSizes sizes;
    sizes.beams = 0;  // as the model's own settings say
    sizes.new_tokens = lane.session.generation_defaults().max_new_tokens;
    for (const char* word : {"hello", "incomprehensibility"}) {
      const auto encoding = tokenizer_.encode(word);
      if (!encoding) return encoding.error();
      sizes.tokens = static_cast<int64_t>(encoding->ids.size());
      for (sizes.batch = 1; sizes.batch <= static_cast<int64_t>(kBatch); ++sizes.batch) {
        if (auto status = lane.session.warm_up(sizes); !status) return status;
      }
    }
  }
  for (Lane& lane : lanes_) {
    if (auto status = lane.session.finish_warm_up(); !status) return status;
  }
  return {};
}

std::shared_ptr<const Pronunciation> Pronouncer::request(const std::string& word) {
  waiting_.push_back(std::make_shared<Pronunciation>(Pronunciation{word, {}, false}));
  return waiting_.back();
}

vkformer::Status Pronouncer::start_batch(Lane& lane) {
  std::vector<vkformer::Encoding> words;
  // Idle sessions share what waits.
  const size_t most = lanes_.size() > 1 ? 1 : kBatch;
  while (!waiting_.empty() && words.size() < most) {
    auto encoding = tokenizer_.encode(waiting_.front()->word);
    if (!encoding) return encoding.error();
    words.push_back(std::move(*encoding));
    lane.running.push_back(waiting_.front());
    waiting_.pop_front();
  }
  return lane.session.start_generation(batch_of(words), lane.session.generation_defaults());
}

vkformer::Status Pronouncer::begin(vkformer::FrameScheduler& frames) {
  for (Lane& lane : lanes_) {
    if (!lane.turn.idle() || waiting_.empty()) continue;
    if (auto started = start_batch(lane); !started) return started;
    auto begun = lane.turn.begin(frames, lane.session, vkformer::FrameJob::Priority::kHigh);
    if (!begun) return begun;
  }
  return {};
}

vkformer::Result<bool> Pronouncer::saw(const vkformer::FrameProgress& progress) {
  for (Lane& lane : lanes_) {
    const auto own = lane.turn.saw(progress);
    if (!own || *own) return own;
  }
  return false;
}

vkformer::Status Pronouncer::collect(vkformer::FrameScheduler& frames) {
  for (Lane& lane : lanes_) {
    if (!lane.turn.take(frames)) continue;
    if (auto finished = finish_batch(lane); !finished) return finished;
  }
  return {};
}

vkformer::Status Pronouncer::finish_batch(Lane& lane) {
  const auto generation = lane.session.finish_generation();
  if (!generation) return generation.error();
  for (size_t i = 0; i < lane.running.size(); ++i) {
    const std::vector<vkformer::TokenId>& ids = (*generation)[i].front().ids;
    const auto text = tokenizer_.decode(ids);
    if (!text) return text.error();
    lane.running[i]->phonemes = *text;
    lane.running[i]->ready = true;
    ++words_;
    phonemes_ +=
        static_cast<int>(std::count(text->begin(), text->end(), ' ')) + (text->empty() ? 0 : 1);
  }
  lane.running.clear();
  return {};
}

std::vector<int> Pronouncer::lengths() const {
  std::vector<int> all;
  for (const Lane& lane : lanes_) {
    const std::vector<int>& own = lane.turn.lengths();
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

vkformer::Status Pronouncer::stop(vkformer::FrameScheduler& frames) {
  waiting_.clear();
  for (Lane& lane : lanes_) {
    lane.turn.stop(frames);
    lane.running.clear();
    if (auto status = lane.session.cancel(); !status) return status;
  }
  return {};
}

}  // namespace sample
