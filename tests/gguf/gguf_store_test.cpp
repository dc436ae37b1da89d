#include "gguf/gguf_store.h"

#include "base/half.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/json_config.h"
#include "checkpoint/temp_dir.h"
#include "vkformer/model.h"
#include "vkformer/tokenizer.h"
#include "weights/read_floats.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

std::string inspect_error(const std::string& text) {
  const TempDir dir;
  const auto info = inspect_model(dir.write("sample.gguf", text));
  REQUIRE_FALSE(info.ok());
  CHECK(contains(info.error().message, "sample.gguf"));
  return info.error().message;
}

std::string tokenizer_error(GgufSample& sample) {
  const TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("sample.gguf", sample.text()));
  REQUIRE_FALSE(tokenizer.ok());
  CHECK(contains(tokenizer.error().message, "sample.gguf"));
  return tokenizer.error().message;
}

GgufSample vocabulary(const std::string& model) {
  GgufSample sample;
  sample.put_text("tokenizer.ggml.model", model);
  sample.put_texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  return sample;
}

// A part of a model, with the keys that say which.
GgufSample& put_split(GgufSample& sample, uint16_t number, uint16_t count, int32_t tensors) {
  sample.put("split.no", GgufKind::kU16, raw_bytes(number));
  sample.put("split.count", GgufKind::kU16, raw_bytes(count));
  return sample.put("split.tensors.count", GgufKind::kI32, raw_bytes(tensors));
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gguf store: a file is a model with its configuration and tokenizer") {
    const TempDir dir;
    GgufSample sample = tiny_llama();
    const std::string path = dir.write("tiny.gguf", put_tiny_tokenizer(sample).text());
    const auto info = inspect_model(path);
    REQUIRE_MESSAGE(info.ok(), info.error().message);
    CHECK(info->family == "llama");
    CHECK(info->max_target == 16);
    CHECK(info->target_vocab == 4);
    REQUIRE(info->tensors.size() == 11);
    CHECK(info->tensors[0].file == path);
    const auto tokenizer = Tokenizer::load(path);
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.error().message);
    CHECK(tokenizer->encode("abba").value().ids == std::vector<TokenId>{2, 1, 0});
    const auto store = make_model_store(path);
    const auto generation = JsonConfig::load_from(*store, "generation_config.json");
    REQUIRE(generation.ok());
    CHECK(generation->get_int_list_or("eos_token_id", {}).value() == std::vector<int64_t>{3});
    CHECK_FALSE(store->has("modules.json"));
    CHECK_FALSE(store->open("modules.json").ok());
    // In memory, and as the only file of a directory.
    const std::string text = sample.text();
    const auto memory =
        with_gguf(make_memory_store({{"model.gguf", std::as_bytes(std::span(text))}}, "archive"));
    CHECK(Checkpoint::open_store(*memory).ok());
    dir.write("model.gguf", text);
    CHECK(inspect_model(dir.path()).ok());
    CHECK(Tokenizer::load(dir.path()).ok());
  }

  TEST_CASE("gguf store: rows of queries and keys go from pairs to halves") {
    const TempDir dir;
    GgufSample sample;
    sample.put_text("general.architecture", "llama");
    sample.put_number("llama.block_count", 1).put_number("llama.embedding_length", 8);
    sample.put_number("llama.attention.head_count", 2).put_number("llama.feed_forward_length", 1);
    sample.put_number("llama.context_length", 4);
    sample.put_float("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    sample.put_floats("token_embd.weight", {8, 4});
    std::string rows;
    for (int row = 0; row < 8; ++row) {
      for (int i = 0; i < 8; ++i) rows += raw_bytes(static_cast<float>(row));
    }
    sample.put_tensor("blk.0.attn_q.weight", {8, 8}, 0, rows);
    const auto store = make_model_store(dir.write("q.gguf", sample.text()));
    const auto checkpoint = Checkpoint::open_store(*store);
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    const auto values = read_floats(*checkpoint, "model.layers.0.self_attn.q_proj.weight", {8, 8});
    REQUIRE(values.ok());
    std::vector<float> firsts;
    for (size_t row = 0; row < 8; ++row) firsts.push_back((*values)[8 * row]);
    CHECK(firsts == std::vector<float>{0, 2, 1, 3, 4, 6, 5, 7});
  }

  TEST_CASE("gguf store: parts of a model") {
    const TempDir dir;
    GgufSample whole = tiny_llama();
    // The second part has the last tensor.
    GgufSample first, second;
    first = whole;
    put_split(first, 0, 2, 11);
    GgufSample head;
    head.put_text("general.architecture", "llama");
    put_split(second, 1, 2, 11).put_floats("blk.0.ffn_down.weight", {3, 2});
    GgufSample shortened = tiny_llama();
    // Take the last tensor out of the first part: its description is the last of the header.
    const std::string description = gguf_text("blk.0.ffn_down.weight");
    shortened.tensors = shortened.tensors.substr(0, shortened.tensors.rfind(description));
    --shortened.tensor_count;
    put_split(shortened, 0, 2, 11);
    const std::string path = dir.write("m-00001-of-00002.gguf", shortened.text());
    {
      const auto info = inspect_model(path);
      REQUIRE_FALSE(info.ok());
      CHECK(contains(info.error().message, "Part 2 of 2"));
    }
    dir.write("m-00002-of-00002.gguf", second.text());
    const auto info = inspect_model(path);
    REQUIRE_MESSAGE(info.ok(), info.error().message);
    CHECK(info->tensors.size() == 11);
    const auto part = inspect_model(dir.file("m-00002-of-00002.gguf"));
    REQUIRE_FALSE(part.ok());
    CHECK(contains(part.error().message, "-00001-of-00002.gguf"));
    GgufSample wrong;
    put_split(wrong, 0, 2, 11).put_floats("blk.0.ffn_down.weight", {3, 2});
    dir.write("m-00002-of-00002.gguf", wrong.text());
    CHECK(contains(inspect_model(path).error().message, "is part 1 of 2 by its metadata"));
    GgufSample more;
    put_split(more, 1, 2, 11).put_floats("blk.0.ffn_down.weight", {3, 2}).put_floats("x", {1});
    dir.write("m-00002-of-00002.gguf", more.text());
    CHECK(contains(inspect_model(path).error().message, "hold 12 tensors"));
    dir.write("m-00002-of-00002.gguf", first.text());
    CHECK_FALSE(inspect_model(path).ok());
  }

  TEST_CASE("gguf store: what a model lacks or says wrong is named") {
    GgufSample none;
    CHECK(contains(inspect_error(none.text()), "[general.architecture]"));
    GgufSample unknown;
    unknown.put_text("general.architecture", "abacus");
    const std::string text = inspect_error(unknown.text());
    CHECK(contains(text, "[abacus]"));
    CHECK(contains(text, "nomic-bert"));
    GgufSample bare;
    bare.put_text("general.architecture", "llama");
    CHECK(contains(inspect_error(bare.text()), "[llama.embedding_length]"));
    GgufSample extra = tiny_llama();
    CHECK(contains(inspect_error(extra.put_floats("blk.0.surprise.weight", {2}).text()),
                   "[blk.0.surprise.weight]"));
    GgufSample layer = tiny_llama();
    CHECK(contains(inspect_error(layer.put_floats("blk.7.attn_norm.weight", {2}).text()),
                   "layers.7"));
    GgufSample scaling = tiny_llama();
    CHECK(contains(inspect_error(scaling.put_text("llama.rope.scaling.type", "spiral").text()),
                   "[spiral]"));
    GgufSample partly = tiny_llama();
    CHECK(contains(inspect_error(partly.put_number("llama.rope.dimension_count", 1).text()),
                   "[llama.rope.dimension_count]"));
    GgufSample heads = tiny_llama();
    CHECK(contains(
        inspect_error(
            heads.put_list<int32_t>("llama.attention.head_count_kv", GgufKind::kI32, {1, 2})
                .text()),
        "by layer"));
    GgufSample pooled = tiny_llama();
    CHECK(contains(inspect_error(pooled.put_number("llama.pooling_type", 4).text()),
                   "[llama.pooling_type]"));
  }

  TEST_CASE("gguf tokenizer: what is wrong is named by its key") {
    GgufSample kind = vocabulary("rwkv");
    CHECK(contains(tokenizer_error(kind), "[rwkv]"));
    GgufSample cut = vocabulary("gpt2");
    cut.put_text("tokenizer.ggml.pre", "scissors");
    CHECK(contains(tokenizer_error(cut), "[scissors]"));
    GgufSample merge = vocabulary("gpt2");
    merge.put_texts("tokenizer.ggml.merges", {"ab"});
    CHECK(contains(tokenizer_error(merge), "[tokenizer.ggml.merges]"));
    GgufSample kinds = vocabulary("gpt2");
    kinds.put_list<int32_t>("tokenizer.ggml.token_type", GgufKind::kI32, {1});
    CHECK(contains(tokenizer_error(kinds), "[tokenizer.ggml.token_type]"));
    GgufSample odd = vocabulary("gpt2");
    odd.put_list<int32_t>("tokenizer.ggml.token_type", GgufKind::kI32, {1, 9, 1});
    CHECK(contains(tokenizer_error(odd), "with 9 at 1"));
    GgufSample scores = vocabulary("llama");
    CHECK(contains(tokenizer_error(scores), "[tokenizer.ggml.scores]"));
    GgufSample end = vocabulary("gpt2");
    end.put_number("tokenizer.ggml.eos_token_id", 3);
    end.put("tokenizer.ggml.add_eos_token", GgufKind::kBool, raw_bytes<uint8_t>(1));
    CHECK(contains(tokenizer_error(end), "as 3, but there are 3 tokens"));
    GgufSample bytes;
    bytes.put_text("tokenizer.ggml.model", "gpt2");
    bytes.put_texts("tokenizer.ggml.tokens", {"\xff"});
    CHECK(contains(tokenizer_error(bytes), "not UTF-8"));
    GgufSample none;
    CHECK(contains(tokenizer_error(none), "[tokenizer.ggml.model]"));
  }
}
