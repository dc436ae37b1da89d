// message(): a sentence made of texts and numbers. One call of it is a third of the code that a sum
// of strings is, which counts where there are a thousand sentences. Needs: nothing.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace vkformer {

// Numbers; of characters, truths and enumerations no part is made, since the number that they are
// is not what a sentence means by them.
template <class T>
concept WholeNumber = std::signed_integral<T> && !std::same_as<T, char>;
template <class T>
concept NaturalNumber =
    std::unsigned_integral<T> && !std::same_as<T, char> && !std::same_as<T, bool>;

class MessagePart {
 public:
  MessagePart(const char* text) : kind_(kEndsWithZero), text_(text) {}
  MessagePart(std::string_view text) : kind_(text.size()), text_(text.data()) {}
  MessagePart(const std::string& text) : MessagePart(std::string_view(text)) {}
  template <WholeNumber T>
  MessagePart(T number) : kind_(kWhole), whole_(number) {}
  template <NaturalNumber T>
  MessagePart(T number) : kind_(kNatural), natural_(number) {}
  MessagePart(float number) : kind_(kSingle), single_(number) {}
  MessagePart(double number) : kind_(kReal), real_(number) {}

  void append_to(std::string& sentence) const;

 private:
  // What is no length of a text.
  static constexpr size_t kEndsWithZero = SIZE_MAX;
  static constexpr size_t kWhole = SIZE_MAX - 1;
  static constexpr size_t kNatural = SIZE_MAX - 2;
  static constexpr size_t kReal = SIZE_MAX - 3;
  static constexpr size_t kSingle = SIZE_MAX - 4;

  size_t kind_;
  union {
    const char* text_;
    int64_t whole_;
    uint64_t natural_;
    double real_;
    float single_;
  };
};

// The fewest digits that tell a number from every other one of its type: "0.1", "1e-12", "-1e-09".
std::string number_text(float number);
std::string number_text(double number);

// The parts one after the other; numbers as number_text() and std::to_string() write them.
std::string message(std::initializer_list<MessagePart> parts);

}  // namespace vkformer
