// Fuzz target: the files of acceptance cases, as `vkformer case` reads them. The first byte says
// which. 'o' is op.json, a NUL and inputs.safetensors. 't' is inputs.json of a tokenizer case. 'm'
// is the generation settings of case.json. Nothing needs a device: operators are planned.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "case_command.h"
#include "checkpoint/safetensors.h"
#include "files.h"
#include "operators/operator_runner.h"
#include "ops/op.h"

namespace {

using namespace vkformer;

// The first gives bytes to texts, the second has special tokens and pairs.
const Tokenizer& tokenizer_of(size_t index) {
  static const Tokenizer kTokenizers[] = {
      *Tokenizer::load(VKFORMER_SOURCE_DIR "/tests/golden/tok-bpe-gpt2/model"),
      *Tokenizer::load(VKFORMER_SOURCE_DIR "/tests/golden/tok-wordpiece-uncased/model")};
  return kTokenizers[index % std::size(kTokenizers)];
}

void plan_operator(std::string_view json, std::span<const std::byte> tensors) {
  const cli::Json description = cli::parse_json(json);
  if (!description.is_object()) return;
  auto call = cli::operator_of_case(description);
  const auto file = SafetensorsFile::from_bytes({tensors.begin(), tensors.end()}, "fuzz");
  if (!call.ok() || !file.ok()) return;
  for (const auto& [name, view] : file->tensors()) {
    call->inputs.emplace(name,
                         Tensor{view.dtype, view.shape, {view.bytes.begin(), view.bytes.end()}});
  }
  const auto prepared = prepare_operator_call(*call, {});
  if (prepared.ok()) (void)make_plan(prepared->graph, DeviceCaps{}, Precision::kF32);
}

void tokenize(std::string_view text) {
  const cli::Json inputs = cli::parse_json(text);
  if (!inputs.is_object()) return;
  const auto answer = cli::answer_texts(tokenizer_of(text.size()), inputs);
  if (answer.ok() && cli::json_text(*answer).empty()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'o') {
    const size_t cut = input.find('\0');
    if (cut == input.npos) return 0;
    plan_operator(input.substr(0, cut), std::as_bytes(std::span(data, size)).subspan(cut + 2));
  } else if (data[0] == 't') {
    tokenize(input);
  } else if (data[0] == 'm') {
    const cli::Json settings = cli::parse_json(input);
    if (settings.is_object()) (void)cli::generation_of_case(settings);
  }
  return 0;
}
