#include "base/real_text.h"

#include <cmath>
#include <locale>
#include <sstream>
#include <string>

namespace vkformer {

namespace {

// The end of the digits from `at` on.
const char* after_digits(const char* at, const char* last) {
  while (at != last && *at >= '0' && *at <= '9') ++at;
  return at;
}

// The end of the decimal number at `first`; `first` where there is none.
const char* after_real(const char* first, const char* last) {
  const char* begin = first != last && *first == '-' ? first + 1 : first;
  const char* at = after_digits(begin, last);
  auto digits = at - begin;
  if (at != last && *at == '.') {
    const char* end = after_digits(at + 1, last);
    digits += end - (at + 1);
    at = end;
  }
  if (digits == 0) return first;
  if (at != last && (*at == 'e' || *at == 'E')) {
    const char* exponent = at + 1;
    if (exponent != last && (*exponent == '+' || *exponent == '-')) ++exponent;
    const char* end = after_digits(exponent, last);
    if (end != exponent) at = end;
  }
  return at;
}

}  // namespace

std::from_chars_result read_real_by_stream(const char* first, const char* last, double& value) {
  const char* end = after_real(first, last);
  if (end == first) return {first, std::errc::invalid_argument};
  std::istringstream in(std::string(first, end));
  in.imbue(std::locale::classic());
  double read = 0;
  in >> read;
  if (in.fail() || std::isinf(read)) return {end, std::errc::result_out_of_range};
  value = read;
  return {end, std::errc()};
}

std::from_chars_result read_real(const char* first, const char* last, double& value) {
#if defined(__cpp_lib_to_chars)
  return std::from_chars(first, last, value);
#else
  return read_real_by_stream(first, last, value);
#endif
}

}  // namespace vkformer
