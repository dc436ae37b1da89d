// Calls that return a Result never throw. Memory that runs out at any allocation, threads that
// cannot be started, and callbacks that throw all become errors.
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/guarded.h"
#include "checkpoint/temp_dir.h"
#include "generate/batch_requests.h"
#include "vkformer/audio.h"
#include "vkformer/chat.h"
#include "vkformer/conformance.h"
#include "vkformer/heat_map.h"
#include "vkformer/picture.h"
#include "vkformer/tokenizer.h"

// Sanitizers have an allocator and a way to start threads of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define VKF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define VKF_SANITIZED 1
#endif
#endif

namespace {

// Allocations of this thread that succeed before one fails; negative: none fails. Those after it
// succeed again, unless all shall fail: destructors of the JSON library allocate, too.
thread_local int64_t allocations_left = -1;
thread_local bool all_fail = false;
thread_local bool threads_fail = false;

class FailingMemory {
 public:
  explicit FailingMemory(int64_t after) { allocations_left = after; }
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory() { allocations_left = -1; }
};

}  // namespace

#ifndef VKF_SANITIZED

void* operator new(size_t bytes) {
  if (all_fail || allocations_left == 0) {
    allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

#if defined(__linux__)
#include <dlfcn.h>
#include <pthread.h>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* data) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return threads_fail ? EAGAIN : create(thread, attributes, body, data);
}
#define VKF_CAN_REFUSE_THREADS 1
#endif
#endif

namespace vkformer::testing {
namespace {

// Calls until memory suffices, with ever more of it: each time before it must say that it does not.
// Gives what the last call gave.
template <class Call>
auto check_failing(const std::string& what, const Call& call) -> decltype(call()) {
  CAPTURE(what);
#ifdef VKF_SANITIZED
  return call();
#else
  for (int64_t after = 0;; after += 1 + after / 16) {
    auto result = [&] {
      const FailingMemory failing(after);
      return call();
    }();
    if (result.ok()) {
      CHECK(after > 0);
      return result;
    }
    CAPTURE(after);
    CAPTURE(result.error().message);
    CHECK(result.error().code == ErrorCode::kOutOfMemory);
    CHECK(result.error().message.find('[') != std::string::npos);
    REQUIRE(after < (1 << 24));
  }
#endif
}

std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  REQUIRE_FALSE(text.empty());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string source_path(const std::string& path) {
  return std::string(VKFORMER_SOURCE_DIR) + "/" + path;
}

template <class Throw>
Error error_of(const Throw& fault) {
  const Status status = guarded([&]() -> Status {
    fault();
    return {};
  });
  REQUIRE_FALSE(status.ok());
  return status.error();
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("an exception becomes the error that it amounts to") {
    CHECK(guarded([]() -> Result<int> { return 3; }).value() == 3);
    Error error = error_of([] { throw std::bad_alloc(); });
    CHECK(error.code == ErrorCode::kOutOfMemory);
    CHECK(error.message == kNoHostMemory);
    CHECK(error_of([] { std::vector<int>().reserve(SIZE_MAX); }).code == ErrorCode::kOutOfMemory);
    error = error_of([] {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    });
    CHECK(error.code == ErrorCode::kOutOfMemory);
    CHECK(error.message.find("[system]") != std::string::npos);
    error = error_of([] { throw std::runtime_error("what a callback said"); });
    CHECK(error.code == ErrorCode::kInternal);
    CHECK(error.message.find("what a callback said") != std::string::npos);
    CHECK(error_of([] { throw 3; }).code == ErrorCode::kInternal);
    const Status own = guarded("[mine] is full.", []() -> Status { throw std::bad_alloc(); });
    CHECK(own.error().message == "[mine] is full.");
  }

  TEST_CASE("tensors and files of them survive memory that runs out") {
    const Tensor floats = Tensor::from_floats({3}, std::vector<float>{1, 2, 3});
    const Tensor ints = Tensor::from_ints({2}, std::vector<int64_t>{1, 2});
    CHECK(check_failing("to_floats", [&] { return floats.to_floats(); }).ok());
    CHECK(check_failing("to_ints", [&] { return ints.to_ints(); }).ok());
    CHECK(check_failing("no floats", [&]() -> Status {
            const auto none = ints.to_floats();
            return none.error().code == ErrorCode::kInvalidArgument ? Status() : none.error();
          }).ok());
    const test::TempDir directory;
    const std::string file = directory.file("x.safetensors");
    const TensorMap map = {{"a", floats}, {"b", ints}};
    CHECK(check_failing("write_tensor_file", [&] { return write_tensor_file(file, map); }).ok());
    const auto read = check_failing("read_tensor_file", [&] { return read_tensor_file(file); });
    CHECK(read->at("a").bytes == floats.bytes);
    const std::string model = golden_case("gpt2-base").path("model");
    CHECK(check_failing("inspect_model", [&] { return inspect_model(model); }).ok());
  }

  TEST_CASE("texts survive memory that runs out") {
    const std::string directory = source_path("models/shakespeare");
    const auto tokenizer =
        check_failing("Tokenizer::load", [&] { return Tokenizer::load(directory); });
    const std::string text = "What say you, my lord?";
    const auto encoding = check_failing("encode", [&] { return tokenizer->encode(text); });
    const std::vector<std::string> texts = {text, "x"};
    CHECK(check_failing("encode_batch", [&] { return tokenizer->encode_batch(texts); }).ok());
    const auto decoded = check_failing("decode", [&] { return tokenizer->decode(encoding->ids); });
    CHECK(*decoded == text);
    const auto chat = check_failing("ChatTemplate::parse", [] {
      return ChatTemplate::parse(
          "{% for m in messages %}{{ m.role | upper }}: {{ m.content }}{% "
          "endfor %}");
    });
    const std::vector<ChatMessage> messages = {{"user", "hello, this is a text of some length"}};
    CHECK(check_failing("render", [&] { return chat->render(messages); }).ok());
    CHECK(check_failing("render_json", [&] {
            return chat->render_json("[{\"role\": \"user\", \"content\": \"x\"}]");
          }).ok());
  }

  TEST_CASE("grammars survive memory that runs out") {
    const auto grammar = check_failing(
        "from_gbnf", [] { return Grammar::from_gbnf("root ::= (\"ab\" | [c-f]+) \"!\"?"); });
    CHECK(check_failing("from_json_schema", [] {
            return Grammar::from_json_schema(
                "{\"type\": \"object\", \"properties\": {\"a\": {\"type\": "
                "\"integer\"}}, \"required\": [\"a\"]}");
          }).ok());
    CHECK(check_failing("matches", [&] { return grammar->matches("cdef!"); }).ok());
    const std::vector<std::string> bytes = {"a", "b", "ab", "c", "!", ""};
    const std::vector<TokenId> ends = {5};
    const auto vocabulary =
        check_failing("from_bytes", [&] { return GrammarVocabulary::from_bytes(bytes, ends); });
    auto constraint = check_failing(
        "GrammarConstraint", [&] { return GrammarConstraint::create(*grammar, *vocabulary); });
    const GrammarState start = constraint->start();
    CHECK(check_failing("accept_text", [&] { return constraint->accept_text(start, "cde"); }).ok());
  }

  TEST_CASE("pictures and sounds survive memory that runs out") {
    const auto png = bytes_of_file(source_path("tests/tasks/golden/picture-1.png"));
    CHECK(check_failing("Picture::decode", [&] { return Picture::decode(png, "picture"); }).ok());
    CHECK(
        check_failing("PictureProcessor", [] { return PictureProcessor::from_settings({}); }).ok());
    const std::vector<float> values = {0, 0.5F, 0.25F, 1};
    HeatMap map;
    map.values = values;
    map.rows = map.columns = 2;
    CHECK(check_failing("render_heat_map_png", [&] { return render_heat_map_png(map); }).ok());
    const auto wav = bytes_of_file(source_path("tests/tasks/golden/sound-2.wav"));
    const auto sound =
        check_failing("decode_wav_bytes", [&] { return decode_wav_bytes(wav, "sound"); });
    CHECK(check_failing("resample_sound", [&] { return resample_sound(*sound, 8000); }).ok());
  }
}

#ifdef VKF_CAN_REFUSE_THREADS
TEST_SUITE("cpu") {
  TEST_CASE("a thread that cannot be started is an error of the call") {
    const Status refused = guarded([]() -> Status {
      threads_fail = true;
      std::thread([] {}).join();
      return {};
    });
    threads_fail = false;
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
  }
}
#endif

#ifndef VKF_SANITIZED
TEST_SUITE("cpu") {
  TEST_CASE("an error is made even where no message can be") {
    const Status refused = guarded([]() -> Status {
      all_fail = true;
      throw std::bad_alloc();
    });
    all_fail = false;
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().code == ErrorCode::kOutOfMemory);
    CHECK(refused.error().message == "[memory] is out");
  }
}
#endif

TEST_SUITE("model") {
  TEST_CASE("a background load reports what its thread could not do") {
    if (!have_test_device()) return;
    const Device device = *test_device();
    const ModelSource source = ModelSource::directory(golden_case("gpt2-base").path("model"));
    ModelOptions options;
    options.progress = [](const LoadProgress&) -> bool { throw std::runtime_error("boom"); };
    auto failed = BackgroundLoad::start(device, source, options).wait();
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kInternal);
    CHECK(failed.error().message.find("boom") != std::string::npos);
    options.progress = [](const LoadProgress&) -> bool { throw std::bad_alloc(); };
    failed = BackgroundLoad::start(device, source, options).wait();
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kOutOfMemory);
    CHECK(check_failing("BackgroundLoad::start", [&]() -> Result<Model> {
            BackgroundLoad load = BackgroundLoad::start(device, source);
            const int64_t left = std::exchange(allocations_left, -1);
            auto model = load.wait();
            CHECK(load.done());
            if (!model.ok()) CHECK(load.progress().loaded_bytes == 0);
            allocations_left = left;
            return model;
          }).ok());
#ifdef VKF_CAN_REFUSE_THREADS
    threads_fail = true;
    BackgroundLoad load = BackgroundLoad::start(device, source);
    threads_fail = false;
    CHECK(load.done());
    load.cancel();
    failed = load.wait();
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kOutOfMemory);
    CHECK_MESSAGE(failed.error().message.find("[system] refused a thread") != std::string::npos,
                  failed.error().message);
#endif
  }

  TEST_CASE("a session goes on after a callback that throws and memory that ran out") {
    if (!have_test_device()) return;
    Session session = make_session(golden_model("gpt2-base"));
    GenerateOptions options = options_for(session, 1, 5, {});
    const Rows rows = {{3, 4, 5}, {6, 7}};
    const Generation expected = generate(session, rows, options);
    GenerateOptions throws = options;
    throws.on_token = [](const NewToken&) -> TokenVerdict { throw std::runtime_error("boom"); };
    const auto failed = session.generate(rows, throws);
    REQUIRE_FALSE(failed.ok());
    CHECK(failed.error().code == ErrorCode::kInternal);
    CHECK(failed.error().message.find("boom") != std::string::npos);
    check_same(generate(session, rows, options), expected);
#ifndef VKF_SANITIZED
    // The first allocation of each fails; a later one may be the driver's, which need not survive.
    const TensorMap inputs = golden_case("gpt2-base").pass_inputs();
    const auto refused = [&](const char* what, const auto& call) {
      CAPTURE(std::string(what));
      const auto result = [&] {
        const FailingMemory failing(0);
        return call();
      }();
      REQUIRE_FALSE(result.ok());
      CHECK(result.error().code == ErrorCode::kOutOfMemory);
    };
    const Rows continuations = {{3}, {4}};
    const Device device = *test_device();
    const std::string directory = golden_case("gpt2-base").path("model");
    refused("generate", [&] { return session.generate(rows, options); });
    refused("run", [&] { return session.run(inputs); });
    refused("score", [&] { return session.score(rows, continuations); });
    refused("start", [&] { return session.start(inputs); });
    refused("start_generation", [&] { return session.start_generation(inputs, options); });
    refused("Session::create", [&] { return Session::create(golden_model("gpt2-base")); });
    refused("Model::load", [&] { return Model::load(device, directory); });
    refused("list_devices", [] { return list_devices(); });
    refused("Device::create", [] { return Device::create(); });
    check_same(generate(session, rows, options), expected);
#endif
  }

  TEST_CASE("a batch goes on after memory that ran out in submit") {
    if (!have_test_device()) return;
    const BatchOptions options{.rows = 1, .capacity = 16, .step_tokens = 2};
    GenerationBatch batch = make_batch(golden_model("gpt2-base"), options);
    const BatchRequest request = request_for(batch, {3, 4, 5}, 4);
    const Told expected = run_alone(batch, request);
    const auto id = check_failing("submit", [&] { return batch.submit(request); });
    CHECK(batch.counters().waiting == 1);
    Stories stories;
    while (!batch.idle()) take_step(batch, stories);
    CHECK(stories.size() == 1);
    CHECK(stories.at(*id).tokens == expected.tokens);
  }

  TEST_CASE("files that the application reads may throw") {
    if (!have_test_device()) return;
    FileReader reader;
    reader.size = [](const std::string&) -> std::optional<uint64_t> {
      throw std::runtime_error("no archive");
    };
    reader.read = [](const std::string&, uint64_t, std::span<std::byte>) { return false; };
    const auto model = Model::load_from(*test_device(), ModelSource::reader(reader));
    REQUIRE_FALSE(model.ok());
    CHECK(model.error().code == ErrorCode::kInternal);
    CHECK(model.error().message.find("no archive") != std::string::npos);
  }
}

}  // namespace vkformer::testing
