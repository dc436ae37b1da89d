#include "base/message.h"

#include <charconv>
#include <cmath>

namespace vkformer {
namespace {

template <class T>
std::string fewest_digits(T number) {
  // Between these no number needs a power of ten to be read, or more room than there is.
  const T size = std::abs(number);
  const bool plain = size == 0 || (size >= static_cast<T>(1e-4) && size < static_cast<T>(1e15));
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific);
  return {text, end.ptr};
}

}  // namespace

std::string number_text(float number) {
  return fewest_digits(number);
}

std::string number_text(double number) {
  return fewest_digits(number);
}

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
      sentence += number_text(real_);
      break;
    case kSingle:
      sentence += number_text(single_);
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
