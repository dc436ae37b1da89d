#include "base/message.h"

namespace vkformer {

void MessagePart::append_to(std::string& sentence) const {
  if (text_ == nullptr) {
    sentence += std::to_string(value_);
  } else if (value_ < 0) {
    sentence += text_;
  } else {
    sentence.append(text_, static_cast<size_t>(value_));
  }
}

std::string message(std::initializer_list<MessagePart> parts) {
  std::string sentence;
  for (const MessagePart& part : parts) part.append_to(sentence);
  return sentence;
}

}  // namespace vkformer
