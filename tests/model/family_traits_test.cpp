// What family_list.def claims of the families, against the golden cases: each claim has a case, and
// no case shows what is not claimed.
#include "model/family_traits.h"

#include <algorithm>
#include <map>
#include <set>

#include "model/model.h"
#include "support/golden.h"
#include "vkformer/model.h"

namespace vkformer::testing {
namespace {

// What the cases of one family show.
struct Shown {
  size_t cases = 0;
  std::set<HeadKind> heads;
  std::set<SourceKind> sources;
  bool generates = false;
  bool maps = false;
};

void add_case(const GoldenCase& golden, std::map<std::string, Shown>& families) {
  const Json config = read_json(golden.path("model/config.json"));
  const auto family = load_family(*make_directory_store(golden.path("model")));
  REQUIRE_MESSAGE(family.ok(), golden.name << ": " << family.error().message);
  const ModelFacts& facts = (*family)->facts();
  Shown& shown = families[config.at("model_type").get<std::string>()];
  ++shown.cases;
  shown.heads.insert(facts.head);
  shown.sources.insert(facts.source);
  shown.generates = shown.generates || golden.facts.contains("generation");
  for (const auto& [name, tensor] : golden.tensors("expected.safetensors")) {
    if (name.starts_with("mask.")) continue;
    shown.maps = shown.maps || name.find("attentions.") != std::string::npos;
  }
}

std::map<std::string, Shown> shown_families() {
  std::map<std::string, Shown> families;
  for (const GoldenCase& golden : golden_cases_with("model/config.json")) {
    add_case(golden, families);
  }
  return families;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("every claim of a family is shown by a golden case, and nothing more is") {
    const std::map<std::string, Shown> families = shown_families();
    for (const auto& [bound_name, traits] : listed_families()) {
      const auto& name = bound_name;
      CAPTURE(name);
      const auto found = families.find(name);
      REQUIRE_MESSAGE(
          found != families.end(),
          name << " has no case in tests/golden; tools/golden/model_golden.py makes one");
      const Shown& shown = found->second;
      CHECK(shown.cases >= 1);
      for (HeadKind head : traits.heads) {
        CHECK_MESSAGE(shown.heads.count(head) == 1, "no case with head " << choice_name(head));
      }
      for (HeadKind head : shown.heads) {
        CHECK_MESSAGE(
            std::find(traits.heads.begin(), traits.heads.end(), head) != traits.heads.end(),
            "a case has the head " << choice_name(head) << ", which is not claimed");
      }
      CHECK(shown.sources == std::set<SourceKind>{traits.source});
      CHECK(shown.generates == traits.generates());
      CHECK(shown.maps == (traits.maps != MapCoverage::kNone));
      CHECK_FALSE(std::string(traits.inputs).empty());
    }
    for (const auto& [bound_name, shown] : families) {
      const auto& name = bound_name;
      const std::vector<std::string> listed = family_names();
      CHECK_MESSAGE(std::find(listed.begin(), listed.end(), name) != listed.end(), name);
    }
  }

  TEST_CASE("the public facts of families are the list's, in its order") {
    const std::vector<ModelFamilyFacts> facts = model_family_facts();
    const std::vector<std::string> names = model_families();
    REQUIRE(facts.size() == names.size());
    for (size_t i = 0; i < facts.size(); ++i) CHECK(facts[i].family == names[i]);
    const auto whisper = std::find_if(facts.begin(), facts.end(), [](const ModelFamilyFacts& f) {
      return f.family == "whisper";
    });
    REQUIRE(whisper != facts.end());
    CHECK(whisper->kind == ModelKind::kEncoderDecoder);
    CHECK(whisper->source == SourceKind::kFeatures);
    CHECK(whisper->heads == std::vector<HeadKind>{HeadKind::kNone, HeadKind::kLanguage});
    CHECK(whisper->generates);
    CHECK(whisper->attention_maps == MapCoverage::kLayers);
  }
}

}  // namespace vkformer::testing
