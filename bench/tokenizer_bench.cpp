// Tokenizers over the public API: encoding prose with offsets, decoding, loading.
//
//   vkformer_tokenizer_bench [TEXT TOKENIZER...] [--benchmark_... flags]
//
// TEXT is a file, TOKENIZER a tokenizer.json or its folder, which names it. Without them prose and
// vocabularies are made up (pseudo_prose.h), 1 MB of text and 30,000 tokens.
//
// One core. Every encode starts with empty word caches: they live as long as one call. Times are
// of the process, so that others on the machine count less, and of single calls, of which the
// median is reported.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "pseudo_prose.h"
#include "vkformer/tokenizer.h"

namespace {

using namespace vkformer;

constexpr size_t kProseBytes = 1'000'000;
constexpr size_t kLineBytes = 100;
constexpr size_t kVocabSize = 30'000;
constexpr size_t kWords = 45'000;  // more than the vocabularies hold

struct Subject {
  std::string name;
  std::string file;
  Tokenizer tokenizer;
};

void skip(benchmark::State& state, const Error& error) {
  state.SkipWithError(error.message.c_str());
}

void run_encode(benchmark::State& state, const Subject& subject, const std::string& text) {
  size_t tokens = 0;
  for (auto iteration : state) {
    const Result<Encoding> encoding = subject.tokenizer.encode(text);
    if (!encoding) return skip(state, encoding.error());
    tokens = encoding->ids.size();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
  state.counters["tokens"] = static_cast<double>(tokens);
}

void run_decode(benchmark::State& state, const Subject& subject, const std::string& text) {
  const Result<Encoding> encoding = subject.tokenizer.encode(text);
  if (!encoding) return skip(state, encoding.error());
  size_t bytes = 0;
  for (auto iteration : state) {
    const Result<std::string> decoded = subject.tokenizer.decode(encoding->ids);
    if (!decoded) return skip(state, decoded.error());
    bytes += decoded->size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void run_decode_stream(benchmark::State& state, const Subject& subject, const std::string& text) {
  const Result<Encoding> encoding = subject.tokenizer.encode(text);
  if (!encoding) return skip(state, encoding.error());
  size_t bytes = 0;
  for (auto iteration : state) {
    DecodeStream stream = subject.tokenizer.decode_stream();
    for (const int32_t id : encoding->ids) {
      const Result<std::string> piece = stream.push(id);
      if (!piece) return skip(state, piece.error());
      bytes += piece->size();
    }
    const Result<std::string> rest = stream.finish();
    if (!rest) return skip(state, rest.error());
    bytes += rest->size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void run_parse(benchmark::State& state, const Subject& subject) {
  for (auto iteration : state) {
    const Result<Tokenizer> tokenizer = Tokenizer::parse(subject.file);
    if (!tokenizer) return skip(state, tokenizer.error());
  }
}

// Calls of a text of 1 MB, and of a short one.
constexpr int kLongCalls = 31;
constexpr int kShortCalls = 9;

template <class Function>
benchmark::internal::Benchmark* add(const std::string& name, int repetitions, Function function) {
  return benchmark::RegisterBenchmark(name.c_str(), function)
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMillisecond)
      ->Repetitions(repetitions)
      ->ReportAggregatesOnly();
}

template <class Function>
void add_long(const std::string& name, Function function) {
  add(name, kLongCalls, function)->Iterations(1);
}

void add_all(const std::vector<Subject>& subjects, const std::string& prose,
             const std::string& line, const std::string& size) {
  for (const Subject& subject : subjects) {
    add_long("encode/" + subject.name + "/" + size,
             [&](benchmark::State& state) { run_encode(state, subject, prose); });
    add("encode/" + subject.name + "/line", kShortCalls, [&](benchmark::State& state) {
      run_encode(state, subject, line);
    })->MinTime(0.05);
    add_long("decode/" + subject.name + "/" + size,
             [&](benchmark::State& state) { run_decode(state, subject, prose); });
    add_long("decode_stream/" + subject.name + "/" + size,
             [&](benchmark::State& state) { run_decode_stream(state, subject, prose); });
    add("parse/" + subject.name, kShortCalls, [&](benchmark::State& state) {
      run_parse(state, subject);
    })->Iterations(1);
  }
}

// What a file holds; ends the program where it cannot be read.
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (file.good()) return content;
  std::fprintf(stderr, "[%s] cannot be read.\n", path.c_str());
  std::exit(3);
}

// Name and content of the tokenizer files that were given, or of made-up ones.
std::vector<std::pair<std::string, std::string>> tokenizer_files(
    const std::vector<std::string>& paths, const std::vector<std::string>& words) {
  if (paths.empty()) {
    return {{"word_piece", bench::word_piece_file(words, kVocabSize)},
            {"byte_level_bpe", bench::byte_level_bpe_file(words, kVocabSize)},
            {"sentence_piece_bpe", bench::sentence_piece_bpe_file(words, kVocabSize)},
            {"unigram", bench::unigram_file(words, kVocabSize)}};
  }
  std::vector<std::pair<std::string, std::string>> files;
  for (std::filesystem::path path : paths) {
    if (std::filesystem::is_directory(path)) path /= "tokenizer.json";
    files.emplace_back(path.parent_path().filename().string(), read_file(path.string()));
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<std::string> given(argv + 1, argv + argc);
  if (given.size() == 1 || (!given.empty() && given[0].starts_with("-"))) {
    std::fprintf(stderr, "usage: %s [TEXT TOKENIZER...] [--benchmark_... flags]\n", argv[0]);
    return 2;
  }
  const bool is_made_up = given.empty();
  const std::vector<std::string> words = bench::make_words(kWords);
  const std::string text = is_made_up ? bench::make_prose(words, kProseBytes) : read_file(given[0]);
  if (!is_made_up) given.erase(given.begin());
  std::vector<Subject> subjects;
  for (auto& [name, file] : tokenizer_files(given, words)) {
    Result<Tokenizer> tokenizer = Tokenizer::parse(file, name);
    if (!tokenizer) {
      std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
      return 3;
    }
    subjects.push_back({name, std::move(file), std::move(*tokenizer)});
  }
  const std::string line = text.substr(0, is_made_up ? kLineBytes : text.find('\n'));
  add_all(subjects, text, line, is_made_up ? "1MB" : "text");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
