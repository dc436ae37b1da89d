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
                                                const std::string& directory) {
  auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  // One recording for each size of batch, with words up to 15 letters and with longer ones.
  vkformer::SessionOptions session_options;
  session_options.recordings = 2 * static_cast<int>(kBatch);
  auto session = vkformer::Session::create(*model, session_options);
  if (!session) return session.error();
  Pronouncer pronouncer(std::move(*tokenizer), std::move(*session), model->info().parameters);
  if (auto warm = pronouncer.warm_up(); !warm) return warm.error();
  return pronouncer;
}

vkformer::Status Pronouncer::warm_up() {
  for (const char* word : {"hello", "incomprehensibility"}) {
    const auto encoding = tokenizer_.encode(word);
    if (!encoding) return encoding.error();
    for (size_t words = 1; words <= kBatch; ++words) {
      const std::vector<vkformer::Encoding> batch(words, *encoding);
      const auto generation =
          session_.generate_masked(batch_of(batch), session_.generation_defaults());
      if (!generation) return generation.error();
    }
  }
  return {};
}

std::shared_ptr<const Pronunciation> Pronouncer::request(const std::string& word) {
  waiting_.push_back(std::make_shared<Pronunciation>(Pronunciation{word, {}, false}));
  return waiting_.back();
}

vkformer::Status Pronouncer::start_batch() {
  std::vector<vkformer::Encoding> words;
  while (!waiting_.empty() && words.size() < kBatch) {
    auto encoding = tokenizer_.encode(waiting_.front()->word);
    if (!encoding) return encoding.error();
    words.push_back(std::move(*encoding));
    running_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  recorded_all_ = false;
  return session_.start_generation(batch_of(words), session_.generation_defaults());
}

vkformer::Result<bool> Pronouncer::record(VkCommandBuffer commands, double microseconds) {
  if (running_.empty()) {
    if (waiting_.empty()) return false;
    if (auto started = start_batch(); !started) return started.error();
  }
  const auto advance = session_.record(commands, microseconds);
  if (!advance) return advance.error();
  recorded_all_ = advance->progress != vkformer::Advance::Progress::kRunning;
  return true;
}

vkformer::Status Pronouncer::collect() {
  if (!recorded_all_) return {};
  recorded_all_ = false;
  const auto generation = session_.finish_generation();
  if (!generation) return generation.error();
  for (size_t i = 0; i < running_.size(); ++i) {
    const std::vector<vkformer::TokenId>& ids = (*generation)[i].front().ids;
    const auto text = tokenizer_.decode(ids);
    if (!text) return text.error();
    running_[i]->phonemes = *text;
    running_[i]->ready = true;
    ++words_;
    phonemes_ +=
        static_cast<int>(std::count(text->begin(), text->end(), ' ')) + (text->empty() ? 0 : 1);
  }
  running_.clear();
  return {};
}

vkformer::Status Pronouncer::stop() {
  waiting_.clear();
  if (running_.empty()) return {};
  running_.clear();
  recorded_all_ = false;
  return session_.cancel();
}

}  // namespace sample
