#include "text/batching.h"

#include <algorithm>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Padding is memory that no text asked for, so a file or caller may ask for this many tokens at
// most.
constexpr int64_t kMaxPaddedLength = 1 << 20;

Result<TextSide> parse_side(const JsonRef& json) {
  VKF_ASSIGN(const auto name, json.text_or("direction", "Right"));
  if (name == "Right") return TextSide::kRight;
  if (name == "Left") return TextSide::kLeft;
  return json.not_supported("has the [direction] [" + name + "]; it must be Right or Left.");
}

// Keeps `kept` tokens.
void cut(Encoding& encoding, size_t kept, TextSide side) {
  const size_t size = encoding.ids.size();
  if (kept >= size) return;
  const auto shorten = [&](auto& list) {
    const auto removed = static_cast<ptrdiff_t>(size - kept);
    if (side == TextSide::kRight) {
      list.erase(list.end() - removed, list.end());
    } else {
      list.erase(list.begin(), list.begin() + removed);
    }
  };
  shorten(encoding.ids);
  shorten(encoding.tokens);
  shorten(encoding.offsets);
  shorten(encoding.type_ids);
  shorten(encoding.attention_mask);
}

// Takes from the longer text until both are equally long, then from both.
void cut_longest_first(std::vector<Encoding>& parts, size_t room, TextSide side) {
  if (parts.size() == 1) return cut(parts[0], room, side);
  size_t shorter = parts[0].ids.size();
  size_t longer = parts[1].ids.size();
  const bool swapped = shorter > longer;
  if (swapped) std::swap(shorter, longer);
  longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  if (swapped) std::swap(shorter, longer);
  cut(parts[0], shorter, side);
  cut(parts[1], longer, side);
}

}  // namespace

Result<TruncationOptions> parse_truncation(const JsonRef& root) {
  TruncationOptions options;
  VKF_ASSIGN(const auto json, root.optional_member("truncation"));
  if (!json) return options;
  options.mode = TruncationMode::kToLength;
  VKF_ASSIGN(const auto length, json->member("max_length"));
  VKF_ASSIGN(const int64_t max_length, length.integer(0, INT32_MAX));
  options.max_length = static_cast<int32_t>(max_length);
  VKF_ASSIGN(options.side, parse_side(*json));
  VKF_ASSIGN(const auto strategy, json->text_or("strategy", "LongestFirst"));
  if (strategy == "OnlyFirst") {
    options.strategy = TruncationStrategy::kOnlyFirst;
  } else if (strategy == "OnlySecond") {
    options.strategy = TruncationStrategy::kOnlySecond;
  } else if (strategy != "LongestFirst") {
    return json->not_supported("has the [strategy] [" + strategy +
                               "]; this build knows LongestFirst, OnlyFirst and OnlySecond.");
  }
  return options;
}

Result<PaddingOptions> parse_padding(const JsonRef& root) {
  PaddingOptions options;
  VKF_ASSIGN(const auto json, root.optional_member("padding"));
  if (!json) return options;
  VKF_ASSIGN(const auto strategy, json->member("strategy"));
  if (strategy.node().is_object()) {
    options.mode = PaddingMode::kToLength;
    VKF_ASSIGN(const auto fixed, strategy.member("Fixed"));
    VKF_ASSIGN(const int64_t length, fixed.integer(0, kMaxPaddedLength));
    options.length = static_cast<int32_t>(length);
  } else {
    options.mode = PaddingMode::kToLongest;
    VKF_ASSIGN(const auto name, strategy.text());
    if (name != "BatchLongest") {
      return strategy.not_supported("is [" + name +
                                    "]; this build knows BatchLongest and {\"Fixed\": length}.");
    }
  }
  VKF_ASSIGN(options.side, parse_side(*json));
  VKF_ASSIGN(const int64_t multiple, json->count_or("pad_to_multiple_of", 0));
  options.multiple_of = static_cast<int32_t>(multiple);
  VKF_ASSIGN(options.pad_id, json->count_or("pad_id", 0));
  VKF_ASSIGN(const int64_t type_id, json->count_or("pad_type_id", 0));
  options.pad_type_id = static_cast<int32_t>(type_id);
  return options;
}

Status truncate_encodings(std::vector<Encoding>& parts, const TruncationOptions& options,
                          size_t added) {
  if (options.mode == TruncationMode::kOff) return {};
  if (options.max_length < 0 || static_cast<size_t>(options.max_length) < added) {
    return invalid_argument(
        message({"[truncation] The length limit is ", options.max_length, " tokens, but the ",
                 added, " special tokens that get added do not fit; raise max_length."}));
  }
  const size_t room = static_cast<size_t>(options.max_length) - added;
  size_t total = 0;
  for (const Encoding& part : parts) total += part.ids.size();
  if (total <= room) return {};
  if (options.strategy == TruncationStrategy::kLongestFirst) {
    cut_longest_first(parts, room, options.side);
    return {};
  }
  const size_t target = options.strategy == TruncationStrategy::kOnlySecond ? 1 : 0;
  if (target >= parts.size()) {
    return invalid_argument(
        "[truncation] Only the second text may be cut, but there is only one; choose another "
        "strategy.");
  }
  const size_t length = parts[target].ids.size();
  const size_t excess = total - room;
  if (length <= excess) {
    return invalid_argument(
        message({"[truncation] The text that may be cut has ", length, " tokens, but ", excess,
                 " must go; raise max_length or use longest-first."}));
  }
  cut(parts[target], length - excess, options.side);
  return {};
}

Status pad_encodings(std::vector<Encoding>& rows, const PaddingOptions& options, TokenId pad_id,
                     const std::string& pad_token) {
  if (options.mode == PaddingMode::kOff) return {};
  if (options.length < 0 || options.length > kMaxPaddedLength || options.multiple_of < 0 ||
      options.multiple_of > kMaxPaddedLength) {
    return invalid_argument(
        message({"[padding] The length is ", options.length, " and the multiple ",
                 options.multiple_of, "; both must be from 0 to ", kMaxPaddedLength, " tokens."}));
  }
  auto length = static_cast<size_t>(options.length);
  if (options.mode == PaddingMode::kToLongest) {
    length = 0;
    for (const Encoding& row : rows) length = std::max(length, row.ids.size());
  }
  const auto multiple = static_cast<size_t>(options.multiple_of);
  if (multiple > 0 && length % multiple != 0) length += multiple - length % multiple;
  for (Encoding& row : rows) {
    const size_t missing = length > row.ids.size() ? length - row.ids.size() : 0;
    const auto pad = [&](auto& list, const auto& value) {
      list.insert(options.side == TextSide::kRight ? list.end() : list.begin(), missing, value);
    };
    pad(row.ids, pad_id);
    pad(row.tokens, pad_token);
    pad(row.offsets, TextRange{});
    pad(row.type_ids, options.pad_type_id);
    pad(row.attention_mask, 0);
  }
  return {};
}

}  // namespace vkformer
