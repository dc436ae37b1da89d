#include "tasks/text_writer.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {

Result<TextWriter> TextWriter::create(const TaskModel& task, const TextOptions& options,
                                      std::span<const size_t> places,
                                      const std::vector<std::vector<int64_t>>& prompts,
                                      size_t sequences) {
  TextWriter writer(task, options, places, sequences);
  for (size_t row = 0; row < places.size(); ++row) {
    for (size_t sequence = 0; sequence < sequences; ++sequence) {
      Line line{task.tokenizer->decode_stage(), StopStrings(options.stop)};
      if (!prompts.empty()) VKF_CHECK(writer.begin(line, prompts[row]));
      writer.lines_.push_back(std::move(line));
    }
  }
  return writer;
}

// A continuation is decoded after its prompt, whose own text is omitted.
Status TextWriter::begin(Line& line, const std::vector<TokenId>& prompt) {
  VKF_ASSIGN(const std::string before, task_->tokenizer->decode(prompt, SpecialTokens::kExclude));
  line.skip = before.size();
  for (TokenId id : prompt) VKF_CHECK(decoded(line, id));
  return {};
}

Result<std::string> TextWriter::decoded(Line& line, TokenId id) {
  VKF_ASSIGN(const std::string* token,
             task_->tokenizer->decoded_token(id, SpecialTokens::kExclude));
  std::vector<StreamPiece> pieces;
  if (token != nullptr) VKF_CHECK(line.stage->push({*token, true}, pieces));
  std::string text;
  for (const StreamPiece& piece : pieces) text += piece.text;
  const size_t skipped = std::min(line.skip, text.size());
  line.skip -= skipped;
  return text.substr(skipped);
}

TokenVerdict TextWriter::write(size_t row, size_t sequence, std::string piece) {
  Line& line = lines_[row * sequences_ + sequence];
  line.text += piece;
  if (piece.empty() || !options_->on_text) return TokenVerdict::kGoOn;
  return options_->on_text({places_[row], sequence, piece});
}

TokenVerdict TextWriter::take(const NewToken& token) {
  Line& line = lines_[token.input * sequences_ + token.sequence];
  Result<std::string> piece = decoded(line, token.id);
  if (!piece) {
    error_ = piece.error();
    return TokenVerdict::kCancel;
  }
  const TokenVerdict verdict = write(token.input, token.sequence, line.stops.push(*piece));
  line.done = line.stops.stopped() || verdict == TokenVerdict::kEnd;
  if (verdict == TokenVerdict::kCancel || !line.done) return verdict;
  return TokenVerdict::kEnd;
}

Status TextWriter::finish() {
  if (error_) return *error_;
  for (size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    if (line.done) continue;
    std::vector<StreamPiece> pieces;
    VKF_CHECK(line.stage->finish(pieces));
    std::string rest;
    for (const StreamPiece& piece : pieces) rest += piece.text;
    rest.erase(0, std::min(line.skip, rest.size()));
    rest = line.stops.push(rest);
    if (!line.stops.stopped()) rest += line.stops.finish();
    if (write(i / sequences_, i % sequences_, std::move(rest)) == TokenVerdict::kCancel) {
      return cancelled(message({"[generate] the caller asked to stop at the end of text ",
                                places_[i / sequences_] + 1}));
    }
  }
  return {};
}

const std::string& TextWriter::text(size_t row, size_t sequence) const {
  return lines_[row * sequences_ + sequence].text;
}

}  // namespace vkformer
