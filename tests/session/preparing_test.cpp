// What a session needs is prepared while frames go on: by the host's jobs, by threads of ours, or
// in portions.
#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <limits>
#include <memory>
#include <mutex>

#include "generate/generation_case.h"
#include "support/patience.h"
#include "support/preparing.h"
#include "vkformer/frame_scheduler.h"
#include "vulkan/device_impl.h"

namespace vkformer::testing {
namespace {

constexpr double kWhole = std::numeric_limits<double>::infinity();
using Progress = Advance::Progress;

// A job system that does what it is told, when it is told.
struct Jobs {
  std::mutex mutex;
  std::deque<std::function<void()>> waiting;

  JobRunner runner() {
    return [this](std::function<void()> job) {
      const std::lock_guard<std::mutex> lock(mutex);
      waiting.push_back(std::move(job));
    };
  }
  void run_all() {
    while (true) {
      std::function<void()> job;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (waiting.empty()) return;
        job = std::move(waiting.front());
        waiting.pop_front();
      }
      job();
    }
  }
};

// A directory that goes with its test.
struct TempDirectory {
  std::filesystem::path path;

  TempDirectory() {
    static std::atomic<int> count{0};
    path = std::filesystem::temp_directory_path() /
           ("vkformer_preparing_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

// A model on its own device.
struct Guest {
  GoldenCase golden;
  Device device;
  Session session;
  TensorMap inputs;

  Guest(const std::string& name, const DeviceOptions& options)
      : golden(golden_case(name)), device(make_device(options)), session(make(golden, device)) {
    inputs = golden.pass_inputs();
  }
  static Device make_device(const DeviceOptions& options) {
    auto made = make_test_device(options, test_device_tweaks());
    REQUIRE_MESSAGE(made.ok(), made.error().message);
    return *made;
  }
  static Session make(const GoldenCase& golden, const Device& device) {
    const auto model = Model::load(device, golden.path("model"));
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    return make_session(*model);
  }
  Advance advance(double budget) {
    const auto advance = session.advance(budget);
    REQUIRE_MESSAGE(advance.ok(), advance.error().message);
    return *advance;
  }
  TensorMap finish() {
    for (const Patience patience; patience.left();) {
      const Advance now = advance(1000);
      if (!still_prepares(now) && !now.more_to_submit()) break;
    }
    auto outputs = session.finish();
    REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
    return std::move(outputs).value();
  }
};

void check_same(const TensorMap& a, const TensorMap& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) CHECK(tensor.bytes == b.at(name).bytes);
}

SessionSizes sizes_of(const TensorMap& inputs) {
  SessionSizes sizes;
  sizes.inputs = inputs;
  return sizes;
}

}  // namespace

TEST_SUITE("model") {
  TEST_CASE("nothing is submitted before the host's job has run, and then the same bits come") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    Guest guest("bert-base", options);
    REQUIRE(guest.session.start(guest.inputs).ok());
    // The pass, and what slices are carried out with.
    REQUIRE(jobs.waiting.size() == 2);
    const uint64_t before = vulkan_of(guest.device)->impl().timeline->last_submitted();
    for (int frame = 0; frame < 3; ++frame) {
      const Advance advance = guest.advance(1000);
      CHECK(advance.progress == Progress::kPreparing);
      CHECK(advance.more_to_submit());
      CHECK(advance.fraction == 0);
    }
    CHECK(vulkan_of(guest.device)->impl().timeline->last_submitted() == before);
    // Too early: what was started is still there afterwards.
    CHECK_FALSE(guest.session.finish().ok());
    CHECK_FALSE(guest.session.run(guest.inputs).ok());
    jobs.run_all();
    CHECK(guest.advance(1000).progress != Progress::kPreparing);
    const TensorMap sliced = guest.finish();
    const auto whole = guest.session.run(guest.inputs);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    check_same(*whole, sliced);
    // The second time there is nothing to prepare.
    REQUIRE(guest.session.start(guest.inputs).ok());
    CHECK(jobs.waiting.empty());
    CHECK(guest.advance(1000).progress != Progress::kPreparing);
  }

  TEST_CASE("a generation is prepared by the host's jobs, too") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    Guest guest("marian-base", options);
    TensorMap prompts = guest.inputs;
    prompts.erase("decoder_input_ids");
    prompts.erase("decoder_attention_mask");
    GenerateOptions generate = guest.session.generation_defaults();
    generate.max_new_tokens = 6;
    REQUIRE(guest.session.start_generation(prompts, generate).ok());
    CHECK(guest.advance(1000).progress == Progress::kPreparing);
    jobs.run_all();
    for (const Patience patience; patience.left();) {
      if (guest.advance(300).progress == Progress::kDone) break;
      std::this_thread::yield();
    }
    const auto sliced = guest.session.finish_generation();
    REQUIRE_MESSAGE(sliced.ok(), sliced.error().message);
    const auto whole = guest.session.generate_masked(prompts, generate);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    for (size_t i = 0; i < whole->size(); ++i) CHECK((*whole)[i][0].ids == (*sliced)[i][0].ids);
  }

  TEST_CASE("a budget without end waits, also where the host's jobs never run") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    Guest guest("bert-base", options);
    REQUIRE(guest.session.start(guest.inputs).ok());
    CHECK(guest.advance(kWhole).progress != Progress::kPreparing);
    (void)guest.finish();
    jobs.run_all();  // finds nothing to do
  }

  TEST_CASE("a job that runs after its session has gone does nothing") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    {
      Guest guest("bert-base", options);
      REQUIRE(guest.session.start(guest.inputs).ok());
    }
    CHECK(jobs.waiting.size() == 2);
    jobs.run_all();
  }

  TEST_CASE("without threads and jobs, advance prepares in portions") {
    if (!have_test_device()) return;
    DeviceOptions options = test_device_options();
    options.compile_threads = 0;
    Guest guest("bert-base", options);
    REQUIRE(guest.session.start(guest.inputs).ok());
    double fraction = 0;
    int portions = 0;
    for (; portions < 10000; ++portions) {
      const Advance advance = guest.advance(1);
      if (advance.progress != Progress::kPreparing) break;
      CHECK(advance.fraction >= fraction);
      CHECK(advance.fraction <= 1);
      fraction = advance.fraction;
    }
    CHECK(portions > 10);
    const TensorMap sliced = guest.finish();
    const auto whole = guest.session.run(guest.inputs);
    REQUIRE(whole.ok());
    check_same(*whole, sliced);
  }

  TEST_CASE("what is cancelled while it is prepared leaves the session free") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    Guest guest("bert-base", options);
    REQUIRE(guest.session.start(guest.inputs).ok());
    CHECK_FALSE(guest.session.start(guest.inputs).ok());
    REQUIRE(guest.session.cancel().ok());
    CHECK_FALSE(guest.session.advance(1000).ok());
    // The same again goes on with what is being prepared.
    REQUIRE(guest.session.start(guest.inputs).ok());
    CHECK(jobs.waiting.size() == 2);
    jobs.run_all();
    (void)guest.finish();
  }

  TEST_CASE("what fails while it is prepared is an error of advance, and ends what was started") {
    if (!have_test_device()) return;
    DeviceOptions options = test_device_options();
    Guest guest("bert-base", options);
    const auto impl = vulkan_of(guest.device);
    // No byte more than the model has.
    impl->impl().context.memory_budget = 1;
    REQUIRE(guest.session.start(guest.inputs).ok());
    Result<Advance> advance = guest.session.advance(1000);
    while (advance.ok() && still_prepares(*advance)) advance = guest.session.advance(1000);
    const bool refused = !advance.ok();
    impl->impl().context.memory_budget = UINT64_MAX;
    if (refused) {
      CHECK(advance.error().code == ErrorCode::kOutOfMemory);
      CHECK_FALSE(guest.session.advance(1000).ok());
      REQUIRE(guest.session.start(guest.inputs).ok());
    }
    // Where the blocks had room enough it went well.
    (void)guest.finish();
  }

  TEST_CASE("after a warm-up nothing has to be prepared") {
    if (!have_test_device()) return;
    Jobs jobs;
    DeviceOptions options = test_device_options();
    options.run_job = jobs.runner();
    Guest guest("bert-base", options);
    REQUIRE(guest.session.warm_up(sizes_of(guest.inputs)).ok());
    const auto cold = guest.session.warmed_up();
    REQUIRE(cold.ok());
    CHECK(*cold < 1);
    jobs.run_all();
    const auto warm = guest.session.warmed_up();
    REQUIRE(warm.ok());
    CHECK(*warm == 1);
    REQUIRE(guest.session.start(guest.inputs).ok());
    CHECK(guest.advance(1000).progress != Progress::kPreparing);
    REQUIRE(guest.session.cancel().ok());
    SessionSizes other;
    other.tokens = 9;
    REQUIRE(guest.session.warm_up(other).ok());
    REQUIRE(guest.session.finish_warm_up().ok());
    other.tokens = -1;
    CHECK_FALSE(guest.session.warm_up(other).ok());
  }

  TEST_CASE("more sizes than recordings that are kept are prepared together") {
    if (!have_test_device()) return;
    SessionOptions options;
    options.recordings = 1;
    auto session = Session::create(golden_model("bert-base"), options);
    REQUIRE(session.ok());
    for (int64_t tokens : {5, 6, 7}) {
      SessionSizes sizes;
      sizes.tokens = tokens;
      REQUIRE(session->warm_up(sizes).ok());
    }
    double there = 0;
    for (int frame = 0; there < 1 && frame < 60000; ++frame) {
      const auto warm = session->warmed_up();
      REQUIRE_MESSAGE(warm.ok(), warm.error().message);
      CHECK(*warm >= there);
      there = *warm;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(there == 1);
  }

  TEST_CASE("an estimate goes by what was measured, and says how much of it was") {
    if (!have_test_device()) return;
    Guest guest("bert-base", test_device_options());
    const SessionSizes sizes = sizes_of(guest.inputs);
    const auto before = guest.session.estimate(sizes, 1000);
    REQUIRE_MESSAGE(before.ok(), before.error().message);
    CHECK(before->measured == 0);
    CHECK(before->frames >= 1);
    REQUIRE(guest.session.start(guest.inputs).ok());
    (void)guest.finish();
    REQUIRE(guest.session.start(guest.inputs).ok());
    (void)guest.finish();
    const auto after = guest.session.estimate(sizes, 1000);
    REQUIRE_MESSAGE(after.ok(), after.error().message);
    CHECK(after->measured > 0.9);
    CHECK(after->first_frames == after->frames);
    CHECK(after->milliseconds > 0);
    const auto half = guest.session.estimate(sizes, 500);
    REQUIRE(half.ok());
    CHECK(half->frames >= 2 * after->frames - 1);
    CHECK_FALSE(guest.session.estimate(sizes, 0).ok());
    CHECK_FALSE(guest.session.estimate(sizes, std::nan("")).ok());
  }

  TEST_CASE("what slices have learned is there for the next device, by a file") {
    if (!have_test_device()) return;
    const TempDirectory directory;
    DeviceOptions options = test_device_options();
    options.cache_directory = directory.path.string();
    SessionSizes sizes;
    {
      Guest guest("bert-base", options);
      sizes = sizes_of(guest.inputs);
      REQUIRE(guest.session.start(guest.inputs).ok());
      (void)guest.finish();
      REQUIRE(guest.session.start(guest.inputs).ok());
    }
    Guest again("bert-base", options);
    const auto known = again.session.estimate(sizes, 1000);
    REQUIRE(known.ok());
    CHECK(known->measured > 0.9);
  }

  TEST_CASE("a paced load copies what frames have room for, and gives the same model") {
    if (!have_test_device()) return;
    const GoldenCase golden = golden_case("bert-base");
    ModelOptions options;
    options.paced = true;
    const ModelSource source = ModelSource::directory(golden.path("model"));
    BackgroundLoad load = BackgroundLoad::start(*test_device(), source, options);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_FALSE(load.done());
    CHECK(load.progress().loaded_bytes == 0);
    int frames = 0;
    for (; !load.done() && frames < 100000; ++frames) {
      load.advance(100);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(frames > 1);
    const auto model = load.wait();
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    Session paced = make_session(*model), plain = make_session(golden_model("bert-base"));
    const auto a = paced.run(golden.pass_inputs()), b = plain.run(golden.pass_inputs());
    REQUIRE((a.ok() && b.ok()));
    check_same(*a, *b);
    BackgroundLoad waited = BackgroundLoad::start(*test_device(), source, options);
    CHECK(waited.wait().ok());
    BackgroundLoad dropped = BackgroundLoad::start(*test_device(), source, options);
  }

  TEST_CASE("sessions share frames, and each gives the bits that it gives alone") {
    if (!have_test_device()) return;
    const Model& model = golden_model("bert-base");
    const GoldenCase golden = golden_case("bert-base");
    const TensorMap inputs = golden.pass_inputs();
    std::vector<Session> sessions;
    for (int i = 0; i < 3; ++i) sessions.push_back(make_session(model));
    const auto whole = sessions[0].run(inputs);
    REQUIRE(whole.ok());
    // Prepared, so that priorities alone say who is done last.
    for (Session& session : sessions) {
      REQUIRE(session.warm_up(sizes_of(inputs)).ok());
      REQUIRE(session.finish_warm_up().ok());
      REQUIRE(session.start(inputs).ok());
    }
    FrameScheduler frames;
    std::map<uint64_t, size_t> number;
    constexpr FrameJob::Priority kPriorities[] = {
        FrameJob::Priority::kBackground, FrameJob::Priority::kHigh, FrameJob::Priority::kNormal};
    for (size_t i = 0; i < sessions.size(); ++i) {
      const auto job = frames.add(sessions[i], {.priority = kPriorities[i]});
      REQUIRE_MESSAGE(job.ok(), job.error().message);
      number[*job] = i;
    }
    CHECK_FALSE(frames.add(sessions[0]).ok());
    CHECK_FALSE(frames.advance(0).ok());
    std::vector<size_t> ended;
    for (const Patience patience; patience.left() && frames.jobs() > 0;) {
      const auto progress = frames.advance(500);
      REQUIRE_MESSAGE(progress.ok(), progress.error().message);
      for (const FrameProgress& one : *progress) {
        REQUIRE_MESSAGE(one.advance.ok(), one.advance.error().message);
        (void)still_prepares(*one.advance);
        if (one.advance->progress == Progress::kDone) ended.push_back(number.at(one.job));
      }
      std::this_thread::yield();
    }
    CHECK(ended.size() == 3);
    CHECK(ended.back() == 0);  // the one in the background
    for (Session& session : sessions) {
      const auto outputs = session.finish();
      REQUIRE_MESSAGE(outputs.ok(), outputs.error().message);
      check_same(*whole, *outputs);
    }
  }

  TEST_CASE("a job that fails, or is removed, leaves the others their frames") {
    if (!have_test_device()) return;
    const Model& model = golden_model("bert-base");
    const TensorMap inputs = golden_case("bert-base").pass_inputs();
    Session idle = make_session(model), busy = make_session(model), left = make_session(model);
    REQUIRE(busy.start(inputs).ok());
    REQUIRE(left.start(inputs).ok());
    FrameScheduler frames;
    const auto failing = frames.add(idle, {.priority = FrameJob::Priority::kHigh});
    const auto going = frames.add(busy);
    const auto removed = frames.add(left);
    REQUIRE((failing.ok() && going.ok() && removed.ok()));
    frames.remove(*removed);
    const auto progress = frames.advance(500);
    REQUIRE(progress.ok());
    REQUIRE(progress->size() == 2);
    CHECK((*progress)[0].job == *failing);
    CHECK_FALSE((*progress)[0].advance.ok());
    CHECK((*progress)[1].job == *going);
    CHECK((*progress)[1].advance.ok());
    CHECK(frames.jobs() == 1);
  }
}

}  // namespace vkformer::testing
