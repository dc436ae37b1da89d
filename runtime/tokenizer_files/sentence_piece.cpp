#include "tokenizer_files/sentence_piece.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"

namespace vkformer {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostPieces = size_t{1} << 22;
constexpr size_t kLongestMerged = 512;  // bytes of a piece whose parts are looked at
constexpr size_t kMostMerges = size_t{1} << 22;
constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

// A message of a protocol buffer, field by field.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : bytes_(bytes) {}

  // Reads the next field; false at the end, or where the bytes are no field.
  bool next() {
    if (at_ >= bytes_.size() || failed_) return false;
    const uint64_t key = varint();
    number_ = key >> 3;
    switch (key & 7) {
      case 0:
        value_ = varint();
        break;
      case 1:
        text_ = take(8);
        break;
      case 2:
        text_ = take(varint());
        break;
      case 5:
        text_ = take(4);
        break;
      default:
        failed_ = true;
    }
    return !failed_;
  }
  bool failed() const { return failed_; }
  uint64_t number() const { return number_; }
  uint64_t value() const { return value_; }
  std::string_view text() const { return text_; }
  float single() const {
    float value = 0;
    if (text_.size() == 4) std::memcpy(&value, text_.data(), 4);
    return value;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) break;
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view take(uint64_t length) {
    if (failed_ || length > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const std::string_view part = bytes_.substr(at_, static_cast<size_t>(length));
    at_ += static_cast<size_t>(length);
    return part;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  std::string_view text_;
};

enum class PieceKind : uint64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

struct Piece {
  std::string_view text;
  float score = 0;
  PieceKind kind = PieceKind::kNormal;
};

struct PieceModel {
  std::vector<Piece> pieces;
  uint64_t model_type = 1;  // 1 Unigram, 2 BPE, 3 words, 4 characters
  bool suffix_spaces = false;
  std::string_view charsmap;
  bool adds_prefix = true;
  bool trims = true;  // runs of spaces count as one, those at the ends as none
  bool escapes = true;
};

bool read_piece(std::string_view bytes, Piece& piece) {
  ProtoReader reader(bytes);
  while (reader.next()) {
    if (reader.number() == 1) piece.text = reader.text();
    if (reader.number() == 2) piece.score = reader.single();
    if (reader.number() == 3) piece.kind = static_cast<PieceKind>(reader.value());
  }
  return !reader.failed();
}

bool read_trainer(std::string_view bytes, PieceModel& model) {
  ProtoReader reader(bytes);
  while (reader.next()) {
    if (reader.number() == 3) model.model_type = reader.value();
    if (reader.number() == 24) model.suffix_spaces = reader.value() != 0;
  }
  return !reader.failed();
}

bool read_normalizer(std::string_view bytes, PieceModel& model) {
  ProtoReader reader(bytes);
  while (reader.next()) {
    if (reader.number() == 2) model.charsmap = reader.text();
    if (reader.number() == 3) model.adds_prefix = reader.value() != 0;
    if (reader.number() == 4) model.trims = reader.value() != 0;
    if (reader.number() == 5) model.escapes = reader.value() != 0;
  }
  return !reader.failed();
}

Error model_error(const std::string& name, const std::string& what) {
  return invalid_file(message({"File [", name, "] is no SentencePiece model: ", what, "."}));
}

Status check_model(const PieceModel& model, const std::string& name) {
  if (model.pieces.empty()) return model_error(name, "it has no pieces");
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (!is_whole_utf8(piece.text)) {
      return model_error(name, message({"piece ", i, " is not UTF-8"}));
    }
    if (!std::isfinite(piece.score)) {
      return model_error(name, message({"piece ", i, " has the score ", piece.score}));
    }
    if (piece.kind < PieceKind::kNormal || piece.kind > PieceKind::kByte) {
      return model_error(name, message({"piece ", i, " is of the kind ",
                                        static_cast<uint64_t>(piece.kind), " and not 1 to 6"}));
    }
  }
  if ((model.model_type == 1 || model.model_type == 2) && !model.suffix_spaces && model.escapes) {
    return {};
  }
  return unsupported(
      message({"File [", name, "] has [model_type] ", model.model_type,
               ", treat_whitespace_as_suffix ", model.suffix_spaces ? "true" : "false",
               " and escape_whitespaces ", model.escapes ? "true" : "false",
               "; vkformer reads Unigram (1) and BPE (2) with spaces before words."}));
}

Result<PieceModel> read_model(std::string_view bytes, const std::string& name) {
  PieceModel model;
  ProtoReader reader(bytes);
  bool whole = true;
  while (whole && reader.next()) {
    if (reader.number() == 1) {
      if (model.pieces.size() == kMostPieces) {
        return model_error(name, message({"it has more than ", kMostPieces, " pieces"}));
      }
      model.pieces.emplace_back();
      whole = read_piece(reader.text(), model.pieces.back());
    } else if (reader.number() == 2) {
      whole = read_trainer(reader.text(), model);
    } else if (reader.number() == 3) {
      whole = read_normalizer(reader.text(), model);
    }
  }
  if (!whole || reader.failed()) return model_error(name, "its fields are cut short");
  VKF_CHECK(check_model(model, name));
  return model;
}

// Every way to make a piece of two others, those of the best pieces first.
Result<Json> merges_of(const PieceModel& model, const std::string& name) {
  struct Merge {
    std::string_view left, right;
    float score;
    size_t left_id, right_id;
  };
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t i = 0; i < model.pieces.size(); ++i) ids.emplace(model.pieces[i].text, i);
  std::vector<Merge> merges;
  for (const Piece& piece : model.pieces) {
    if (piece.kind != PieceKind::kNormal || piece.text.size() > kLongestMerged) continue;
    std::vector<Merge> own;
    for (size_t at = 1; at < piece.text.size(); ++at) {
      if ((static_cast<unsigned char>(piece.text[at]) & 0xc0u) == 0x80u) continue;
      const auto left = ids.find(piece.text.substr(0, at)), right = ids.find(piece.text.substr(at));
      if (left == ids.end() || right == ids.end()) continue;
      own.push_back({left->first, right->first, piece.score, left->second, right->second});
    }
    std::sort(own.begin(), own.end(), [](const Merge& a, const Merge& b) {
      return std::pair(a.left_id, a.right_id) < std::pair(b.left_id, b.right_id);
    });
    merges.insert(merges.end(), own.begin(), own.end());
    if (merges.size() > kMostMerges) {
      return model_error(
          name, message({"its pieces are made of others in more than ", kMostMerges, " ways"}));
    }
  }
  std::stable_sort(merges.begin(), merges.end(),
                   [](const Merge& a, const Merge& b) { return a.score > b.score; });
  Json list = Json::array();
  for (const Merge& merge : merges) {
    list.push_back(Json::array({std::string(merge.left), std::string(merge.right)}));
  }
  return list;
}

// How ids of a tokenizer class differ from those of its SentencePiece file.
struct IdMap {
  std::vector<std::string> front;  // tokens in the place of the first pieces
  size_t skipped = 0;              // pieces that they stand for
  std::vector<std::string> behind;
};

IdMap id_map(const PieceModel& model, const TokenizerSettings& settings) {
  IdMap map;
  if (settings.kind == "XLMRobertaTokenizer") {
    map = {{"<s>", "<pad>", "</s>", "<unk>"}, 3, {"<mask>"}};
  } else if (settings.kind == "T5Tokenizer" || settings.kind == "MT5Tokenizer") {
    const auto extra = settings.config.find("extra_ids");
    int64_t count =
        extra != settings.config.end() && extra->is_number_integer() ? extra->get<int64_t>() : 100;
    const auto is_extra = [](const Piece& piece) { return piece.text.starts_with("<extra_id_"); };
    if (std::any_of(model.pieces.begin(), model.pieces.end(), is_extra)) count = 0;
    for (int64_t i = std::min<int64_t>(count, 10000); i-- > 0;) {
      map.behind.push_back("<extra_id_" + std::to_string(i) + ">");
    }
  }
  return map;
}

struct IdTable {
  std::vector<std::string> texts;
  std::vector<float> scores;
  std::vector<AddedToken> added;
  std::optional<int64_t> unknown;

  std::optional<int64_t> find(const std::string& text) const {
    const auto found = std::find(texts.begin(), texts.end(), text);
    if (found == texts.end()) return std::nullopt;
    return found - texts.begin();
  }
};

IdTable table_of(const PieceModel& model, const TokenizerSettings& settings) {
  const IdMap map = id_map(model, settings);
  IdTable table;
  const auto add = [&](const std::string& text, float score) {
    table.texts.push_back(text);
    table.scores.push_back(score);
    return static_cast<int64_t>(table.texts.size()) - 1;
  };
  for (const std::string& text : map.front) {
    const int64_t id = add(text, 0);
    if (text == "<unk>") table.unknown = id;
    table.added.push_back({id, text});
  }
  for (size_t i = map.skipped; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    const int64_t id = add(std::string(piece.text), piece.score);
    if (piece.kind == PieceKind::kUnknown && !table.unknown) table.unknown = id;
    const bool special = piece.kind == PieceKind::kControl || piece.kind == PieceKind::kUnknown;
    if (special || piece.kind == PieceKind::kUserDefined) {
      table.added.push_back({id, std::string(piece.text), special});
    }
  }
  for (const std::string& text : map.behind) {
    table.added.push_back({add(text, 0), text, true, text == "<mask>"});
  }
  return table;
}

// What the class puts around a text.
AroundText around_of(const IdTable& table, const TokenizerSettings& settings) {
  AroundText around{.before = {}, .after = {}};
  const auto add = [&](auto& to, const char* role, const char* otherwise) {
    const std::string text = settings.token(role).value_or(otherwise);
    if (const auto id = table.find(text)) to.push_back({text, *id});
  };
  const std::string& kind = settings.kind;
  const bool fairseq = kind == "XLMRobertaTokenizer";
  const bool llama =
      kind == "LlamaTokenizer" || kind == "CodeLlamaTokenizer" || kind == "GemmaTokenizer";
  const bool t5 = kind == "T5Tokenizer" || kind == "MT5Tokenizer";
  around.pair_types = llama;
  if (kind == "AlbertTokenizer") {
    around.pair_types = true;
    around.pair_begins = false;
    add(around.before, "cls_token", "[CLS]");
    add(around.after, "sep_token", "[SEP]");
    return around;
  }
  around.twice_between = fairseq;
  around.pair_begins = !fairseq;
  if (settings.flag("add_bos_token", llama) || fairseq) add(around.before, "bos_token", "<s>");
  if (settings.flag("add_eos_token", t5) || fairseq || t5) add(around.after, "eos_token", "</s>");
  return around;
}

Status check_class(const TokenizerSettings& settings) {
  static const std::vector<std::string> known = {"",
                                                 "PreTrainedTokenizer",
                                                 "LlamaTokenizer",
                                                 "CodeLlamaTokenizer",
                                                 "T5Tokenizer",
                                                 "GemmaTokenizer",
                                                 "MT5Tokenizer",
                                                 "AlbertTokenizer",
                                                 "XLMRobertaTokenizer"};
  if (std::find(known.begin(), known.end(), settings.kind) != known.end()) return {};
  std::string list;
  for (size_t i = 1; i < known.size(); ++i) list += (i > 1 ? ", " : "") + known[i];
  return unsupported(
      message({"[tokenizer_class] in ", settings.label, " is ", bracketed(settings.kind),
               ", whose ids are not those of its SentencePiece file; vkformer "
               "reads that file for ",
               list, ". Save the tokenizer as tokenizer.json."}));
}

// Normalization as SentencePiece does it, up to the marks that stand for spaces.
Json normalizer_of(const PieceModel& model, const TokenizerSettings& settings) {
  Json steps = Json::array();
  if (settings.kind == "AlbertTokenizer") {
    steps.push_back(json_replace("String", "``", "\""));
    steps.push_back(json_replace("String", "''", "\""));
    if (!settings.flag("keep_accents", false)) {
      steps.push_back(json_step("NFKD"));
      steps.push_back(json_step("StripAccents"));
    }
    if (settings.flag("do_lower_case", true)) steps.push_back(json_step("Lowercase"));
  }
  if (!model.charsmap.empty()) {
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64_of(model.charsmap)}});
  }
  if (model.trims) {
    steps.push_back(json_replace("Regex", " {2,}", " "));
    steps.push_back(json_replace("Regex", "\\A | \\z", ""));
  }
  if (model.adds_prefix) {
    steps.push_back({{"type", "Prepend"}, {"prepend", std::string(kSpaceMark)}});
  }
  steps.push_back(json_replace("String", " ", std::string(kSpaceMark)));
  return json_sequence("normalizers", std::move(steps));
}

// Whether a text may be cut before every mark, as no piece reaches over one.
bool cuts_words(const PieceModel& model) {
  for (const Piece& piece : model.pieces) {
    if (piece.kind == PieceKind::kNormal && piece.text.find(kSpaceMark, 1) != std::string::npos) {
      return false;
    }
  }
  return true;
}

Json decoder_of(const PieceModel& model) {
  Json steps = Json::array({json_replace("String", std::string(kSpaceMark), " "),
                            json_step("ByteFallback"), json_step("Fuse")});
  if (model.adds_prefix) {
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  return json_sequence("decoders", std::move(steps));
}

}  // namespace

Result<std::string> sentence_piece_json(std::string_view bytes, const std::string& name,
                                        const TokenizerSettings& settings) {
  VKF_ASSIGN(const PieceModel model, read_model(bytes, name));
  VKF_CHECK(check_class(settings));
  IdTable table = table_of(model, settings);
  const bool has_bytes = std::any_of(model.pieces.begin(), model.pieces.end(),
                                     [](const Piece& p) { return p.kind == PieceKind::kByte; });
  TokenizerSteps steps{.normalizer = normalizer_of(model, settings),
                       .post_processor = around_text(around_of(table, settings)),
                       .decoder = decoder_of(model)};
  if (cuts_words(model)) {
    steps.pre_tokenizer = {{"type", "Metaspace"},
                           {"replacement", std::string(kSpaceMark)},
                           {"prepend_scheme", "never"},
                           {"split", true}};
  }
  if (model.model_type == 1) {
    Json pieces = Json::array();
    for (size_t i = 0; i < table.texts.size(); ++i) {
      pieces.push_back(Json::array({table.texts[i], table.scores[i]}));
    }
    steps.model = {{"type", "Unigram"},
                   {"unk_id", table.unknown ? Json(*table.unknown) : Json()},
                   {"vocab", std::move(pieces)},
                   {"byte_fallback", has_bytes}};
  } else {
    Json ids = Json::object();
    for (size_t i = 0; i < table.texts.size(); ++i) ids.emplace(table.texts[i], i);
    VKF_ASSIGN(Json merges, merges_of(model, name));
    steps.model = json_bpe(std::move(ids), std::move(merges));
    steps.model["unk_token"] =
        table.unknown ? Json(table.texts[static_cast<size_t>(*table.unknown)]) : Json();
    steps.model["fuse_unk"] = true;
    steps.model["byte_fallback"] = has_bytes;
  }
  VKF_ASSIGN(steps.added, added_tokens_json(settings, std::move(table.added)));
  return tokenizer_text(std::move(steps));
}

}  // namespace vkformer
