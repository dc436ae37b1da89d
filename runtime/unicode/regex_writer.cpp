#include "unicode/regex_writer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

using Kind = RegexNode::Kind;
using Mode = RegexNode::Mode;

// Of all lengths of a lookbehind together.
constexpr size_t kMaxForms = 1024;
constexpr size_t kMaxFormBytes = 64 * 1024;
constexpr uint32_t kMaxLookBehind = 65535;  // PCRE2's, characters

// A part of a lookbehind written so that it takes a certain number of characters.
struct Form {
  std::string text;
  uint32_t length = 0;
  auto operator<=>(const Form&) const = default;
};
using Forms = std::vector<Form>;

class Writer {
 public:
  Writer(const RegexTree& tree, const RegexAlphabet& alphabet) : tree_(tree), alphabet_(alphabet) {}

  Status write(const RegexNode& node, std::string& out) {
    switch (node.kind) {
      case Kind::kEmpty:
        return {};
      case Kind::kSet:
        out += alphabet_.words(node.set);
        return {};
      case Kind::kAnchor:
        out += anchor(node.text);
        return {};
      case Kind::kBackReference:
        out += node.text;
        return {};
      case Kind::kSequence:
      case Kind::kChoice: {
        const char* gap = "";
        for (const RegexNode& part : node.parts) {
          out += gap;
          if (node.kind == Kind::kChoice) gap = "|";
          VKF_CHECK(write(part, out));
        }
        return {};
      }
      case Kind::kRepeat: {
        // PCRE2 would look for what such a repeat begins with.
        if (node.most == 0 && !tree_.has_back_references) return {};
        const bool is_unit = node.parts[0].kind != Kind::kRepeat;  // a set or a group
        out += is_unit ? "" : "(?:";
        VKF_CHECK(write(node.parts[0], out));
        out += is_unit ? "" : ")";
        out += quantifier(node);
        return {};
      }
      case Kind::kCapture:
      case Kind::kGroup:
        out += opening(node);
        VKF_CHECK(write(node.parts[0], out));
        out += ')';
        return {};
      case Kind::kLookBehind:
        return write_look_behind(node, out);
    }
    return {};
  }

 private:
  // What is captured matters to references only.
  const std::string& opening(const RegexNode& node) const {
    static const std::string kPlain = "(?:";
    return node.kind == Kind::kCapture && !tree_.has_back_references ? kPlain : node.text;
  }

  std::string anchor(const std::string& text) {
    if (text != "\\b" && text != "\\B") return text;
    saw_boundary_ = true;
    const std::string& word = alphabet_.words(tree_.word_set);
    const std::string behind = "(?<=" + word + ")";
    const std::string not_behind = "(?<!" + word + ")";
    const std::string ahead = "(?=" + word + ")";
    const std::string not_ahead = "(?!" + word + ")";
    return text == "\\b" ? "(?:" + behind + not_ahead + "|" + not_behind + ahead + ")"
                         : "(?:" + behind + ahead + "|" + not_behind + not_ahead + ")";
  }

  static std::string count_of(uint32_t least, uint32_t most) {
    if (least == most) return "{" + std::to_string(least) + "}";
    const bool is_open = most == RegexNode::kNoLimit;
    if (is_open && least < 2) return least == 0 ? "*" : "+";
    if (least == 0 && most == 1) return "?";
    return "{" + std::to_string(least) + "," + (is_open ? "" : std::to_string(most)) + "}";
  }

  static std::string quantifier(const RegexNode& node) {
    const char* mode = node.mode == Mode::kLazy ? "?" : node.mode == Mode::kPossessive ? "+" : "";
    return count_of(node.least, node.most) + mode;
  }

  // --- Lookbehinds.

  static Error refuse(const std::string& what) {
    return unsupported(
        "A lookbehind " + what +
        " cannot be matched by this build; write it as alternatives of bounded length.");
  }

  Status write_look_behind(const RegexNode& node, std::string& out) {
    saw_boundary_ = false;
    VKF_ASSIGN(const Forms forms, forms_of(node.parts[0]));
    std::map<uint32_t, std::string> by_length;
    for (const Form& form : forms) {
      if (form.length > kMaxLookBehind) {
        return refuse(message({"of more than ", kMaxLookBehind, " characters"}));
      }
      std::string& texts = by_length[form.length];
      texts += (texts.empty() ? "" : "|") + form.text;
      if (form.text.empty()) texts += "(?:)";
    }
    // Oniguruma sees a boundary there where it has begun to look, not where it is.
    if (by_length.size() > 1 && saw_boundary_) {
      return refuse("of several lengths with a word boundary");
    }
    out += node.text;
    const char* gap = "";
    for (const auto& [length, text] : by_length) {
      out += gap + text;
      gap = "|";
    }
    out += ')';
    return {};
  }

  static Status check_size(const Forms& forms) {
    size_t bytes = 0;
    for (const Form& form : forms) bytes += form.text.size();
    if (forms.size() <= kMaxForms && bytes <= kMaxFormBytes) return {};
    return refuse("that can match in too many ways");
  }

  static Status append(const Forms& more, Forms& forms) {
    forms.insert(forms.end(), more.begin(), more.end());
    std::sort(forms.begin(), forms.end());
    forms.erase(std::unique(forms.begin(), forms.end()), forms.end());
    return check_size(forms);
  }

  // Each form of `left` before each of `right`.
  static Result<Forms> joined(const Forms& left, const Forms& right) {
    Forms forms;
    if (left.size() * right.size() > kMaxForms) return refuse("that can match in too many ways");
    for (const Form& a : left) {
      for (const Form& b : right) {
        const uint64_t length = uint64_t{a.length} + b.length;
        forms.push_back({a.text + b.text,
                         static_cast<uint32_t>(std::min<uint64_t>(length, kMaxLookBehind + 1))});
      }
    }
    VKF_CHECK(check_size(forms));
    return forms;
  }

  Result<Forms> forms_of(const RegexNode& node) {
    switch (node.kind) {
      case Kind::kEmpty:
        return Forms{{}};
      case Kind::kSet:
        return Forms{{alphabet_.words(node.set), 1}};
      case Kind::kAnchor:
      case Kind::kLookBehind: {
        Form form;
        VKF_CHECK(write(node, form.text));
        return Forms{std::move(form)};
      }
      case Kind::kBackReference:
        return refuse("with a back-reference");
      case Kind::kSequence: {
        Forms forms{{}};
        for (const RegexNode& part : node.parts) {
          VKF_ASSIGN(const Forms next, forms_of(part));
          VKF_ASSIGN(forms, joined(forms, next));
        }
        return forms;
      }
      case Kind::kChoice: {
        Forms forms;
        for (const RegexNode& part : node.parts) {
          VKF_ASSIGN(const Forms next, forms_of(part));
          VKF_CHECK(append(next, forms));
        }
        return forms;
      }
      case Kind::kRepeat:
        return forms_of_repeat(node);
      case Kind::kCapture:
      case Kind::kGroup:
        return forms_of_group(node);
    }
    return Forms();
  }

  Result<Forms> forms_of_group(const RegexNode& node) {
    const bool is_plain = node.kind == Kind::kCapture || node.text == "(?:";
    if (node.kind == Kind::kCapture && tree_.has_back_references) {
      return refuse("with a group that may be referred to");
    }
    if (node.text == "(?=" || node.text == "(?!") {
      Form form;
      VKF_CHECK(write(node, form.text));
      return Forms{std::move(form)};
    }
    VKF_ASSIGN(Forms forms, forms_of(node.parts[0]));
    if (is_plain) return forms;
    // An atomic group whose branches have several lengths decides for one of them by what follows
    // in the text. The forms one by one cannot tell that.
    for (Form& form : forms) {
      if (form.length != forms[0].length) return refuse("with an atomic group of several lengths");
    }
    Form whole{node.text, forms[0].length};
    VKF_CHECK(write(node.parts[0], whole.text));
    whole.text += ')';
    return Forms{std::move(whole)};
  }

  Result<Forms> forms_of_repeat(const RegexNode& node) {
    if (node.most == RegexNode::kNoLimit) return refuse("without a limit of its length");
    if (node.mode == Mode::kPossessive && node.least != node.most) {
      return refuse("with a possessive repeat of several lengths");
    }
    VKF_ASSIGN(const Forms once, forms_of(node.parts[0]));
    Forms forms;
    if (once.size() == 1) {
      if (node.most - node.least >= kMaxForms) return refuse("that can match in too many ways");
      for (uint32_t count = node.least; count <= node.most; ++count) {
        const uint64_t length = uint64_t{once[0].length} * count;
        forms.push_back({count == 0 ? "" : "(?:" + once[0].text + ")" + count_of(count, count),
                         static_cast<uint32_t>(std::min<uint64_t>(length, kMaxLookBehind + 1))});
      }
      VKF_CHECK(check_size(forms));
      return forms;
    }
    Forms several{{}};  // of `count` repeats
    for (uint32_t count = 0;; ++count) {
      if (count >= node.least) VKF_CHECK(append(several, forms));
      if (count == node.most) return forms;
      VKF_ASSIGN(several, joined(several, once));
    }
  }

  const RegexTree& tree_;
  const RegexAlphabet& alphabet_;
  bool saw_boundary_ = false;  // in the lookbehind that is written
};

}  // namespace

Result<std::string> write_regex(const RegexTree& tree, const RegexAlphabet& alphabet) {
  std::string out;
  VKF_CHECK(Writer(tree, alphabet).write(tree.root, out));
  return out;
}

}  // namespace vkformer
