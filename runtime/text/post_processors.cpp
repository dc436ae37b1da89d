#include "text/post_processors.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <utility>

#include "base/message.h"
#include "text/bert_text.h"
#include "text/byte_level.h"
#include "text/type_list.h"

namespace vkformer {
namespace {

using ProcessorPtr = std::unique_ptr<PostProcessor>;

class SequenceProcessor final : public PostProcessor {
 public:
  static Result<ProcessorPtr> parse(const JsonRef& json, int depth) {
    auto sequence = std::make_unique<SequenceProcessor>();
    VKF_CHECK(parse_each(
        json, "processors",
        [&](const JsonRef& one) { return parse_post_processor(one, depth + 1); },
        [&](ProcessorPtr step) { sequence->steps_.push_back(std::move(step)); }));
    size_t templates = 0;
    for (const auto& step : sequence->steps_) templates += step->wants_texts() ? 1 : 0;
    if (templates > 1) {
      return json.not_supported("has " + std::to_string(templates) +
                                " steps that lay out texts by a template; the limit is 1.");
    }
    sequence->wants_texts_ = templates == 1;
    return ProcessorPtr(std::move(sequence));
  }

  size_t added_count(size_t texts) const override {
    size_t count = 0;
    for (const auto& step : steps_) count += step->added_count(texts);
    return count;
  }

  Result<std::vector<Encoding>> process(std::vector<Encoding> parts,
                                        SpecialTokens special_tokens) const override {
    for (const auto& step : steps_) {
      VKF_ASSIGN(parts, step->process(std::move(parts), special_tokens));
    }
    return parts;
  }

  bool wants_texts() const override { return wants_texts_; }

 private:
  std::vector<ProcessorPtr> steps_;
  bool wants_texts_ = false;
};

class TemplateProcessor final : public PostProcessor {
 public:
  static Result<ProcessorPtr> parse(const JsonRef& json, int) {
    auto made = std::make_unique<TemplateProcessor>();
    VKF_CHECK(made->parse_special_tokens(json));
    VKF_ASSIGN(const auto single, json.member("single"));
    VKF_ASSIGN(made->single_, made->parse_template(single, 1));
    VKF_ASSIGN(const auto pair, json.member("pair"));
    VKF_ASSIGN(made->pair_, made->parse_template(pair, 2));
    return ProcessorPtr(std::move(made));
  }

  size_t added_count(size_t texts) const override {
    size_t count = 0;
    for (const Slot& slot : texts == 2 ? pair_ : single_) {
      count += slot.special ? slot.special->size() : 0;
    }
    return count;
  }

  Result<std::vector<Encoding>> process(std::vector<Encoding> parts,
                                        SpecialTokens special_tokens) const override {
    if (parts.empty() || parts.size() > 2) {
      return internal_error(message({"[TemplateProcessing] got ", parts.size(),
                                     " encodings; it lays out 1 or 2. Please report this."}));
    }
    std::vector<Encoding> out;
    const std::vector<Slot>& slots = parts.size() == 2 ? pair_ : single_;
    for (size_t i = 0; i < slots.size(); ++i) {
      const Slot& slot = slots[i];
      Encoding piece;
      if (!slot.special) {
        const bool again = std::any_of(
            slots.begin() + static_cast<ptrdiff_t>(i) + 1, slots.end(),
            [&](const Slot& later) { return !later.special && later.text == slot.text; });
        piece = again ? parts[slot.text] : std::move(parts[slot.text]);
        piece.type_ids.assign(piece.ids.size(), slot.type_id);
      } else if (special_tokens == SpecialTokens::kInclude) {
        for (const auto& [id, token] : *slot.special) {
          append_token(piece, id, token, {}, slot.type_id);
        }
      }
      out.push_back(std::move(piece));
    }
    return out;
  }

  bool wants_texts() const override { return true; }

 private:
  using Tokens = std::vector<std::pair<int32_t, std::string>>;
  struct Slot {
    const Tokens* special = nullptr;  // null for a text
    size_t text = 0;                  // 0 for A, 1 for B
    int32_t type_id = 0;
  };

  Status parse_special_tokens(const JsonRef& json) {
    VKF_ASSIGN(const auto list, json.optional_member("special_tokens"));
    if (!list) return {};
    if (!list->node().is_object()) return list->wrong_type("an object");
    for (const auto& [name, value] : list->node().items()) {
      const JsonRef entry(value, list->path() + "[" + name + "]");
      VKF_ASSIGN(const auto ids, entry.member("ids"));
      VKF_ASSIGN(const auto tokens, entry.member("tokens"));
      VKF_ASSIGN(const size_t count, ids.array_size());
      VKF_ASSIGN(const size_t token_count, tokens.array_size());
      if (count != token_count) {
        return entry.malformed("has " + std::to_string(count) + " ids but " +
                               std::to_string(token_count) + " tokens; it needs as many of each.");
      }
      Tokens& specials = special_tokens_[name];
      for (size_t i = 0; i < count; ++i) {
        VKF_ASSIGN(const int64_t id, ids.element(i).integer(0, INT32_MAX));
        VKF_ASSIGN(auto token, tokens.element(i).text());
        specials.emplace_back(static_cast<int32_t>(id), std::move(token));
      }
    }
    return {};
  }

  Result<std::vector<Slot>> parse_template(const JsonRef& json, size_t texts) const {
    VKF_ASSIGN(const size_t count, json.array_size());
    std::vector<Slot> slots;
    for (size_t i = 0; i < count; ++i) {
      const JsonRef element = json.element(i);
      VKF_ASSIGN(const auto text, element.optional_member("Sequence"));
      VKF_ASSIGN(const auto special, element.optional_member("SpecialToken"));
      if (text.has_value() == special.has_value()) {
        return element.malformed("must have either [Sequence] or [SpecialToken].");
      }
      const JsonRef& body = text ? *text : *special;
      Slot slot;
      VKF_ASSIGN(const int64_t type_id, body.count_or("type_id", 0));
      slot.type_id = static_cast<int32_t>(type_id);
      VKF_ASSIGN(const auto id_member, body.member("id"));
      const auto id_text = id_member.text();
      if (!id_text) return id_text.error();
      const std::string& id = *id_text;
      if (special) {
        const auto found = special_tokens_.find(id);
        if (found == special_tokens_.end()) {
          return id_member.malformed("is [" + id + "], which [special_tokens] does not list.");
        }
        slot.special = &found->second;
      } else if (id == "A" || (id == "B" && texts == 2)) {
        slot.text = id == "A" ? 0 : 1;
      } else {
        return id_member.malformed("is [" + id + "]; it must be " +
                                   (texts == 2 ? "A or B." : "A."));
      }
      slots.push_back(slot);
    }
    return slots;
  }

  std::map<std::string, Tokens> special_tokens_;
  std::vector<Slot> single_;  // slots point into special_tokens_
  std::vector<Slot> pair_;
};

constexpr std::array<TypeRow<ProcessorPtr>, 5> kPostProcessors = {{
    {"Sequence", SequenceProcessor::parse},
    {"TemplateProcessing", TemplateProcessor::parse},
    {"BertProcessing", parse_bert_processing},
    {"RobertaProcessing", parse_roberta_processing},
    {"ByteLevel", parse_byte_level_processor},
}};

}  // namespace

void append_token(Encoding& to, int32_t id, std::string token, TextRange range, int32_t type_id) {
  to.ids.push_back(id);
  to.tokens.push_back(std::move(token));
  to.offsets.push_back(range);
  to.type_ids.push_back(type_id);
  to.attention_mask.push_back(1);
}

void append_encoding(Encoding& to, Encoding more) {
  const auto append = [](auto& a, auto& b) {
    if (a.size() < b.size()) {  // the longer list stays where it is
      b.insert(b.begin(), std::make_move_iterator(a.begin()), std::make_move_iterator(a.end()));
      a = std::move(b);
      return;
    }
    a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  };
  append(to.ids, more.ids);
  append(to.tokens, more.tokens);
  append(to.offsets, more.offsets);
  append(to.type_ids, more.type_ids);
  append(to.attention_mask, more.attention_mask);
}

Result<ProcessorPtr> parse_post_processor(const JsonRef& json, int depth) {
  return parse_by_type<ProcessorPtr>(kPostProcessors, json, depth, "post-processor");
}

}  // namespace vkformer
