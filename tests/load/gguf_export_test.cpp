// Models written to GGUF files: they read back as what they were, and what the format cannot say is
// refused.
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "checkpoint/all_weights.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/ggml_encode.h"
#include "checkpoint/ggml_store.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/json_config.h"
#include "checkpoint/temp_dir.h"
#include "gguf/gguf_store.h"
#include "support/golden.h"
#include "support/test_device.h"
#include "vkformer/quantize.h"
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
    for (const char* name : {"gguf-llama",
                             "gguf-llama-biased",
                             "gguf-mixtral",
                             "gguf-qwen2",
                             "gguf-qwen3",
                             "gguf-qwen3moe",
                             "gguf-gemma2",
                             "gguf-gemma3",
                             "gguf-phi3",
                             "gguf-gpt-oss",
                             "gguf-bert",
                             "gguf-nomic-bert",
                             "gguf-t5",
                             "gguf-mixed-types",
                             "gguf-gemma-embedding",
                             "gguf-smollm3",
                             "gguf-granite",
                             "gguf-olmo2",
                             "gguf-olmoe",
                             "gguf-starcoder2",
                             "gguf-cohere",
                             "gguf-stablelm",
                             "gguf-stablelm-parallel",
                             "gguf-gptneox",
                             "gguf-bloom",
                             "gguf-lfm2",
                             "gguf-mamba2",
                             "gguf-falcon-h1"}) {
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
      const auto made = quantize_model(model_file(name), folder, {.weights = WeightFormat::kBF16});
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
      REQUIRE(quantize_model(model_file(model), folder, {.weights = WeightFormat::kBF16}).ok());
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
    CHECK(test::contains(error_of("[1"), "not JSON"));
  }

  TEST_CASE("gguf export: a block is written as it is read") {
    std::mt19937 random(5);
    const auto whole = [&](int32_t least, int32_t most) {
      return least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
    };
    struct Ranges {
      GgmlType type;
      int32_t least_value, most_value;
      int32_t least_part = 1, most_part = 1;
      int32_t most_minimum_part = 0;
    };
    const Ranges all[] = {
        {GgmlType::kQ8_0, -127, 127},       {GgmlType::kQ4_0, 0, 15},
        {GgmlType::kQ4_1, 0, 15},           {GgmlType::kQ5_0, 0, 31},
        {GgmlType::kQ5_1, 0, 31},           {GgmlType::kIq4Nl, 0, 15},
        {GgmlType::kMxfp4, 0, 15},          {GgmlType::kQ2K, 0, 3, 0, 15, 15},
        {GgmlType::kQ3K, 0, 7, -32, 31},    {GgmlType::kQ4K, 0, 15, 0, 63, 63},
        {GgmlType::kQ5K, 0, 31, 0, 63, 63}, {GgmlType::kQ6K, 0, 63, -128, 127},
        {GgmlType::kIq4Xs, 0, 15, -32, 31},
    };
    for (const Ranges& of : all) {
      CAPTURE(ggml_type_facts(static_cast<uint32_t>(of.type))->name);
      const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(of.type));
      const MatrixFormat format = ggml_format(of.type);
      const bool halves = of.type == GgmlType::kQ2K || of.type == GgmlType::kQ3K ||
                          of.type == GgmlType::kQ6K;  // of a block have their own parts
      for (int repeat = 0; repeat < 20; ++repeat) {
        const float scale = of.type == GgmlType::kMxfp4 ? std::ldexp(1.0f, whole(-20, 20))
                                                        : static_cast<float>(whole(1, 500)) / 1024;
        const float minimum = static_cast<float>(whole(1, 500)) / 1024;
        std::vector<WeightBlock> blocks(facts.weights / kBlockSteps);
        for (WeightBlock& block : blocks) {
          block.scale = scale;
          if (block_traits(format).minima || super_minima(format))
            block.minimum = minimum;
          else if (!has_supers(format)) {
            block.minimum = -static_cast<float>(block_traits(format).offset) * scale;
          }
          for (int32_t& value : block.values) value = whole(of.least_value, of.most_value);
          block.parts.fill(whole(of.least_part, of.most_part));
          block.minimum_parts.fill(whole(0, of.most_minimum_part));
          if (!halves) continue;
          block.parts[1] = whole(of.least_part, of.most_part);
          block.minimum_parts[1] = whole(0, of.most_minimum_part);
        }
        std::vector<std::byte> bytes(facts.bytes, std::byte{0xa5});
        store_ggml_block(of.type, blocks, bytes);
        for (size_t b = 0; b < blocks.size(); ++b) {
          const WeightBlock read = ggml_block(of.type, bytes, b * kBlockSteps);
          CHECK(read.values == blocks[b].values);
          CHECK(read.parts == blocks[b].parts);
          CHECK(read.minimum_parts == blocks[b].minimum_parts);
          CHECK(read.scale == blocks[b].scale);
          CHECK(std::abs(read.minimum) == std::abs(blocks[b].minimum));
        }
      }
    }
  }

  TEST_CASE("gguf export: matrices have the type, or what llama.cpp takes for short rows") {
    struct Case {
      WeightFormat weights;
      GgmlType type, of_short_rows;
      double error;  // root mean square, of that of the weights
    };
    const Case cases[] = {
        {WeightFormat::kQ8_0, GgmlType::kQ8_0, GgmlType::kQ8_0, 0.01},
        {WeightFormat::kQ6K, GgmlType::kQ6K, GgmlType::kQ8_0, 0.03},
        {WeightFormat::kQ5K, GgmlType::kQ5K, GgmlType::kQ5_1, 0.05},
        {WeightFormat::kQ5_1, GgmlType::kQ5_1, GgmlType::kQ5_1, 0.05},
        {WeightFormat::kQ5_0, GgmlType::kQ5_0, GgmlType::kQ5_0, 0.05},
        {WeightFormat::kQ4K, GgmlType::kQ4K, GgmlType::kQ5_0, 0.09},
        {WeightFormat::kQ4_1, GgmlType::kQ4_1, GgmlType::kQ4_1, 0.09},
        {WeightFormat::kQ4_0, GgmlType::kQ4_0, GgmlType::kQ4_0, 0.11},
        {WeightFormat::kQ3K, GgmlType::kQ3K, GgmlType::kIq4Nl, 0.2},
        {WeightFormat::kQ2K, GgmlType::kQ2K, GgmlType::kIq4Nl, 0.35},
        {WeightFormat::kIq4Nl, GgmlType::kIq4Nl, GgmlType::kIq4Nl, 0.09},
        {WeightFormat::kIq4Xs, GgmlType::kIq4Xs, GgmlType::kIq4Nl, 0.1},
        {WeightFormat::kMxfp4, GgmlType::kMxfp4, GgmlType::kMxfp4, 0.15},
    };
    const TempDir dir;
    for (const char* name : {"gguf-mixed-types", "gguf-llama"}) {
      CAPTURE(name);
      const auto before = weights_of(model_file(name));
      for (const Case& of : cases) {
        const std::string file = written(model_file(name), dir.file("x.gguf"), of.weights);
        CAPTURE(choice_name(of.weights));
        auto mapped = MappedFile::open(file);
        REQUIRE_MESSAGE(mapped.ok(), mapped.error().message);
        const auto parsed = GgufFile::parse(std::move(*mapped));
        REQUIRE_MESSAGE(parsed.ok(), parsed.error().message);
        int matrices = 0;
        for (const auto& [tensor, view] : parsed->tensors()) {
          if (view.type == GgmlType::kF32) continue;
          CAPTURE(tensor);
          ++matrices;
          CHECK(view.type == (view.shape.back() % 256 == 0 ? of.type : of.of_short_rows));
        }
        CHECK(matrices > 0);
        for (const auto& [tensor, values] : weights_of(file)) {
          const std::vector<float>& exact = before.at(tensor);
          REQUIRE(values.size() == exact.size());
          double squares = 0, errors = 0;
          for (size_t i = 0; i < values.size(); ++i) {
            squares += double{exact[i]} * exact[i];
            errors += (double{values[i]} - exact[i]) * (double{values[i]} - exact[i]);
          }
          CAPTURE(tensor);
          CHECK(std::sqrt(errors) <= of.error * std::sqrt(squares));
        }
      }
    }
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
