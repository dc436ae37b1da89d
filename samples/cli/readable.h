// Answers of the task commands as people read them on a terminal. Each function takes the fields of
// one line of JSON (docs/cli.md) and gives lines of text, without the last line's end.
#pragma once

#include <functional>
#include <string>

#include "output.h"

namespace vkformer::cli {

// Labels with their probabilities and bars: "7   95.5 %  ======"; entities likewise.
std::string readable_labels(const Json& line);
// Answers with their probabilities.
std::string readable_answers(const Json& line);
// Documents with their scores, best first.
std::string readable_ranking(const Json& line);
// Objects with their probabilities and boxes, best first.
std::string readable_objects(const Json& line);
// The tokens that may stand for each mask, and the text with the likeliest.
std::string readable_masks(const Json& line);
// The text alone.
std::string readable_text(const Json& line);
// The text, and under it each word with its times.
std::string readable_words(const Json& line);
// Gives of each vector its width, its length, its first numbers and, from the second one on, its
// cosine with the first.
std::function<std::string(const Json& line)> readable_vectors();

}  // namespace vkformer::cli
