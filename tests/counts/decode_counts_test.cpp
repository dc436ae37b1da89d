// Submits and waits of each way to generate, counted by the layer in layers/discrete on memory that
// it presents. docs/decode_counts.md shows the table. Run by ctest: it sets the layer's
// environment.
#include <cstdio>
#include <thread>

#include "generate/batch_requests.h"
#include "support/layer_counts.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

constexpr int kNewTokens = 64;

// What a way to generate costs for 64 new tokens of each sequence, after a first generation of the
// same shape. It is exactly these calls, whatever the memory. Nothing is uploaded or downloaded by
// a submit for itself.
struct Expected {
  const char* name;
  const char* unit;  // what the table divides by
  int64_t submits, waits;
  bool at_most = false;  // a slice is shorter if the GPU has not finished the one before
};

// Contrastive search reads its prompt with a full pass before its steps.
// Of a grammar's step the host computes masks between two submits and waits for the second. Slices
// are waited for at the end.
constexpr Expected kExpected[] = {
    {"greedy", "token", 8, 8},
    {"4 beams", "token", 8, 8},
    {"sampled", "token", 8, 8},
    {"penalties", "token", 8, 8},
    {"grammar", "token", 128, 64},
    {"contrastive", "token", 65, 65},
    {"draft model", "step", 67, 66},
    {"prompt lookup", "step", 42, 42},
    {"batch of 1", "step", 67, 67},
    {"batch of 4", "step", 79, 79},
    {"batch of 16", "step", 119, 119},
    {"prefix reuse", "token", 64, 64},
    {"frame slices", "slice", 17, 1, true},
};

struct Measured {
  LayerCounts counts;
  int64_t tokens = 0;
  int64_t units = 0;
};

Tokens ids_of(const std::string& text) {
  return Tokens(text.begin(), text.end());  // a token of this model is a byte
}

const Tokens& prompt() {
  static const Tokens tokens = ids_of("ROMEO:\nWhat say you of the state of the state, and the ");
  return tokens;
}

const Model& counted_model() {
  static Kept<Model> kept;
  return kept.get([] {
    auto model = Model::load(*test_device(), VKFORMER_SOURCE_DIR "/models/shakespeare");
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    return std::move(model).value();
  });
}

GenerateOptions counted_options(const Session& session) {
  return options_for(session, 1, kNewTokens, {});
}

Measured counted(const LayerReader& layer, const std::function<void(Measured&)>& run) {
  Measured warm_up, measured;
  run(warm_up);
  layer.restart();
  run(measured);
  measured.counts = layer.counts();
  return measured;
}

Measured count_session(const LayerReader& layer, const SessionOptions& session_options,
                       const std::function<void(GenerateOptions&)>& set) {
  auto session = Session::create(counted_model(), session_options);
  REQUIRE_MESSAGE(session.ok(), session.error().message);
  return counted(layer, [&](Measured& m) {
    GenerateOptions options = counted_options(*session);
    set(options);
    const Generation generation = generate(*session, {prompt()}, options);
    m.tokens = m.units = static_cast<int64_t>(generation[0][0].ids.size() - prompt().size());
  });
}

Measured count_plain(const LayerReader& layer, const std::function<void(GenerateOptions&)>& set) {
  return count_session(layer, {}, set);
}

// Letters, spaces and line breaks without end: every token is cut, none ends the text.
Measured count_grammar(const LayerReader& layer) {
  std::vector<std::string> bytes;
  for (int id = 0; id < 255; ++id) bytes.emplace_back(1, static_cast<char>(id));
  bytes.emplace_back();  // the end token has no bytes
  const std::vector<TokenId> ends = {255};
  auto grammar = Grammar::from_gbnf("root ::= [a-z \\n]*");
  REQUIRE_MESSAGE(grammar.ok(), grammar.error().message);
  auto vocabulary = GrammarVocabulary::from_bytes(bytes, ends);
  REQUIRE_MESSAGE(vocabulary.ok(), vocabulary.error().message);
  auto constraint = GrammarConstraint::create(*grammar, *vocabulary);
  REQUIRE_MESSAGE(constraint.ok(), constraint.error().message);
  const auto shared = std::make_shared<GrammarConstraint>(std::move(*constraint));
  return count_plain(layer, [&](GenerateOptions& options) {
    options.grammar = shared;
    options.eos = {255};
    options.min_new_tokens = kNewTokens;
  });
}

Measured count_batch(const LayerReader& layer, int sequences, BatchOptions options) {
  options.rows = sequences;
  options.capacity = 128;
  GenerationBatch batch = make_forgetting_batch(counted_model(), options);
  return counted(layer, [&](Measured& m) {
    const int64_t draft_steps = batch.counters().draft_steps;
    for (int i = 0; i < sequences; ++i) {
      Tokens tokens = prompt();
      tokens.push_back('a' + i);  // sequences differ, or they would be in step by chance
      submit(batch, request_for(batch, tokens, kNewTokens));
    }
    Stories stories;
    for (; !batch.idle(); ++m.units) take_step(batch, stories);
    m.units += batch.counters().draft_steps - draft_steps;  // each is a step of the smaller model
    for (const auto& [id, told] : stories) m.tokens += static_cast<int64_t>(told.tokens.size());
  });
}

// Slices of any length: what limits a slice then is the work between two choices.
Measured count_slices(const LayerReader& layer) {
  Session session = make_session(counted_model());
  const auto length = static_cast<int64_t>(prompt().size());
  return counted(layer, [&](Measured& m) {
    const TensorMap inputs{{"input_ids", Tensor::from_ints({1, length}, prompt())}};
    const Status started = session.start_generation(inputs, counted_options(session));
    REQUIRE_MESSAGE(started.ok(), started.error().message);
    for (bool running = true; running; ++m.units) {
      const auto advance = session.advance(1e9);
      REQUIRE_MESSAGE(advance.ok(), advance.error().message);
      running = advance->more_to_submit();
    }
    const auto generation = session.finish_generation();
    REQUIRE_MESSAGE(generation.ok(), generation.error().message);
    m.tokens = static_cast<int64_t>((*generation)[0][0].ids.size() - prompt().size());
  });
}

std::map<std::string, Measured> count_all(const LayerReader& layer) {
  std::map<std::string, Measured> all;
  all["greedy"] = count_plain(layer, [](GenerateOptions&) {});
  all["4 beams"] = count_plain(layer, [](GenerateOptions& o) { o.beams = 4; });
  all["sampled"] = count_plain(layer, [](GenerateOptions& o) {
    o.choice = TokenChoice::kSampled;
    o.sampling = {.temperature = 0.8, .top_k = 20, .top_p = 0.9, .seed = 7};
  });
  all["penalties"] = count_plain(layer, [](GenerateOptions& o) {
    o.penalties = {.repetition = 1.2, .presence = 0.1, .frequency = 0.1, .no_repeat_ngram = 4};
  });
  all["grammar"] = count_grammar(layer);
  all["contrastive"] = count_plain(layer, [](GenerateOptions& o) { o.contrastive_tokens = 4; });
  all["draft model"] = count_batch(layer, 1, {.draft = counted_model()});
  all["prompt lookup"] = count_batch(layer, 1, {.lookup = 3});
  for (const int sequences : {1, 4, 16}) {
    all["batch of " + std::to_string(sequences)] = count_batch(layer, sequences, {});
  }
  const SessionOptions reuse{.prefix_reuse = true};
  all["prefix reuse"] = count_session(layer, reuse, [](GenerateOptions&) {});
  all["frame slices"] = count_slices(layer);
  return all;
}

void print_table(const std::map<std::string, Measured>& all) {
  std::printf("\nmemory: %s\n\n", layer_memory().c_str());
  std::printf(
      "| way | unit | units | tokens | submits | waits | submits/unit | waits/unit | "
      "submits/token | copies recorded | command buffers |\n");
  std::printf("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const Expected& row : kExpected) {
    const Measured& m = all.at(row.name);
    const auto units = static_cast<double>(m.units), tokens = static_cast<double>(m.tokens);
    const auto submits = static_cast<double>(m.counts.submits);
    std::printf("| %s | %s | %lld | %lld | %llu | %llu | %.3f | %.3f | %.3f | %llu | %llu |\n",
                row.name, row.unit, static_cast<long long>(m.units),
                static_cast<long long>(m.tokens), static_cast<unsigned long long>(m.counts.submits),
                static_cast<unsigned long long>(m.counts.waits), submits / units,
                static_cast<double>(m.counts.waits) / units, submits / tokens,
                static_cast<unsigned long long>(m.counts.copies),
                static_cast<unsigned long long>(m.counts.command_buffers));
  }
  std::printf("\n");
}

void check_row(const Expected& row, const Measured& m) {
  CAPTURE(row.name);
  const auto submits = static_cast<int64_t>(m.counts.submits);
  const auto waits = static_cast<int64_t>(m.counts.waits);
  CHECK((row.at_most ? submits <= row.submits : submits == row.submits));
  CHECK((row.at_most ? waits <= row.waits : waits == row.waits));
  CHECK(m.counts.maps == 0);
  CHECK(m.counts.refused_maps == 0);
}

// Generations at once, each on a thread and in its own session.
void generate_at_once(int threads, int rounds) {
  std::vector<Session> sessions;
  for (int i = 0; i < threads; ++i) {
    sessions.push_back(make_session(counted_model()));
    generate(sessions.back(), {prompt()}, counted_options(sessions.back()));  // records
  }
  LayerReader::open().restart();
  std::vector<std::thread> running;
  for (Session& session : sessions) {
    running.emplace_back([&session, rounds] {
      for (int round = 0; round < rounds; ++round) {
        const auto generation = session.generate({prompt()}, counted_options(session));
        CHECK(generation.ok());
      }
    });
  }
  for (std::thread& thread : running) thread.join();
}

// Half of the heap and more fits once, and again after it is freed.
void check_small_heap(Context& context) {
  CHECK(context.memory.memoryHeaps[2].size == 256ull << 20);
  VkMemoryAllocateInfo info{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  info.allocationSize = 160ull << 20;
  info.memoryTypeIndex = 3;
  VkDeviceMemory first = VK_NULL_HANDLE, second = VK_NULL_HANDLE;
  for (int round = 0; round < 2; ++round) {
    CHECK(context.api.AllocateMemory(context.device, &info, nullptr, &first) == VK_SUCCESS);
    CHECK(context.api.AllocateMemory(context.device, &info, nullptr, &second) ==
          VK_ERROR_OUT_OF_DEVICE_MEMORY);
    context.api.FreeMemory(context.device, first, nullptr);
  }
}

}  // namespace

TEST_SUITE("counts") {
  TEST_CASE("the layer presents the memory that it is asked for") {
    VKF_TEST_DEVICE(device);
    LayerReader::open();
    const std::string memory = layer_memory();
    if (memory == "driver") return;
    const VkPhysicalDeviceMemoryProperties& seen = device->impl().context.memory;
    CHECK(seen.memoryHeapCount == (memory == "small-bar" ? 3 : 2));
    CHECK(seen.memoryTypeCount == (memory == "discrete" ? 3 : 4));
    CHECK(seen.memoryTypes[0].propertyFlags == VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    CHECK((seen.memoryHeaps[1].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) == 0);
    if (memory == "resizable-bar") CHECK(seen.memoryTypes[3].heapIndex == 0);
    if (memory == "small-bar") check_small_heap(device->impl().context);
  }

  TEST_CASE("a token, a step and a slice take so many submits and waits") {
    if (!have_test_device()) return;
    const LayerReader layer = LayerReader::open();
    const std::map<std::string, Measured> all = count_all(layer);
    print_table(all);
    for (const Expected& row : kExpected) check_row(row, all.at(row.name));
  }

  TEST_CASE("two sessions that generate at once never wait for each other's work") {
    if (!have_test_device()) return;
    generate_at_once(2, 8);
    const LayerReader layer = LayerReader::open();
    const LayerCounts counts = layer.counts();
    std::printf("memory: %s; two sessions at once: %llu waits, %llu for the other's work\n",
                layer_memory().c_str(), static_cast<unsigned long long>(counts.waits),
                static_cast<unsigned long long>(counts.foreign_waits));
    CHECK(counts.waits > 0);
    CHECK(counts.foreign_waits == 0);
    // A wait for the queue or the device is one for everybody's work.
    for (const LayerWait& wait : layer.waits()) CHECK(wait.submitter != 0);
  }
}

}  // namespace vkformer::testing
