#include "vkformer/choices.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

namespace vkformer::testing {
namespace {

// Every name gives the value at its place, and that value its name.
template <class Choice>
void check_names(Choice last) {
  const auto names = choice_names<Choice>();
  REQUIRE(names.size() == static_cast<size_t>(last) + 1);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    CAPTURE(std::string(names[i]));
    const auto value = choice_from_name<Choice>(names[i]);
    REQUIRE(value.ok());
    CHECK(static_cast<size_t>(*value) == i);
    CHECK(std::string(choice_name(*value)) == names[i]);
  }
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every choice has a name of its own, and a name gives its choice") {
    check_names(Tier::kMatrix);
    check_names(DeviceClass::kOther);
    check_names(LimitProfile::kAmd);
    check_names(Precision::kInt8);
    check_names(WeightFormat::kIq4Xs);
    check_names(CacheFormat::kQ8);
    check_names(ModelKind::kEncoderDecoder);
    check_names(SourceKind::kWaveform);
    check_names(HeadKind::kEntities);
    check_names(MapCoverage::kLayers);
    check_names(MapKind::kCross);
    check_names(PassKind::kStep);
    check_names(EarlyStopping::kNever);
    check_names(TaskKind::kSegment);
    check_names(SpeechTask::kTranslate);
    check_names(ConformanceExtent::kFull);
    check_names(ConformanceOutcome::kUnexpectedPass);
  }

  TEST_CASE("a text that names no choice is refused with all names") {
    for (const char* name : {"", "Q8", "q8 ", "q5"}) {
      const auto found = choice_from_name<WeightFormat>(name);
      REQUIRE_FALSE(found.ok());
      CHECK(found.error().code == ErrorCode::kInvalidArgument);
      CHECK(found.error().message == "[weights] is '" + std::string(name) +
                                         "', which is no such choice. Use stored, f32, f16, bf16, "
                                         "q8, q4, q4m, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, "
                                         "mxfp4, q2_k, q3_k, q4_k, q5_k, q6_k or iq4_xs.");
    }
    CHECK(std::string(choice_name(static_cast<Tier>(200))) == "unknown");
  }
}

}  // namespace vkformer::testing
