#include "text_inputs.h"

#include <algorithm>
#include <limits>

namespace vkformer::cli {

Result<InputReader> InputReader::open(std::vector<std::string> texts, const std::string& file) {
  InputReader reader;
  reader.texts_ = std::move(texts);
  if (file.empty()) return reader;
  Result<InputFile> opened = file == "-" ? InputFile::standard_input() : InputFile::open(file);
  if (!opened) return opened.error();
  reader.file_ = std::move(*opened);
  return reader;
}

InputReader InputReader::of_lines(NumberedLines lines) {
  InputReader reader;
  reader.position_ = static_cast<size_t>(lines.first - 1);
  reader.lines_ = std::move(lines);
  return reader;
}

bool InputReader::cut_line(std::string& text) {
  if (cut_ == lines_->text.size()) return false;
  const size_t end = std::min(lines_->text.find('\n', cut_), lines_->text.size());
  text = lines_->text.substr(cut_, end - cut_);
  cut_ = std::min(end + 1, lines_->text.size());
  return true;
}

Result<bool> InputReader::read_line(std::string& text) {
  const Result<bool> read = lines_ ? Result<bool>(cut_line(text)) : file_->read_line(text);
  if (!read || !*read) return read;
  if (!text.empty() && text.back() == '\r') text.pop_back();
  // A byte order mark is a trace of the editor, not a part of the first word.
  if (position_ == 0 && text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return true;
}

Result<std::vector<TextInput>> InputReader::next(size_t count) {
  std::vector<TextInput> inputs;
  while (inputs.size() < count) {
    TextInput input;
    if (!file_ && !lines_) {
      if (position_ == texts_.size()) break;
      input.text = texts_[position_];
      input.origin = "argument " + std::to_string(position_ + 1);
    } else {
      const Result<bool> read = read_line(input.text);
      if (!read) return read.error();
      if (!*read) break;
      input.origin =
          (lines_ ? lines_->file : file_->name()) + ", line " + std::to_string(position_ + 1);
    }
    ++position_;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

Result<Encoding> encode_input(const Tokenizer& tokenizer, const TextInput& input, int64_t limit,
                              LongInput long_input) {
  EncodeOptions options;
  if (limit > 0 && long_input == LongInput::kTruncate) {
    options.truncation.mode = TruncationMode::kToLength;
    options.truncation.max_length =
        static_cast<int32_t>(std::min<int64_t>(limit, std::numeric_limits<int32_t>::max()));
  }
  Result<Encoding> encoding = tokenizer.encode(input.text, options);
  if (!encoding) return encoding.error().with_context("[" + input.origin + "]");
  const auto tokens = static_cast<int64_t>(encoding->ids.size());
  if (limit > 0 && tokens > limit) {
    return Error{ErrorCode::kInvalidArgument,
                 "[" + input.origin + "] has " + std::to_string(tokens) +
                     " tokens, but the model takes at most " + std::to_string(limit) +
                     "; shorten it, or give --truncate to cut such inputs."};
  }
  return encoding;
}

}  // namespace vkformer::cli
