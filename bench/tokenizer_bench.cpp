// Tokenizers over the public API: encoding prose with offsets, decoding, loading.
//
//   vkformer_tokenizer_bench [--benchmark_... flags]
//
// One core. Every encode starts with empty word caches: they live as long as one call. Times are
// of the process, so that others on the machine count less, and of single calls, of which the
// median is reported.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <optional>
#include <string>
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
             const std::string& line) {
  for (const Subject& subject : subjects) {
    add_long("encode/" + subject.name + "/1MB",
             [&](benchmark::State& state) { run_encode(state, subject, prose); });
    add("encode/" + subject.name + "/100B", kShortCalls, [&](benchmark::State& state) {
      run_encode(state, subject, line);
    })->MinTime(0.05);
    add_long("decode/" + subject.name + "/1MB",
             [&](benchmark::State& state) { run_decode(state, subject, prose); });
    add_long("decode_stream/" + subject.name + "/1MB",
             [&](benchmark::State& state) { run_decode_stream(state, subject, prose); });
    add("parse/" + subject.name, kShortCalls, [&](benchmark::State& state) {
      run_parse(state, subject);
    })->Iterations(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::vector<std::string> words = bench::make_words(kWords);
  const std::string prose = bench::make_prose(words, kProseBytes);
  std::vector<Subject> subjects;
  for (const auto& [name, file] :
       {std::pair<const char*, std::string>("word_piece",
                                            bench::word_piece_file(words, kVocabSize)),
        {"byte_level_bpe", bench::byte_level_bpe_file(words, kVocabSize)},
        {"sentence_piece_bpe", bench::sentence_piece_bpe_file(words, kVocabSize)},
        {"unigram", bench::unigram_file(words, kVocabSize)}}) {
    Result<Tokenizer> tokenizer = Tokenizer::parse(file, name);
    if (!tokenizer) {
      std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
      return 3;
    }
    subjects.push_back({name, file, std::move(*tokenizer)});
  }
  const std::string line = prose.substr(0, kLineBytes);
  add_all(subjects, prose, line);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
