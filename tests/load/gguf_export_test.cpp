// Models written to GGUF files: they read back as what they were, and what the format cannot say is
// refused.
#include <cstring>
#include <fstream>

#include "checkpoint/all_weights.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/ggml_encode.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/json_config.h"
#include "checkpoint/temp_dir.h"
#include "gguf/gguf_store.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/quantise.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::testing {
namespace {

using test::TempDir;

std::map<std::string, std::vector<float>> weights_of(const std::string& model) {
  const auto checkpoint = Checkpoint::open_store(*make_model_store(model));
  REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
  return test::all_weights(*checkpoint);
}

std::string file_text(const std::string& model, const std::string& name) {
  const auto file = make_model_store(model)->open(name);
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

std::string model_file(const std::string& name) {
  return golden_folder() + "/" + name + "/model/model.gguf";
}

std::string written(const std::string& model, const std::string& path, WeightFormat weights) {
  const auto report = write_gguf(model, path, {.weights = weights});
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  CHECK(report->bytes_after > 0);
  return path;
}

std::string write_error(const std::string& model, const TempDir& dir) {
  const auto report = write_gguf(model, dir.file("refused.gguf"), {});
  REQUIRE_FALSE(report.ok());
  CHECK_FALSE(std::filesystem::exists(dir.file("refused.gguf")));
  return report.error().message;
}

// A copy of a golden model's directory with another value of a key.
std::string changed_model(const TempDir& dir, const std::string& name, const std::string& key,
                          const Json& value) {
  const std::string to = dir.file(name);
  std::filesystem::copy(golden_folder() + "/" + name + "/model", to);
  Json config = read_json(to + "/config.json");
  config[key] = value;
  std::ofstream(to + "/config.json") << config.dump();
  return to;
}

std::vector<std::byte> encoded(GgmlType type, const std::vector<float>& weights) {
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  std::vector<std::byte> bytes(weights.size() / facts.weights * facts.bytes);
  const Status done = encode_ggml(type, "w", weights, bytes);
  REQUIRE_MESSAGE(done.ok(), done.error().message);
  return bytes;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gguf export: a file of f32 reads back with the weights and settings of its source") {
    const TempDir dir;
    for (const char* name :
         {"gguf-llama", "gguf-llama-biased", "gguf-mixtral", "gguf-qwen2", "gguf-qwen3",
          "gguf-qwen3moe", "gguf-gemma2", "gguf-gemma3", "gguf-phi3", "gguf-gpt-oss", "gguf-bert",
          "gguf-nomic-bert", "gguf-t5", "gguf-mixed-types", "gguf-gemma-embedding"}) {
      CAPTURE(name);
      const std::string source = model_file(name);
      const std::string copy = written(source, dir.file("copy.gguf"), WeightFormat::kF32);
      CHECK(weights_of(copy) == weights_of(source));
      CHECK(file_text(copy, "config.json") == file_text(source, "config.json"));
    }
  }

  TEST_CASE("gguf export: a directory made of a file becomes a file of the same settings") {
    const TempDir dir;
    for (const char* name :
         {"gguf-llama", "gguf-llama-biased", "gguf-qwen2", "gguf-qwen3", "gguf-gemma2",
          "gguf-gemma3", "gguf-phi3", "gguf-bert", "gguf-t5", "gguf-t5-relu"}) {
      CAPTURE(name);
      const std::string folder = dir.file(name);
      const auto made = quantise_model(model_file(name), folder, {.weights = WeightFormat::kBF16});
      REQUIRE_MESSAGE(made.ok(), made.error().message);
      const std::string file = written(folder, folder + ".gguf", WeightFormat::kF32);
      CHECK(Json::parse(file_text(file, "config.json")) == read_json(folder + "/config.json"));
      CHECK(Json::parse(file_text(file, "generation_config.json")) ==
            read_json(folder + "/generation_config.json"));
      const auto before = weights_of(folder), after = weights_of(file);
      REQUIRE(before.size() == after.size());
      for (const auto& [tensor, values] : before) {
        CAPTURE(tensor);
        const auto found = after.find(tensor);
        REQUIRE(found != after.end());
        // Gains of Gemma have 1 added in files, which rounds them once.
        const bool gain = std::string_view(name).find("gemma") != std::string_view::npos &&
                          tensor.find("norm") != std::string::npos;
        const float allowed = gain ? 1.3e-7f : 0.0f;
        for (size_t i = 0; i < values.size(); ++i) {
          REQUIRE(std::abs(found->second[i] - values[i]) <= allowed);
        }
      }
    }
  }

  TEST_CASE("gguf export: tokenizers keep their ids") {
    const TempDir dir;
    const std::vector<std::string> texts = {"Hello, world! 12345", " a  b\n\nc\t\u00e9\u4e2d",
                                            "It's the <s> of [CLS] </s>", ""};
    for (const auto& [name, model] : {std::pair{"tok-bpe-gpt2", "gguf-qwen2"},
                                      {"tok-bpe-qwen2", "gguf-qwen2"},
                                      {"tok-bpe-llama", "gguf-llama"},
                                      {"tok-wordpiece-uncased", "gguf-bert"},
                                      {"tok-wordpiece-cased", "gguf-bert"},
                                      {"tok-unigram-precompiled", "gguf-t5"}}) {
      CAPTURE(name);
      const std::string folder = dir.file(name);
      REQUIRE(quantise_model(model_file(model), folder, {.weights = WeightFormat::kBF16}).ok());
      const std::string own = golden_folder() + "/" + name + "/model/tokenizer.json";
      const auto before = Tokenizer::load(own);
      REQUIRE_MESSAGE(before.ok(), before.error().message);
      // The model gets embeddings of as many tokens.
      Json config = read_json(folder + "/config.json");
      const auto tokens = static_cast<int64_t>(before->vocab_size()) + 3;
      auto tensors = read_tensor_file(folder + "/model.safetensors");
      REQUIRE(tensors.ok());
      for (auto& [tensor, values] : *tensors) {
        if (values.shape.empty() || values.shape[0] != config["vocab_size"]) continue;
        values.shape[0] = tokens;
        values = Tensor::zeros(values.dtype, values.shape);
      }
      REQUIRE(write_safetensors(folder + "/model.safetensors", *tensors).ok());
      config["vocab_size"] = tokens;
      std::ofstream(folder + "/config.json") << config.dump();
      // SentencePiece's has every way to make a piece, as one that a file holds.
      const std::string held = golden_folder() + "/gguf-tokenizers/" + name + ".gguf";
      std::ofstream(folder + "/tokenizer.json")
          << (std::string_view(name) == "tok-bpe-llama" ? file_text(held, "tokenizer.json")
                                                        : read_json(own).dump());
      std::ofstream(folder + "/tokenizer_config.json")
          << R"({"chat_template": "{{ messages[0].content }}"})";
      const std::string file = written(folder, folder + ".gguf", WeightFormat::kQ8_0);
      const auto after = Tokenizer::load(file);
      REQUIRE_MESSAGE(after.ok(), after.error().message);
      for (const std::string& text : texts) {
        CAPTURE(text);
        const auto wanted = before->encode(text), got = after->encode(text);
        REQUIRE(wanted.ok());
        REQUIRE(got.ok());
        CHECK(got->ids == wanted->ids);
      }
      CHECK(test::contains(file_text(file, "tokenizer_config.json"), "messages[0].content"));
      if (std::string_view(model) != "gguf-bert") continue;
      // What llama.cpp needs of encoders beside what vkformer reads.
      const auto parts = open_gguf_parts(file);
      REQUIRE(parts.ok());
      CHECK(*parts->front().get_int_or("tokenizer.ggml.token_type_count", 0) == 2);
      CHECK(*parts->front().get_int_or("tokenizer.ggml.bos_token_id", 0) ==
            *before->token_to_id("[CLS]"));
    }
  }

  TEST_CASE("gguf export: what the format cannot say is refused by name") {
    const TempDir dir;
    const auto error_of = [&](const char* name) {
      return write_error(golden_folder() + "/" + name + "/model", dir);
    };
    CHECK(test::contains(error_of("gpt2-base"), "[gpt2], which is not written"));
    CHECK(test::contains(error_of("mistral-window"), "[sliding_window] as 6"));
    CHECK(test::contains(error_of("llama-partial"), "rotates 8 of the 16 columns"));
    CHECK(test::contains(error_of("llama-longrope"), "longrope"));
    CHECK(test::contains(error_of("bert-mlm"), "[cls.predictions.bias]"));
    CHECK(test::contains(error_of("t5-relu"), "[relative_attention_max_distance] as 20"));
    CHECK(test::contains(error_of("gemma3-scaled"), "query_pre_attn_scalar"));
    CHECK(test::contains(error_of("llama-bare"), "without a language head"));
    CHECK(test::contains(write_error(changed_model(dir, "llama-gqa", "hidden_act", "gelu"), dir),
                         "activation"));
    const TempDir other;
    CHECK(test::contains(write_error(changed_model(other, "llama-gqa", "rope_scaling",
                                                   {{"rope_type", "dynamic"}, {"factor", 2.0}}),
                                     dir),
                         "dynamic"));
    const std::string file =
        written(model_file("gguf-llama"), dir.file("own.gguf"), WeightFormat::kF32);
    const auto same = write_gguf(file, file, {});
    REQUIRE_FALSE(same.ok());
    CHECK(test::contains(same.error().message, "the model itself"));
  }

  TEST_CASE("gguf export: a tokenizer that the format cannot say is refused") {
    const TempDir dir;
    const std::string folder = dir.file("model");
    std::filesystem::copy(golden_folder() + "/llama-gqa/model", folder);
    const auto error_of = [&](const std::string& text) {
      std::ofstream(folder + "/tokenizer.json") << text;
      return write_error(folder, dir);
    };
    CHECK(test::contains(error_of(R"({"model": {"type": "BPE", "vocab": {"a": 999}}})"), "id 999"));
    CHECK(test::contains(error_of(R"({"model": {"type": "BPE", "vocab": {"a": "b"}}})"),
                         "is no tokenizer.json"));
    CHECK(test::contains(error_of(R"({"model": {"type": "WordLevel", "vocab": {"a": 1}}})"),
                         "[WordLevel]"));
    CHECK(test::contains(
        error_of(
            R"({"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true},
                "model": {"type": "BPE", "vocab": {"a": 1}, "merges": []}})"),
        "cuts words"));
    CHECK(test::contains(
        error_of(R"({"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
                     "model": {"type": "BPE", "vocab": {"a": 1, "b": 2, "ab": 3, "aab": 4, "aa": 5},
                               "merges": [["aa", "b"], ["a", "b"]]}})"),
        "merges that do not follow"));
    CHECK(test::contains(error_of("[1"), "no JSON"));
  }

  TEST_CASE("gguf export: blocks are those of ggml's reference, and say what they cannot hold") {
    std::vector<float> weights(32, 0.0f);
    weights[0] = -4.0f;
    weights[1] = 1.25f;
    weights[31] = 2.0f;
    const auto q4 = encoded(GgmlType::kQ4_0, weights);
    // A scale of 0.5; -4 is the value 0, 0 is 8, 1.25 is 10.5 + 0.5, and 2 is 12.
    CHECK(q4[0] == std::byte{0x00});
    CHECK(q4[1] == std::byte{0x38});
    CHECK(q4[2] == std::byte{0x80});
    CHECK(q4[3] == std::byte{0x8b});
    CHECK(q4[17] == std::byte{0xc8});
    for (const GgmlType type : {GgmlType::kQ8_0, GgmlType::kQ4_0, GgmlType::kQ4_1, GgmlType::kF16,
                                GgmlType::kBf16, GgmlType::kF32}) {
      std::vector<float> back(32);
      decode_ggml(type, encoded(type, weights), 0, back);
      for (size_t i = 0; i < 32; ++i) CHECK(std::abs(back[i] - weights[i]) <= 0.27f);
      const auto zeros = encoded(type, std::vector<float>(32, 0.0f));
      decode_ggml(type, zeros, 0, back);
      CHECK(back == std::vector<float>(32, 0.0f));
    }
    for (const float odd : {1e9f, std::numeric_limits<float>::quiet_NaN()}) {
      weights[3] = odd;
      std::vector<std::byte> bytes(34);
      const Status done = encode_ggml(GgmlType::kQ8_0, "w", weights, bytes);
      REQUIRE_FALSE(done.ok());
      CHECK(test::contains(done.error().message, "[w]"));
    }
  }
}

TEST_SUITE("model") {
  TEST_CASE("gguf export: a file of f32 gives the bits of its directory") {
    if (!have_test_device()) return;
    const TempDir dir;
    for (const char* name : {"llama-gqa", "llama-bf16", "qwen2-base", "bert-base", "t5-gated"}) {
      CAPTURE(name);
      const GoldenCase golden = golden_case(name);
      const std::string file =
          written(golden.path("model"), dir.file("m.gguf"), WeightFormat::kF32);
      std::vector<TensorMap> outputs;
      for (const std::string& path : {golden.path("model"), file}) {
        const auto model = Model::load(*test_device(), path);
        REQUIRE_MESSAGE(model.ok(), model.error().message);
        auto session = Session::create(*model);
        REQUIRE(session.ok());
        auto run = session->run(golden.pass_inputs());
        REQUIRE_MESSAGE(run.ok(), run.error().message);
        outputs.push_back(std::move(*run));
      }
      for (const auto& [output, tensor] : outputs[1]) {
        CAPTURE(output);
        CHECK(outputs[0].at(output).bytes == tensor.bytes);
      }
    }
  }
}

}  // namespace vkformer::testing
