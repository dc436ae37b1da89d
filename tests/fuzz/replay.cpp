// The fuzz targets without libFuzzer, for compilers that have none and for short runs. They run
// every file of the corpora, then changed copies of them for some seconds a target. The changes are
// the same in every run.
//
//   vkformer_fuzz_replay CORPORA [SECONDS] [TARGET]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#define VKF_TARGET(name) extern "C" int fuzz_##name(const uint8_t* data, size_t size);
#include "targets.def"
#undef VKF_TARGET

namespace {

using Input = std::vector<uint8_t>;

struct Target {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

#define VKF_TARGET(name) {#name, fuzz_##name},
constexpr Target kTargets[] = {
#include "targets.def"
};
#undef VKF_TARGET

std::vector<Input> read_corpus(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  std::vector<Input> corpus;
  for (const std::string& name : names) {
    std::ifstream file(name, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

// A few bytes changed, a part taken out, doubled, or put in from another input.
void change(Input& input, const std::vector<Input>& corpus, std::mt19937& random) {
  const auto below = [&](size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const size_t at = below(input.size());
  const size_t length = below(std::min<size_t>(input.size() - at, 32) + 1);
  const auto begin = input.begin() + static_cast<ptrdiff_t>(at);
  const auto end = begin + static_cast<ptrdiff_t>(length);
  const Input part(begin, end);
  switch (random() % 5) {
    case 0:
      if (!input.empty()) input[at] = static_cast<uint8_t>(random());
      break;
    case 1:
      if (!input.empty()) input[at] ^= static_cast<uint8_t>(1u << random() % 8);
      break;
    case 2:
      input.erase(begin, end);
      break;
    case 3:
      input.insert(begin, part.begin(), part.end());
      break;
    default: {
      const Input& other = corpus[below(corpus.size())];
      const size_t from = below(other.size());
      const size_t count = std::min<size_t>(other.size() - from, 1 + below(64));
      input.insert(begin, other.begin() + static_cast<ptrdiff_t>(from),
                   other.begin() + static_cast<ptrdiff_t>(from + count));
    }
  }
}

// Returns how many inputs were tried.
uint64_t replay(const Target& target, const std::vector<Input>& corpus, double seconds) {
  for (const Input& input : corpus) target.run(input.data(), input.size());
  uint64_t tried = corpus.size();
  std::mt19937 random(1);
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
         seconds) {
    Input input = corpus[random() % corpus.size()];
    for (size_t changes = 1 + random() % 4; changes > 0; --changes) change(input, corpus, random);
    if (input.size() > 65536) input.resize(65536);
    target.run(input.data(), input.size());
    ++tried;
  }
  return tried;
}

}  // namespace

int main(int count, char** list) {
  if (count < 2) {
    std::fprintf(stderr, "usage: vkformer_fuzz_replay CORPORA [SECONDS] [TARGET]\n");
    return 2;
  }
  const double seconds = count > 2 ? std::strtod(list[2], nullptr) : 1.0;
  for (const Target& target : kTargets) {
    if (count > 3 && std::string(list[3]) != target.name) continue;
    const std::vector<Input> corpus = read_corpus(std::string(list[1]) + "/" + target.name);
    if (corpus.empty()) {
      std::fprintf(stderr, "fuzz: [%s/%s] has no files\n", list[1], target.name);
      return 1;
    }
    const uint64_t tried = replay(target, corpus, seconds);
    std::printf("fuzz: %-15s %zu files, %llu inputs\n", target.name, corpus.size(),
                static_cast<unsigned long long>(tried));
    std::fflush(stdout);
  }
  return 0;
}
