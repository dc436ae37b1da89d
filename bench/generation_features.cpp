// What each way of choosing tokens costs: tokens per second, submits per token and microseconds of
// the calling thread's own work per token, interleaved so that a noisy machine is fair to all.
//
//   vkformer_generation_features MODEL [TOKENS [ROUNDS]] > table.md
//
// MODEL is a decoder with a tokenizer, such as models/shakespeare.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "vkformer/tasks.h"

namespace {

[[noreturn]] void fail(const vkformer::Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}

template <class T>
T value_or_exit(vkformer::Result<T> result) {
  if (!result) fail(result.error());
  return std::move(result).value();
}

double wall_seconds() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this thread, which records, submits and reads; a driver that computes on the CPU has threads
// of its own.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Feature {
  const char* name;
  std::function<void(vkformer::TextOptions&)> set;
  std::vector<double> rates, host, submits;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(vkformer::TextGenerator& generator, Feature& feature, int tokens) {
  const std::string prompt = "First Citizen:\n";
  vkformer::TextOptions options;
  options.beams = 1;
  options.max_new_tokens = tokens;
  feature.set(options);
  const double wall = wall_seconds();
  const double thread = thread_seconds();
  const auto texts = value_or_exit(generator.generate({&prompt, 1}, options));
  double count = 0;
  for (const auto& text : texts[0]) count += static_cast<double>(text.ids.size());
  feature.rates.push_back(count / (wall_seconds() - wall));
  feature.host.push_back(1e6 * (thread_seconds() - thread) / count);
  feature.submits.push_back(static_cast<double>(generator.counters().submits) / count);
}

std::vector<Feature> features() {
  using Options = vkformer::TextOptions;
  static const auto grammar = value_or_exit(vkformer::Grammar::from_gbnf(
      "root ::= line+\nline ::= [A-Z] [a-z ,;']{3,60} [.!?] \"\\n\"\n"));
  static const auto json = value_or_exit(vkformer::Grammar::any_json());
  return {
      {"greedy", [](Options&) {}},
      {"drawn, temperature 0.8", [](Options& o) { o.temperature = 0.8, o.top_k = 0; }},
      {"drawn, top-k 40, top-p 0.9, min-p 0.02",
       [](Options& o) { o.top_k = 40, o.top_p = 0.9, o.min_p = 0.02; }},
      {"drawn, typical-p 0.9", [](Options& o) { o.top_k = 0, o.typical_p = 0.9; }},
      {"greedy, repetition, presence, frequency penalty",
       [](Options& o) {
         o.repetition_penalty = 1.2, o.presence_penalty = 0.1, o.frequency_penalty = 0.1;
       }},
      {"greedy, no 4-gram twice, 3 bad words",
       [](Options& o) {
         o.no_repeat_ngram = 4, o.bad_words = {"king", "sir", "lord"};
       }},
      {"streamed",
       [](Options& o) {
         o.on_text = [](const vkformer::TextPiece&) { return vkformer::TokenVerdict::kGoOn; };
       }},
      {"stop strings",
       [](Options& o) {
         o.stop = {"\n\n\n", "THE END"};
       }},
      {"drawn, GBNF grammar", [](Options& o) { o.temperature = 0.8, o.grammar = grammar; }},
      {"drawn, JSON", [](Options& o) { o.temperature = 0.8, o.grammar = json; }},
      {"8 sequences drawn", [](Options& o) { o.temperature = 0.8, o.return_sequences = 8; }},
      {"4 beams", [](Options& o) { o.beams = 4; }},
      {"4 beams, penalties", [](Options& o) { o.beams = 4, o.repetition_penalty = 1.2; }},
      {"4 beams drawn", [](Options& o) { o.beams = 4, o.temperature = 0.8; }},
      {"4 beams in 2 groups",
       [](Options& o) { o.beams = 4, o.beam_groups = 2, o.diversity = 1.0; }},
      {"contrastive, 4 tokens", [](Options& o) { o.contrastive_tokens = 4; }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: vkformer_generation_features MODEL [TOKENS [ROUNDS]]\n");
    return 2;
  }
  const int tokens = argc > 2 ? std::atoi(argv[2]) : 96;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const auto device = value_or_exit(vkformer::Device::create());
  auto generator = value_or_exit(
      vkformer::TextGenerator::load(device, vkformer::ModelSource::directory(argv[1])));
  std::vector<Feature> list = features();
  for (int round = 0; round <= rounds; ++round) {
    for (Feature& feature : list) {
      measure(generator, feature, tokens);
      // The first round records and compiles.
      if (round == 0) feature.rates.clear(), feature.host.clear(), feature.submits.clear();
    }
  }
  std::printf("| | tokens/s | of greedy | submits per token | host us per token |\n");
  std::printf("|---|---|---|---|---|\n");
  const double greedy = median(list[0].rates);
  for (const Feature& feature : list) {
    std::printf("| %s | %.1f | %.2f | %.2f | %.0f |\n", feature.name, median(feature.rates),
                median(feature.rates) / greedy, median(feature.submits), median(feature.host));
  }
  return 0;
}
