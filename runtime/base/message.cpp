#include "base/message.h"

namespace vkformer {

void MessagePart::append_to(std::string& sentence) const {
  switch (kind_) {
    case kEndsWithZero:
      sentence += text_;
      break;
    case kWhole:
      sentence += std::to_string(whole_);
      break;
    case kNatural:
      sentence += std::to_string(natural_);
      break;
    case kReal:
      sentence += std::to_string(real_);
      break;
    default:
      sentence.append(text_, kind_);
  }
}

std::string message(std::initializer_list<MessagePart> parts) {
  std::string sentence;
  for (const MessagePart& part : parts) part.append_to(sentence);
  return sentence;
}

}  // namespace vkformer
