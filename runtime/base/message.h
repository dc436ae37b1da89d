// message(): a sentence made of texts and numbers. One call of it is a third of the code that a sum
// of strings is, which counts where there are a thousand sentences. Needs: nothing.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace vkformer {

class MessagePart {
 public:
  MessagePart(const char* text) : text_(text), value_(-1) {}
  MessagePart(const std::string& text)
      : text_(text.data()), value_(static_cast<int64_t>(text.size())) {}
  template <std::integral T>
  MessagePart(T number) : text_(nullptr), value_(static_cast<int64_t>(number)) {}

  void append_to(std::string& sentence) const;

 private:
  const char* text_;  // null: a number
  int64_t value_;     // the number, the text's length, or -1 for one that ends with a zero byte
};

// The parts one behind the other.
std::string message(std::initializer_list<MessagePart> parts);

}  // namespace vkformer
