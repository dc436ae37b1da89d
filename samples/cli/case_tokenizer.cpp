// Tokenizer cases: strings, pairs and one padded batch.
#include <limits>

#include "case_command.h"
#include "files.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

namespace {

Error inputs_error(const std::string& what) {
  return {ErrorCode::kInvalidFile, "[inputs.json] " + what};
}

Result<std::vector<std::string>> string_list(const Json& object, const char* key) {
  std::vector<std::string> strings;
  const auto found = object.find(key);
  if (found == object.end()) return strings;
  for (const Json& text : *found) {
    if (!text.is_string()) {
      return inputs_error(std::string("has something else than texts in \"") + key + "\".");
    }
    strings.push_back(text.get<std::string>());
  }
  return strings;
}

// One text, or two that belong together.
struct CaseText {
  std::string first;
  const std::string* second = nullptr;
};

Result<Encoding> encode_text(const Tokenizer& tokenizer, const CaseText& text,
                             SpecialTokens special) {
  EncodeOptions options;
  options.special_tokens = special;
  if (text.second == nullptr) return tokenizer.encode(text.first, options);
  return tokenizer.encode_pair(text.first, *text.second, options);
}

Result<Json> text_answer(const Tokenizer& tokenizer, const CaseText& text) {
  const Result<Encoding> full = encode_text(tokenizer, text, SpecialTokens::kInclude);
  if (!full) return full.error();
  const Result<Encoding> bare = encode_text(tokenizer, text, SpecialTokens::kExclude);
  if (!bare) return bare.error();
  const Result<std::string> decoded = tokenizer.decode(full->ids, SpecialTokens::kExclude);
  if (!decoded) return decoded.error();
  const Result<std::string> whole = tokenizer.decode(full->ids, SpecialTokens::kInclude);
  if (!whole) return whole.error();
  Json answer;
  answer["ids"] = full->ids;
  answer["tokens"] = full->tokens;
  answer["offsets"] = Json::array();
  for (const TextRange& range : full->offsets) {
    answer["offsets"].push_back({range.begin, range.end});
  }
  answer["type_ids"] = full->type_ids;
  answer["ids_without_special"] = bare->ids;
  answer["decoded"] = *decoded;
  answer["decoded_with_special"] = *whole;
  return answer;
}

Result<EncodeOptions> batch_options(const Json& batch) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const Result<int64_t> length = json_integer(batch, "truncation_max_length", most, "inputs.json");
  if (!length) return length.error();
  const Result<int64_t> pad = json_integer(batch, "pad_id", 0, "inputs.json");
  if (!pad) return pad.error();
  if (*length < 0 || *length > most || *pad < 0 || *pad > most) {
    return inputs_error("has a truncation_max_length or pad_id outside 0 to 2147483647.");
  }
  EncodeOptions options;
  options.truncation.mode = TruncationMode::kToLength;
  options.truncation.max_length = static_cast<int32_t>(*length);
  options.padding.mode = PaddingMode::kToLongest;
  options.padding.pad_id = *pad;
  return options;
}

Result<Json> batch_answer(const Tokenizer& tokenizer, const Json& batch) {
  const Result<std::vector<std::string>> strings = string_list(batch, "strings");
  if (!strings) return strings.error();
  const Result<EncodeOptions> options = batch_options(batch);
  if (!options) return options.error();
  const Result<std::vector<Encoding>> encodings = tokenizer.encode_batch(*strings, *options);
  if (!encodings) return encodings.error();
  Json answer;
  answer["ids"] = Json::array();
  answer["attention_mask"] = Json::array();
  for (const Encoding& encoding : *encodings) {
    answer["ids"].push_back(encoding.ids);
    answer["attention_mask"].push_back(encoding.attention_mask);
  }
  return answer;
}

Result<Json> pair_answers(const Tokenizer& tokenizer, const Json& pairs) {
  Json answers = Json::array();
  for (const Json& pair : pairs) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      return inputs_error("has a pair that is not two texts.");
    }
    const std::string second = pair[1].get<std::string>();
    Result<Json> one = text_answer(tokenizer, {pair[0].get<std::string>(), &second});
    if (!one) return one.error();
    answers.push_back(std::move(*one));
  }
  return answers;
}

}  // namespace

Result<Json> answer_texts(const Tokenizer& tokenizer, const Json& inputs) {
  const Result<std::vector<std::string>> strings = string_list(inputs, "strings");
  if (!strings) return strings.error();
  Json answer;
  answer["strings"] = Json::array();
  for (const std::string& text : *strings) {
    Result<Json> one = text_answer(tokenizer, {text, nullptr});
    if (!one) return one.error();
    answer["strings"].push_back(std::move(*one));
  }
  Result<Json> pairs = pair_answers(tokenizer, inputs.value("pairs", Json::array()));
  if (!pairs) return pairs.error();
  answer["pairs"] = std::move(*pairs);
  Result<Json> batch = batch_answer(tokenizer, inputs.value("batch", Json::object()));
  if (!batch) return batch.error();
  answer["batch"] = std::move(*batch);
  return answer;
}

Result<Json> answer_tokenizer_case(const CaseOptions& options) {
  const Result<Tokenizer> tokenizer = Tokenizer::load(options.path("model"));
  if (!tokenizer) return tokenizer.error();
  const Result<Json> inputs = read_json_file(options.path("inputs.json"));
  if (!inputs) return inputs.error();
  return answer_texts(*tokenizer, *inputs);
}

}  // namespace vkformer::cli
