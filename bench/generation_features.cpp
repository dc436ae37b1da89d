// What each way of generating costs: tokens per second, submits per token, and microseconds of work
// per token. The work is that of the calling thread, and that of all threads (a driver that
// computes on the CPU has its own). The ways take turns so that a noisy machine is fair to all.
//
//   vkformer_generation_features MODEL [TOKENS [ROUNDS [DRAFT [NAME]]]] > table.md
//
// MODEL is a decoder with a tokenizer, such as models/shakespeare; DRAFT drafts for it (MODEL).
// Besides greedy search only what has NAME in its name is measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "must.h"
#include "vkformer/benchmark.h"
#include "vkformer/generation_batch.h"
#include "vkformer/tasks.h"
#include "vkformer/tokenizer.h"

namespace {

using vkformer::bench::value_or_exit;

double wall_seconds() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of processors: CLOCK_THREAD_CPUTIME_ID of this thread, which records, submits and reads;
// CLOCK_PROCESS_CPUTIME_ID of all.
double busy_seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What a run made.
struct Counts {
  double tokens = 0;
  double submits = 0;
};

struct Feature {
  std::string name;
  std::function<Counts()> run;
  std::vector<double> rates = {}, host = {}, all = {}, submits = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(Feature& feature) {
  const double wall = wall_seconds();
  const double thread = busy_seconds(CLOCK_THREAD_CPUTIME_ID);
  const double all = busy_seconds(CLOCK_PROCESS_CPUTIME_ID);
  const Counts made = feature.run();
  feature.rates.push_back(made.tokens / (wall_seconds() - wall));
  feature.host.push_back(1e6 * (busy_seconds(CLOCK_THREAD_CPUTIME_ID) - thread) / made.tokens);
  feature.all.push_back(1e6 * (busy_seconds(CLOCK_PROCESS_CPUTIME_ID) - all) / made.tokens);
  feature.submits.push_back(made.submits / made.tokens);
}

// What the features are measured with.
struct Setting {
  vkformer::Device device;
  vkformer::Model model;
  vkformer::Model draft;
  vkformer::TextGenerator generator;
  vkformer::ModelSource source;
  std::vector<vkformer::TokenId> prompt;
  int tokens = 0;
};

constexpr const char* kPrompt = "First Citizen:\n";
// Bytes that conversations begin with.
constexpr size_t kConversations[] = {100, 400, 1600};

using SetText = std::function<void(vkformer::TextOptions&)>;

Counts generate(vkformer::TextGenerator& generator, const std::string& prompt, int tokens,
                const SetText& set) {
  vkformer::TextOptions options;
  options.beams = 1;
  options.max_new_tokens = tokens;
  set(options);
  const auto texts = value_or_exit(generator.generate({&prompt, 1}, options));
  Counts made{.submits = static_cast<double>(generator.counters().submits)};
  for (const auto& text : texts[0]) made.tokens += static_cast<double>(text.ids.size());
  return made;
}

// Requests that run together, each with its own beginning.
Counts batch(const Setting& s, vkformer::GenerationBatch& requests, int count) {
  const vkformer::BatchCounters before = requests.counters();
  for (int i = 0; i < count; ++i) {
    vkformer::BatchRequest request{.prompt = s.prompt, .options = requests.generation_defaults()};
    request.prompt.push_back(request.prompt[static_cast<size_t>(i) % request.prompt.size()]);
    request.options.max_new_tokens = s.tokens;
    (void)value_or_exit(requests.submit(request));
  }
  while (!requests.idle()) (void)value_or_exit(requests.step());
  const vkformer::BatchCounters after = requests.counters();
  const auto steps = after.work.steps - before.work.steps + after.draft_steps - before.draft_steps;
  return {static_cast<double>(after.work.new_tokens - before.work.new_tokens),
          static_cast<double>(steps)};
}

void add_batches(Setting& s, std::vector<Feature>& list) {
  const auto add = [&](const char* name, int rows, auto change) {
    vkformer::BatchOptions options{.rows = rows};
    options.prefix_reuse = false;
    change(options);
    const auto made = std::make_shared<vkformer::GenerationBatch>(
        value_or_exit(vkformer::GenerationBatch::create(s.model, options)));
    list.push_back({name, [&s, made, rows] { return batch(s, *made, rows); }});
  };
  using Options = vkformer::BatchOptions;
  add("batch, 1 request", 1, [](Options&) {});
  add("batch, 8 requests together", 8, [](Options&) {});
  add("batch, 1 request, lookup", 1, [](Options& o) { o.lookup = 6; });
  add("batch, 1 request, draft", 1, [&](Options& o) { o.draft = s.draft; });
  // Answers of a conversation that is sent whole each time, and read anew or kept.
  const auto talk = [&](size_t bytes, const char* how, vkformer::TaskOptions options) {
    // Its own, which keeps the keys of no other conversation.
    const auto generator = std::make_shared<vkformer::TextGenerator>(
        value_or_exit(vkformer::TextGenerator::load(s.device, s.source, options)));
    const auto said = std::make_shared<std::string>();
    while (said->size() < bytes) *said += kPrompt;
    const std::string name = "conversation of " + std::to_string(bytes) + " tokens, " + how;
    list.push_back({name, [&s, generator, said] {
                      std::string answer;
                      const Counts made =
                          generate(*generator, *said, s.tokens, [&](vkformer::TextOptions& o) {
                            o.on_text = [&](const vkformer::TextPiece& piece) {
                              answer += piece.text;
                              return vkformer::TokenVerdict::kGoOn;
                            };
                          });
                      *said += answer + kPrompt;
                      return made;
                    }});
  };
  vkformer::TaskOptions keeps;
  keeps.session.prefix_reuse = true;
  for (size_t bytes : kConversations) {
    talk(bytes, "read", {});
    talk(bytes, "kept", keeps);
  }
}

std::vector<std::pair<const char*, SetText>> choices() {
  using Options = vkformer::TextOptions;
  static const auto grammar = value_or_exit(vkformer::Grammar::from_gbnf(
      "root ::= line+\nline ::= [A-Z] [a-z ,;']{3,60} [.!?] \"\\n\"\n"));
  static const auto json = value_or_exit(vkformer::Grammar::any_json());
  return {
      {"greedy", [](Options&) {}},
      {"sampled, temperature 0.8", [](Options& o) { o.temperature = 0.8, o.top_k = 0; }},
      {"sampled, top-k 40, top-p 0.9, min-p 0.02",
       [](Options& o) { o.top_k = 40, o.top_p = 0.9, o.min_p = 0.02; }},
      {"sampled, typical-p 0.9", [](Options& o) { o.top_k = 0, o.typical_p = 0.9; }},
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
      {"sampled, GBNF grammar", [](Options& o) { o.temperature = 0.8, o.grammar = grammar; }},
      {"sampled, JSON", [](Options& o) { o.temperature = 0.8, o.grammar = json; }},
      {"8 sequences sampled", [](Options& o) { o.temperature = 0.8, o.return_sequences = 8; }},
      {"4 beams", [](Options& o) { o.beams = 4; }},
      {"4 beams, penalties", [](Options& o) { o.beams = 4, o.repetition_penalty = 1.2; }},
      {"4 beams sampled", [](Options& o) { o.beams = 4, o.temperature = 0.8; }},
      {"4 beams in 2 groups",
       [](Options& o) { o.beams = 4, o.beam_groups = 2, o.diversity = 1.0; }},
      {"contrastive, 4 tokens", [](Options& o) { o.contrastive_tokens = 4; }},
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: vkformer_generation_features MODEL [TOKENS [ROUNDS [DRAFT [NAME]]]]\n");
    return 2;
  }
  const std::string path = argv[1];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  const auto device = value_or_exit(vkformer::Device::create());
  const auto source = vkformer::ModelSource::directory(path);
  Setting setting{device,
                  value_or_exit(vkformer::Model::load(device, path)),
                  value_or_exit(vkformer::Model::load(device, argc > 4 ? argv[4] : path)),
                  value_or_exit(vkformer::TextGenerator::load(device, source)),
                  source,
                  {},
                  argc > 2 ? std::atoi(argv[2]) : 96};
  const auto tokenizer = value_or_exit(vkformer::Tokenizer::load(path));
  const auto encoding = value_or_exit(tokenizer.encode(kPrompt));
  setting.prompt.assign(encoding.ids.begin(), encoding.ids.end());
  std::vector<Feature> list;
  for (const auto& [name, set] : choices()) {
    list.push_back({name, [&setting, set = set] {
                      return generate(setting.generator, kPrompt, setting.tokens, set);
                    }});
  }
  add_batches(setting, list);
  const std::string wanted = argc > 5 ? argv[5] : "";
  list.erase(
      std::remove_if(list.begin() + 1, list.end(),
                     [&](const Feature& f) { return f.name.find(wanted) == std::string::npos; }),
      list.end());
  for (int round = 0; round <= rounds; ++round) {
    if (const auto awake = vkformer::wake_device(device); !awake) {
      vkformer::bench::fail(awake.error());
    }
    for (Feature& feature : list) {
      measure(feature);
      // The first round records and compiles.
      if (round > 0) continue;
      for (auto* of : {&feature.rates, &feature.host, &feature.all, &feature.submits}) of->clear();
    }
  }
  std::printf(
      "| | tokens/s | of greedy | submits per token | host us per token | all us per token |\n");
  std::printf("|---|---|---|---|---|---|\n");
  const double greedy = median(list[0].rates);
  for (const Feature& feature : list) {
    std::printf("| %s | %.1f | %.2f | %.2f | %.0f | %.0f |\n", feature.name.c_str(),
                median(feature.rates), median(feature.rates) / greedy, median(feature.submits),
                median(feature.host), median(feature.all));
  }
  return 0;
}
