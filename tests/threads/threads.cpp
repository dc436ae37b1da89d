// What the public headers say about threads, done. Everything that may be shared is shared by
// several threads at once. It must give what one thread alone gets. Under ThreadSanitizer
// (tools/test --all) an access without a lock is a failure too.
//
//   vkformer_threads MODEL_DIRECTORY
//
// The device is that of the other tests: VKFORMER_TEST_DEVICE, _TIER, _LIMITS.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/test_options.h"
#include "vkformer/attention.h"
#include "vkformer/attention_view.h"
#include "vkformer/audio.h"
#include "vkformer/operators.h"
#include "vkformer/picture.h"
#include "vkformer/session.h"
#include "vkformer/tasks.h"
#include "vkformer/tokenizer.h"
#include "vkformer/vkformer.h"

using namespace vkformer;

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 3;

std::atomic<int> failures{0};
std::atomic<int> checks{0};

void check(bool holds, const char* what) {
  ++checks;
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "threads: not so: %s\n", what);
}

// The value, or the end of the program: what follows needs it.
template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "threads: %s\n", result.error().message.c_str());
  std::exit(1);
}

// Runs `work` on kThreads threads at once, kRounds times each.
void together(const std::function<void(int thread)>& work) {
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int round = 0; round < kRounds; ++round) work(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

const std::vector<std::string> kWords = {"attention", "is", "all", "you", "need"};

std::vector<std::vector<int64_t>> rows_of(const Tokenizer& tokenizer) {
  std::vector<std::vector<int64_t>> rows;
  for (const Encoding& encoding : must(tokenizer.encode_batch(kWords))) {
    rows.emplace_back(encoding.ids.begin(), encoding.ids.end());
  }
  return rows;
}

bool same(const Generation& a, const Generation& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (size_t k = 0; k < a[i].size(); ++k) {
      if (a[i][k].ids != b[i][k].ids || a[i][k].score != b[i][k].score) return false;
    }
  }
  return true;
}

// device.h, model.h, session.h: one device and one model, a session for each thread.
void share_model(const Device& device, const Model& model, const Tokenizer& tokenizer) {
  const auto rows = rows_of(tokenizer);
  Session alone = must(Session::create(model));
  const Generation wanted = must(alone.generate(rows, alone.generation_defaults()));
  TensorMap inputs;
  inputs["input_ids"] = Tensor::from_ints({1, static_cast<int64_t>(rows[0].size())}, rows[0]);
  inputs["decoder_input_ids"] = Tensor::from_ints({1, 1}, std::vector<int64_t>{1});
  const TensorMap passed = must(alone.run(inputs));
  together([&](int thread) {
    Session session = must(Session::create(model));
    GenerateOptions options = session.generation_defaults();
    check(same(must(session.generate(rows, options)), wanted), "a session of each thread");
    options.beams = 1 + thread;
    check(must(session.generate(rows, options)).size() == rows.size(), "beams by thread");
    check(must(session.run(inputs)).at("logits").bytes == passed.at("logits").bytes,
          "a pass on each thread");
    check(device.memory_in_use() > 0 && !device.info().name.empty(), "a shared device");
    check(model.weight_bytes() > 0 && must(model.plan_text({})).size() > 100, "a shared model");
  });
}

// model.h, model_source.h: loads of the same files, in the background too, watched by others, with
// pipelines that are made meanwhile.
void load_together(const Device& device, const std::string& directory) {
  const ModelSource source = ModelSource::directory(directory);
  ModelOptions options, others;
  options.first_use = SessionSizes{.batch = 5, .tokens = 20, .new_tokens = 9, .inputs = {}};
  others.first_use = SessionSizes{.batch = 3, .new_tokens = 9, .beams = 3, .inputs = {}};
  BackgroundLoad load = BackgroundLoad::start(device, source, options);
  BackgroundLoad stopped = BackgroundLoad::start(device, source, others);
  together([&](int thread) {
    if (thread == 0) stopped.cancel();
    const LoadProgress progress = load.progress();
    check(progress.total_bytes == 0 || progress.loaded_bytes <= progress.total_bytes, "progress");
    check(must(load.wait()).weight_bytes() > 0 && load.done(), "waiting together");
    if (thread == 1)
      check(must(Model::load_from(device, source, others)).weight_bytes() > 0, "a load");
    const auto ended = stopped.wait();
    check(ended.ok() || ended.error().code == ErrorCode::kCancelled, "a load that may be stopped");
  });
}

// session.h in frames. A session for each thread prepares its sizes next to all others. It is
// followed slice by slice, and is given up while it prepares.
void prepare_together(const Model& model, const Tokenizer& tokenizer) {
  std::vector<Tensor> rows;
  for (const char* word : {"a", "attention", "all"}) {
    const std::vector<TokenId> ids = must(tokenizer.encode(word)).ids;
    rows.push_back(Tensor::from_ints({1, static_cast<int64_t>(ids.size())}, ids));
  }
  together([&](int thread) {
    Session session = must(Session::create(model, {.recordings = 2, .round_lengths = thread == 0}));
    for (int64_t tokens : {3, 18, 35}) {
      SessionSizes sizes;
      sizes.batch = 2 + thread;
      sizes.tokens = tokens;
      check(session.warm_up(sizes).ok(), "warm-ups at once");
    }
    check(must(session.warmed_up()) <= 1, "how far they are");
    GenerateOptions options = session.generation_defaults();
    options.max_new_tokens = 3 + thread;
    for (const Tensor& row : rows) {
      const TensorMap inputs{{"input_ids", row}};
      check(session.start_generation(inputs, options).ok(), "a start");
      check(session.cancel().ok(), "what is given up while it is prepared");
      check(session.start_generation(inputs, options).ok(), "a start again");
      Advance now;
      do {
        now = must(session.advance(500));
        std::this_thread::yield();
      } while (now.progress != Advance::Progress::kDone);
      check(must(session.finish_generation()).size() == 1, "a generation in slices");
    }
  });
}

// tokenizer.h
void share_tokenizer(const Tokenizer& tokenizer) {
  const std::vector<TokenId> wanted = must(tokenizer.encode("attention")).ids;
  const std::string text = must(tokenizer.decode(wanted, SpecialTokens::kInclude));
  together([&](int) {
    check(must(tokenizer.encode("attention")).ids == wanted, "a shared tokenizer encodes");
    check(must(tokenizer.decode(wanted, SpecialTokens::kInclude)) == text, "and decodes");
    DecodeStream stream = tokenizer.decode_stream(SpecialTokens::kInclude);
    std::string streamed;
    for (const TokenId id : wanted) streamed += must(stream.push(id));
    check(streamed + must(stream.finish()) == text, "a stream for each thread");
  });
}

// tasks.h: a task object for each thread, all on one device.
void share_device_of_tasks(const Device& device, const std::string& directory) {
  const ModelSource source = ModelSource::directory(directory);
  TextGenerator alone = must(TextGenerator::load(device, source));
  const std::string wanted = must(alone.generate(kWords)).at(0).at(0).text;
  std::vector<TextGenerator> tasks;
  for (int i = 0; i < kThreads; ++i) tasks.push_back(must(TextGenerator::load(device, source)));
  together([&](int thread) {
    const auto texts = must(tasks[static_cast<size_t>(thread)].generate(kWords));
    check(texts.at(0).at(0).text == wanted, "a task of each thread");
  });
}

Tensor ramp(Shape shape) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 0.01f * static_cast<float>(i % 97) - 0.4f;
  }
  return Tensor::from_floats(std::move(shape), values);
}

// operators.h, attention.h
void share_operators(const Device& device) {
  OperatorCall call;
  call.name = "softmax";
  call.inputs["X"] = ramp({33, 65});
  const TensorMap wanted = must(run_operator(device, call)).outputs;
  MultiHeadAttentionOptions options;
  options.d_model = 16;
  options.heads = 2;
  TensorMap weights;
  for (const char* name : {"query.weight", "key.weight", "value.weight"}) {
    weights[name] = ramp({16, 16});
  }
  const MultiHeadAttention block = must(MultiHeadAttention::create(device, options, weights));
  const Tensor x = ramp({2, 7, 16});
  const AttentionResult attended = must(block.run(x, nullptr));
  together([&](int) {
    check(must(run_operator(device, call)).outputs.begin()->second.bytes ==
              wanted.begin()->second.bytes,
          "operators at once");
    check(must(block.run(x, nullptr)).output.bytes == attended.output.bytes, "a shared block");
  });
}

// picture.h, audio.h, heat_map.h, attention_view.h: immutable objects, plain functions.
void share_host_side() {
  const std::vector<uint8_t> pixels(8 * 8 * 3, 77);
  std::vector<Picture> pictures;
  pictures.push_back(must(Picture::from_rgb(8, 8, pixels)));
  const PictureProcessor processor = must(PictureProcessor::from_settings({}));
  const Tensor wanted = must(processor.process(pictures));
  AttentionMaps maps;
  maps.heads = 1;
  maps.rows = maps.columns = 2;
  maps.layers.push_back({0, {1, 0, 0.5f, 0.5f}});
  const auto png = must(render_attention_grid_png(maps));
  const Sound sound{std::vector<float>(800, 0.25f), 8000};
  together([&](int) {
    check(must(processor.process(pictures)).bytes == wanted.bytes, "a shared processor");
    check(must(render_attention_grid_png(maps)) == png, "pictures of attention at once");
    check(must(resample_sound(sound, 16000)).samples.size() == 1600, "sounds at once");
  });
}

// vkformer.h: handles marked [any], an error object and a session for each thread.
void share_handles(const std::string& directory) {
  vkf_device_options options{};
  options.struct_size = sizeof(options);
  options.device = std::getenv("VKFORMER_TEST_DEVICE");
  options.tier = std::getenv("VKFORMER_TEST_TIER");
  options.limits = std::getenv("VKFORMER_TEST_LIMITS");
  vkf_device* device = nullptr;
  vkf_model* model = nullptr;
  vkf_tokenizer* tokenizer = nullptr;
  check(vkf_device_create(&options, &device, nullptr) == VKF_OK &&
            vkf_model_load(device, directory.c_str(), nullptr, &model, nullptr) == VKF_OK &&
            vkf_tokenizer_load(directory.c_str(), &tokenizer, nullptr) == VKF_OK,
        "the C interface loads");
  together([&](int) {
    vkf_error* error = vkf_error_create();
    vkf_session* session = nullptr;
    vkf_encodings* encodings = nullptr;
    vkf_generation* generation = nullptr;
    vkf_bytes* text = nullptr;
    vkf_encoding encoding{};
    vkf_sequence sequence{};
    encoding.struct_size = sizeof(encoding);
    sequence.struct_size = sizeof(sequence);
    const char* word = "attention";
    vkf_ids row{};
    bool done = vkf_session_create(model, nullptr, &session, error) == VKF_OK &&
                vkf_tokenizer_encode(tokenizer, &word, 1, nullptr, &encodings, error) == VKF_OK &&
                vkf_encodings_get(encodings, 0, &encoding, error) == VKF_OK;
    row.ids = encoding.ids;
    row.count = encoding.count;
    done = done && vkf_session_generate(session, &row, 1, nullptr, &generation, error) == VKF_OK &&
           vkf_generation_get(generation, 0, 0, &sequence, error) == VKF_OK &&
           vkf_tokenizer_decode(tokenizer, sequence.ids, 0, &text, error) == VKF_OK;
    check(done && std::string(vkf_bytes_text(text)) == "AH0 T EH1 N SH AH0 N", "C handles");
    vkf_bytes_free(text);
    vkf_generation_free(generation);
    vkf_encodings_free(encodings);
    vkf_session_free(session);
    check(vkf_tokenizer_load("absent", nullptr, error) == VKF_INVALID_ARGUMENT &&
              vkf_error_message(error)[0] == '[',
          "an error of each thread");
    vkf_error_free(error);
  });
  vkf_tokenizer_free(tokenizer);
  vkf_model_free(model);
  vkf_device_free(device);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: vkformer_threads MODEL\n");
    return 2;
  }
  const std::string directory = argv[1];
  DeviceOptions options = test_device_options();
  options.cache_directory.clear();  // the cache is shared, too
  std::atomic<int> messages{0};
  options.log = [&](LogLevel, const std::string&) { ++messages; };
  {
    const Device device = must(Device::create(options));
    const Model model = must(Model::load(device, directory));
    const Tokenizer tokenizer = must(Tokenizer::load(directory));
    share_host_side();
    share_tokenizer(tokenizer);
    share_operators(device);
    share_model(device, model, tokenizer);
    load_together(device, directory);
    prepare_together(model, tokenizer);
    share_device_of_tasks(device, directory);
    // Several devices at once, one of each thread.
    together([&](int) {
      check(must(Device::create(options)).tier() == device.tier(), "devices at once");
    });
  }
  share_handles(directory);
  check(messages > 0, "the logger was called");
  std::printf("threads: %d checks, %d failures\n", checks.load(), failures.load());
  return failures == 0 ? 0 : 1;
}
