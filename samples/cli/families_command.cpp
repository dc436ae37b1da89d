// `vkformer families`: the model families that the library knows, and what they can do.
#include <memory>

#include "command_line.h"

namespace vkformer::cli {

namespace {

struct FamiliesOptions {
  bool markdown = false;
};

// A value of the library in the words of the table.
template <class Choice>
struct Word {
  Choice value;
  const char* shown;
};
constexpr Word<HeadKind> kHeads[] = {{HeadKind::kNone, "bare"},
                                     {HeadKind::kLanguage, "language"},
                                     {HeadKind::kMasked, "masked words"},
                                     {HeadKind::kSequence, "classes"},
                                     {HeadKind::kTokens, "token classes"},
                                     {HeadKind::kSpans, "answers"},
                                     {HeadKind::kDiscriminator, "replaced tokens"},
                                     {HeadKind::kSimilarity, "similarity"},
                                     {HeadKind::kObjects, "objects"},
                                     {HeadKind::kCtc, "CTC"},
                                     {HeadKind::kSpeech, "speech"},
                                     {HeadKind::kDepth, "depth"},
                                     {HeadKind::kSegmentation, "masks of prompts"},
                                     {HeadKind::kEntities, "entities by label"}};
constexpr Word<SourceKind> kSources[] = {{SourceKind::kTokens, "text"},
                                         {SourceKind::kPictures, "pictures"},
                                         {SourceKind::kFeatures, "sound"},
                                         {SourceKind::kWaveform, "sound"}};
constexpr Word<MapCoverage> kMaps[] = {{MapCoverage::kNone, "–"},
                                       {MapCoverage::kStages, "one per stage"},
                                       {MapCoverage::kLayers, "all layers"}};

template <class Choice, size_t N>
std::string shown(const Word<Choice> (&words)[N], Choice value) {
  for (const Word<Choice>& word : words) {
    if (value == word.value) return word.shown;
  }
  return choice_name(value);
}

std::string heads_text(const ModelFamilyFacts& facts) {
  std::string text;
  for (const HeadKind head : facts.heads) {
    text += (text.empty() ? "" : ", ") + shown(kHeads, head);
  }
  return text;
}

// The columns after the family's name.
std::vector<std::string> columns_of(const ModelFamilyFacts& facts) {
  const bool both = facts.kind == ModelKind::kEncoderDecoder;
  return {heads_text(facts),
          facts.kind == ModelKind::kDecoder ? "–" : shown(kSources, facts.source),
          facts.generates ? "greedy, beams" : "–",
          shown(kMaps, facts.attention_maps) + (both ? ", cross" : ""), facts.inputs,
          // Every operator has a kernel on the baseline tier.
          "all"};
}

constexpr const char* kTitles[] = {"loads",          "encodes",   "generates",
                                   "attention maps", "tokenizer", "tiers"};

void print_markdown(const std::vector<ModelFamilyFacts>& families) {
  std::string head = "| family |";
  std::string line = "|---|";
  for (const char* title : kTitles) {
    head += " " + std::string(title) + " |";
    line += "---|";
  }
  print_line(head);
  print_line(line);
  for (const ModelFamilyFacts& facts : families) {
    std::string row = "| `" + facts.family + "` |";
    for (const std::string& column : columns_of(facts)) row += " " + column + " |";
    print_line(row);
  }
}

void print_text(const std::vector<ModelFamilyFacts>& families) {
  for (const ModelFamilyFacts& facts : families) {
    print_line(padded(facts.family, 24) + padded(choice_name(facts.kind), 17) + heads_text(facts));
  }
}

Json families_json(const std::vector<ModelFamilyFacts>& families) {
  Json list = Json::array();
  for (const ModelFamilyFacts& facts : families) {
    Json entry;
    entry["family"] = facts.family;
    entry["kind"] = choice_name(facts.kind);
    entry["source"] = choice_name(facts.source);
    entry["heads"] = names_of(facts.heads);
    entry["generates"] = facts.generates;
    entry["attention_maps"] = choice_name(facts.attention_maps);
    entry["inputs"] = facts.inputs;
    list.push_back(std::move(entry));
  }
  return list;
}

int run_families(const CommonOptions& common, const FamiliesOptions& options) {
  const std::vector<ModelFamilyFacts> families = model_family_facts();
  if (common.json) {
    print_json(families_json(families));
  } else if (options.markdown) {
    print_markdown(families);
  } else {
    print_text(families);
  }
  return kExitOk;
}

}  // namespace

void add_families_command(CLI::App& app, CommandLine& line) {
  CLI::App* command =
      app.add_subcommand("families", "List the model families and what they can do.");
  const auto options = std::make_shared<FamiliesOptions>();
  command->add_flag("--markdown", options->markdown, "print README.md's table");
  add_output_options(*command, line.common);
  add_examples(*command,
               "  vkformer families\n"
               "  vkformer families --json\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_families(line.common, *options); };
  });
}

}  // namespace vkformer::cli
