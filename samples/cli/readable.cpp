#include "readable.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "terminal.h"

namespace vkformer::cli {

namespace {

constexpr int kBarColumns = 24;

// A line of a list: a text, its probability, and what else there is to say.
struct ScoreRow {
  std::string text;
  double score = 0;
  std::string more = "";
};

std::string score_rows(const std::vector<ScoreRow>& rows) {
  size_t width = 0;
  for (const ScoreRow& row : rows) width = std::max(width, row.text.size());
  std::string lines;
  for (const ScoreRow& row : rows) {
    std::string percent = fixed(row.score * 100, 1) + " %";
    percent.insert(0, percent.size() < 7 ? 7 - percent.size() : 0, ' ');
    std::string bar = bar_text(row.score, kBarColumns);
    if (!row.more.empty()) bar = filled(bar, kBarColumns) + "  " + row.more;
    if (!lines.empty()) lines += '\n';
    lines += filled(row.text, width) + "  " + percent;
    if (!bar.empty()) lines += "  " + colored(bar, Color::kCyan, stdout);
  }
  return lines;
}

std::string text_of(const Json& object, const char* key) {
  return object[key].get<std::string>();
}

double score_of(const Json& object) {
  return object["score"].is_number() ? object["score"].get<double>() : std::nan("");
}

}  // namespace

std::string readable_labels(const Json& line) {
  std::vector<ScoreRow> rows;
  if (line.contains("entities")) {
    for (const Json& entity : line["entities"]) {
      rows.push_back(
          {text_of(entity, "text") + "  " + text_of(entity, "label"), score_of(entity),
           "characters " + json_text(entity["begin"]) + " to " + json_text(entity["end"])});
    }
    return rows.empty() ? "no entities" : score_rows(rows);
  }
  if (!line.contains("labels")) return "no labels";
  for (const Json& label : line["labels"]) {
    rows.push_back({text_of(label, "label"), score_of(label)});
  }
  return score_rows(rows);
}

std::string readable_answers(const Json& line) {
  std::vector<ScoreRow> rows;
  const auto add = [&rows](const Json& answer) {
    const std::string text = text_of(answer, "answer");
    rows.push_back({text.empty() ? "(no answer)" : text, score_of(answer)});
  };
  if (!line.contains("answers")) add(line);
  if (line.contains("answers")) {
    for (const Json& answer : line["answers"]) add(answer);
  }
  return score_rows(rows);
}

std::string readable_ranking(const Json& line) {
  std::string lines;
  for (const Json& one : line["ranking"]) {
    std::string score = fixed(score_of(one), 4);
    score.insert(0, score.size() < 9 ? 9 - score.size() : 0, ' ');
    lines += (lines.empty() ? "" : "\n") + score + "  " + text_of(one, "document");
  }
  return lines.empty() ? "no documents" : lines;
}

std::string readable_objects(const Json& line) {
  std::string lines;
  for (const Json& one : line["objects"]) {
    const Json& box = one["box"];
    std::string corners;
    for (const Json& side : box)
      corners += (corners.empty() ? "" : ", ") + fixed(side.get<double>(), 1);
    lines += (lines.empty() ? "" : "\n") + fixed(score_of(one), 4) + "  " + text_of(one, "label") +
             "  (" + corners + ")";
  }
  return lines.empty() ? "no objects" : lines;
}

std::string readable_masks(const Json& line) {
  std::string lines;
  for (const Json& candidates : line["masks"]) {
    if (candidates.empty()) continue;
    std::vector<ScoreRow> rows;
    for (const Json& candidate : candidates) {
      rows.push_back({text_of(candidate, "token_text"), score_of(candidate)});
    }
    if (!lines.empty()) lines += '\n';
    lines += score_rows(rows) + '\n' + text_of(candidates[0], "text");
  }
  return lines;
}

std::string readable_text(const Json& line) {
  return text_of(line, "text");
}

std::string readable_words(const Json& line) {
  std::string text = text_of(line, "text");
  for (const Json& word : line["words"]) {
    text += "\n" + fixed(word["begin"].get<double>(), 2) + " - " +
            fixed(word["end"].get<double>(), 2) + " s   " + text_of(word, "word");
  }
  return text;
}

std::function<std::string(const Json& line)> readable_vectors() {
  const auto first = std::make_shared<std::vector<double>>();
  return [first](const Json& line) {
    constexpr size_t kShown = 6;
    std::vector<double> vector;
    for (const Json& value : line["embedding"]) {
      vector.push_back(value.is_number() ? value.get<double>() : std::nan(""));
    }
    const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
      double sum = 0;
      for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += a[i] * b[i];
      return sum;
    };
    const double length = std::sqrt(product(vector, vector));
    std::string text = std::to_string(vector.size()) + " numbers, length " + fixed(length, 3) + ":";
    for (size_t i = 0; i < std::min(kShown, vector.size()); ++i) text += " " + fixed(vector[i], 3);
    if (vector.size() > kShown) text += " ...";
    if (first->empty()) {
      *first = vector;
      return text;
    }
    const double lengths = length * std::sqrt(product(*first, *first));
    return text + "\ncosine with the first: " + fixed(product(*first, vector) / lengths, 3);
  };
}

}  // namespace vkformer::cli
