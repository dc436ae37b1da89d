// A long run: generations and sessions by the thousand, on one model, from one thread and from
// several. What they give must stay the same to the bit, and memory must stay flat, the process's
// and the device's.
//
//   vkformer_soak GOLDEN_CASE [--generations N] [--sessions N] [--threads N]
//
// The device is that of the other tests: VKFORMER_TEST_DEVICE, _TIER, _LIMITS.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support/test_options.h"
#include "vkformer/session.h"

using namespace vkformer;

namespace {

constexpr int64_t kReports = 10;
// What allocators and drivers may add in the second half of a run, in bytes of the process. Mesa's
// lavapipe takes up to six upload buffers of 1 MiB in the first 500 generations, and no more then.
constexpr int64_t kMayGrow = 2 << 20;

// The value, or the end of the program.
template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "soak: %s\n", result.error().message.c_str());
  std::exit(1);
}

// Resident memory in bytes; 0 where the system does not say.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096;
}

// FNV-1a, 64 bits (Fowler, Noll and Vo).
uint64_t hash_of(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

uint64_t hash_of(const Generation& generation) {
  std::string bytes;
  for (const auto& hypotheses : generation) {
    for (const Hypothesis& h : hypotheses) {
      for (const int64_t id : h.ids) bytes += std::to_string(id) + ' ';
      bytes.append(reinterpret_cast<const char*>(&h.score), sizeof h.score);
    }
  }
  return hash_of(bytes);
}

struct Soak {
  Device device;
  Model model;
  TensorMap prompts;

  GenerateOptions options(Session& session) const {
    GenerateOptions o = session.generation_defaults();
    o.beams = 1;
    o.max_new_tokens = 4;
    return o;
  }
  uint64_t generate(Session& session) const {
    return hash_of(must(session.generate_masked(prompts, options(session))));
  }
};

// Counts what differs and looks at memory ten times in a run of `rounds` rounds.
class Watch {
 public:
  Watch(const char* what, int64_t rounds, const Device& device)
      : what_(what), rounds_(rounds), device_(device) {}

  void round(uint64_t hash, uint64_t wanted) {
    differing_ += hash != wanted;
    const int64_t every = std::max<int64_t>(1, rounds_ / kReports);
    if (++done_ % every != 0) return;
    const int64_t resident = resident_bytes();
    const auto in_use = static_cast<int64_t>(device_.memory_in_use());
    if (done_ == every) first_in_use_ = in_use;
    if (done_ <= rounds_ / 2) half_resident_ = resident;
    std::printf("%s %lld: %lld KiB resident, %lld bytes on the device, %lld differ\n", what_,
                static_cast<long long>(done_), static_cast<long long>(resident / 1024),
                static_cast<long long>(in_use), static_cast<long long>(differing_));
    std::fflush(stdout);
    grown_ = resident - half_resident_;
    flat_ = grown_ <= kMayGrow && in_use == first_in_use_;
  }
  bool passed() const {
    if (!flat_) std::printf("FAILED %s: %lld bytes grown\n", what_, static_cast<long long>(grown_));
    return flat_ && differing_ == 0;
  }

 private:
  const char* what_;
  int64_t rounds_;
  const Device& device_;
  int64_t done_ = 0, differing_ = 0, grown_ = 0;
  int64_t half_resident_ = 0, first_in_use_ = 0;
  bool flat_ = true;
};

bool many_generations(const Soak& soak, int64_t rounds) {
  Session session = must(Session::create(soak.model));
  const uint64_t wanted = soak.generate(session);
  Watch watch("generations", rounds, soak.device);
  for (int64_t i = 0; i < rounds; ++i) watch.round(soak.generate(session), wanted);
  return watch.passed();
}

// Each session records its passes anew, generates once and goes.
bool many_sessions(const Soak& soak, int64_t rounds) {
  uint64_t wanted = 0;
  {
    Session session = must(Session::create(soak.model));
    wanted = soak.generate(session);
  }
  Watch watch("sessions", rounds, soak.device);
  for (int64_t i = 0; i < rounds; ++i) {
    Session session = must(Session::create(soak.model));
    watch.round(soak.generate(session), wanted);
  }
  return watch.passed();
}

// Threads with sessions of their own, each made anew every hundred generations.
bool many_threads(const Soak& soak, int64_t rounds, int threads) {
  uint64_t wanted = 0;
  {
    Session session = must(Session::create(soak.model));
    wanted = soak.generate(session);
  }
  std::atomic<int64_t> done{0}, differing{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      while (done < rounds) {
        Session session = must(Session::create(soak.model));
        for (int i = 0; i < 100 && done++ < rounds; ++i) {
          differing += soak.generate(session) != wanted;
        }
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::printf("%d threads: %lld generations, %lld differ\n", threads,
              static_cast<long long>(rounds), static_cast<long long>(differing.load()));
  return differing == 0;
}

int64_t number(const char* text) {
  return std::max<int64_t>(0, std::strtoll(text, nullptr, 10));
}

}  // namespace

int main(int count, char** list) {
  int64_t generations = 1000, sessions = 100;
  int threads = 4;
  for (int i = 2; i + 1 < count; i += 2) {
    if (std::strcmp(list[i], "--generations") == 0) generations = number(list[i + 1]);
    if (std::strcmp(list[i], "--sessions") == 0) sessions = number(list[i + 1]);
    if (std::strcmp(list[i], "--threads") == 0) threads = static_cast<int>(number(list[i + 1]));
  }
  if (count < 2 || count % 2 != 0) {
    std::fprintf(
        stderr,
        "usage: vkformer_soak GOLDEN_CASE [--generations N] [--sessions N] [--threads N]\n");
    return 2;
  }
  const std::string golden = list[1];
  const Device device = must(Device::create(test_device_options()));
  Soak soak{device, must(Model::load(device, golden + "/model")),
            must(read_tensor_file(golden + "/inputs.safetensors"))};
  std::erase_if(soak.prompts, [](const auto& item) { return item.first.starts_with("generate."); });
  soak.prompts.erase("decoder_input_ids");
  soak.prompts.erase("decoder_attention_mask");
  bool passed = many_generations(soak, generations);
  passed = many_sessions(soak, sessions) && passed;
  passed = many_threads(soak, generations / 10, threads) && passed;
  std::printf("soak: %s\n", passed ? "passed" : "failed");
  return passed ? 0 : 1;
}
