// The enums of the C++ API and their numbers in C: every value has one, and comes back from it.
#include "c_api/enums.h"

#include <doctest/doctest.h>

#include <string_view>
#include <utility>

namespace vkformer::testing {
namespace {

#if defined(__GNUC__)
// The name of this function's instance tells a value that has an enumerator from one that has none.
// Compilers print that one as a cast: "(State)4" or "(State)'\004'".
template <auto kValue>
constexpr bool is_enumerator() {
  const std::string_view name = __PRETTY_FUNCTION__;
  const size_t at = name.find("kValue = ");
  return at != name.npos && name[at + 9] != '(' && !(name[at + 9] >= '0' && name[at + 9] <= '9');
}

template <class Enum, size_t... kIndex>
constexpr size_t enumerators(std::index_sequence<kIndex...>) {
  return (size_t{is_enumerator<static_cast<Enum>(kIndex)>()} + ...);
}
#endif

template <class Enum>
void check_enum(const char* what) {
  CAPTURE(std::string(what));
  for (const EnumRow<Enum>& row : kEnumRows<Enum>) {
    CHECK(number_of(row.value) == row.number);
    CHECK(value_of<Enum>(row.number, what) == row.value);
  }
#if defined(__GNUC__)
  CHECK(enumerators<Enum>(std::make_index_sequence<32>()) == kEnumRows<Enum>.size());
#endif
  for (const int32_t none : {-1, 99}) {
    bool refused = false;
    try {
      (void)value_of<Enum>(none, what);
    } catch (const Refusal& refusal) {
      refused = true;
      CHECK(refusal.error.code == ErrorCode::kInvalidArgument);
      CHECK(refusal.error.message.find(kEnumRows<Enum>.back().name) != std::string::npos);
    }
    CHECK(refused);
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every value of an enum that the C interface shares has its number there") {
    check_enum<ErrorCode>("status");
    check_enum<DType>("dtype");
    check_enum<LogLevel>("level");
    check_enum<DeviceOptions::QueuePriority>("queue_priority");
    check_enum<BatchUpdate::State>("state");
    check_enum<Advance::Progress>("progress");
    check_enum<TruncationMode>("truncation");
    check_enum<TruncationStrategy>("truncation_strategy");
    check_enum<PaddingMode>("padding");
    check_enum<PixelFormat>("format");
    check_enum<PictureFit>("fit");
    check_enum<HeatMapRange>("range");
    check_enum<Pooling>("pooling");
    check_enum<RerankOptions::Score>("score");
    check_enum<AttentionHead::State>("state");
    check_enum<MultiHeadAttentionOptions::Projection>("projection");
  }

  TEST_CASE("a status has a name, and success is no error") {
    for (const EnumRow<ErrorCode>& row : kEnumRows<ErrorCode>) {
      CHECK(std::string(vkf_status_name(row.number)) == row.name);
      CHECK(row.number != VKF_OK);
    }
  }
}

}  // namespace vkformer::testing
