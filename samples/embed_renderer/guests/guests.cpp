#include "guests/guests.h"

#include <algorithm>
#include <utility>

namespace sample {

namespace {

constexpr const char* kOpening = "ROMEO:\n";
constexpr int kTokensAtATime = 24;
// Of the text, what the next tokens follow on.
constexpr size_t kContext = 24;

}  // namespace

vkformer::Status Turn::begin(vkformer::FrameScheduler& frames, vkformer::Session& session,
                             vkformer::FrameJob::Priority priority) {
  const auto job = frames.add(session, {.priority = priority});
  if (!job) return job.error();
  job_ = *job;
  recorded_all_ = false;
  frames_ = 0;
  return {};
}

vkformer::Result<bool> Turn::saw(const vkformer::FrameProgress& progress) {
  if (idle() || progress.job != job_) return false;
  if (!progress.advance) return progress.advance.error();
  recorded_all_ = !progress.advance->more_to_submit();
  return true;
}

bool Turn::take(vkformer::FrameScheduler& frames) {
  if (idle()) return false;
  ++frames_;
  if (!recorded_all_) return false;
  lengths_.push_back(frames_);
  stop(frames);
  return true;
}

void Turn::stop(vkformer::FrameScheduler& frames) {
  frames.remove(job_);
  job_ = 0;
}

Watcher::Watcher(vkformer::Session session, vkformer::PictureProcessor processor,
                 std::vector<std::string> labels, const vkformer::ImageInput& picture)
    : session_(std::move(session)),
      processor_(std::move(processor)),
      labels_(std::move(labels)),
      picture_(picture) {}

vkformer::Result<Watcher> Watcher::create(const vkformer::Device& device,
                                          const std::string& directory,
                                          const vkformer::ImageInput& picture) {
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  auto processor = vkformer::PictureProcessor::load(directory);
  if (!processor) return processor.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  return Watcher(std::move(*session), std::move(*processor), model->info().labels, picture);
}

vkformer::Status Watcher::begin(vkformer::FrameScheduler& frames) {
  if (!turn_.idle()) return {};
  if (auto started = start_on_images(session_, {}, {picture_}, processor_); !started) {
    return started;
  }
  return turn_.begin(frames, session_, vkformer::FrameJob::Priority::kNormal);
}

vkformer::Status Watcher::collect(vkformer::FrameScheduler& frames) {
  if (!turn_.take(frames)) return {};
  const auto outputs = session_.finish();
  if (!outputs) return outputs.error();
  const auto logits = outputs->at("logits").to_floats();
  if (!logits) return logits.error();
  const auto best =
      static_cast<size_t>(std::max_element(logits->begin(), logits->end()) - logits->begin());
  label_ = best < labels_.size() ? labels_[best] : std::to_string(best);
  return {};
}

vkformer::Status Watcher::stop(vkformer::FrameScheduler& frames) {
  turn_.stop(frames);
  return session_.cancel();
}

Writer::Writer(vkformer::Tokenizer tokenizer, vkformer::Session session)
    : tokenizer_(std::move(tokenizer)), session_(std::move(session)) {}

vkformer::Result<Writer> Writer::create(const vkformer::Device& device,
                                        const std::string& directory) {
  auto tokenizer = vkformer::Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();
  const auto model = vkformer::Model::load(device, directory);
  if (!model) return model.error();
  auto session = vkformer::Session::create(*model);
  if (!session) return session.error();
  const auto opening = tokenizer->encode(kOpening);
  if (!opening) return opening.error();
  Writer writer(std::move(*tokenizer), std::move(*session));
  writer.context_ = opening->ids;
  return writer;
}

vkformer::Status Writer::begin(vkformer::FrameScheduler& frames) {
  if (!turn_.idle()) return {};
  const vkformer::Shape shape = {1, static_cast<int64_t>(context_.size())};
  vkformer::GenerateOptions options = session_.generation_defaults();
  options.max_new_tokens = kTokensAtATime;
  const vkformer::TensorMap inputs{{"input_ids", vkformer::Tensor::from_ints(shape, context_)}};
  if (auto started = session_.start_generation(inputs, options); !started) return started;
  return turn_.begin(frames, session_, vkformer::FrameJob::Priority::kBackground);
}

vkformer::Status Writer::collect(vkformer::FrameScheduler& frames) {
  if (!turn_.take(frames)) return {};
  const auto generation = session_.finish_generation();
  if (!generation) return generation.error();
  const std::vector<vkformer::TokenId>& ids = (*generation)[0][0].ids;
  const std::vector<vkformer::TokenId> added(
      ids.begin() + static_cast<std::ptrdiff_t>(std::min(context_.size(), ids.size())), ids.end());
  const auto text = tokenizer_.decode(added);
  if (!text) return text.error();
  text_ += *text;
  tokens_ += static_cast<int64_t>(added.size());
  context_.assign(ids.end() - static_cast<std::ptrdiff_t>(std::min(kContext, ids.size())),
                  ids.end());
  return {};
}

vkformer::Status Writer::stop(vkformer::FrameScheduler& frames) {
  turn_.stop(frames);
  return session_.cancel();
}

}  // namespace sample
