// Texts of a batch while their tokens come: decoded, cut where a string stops them, handed on.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/task_model.h"
#include "text/decode_stage.h"
#include "vkformer/stop_strings.h"

namespace vkformer {

class TextWriter {
 public:
  // The texts answer `prompts`, token rows of a decoder or empty, at `places` of the call, with
  // `sequences` sequences each. Keeps task and options.
  static Result<TextWriter> create(const TaskModel& task, const TextOptions& options,
                                   std::span<const size_t> places,
                                   const std::vector<std::vector<TokenId>>& prompts,
                                   size_t sequences);

  TokenVerdict take(const NewToken& token);
  bool failed() const { return error_.has_value(); }
  // The end of all texts; an error that came while tokens were taken.
  Status finish();
  // What was written of a text.
  const std::string& text(size_t row, size_t sequence) const;

 private:
  struct Line {
    std::unique_ptr<DecodeStage> stage;
    StopStrings stops;
    size_t skip = 0;  // bytes of the prompt that are still to come
    std::string text;
    bool done = false;
  };
  TextWriter(const TaskModel& task, const TextOptions& options, std::span<const size_t> places,
             size_t sequences)
      : task_(&task),
        options_(&options),
        places_(places.begin(), places.end()),
        sequences_(sequences) {}
  Status begin(Line& line, const std::vector<TokenId>& prompt);
  // The text that is certain with a token.
  Result<std::string> decoded(Line& line, TokenId id);
  TokenVerdict write(size_t row, size_t sequence, std::string piece);

  const TaskModel* task_;
  const TextOptions* options_;
  std::vector<size_t> places_;
  size_t sequences_;
  std::vector<Line> lines_;
  std::optional<Error> error_;
};

}  // namespace vkformer
