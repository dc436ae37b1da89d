// What an unknown model_type is told: the known family whose tensors are most alike, and what
// differs.
#include "model/nearest_family.h"

#include <array>
#include <filesystem>

#include "model/encoder_cases.h"

namespace vkformer::testing {
namespace {

const std::vector<FamilyTensors> kTwoFamilies = {
    {"plain", {"words", "layers.0.mlp", "layers.1.mlp", "head"}, {"layers.*.old"}},
    {"normed", {"words", "layers.0.mlp", "layers.0.norm", ""}, {}}};

Error unknown_like(const std::string& golden, const std::string& type) {
  const std::string from = std::string(VKFORMER_SOURCE_DIR) + "/tests/golden/" + golden + "/model/";
  const test::TempDir folder;
  std::filesystem::copy(from + "model.safetensors", folder.file("model.safetensors"));
  folder.write("config.json", with(read_json(from + "config.json"), "model_type", type).dump());
  const auto info = inspect_model(folder.path());
  REQUIRE_FALSE(info.ok());
  return info.error();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("nearest family: most tensors in common, and the ones that differ") {
    CHECK(nearest_family_text("new", kTwoFamilies, {"words", "layers.7.mlp", "head"}) ==
          "The nearest known family is plain; it has the same tensors.");
    CHECK(nearest_family_text("new", kTwoFamilies,
                              {"words", "layers.0.mlp", "layers.0.old", "layers.0.gate", "head"}) ==
          "The nearest known family is plain; it does not have the tensors layers.*.gate.");
    CHECK(nearest_family_text("new", kTwoFamilies, {"words", "layers.0.norm"}) ==
          "The nearest known family is normed; the model lacks its tensors layers.*.mlp.");
    std::vector<std::string> many = {"words", "layers.0.mlp", "layers.0.norm"};
    for (int i = 0; i < 9; ++i) many.push_back("extra" + std::to_string(i));
    const std::string text = nearest_family_text("new", kTwoFamilies, many);
    CHECK(test::contains(text, "extra0, extra1, extra2, extra3, extra4, extra5 and 3 more"));
  }

  TEST_CASE("nearest family: of equal ones, and without tensors, the most similar name") {
    const std::vector<FamilyTensors> equal = {{"llama", {"words"}, {}}, {"qwen2", {"words"}, {}}};
    CHECK(test::contains(nearest_family_text("qwen7", equal, {"words"}), "is qwen2;"));
    CHECK(test::contains(nearest_family_text("lama", equal, {"words"}), "is llama;"));
    CHECK(nearest_family_text("qwen3", equal, {}) ==
          "The known family of the most similar name is qwen2.");
    CHECK(nearest_family_text("something_else", equal, {"other"}).empty());
    CHECK(nearest_family_text("", equal, {}).empty());
  }

  TEST_CASE("nearest family: models of unknown families name theirs") {
    for (const auto& [golden, type, nearest] :
         {std::array{"llama-gqa", "lama-next", "is llama;"},
          std::array{"bert-base", "bort", "is bert;"}, std::array{"gpt2-base", "gptx", "is gpt2;"},
          std::array{"t5-gated", "t5-next", "is t5;"},
          std::array{"vit-imgcls", "vitx", "is vit;"}}) {
      const Error error = unknown_like(golden, type);
      INFO(error.message);
      CHECK(error.code == ErrorCode::kUnsupported);
      CHECK(test::contains(error.message, std::string("'") + type + "'"));
      CHECK(test::contains(error.message, nearest));
      CHECK(test::contains(error.message, "Supported are bert"));
    }
    const auto alone = load_config({{"model_type", "berts"}});
    REQUIRE_FALSE(alone.ok());
    CHECK(test::contains(alone.error().message, "most similar name is bert."));
  }
}

}  // namespace vkformer::testing
