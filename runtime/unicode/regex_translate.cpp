// Oniguruma's Ruby syntax, rewritten for PCRE2. The differences that tokenizer patterns can meet:
//   \w \W \s \S \b \B  other character sets            -> spelled as Unicode properties
//   \h \H              hexadecimal digits              -> spelled as a class
//   \p{Han}            the script, not its extensions  -> \p{sc:Han}
//   (?m)               lets "." match a newline        -> (?s)
//   [a&&b], [a[b]]     set operations                  -> refused, PCRE2 reads them as characters
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"
#include "base/message.h"
#include "unicode/text_regex.h"

namespace vkformer {
namespace {

constexpr size_t kMaxPatternBytes = 64 * 1024;
constexpr const char* kWordSet =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}"
    "\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}";

bool is_script_name(const std::string& name) {
  const std::string probe = "\\p{sc:" + name + "}";
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(probe.data()), probe.size(),
                                       PCRE2_UTF | PCRE2_UCP, &code, &at, nullptr);
  const bool known = compiled != nullptr;
  pcre2_code_free(compiled);
  return known;
}

class Translator {
 public:
  Translator(const std::string& pattern, const std::string& where) : in_(pattern), where_(where) {}

  Result<std::string> run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        VKF_CHECK(escape());
      } else if (in_class_) {
        VKF_CHECK(class_character());
      } else if (c == '[') {
        open_class();
      } else if (c == '(' && in_.compare(at_, 2, "(?") == 0) {
        group_flags();
      } else if (c == '(' && in_.compare(at_, 2, "(*") == 0) {
        return refuse("a verb \"(*\"");
      } else {
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  Error refuse(const std::string& what) const {
    return unsupported(message({"[", where_, "] The regular expression [", in_, "] uses ", what,
                                " at byte ", at_, ", which this build cannot match faithfully."}));
  }

  void open_class() {
    in_class_ = true;
    out_ += in_[at_++];
    if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
    // A bracket that closes at once is a character.
    if (at_ < in_.size() && in_[at_] == ']') {
      out_ += "\\]";
      ++at_;
    }
  }

  Status class_character() {
    if (in_.compare(at_, 2, "&&") == 0) return refuse("an intersection of character sets");
    if (in_[at_] == '[') {
      const size_t end = in_.find(":]", at_ + 2);
      if (in_.compare(at_, 2, "[:") != 0 || end == std::string::npos) {
        return refuse("a character set within another");
      }
      out_.append(in_, at_, end + 2 - at_);
      at_ = end + 2;
      return {};
    }
    if (in_[at_] == ']') in_class_ = false;
    out_ += in_[at_++];
    return {};
  }

  Status escape() {
    if (at_ + 1 >= in_.size()) return refuse("a backslash with nothing behind it");
    const char c = in_[at_ + 1];
    if (c == 'p' || c == 'P') {
      property();
      return {};
    }
    const std::string words = kWordSet;
    const std::string word = "[" + words + "]";
    std::string text;
    switch (c) {
      case 's':
        text = "\\p{White_Space}";
        break;
      case 'S':
        text = "\\P{White_Space}";
        break;
      case 'w':
        text = in_class_ ? words : word;
        break;
      case 'h':
        text = in_class_ ? "0-9a-fA-F" : "[0-9a-fA-F]";
        break;
      case 'W':
      case 'H':
        if (in_class_) return refuse(std::string("\\") + c + " within a character set");
        text = c == 'W' ? "[^" + words + "]" : "[^0-9a-fA-F]";
        break;
      case 'b':
        text = in_class_
                   ? "\\b"
                   : "(?:(?<=" + word + ")(?!" + word + ")|(?<!" + word + ")(?=" + word + "))";
        break;
      case 'B':
        text = "(?:(?<=" + word + ")(?=" + word + ")|(?<!" + word + ")(?!" + word + "))";
        break;
      case 'C':
      case 'K':
        return refuse(std::string("\\") + c);
      default:
        text = {'\\', c};
        break;
    }
    out_ += text;
    at_ += 2;
    return {};
  }

  // \p{...} or \pL; names of scripts are marked as such.
  void property() {
    const size_t open = at_ + 2;
    const size_t close =
        open < in_.size() && in_[open] == '{' ? in_.find('}', open) : std::string::npos;
    if (close == std::string::npos) {
      out_.append(in_, at_, 2);
      at_ += 2;
      return;
    }
    std::string name = in_.substr(open + 1, close - open - 1);
    const bool negated = name.starts_with('^');
    if (negated) name.erase(0, 1);
    if (is_script_name(name)) name = "sc:" + name;
    out_.append(in_, at_, 2);
    out_ += negated ? "{^" + name + "}" : "{" + name + "}";
    at_ = close + 1;
  }

  // "(?" and the letters behind it, if they are flags.
  void group_flags() {
    out_ += "(?";
    at_ += 2;
    size_t end = at_;
    while (end < in_.size() &&
           (in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x' || in_[end] == '-')) {
      ++end;
    }
    const bool flags = end < in_.size() && (in_[end] == ':' || in_[end] == ')');
    if (!flags) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  const std::string& in_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  bool in_class_ = false;
};

}  // namespace

Result<std::string> translate_regex(const std::string& pattern, const std::string& where) {
  if (pattern.size() > kMaxPatternBytes) {
    return unsupported(message({"[", where, "] The regular expression has ", pattern.size(),
                                " bytes; the limit is ", kMaxPatternBytes, "."}));
  }
  return Translator(pattern, where).run();
}

}  // namespace vkformer
