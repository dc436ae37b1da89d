#include "gguf/gguf_tensors.h"

#include <cmath>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_samples.h"
#include "checkpoint/temp_dir.h"
#include "gguf/gguf_store.h"
#include "vkformer/model.h"
#include "weights/read_floats.h"

using namespace vkformer;
using namespace vkformer::test;

namespace {

GgufNaming naming_of(int64_t heads, int64_t kv_heads) {
  return {.names = {}, .architecture = "test", .heads = heads, .kv_heads = kv_heads};
}

std::vector<size_t> model_rows(GgufUse use, int64_t heads, int64_t kv_heads, int64_t rows) {
  const auto order = GgufRows::make(naming_of(heads, kv_heads), use, rows);
  REQUIRE_MESSAGE(order.ok(), order.error().message);
  std::vector<size_t> all;
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) all.push_back(order->of_model(row));
  return all;
}

// Metadata of a state-space model of two heads of 4.
GgufSample tiny_mamba2() {
  GgufSample sample;
  sample.put_text("general.architecture", "mamba2");
  sample.put_number("mamba2.embedding_length", 4).put_number("mamba2.block_count", 1);
  sample.put_number("mamba2.ssm.inner_size", 8).put_number("mamba2.ssm.time_step_rank", 2);
  sample.put_number("mamba2.ssm.state_size", 3).put_number("mamba2.ssm.conv_kernel", 2);
  sample.put_float("mamba2.attention.layer_norm_rms_epsilon", 1e-5f);
  return sample.put_floats("token_embd.weight", {4, 4});
}

std::string inspect_error(GgufSample& sample) {
  const TempDir dir;
  const auto info = inspect_model(dir.write("sample.gguf", sample.text()));
  REQUIRE_FALSE(info.ok());
  CHECK(contains(info.error().message, "sample.gguf"));
  return info.error().message;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("gguf tensors: rows of a fused projection go to their heads of keys") {
    // Rows of heads of 2: queries 0 to 3, keys 4 and 5, values 6 and 7. Each head of keys has two
    // of queries.
    const std::vector<size_t> grouped = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
    CHECK(model_rows(GgufUse::kFused, 4, 2, 16) == grouped);
    CHECK(model_rows(GgufUse::kFused, 2, 2, 6) == std::vector<size_t>{0, 3, 1, 4, 2, 5});
    CHECK(model_rows(GgufUse::kFused, 1, 1, 3) == std::vector<size_t>{0, 1, 2});
    CHECK(model_rows(GgufUse::kKeys, 9, 2, 8) == std::vector<size_t>{0, 2, 1, 3, 4, 6, 5, 7});
    CHECK(model_rows(GgufUse::kPlain, 0, 0, 3) == std::vector<size_t>{0, 1, 2});
  }

  TEST_CASE("gguf tensors: rows that are not whole heads are refused") {
    for (const auto& [heads, kv_heads, rows] :
         {std::tuple{4, 2, 15}, {4, 3, 20}, {4, 0, 16}, {0, 0, 16}, {2, 4, 20}}) {
      CAPTURE(rows);
      const auto order = GgufRows::make(naming_of(heads, kv_heads), GgufUse::kFused, rows);
      REQUIRE_FALSE(order.ok());
      CHECK(contains(order.error().message, std::to_string(rows) + " rows"));
    }
    CHECK_FALSE(GgufRows::make(naming_of(3, 1), GgufUse::kQueries, 9).ok());
    CHECK_FALSE(GgufRows::make(naming_of(3, 0), GgufUse::kKeys, 6).ok());
  }

  TEST_CASE("gguf tensors: rates, taps and flat tensors get a model's values and shapes") {
    const TempDir dir;
    GgufSample sample = tiny_mamba2();
    sample.put_tensor("blk.0.ssm_a", {1, 2}, 0, raw_bytes(-1.0f) + raw_bytes(-2.5f));
    sample.put_tensor("blk.0.ssm_d", {1, 2}, 0, raw_bytes(3.0f) + raw_bytes(4.0f));
    sample.put_floats("blk.0.ssm_conv1d.weight", {2, 14});
    sample.put_floats("blk.0.ssm_norm.weight", {4, 2});
    const auto store = make_model_store(dir.write("mamba.gguf", sample.text()));
    const auto checkpoint = Checkpoint::open_store(*store);
    REQUIRE_MESSAGE(checkpoint.ok(), checkpoint.error().message);
    const std::string layer = "backbone.layers.0.mixer.";
    const auto rates = read_floats(*checkpoint, layer + "A_log", {2});
    REQUIRE_MESSAGE(rates.ok(), rates.error().message);
    CHECK(*rates == std::vector<float>{0.0f, static_cast<float>(std::log(2.5))});
    CHECK(read_floats(*checkpoint, layer + "D", {2}).value() == std::vector<float>{3, 4});
    CHECK(read_floats(*checkpoint, layer + "conv1d.weight", {14, 1, 2}).ok());
    CHECK(read_floats(*checkpoint, layer + "norm.weight", {8}).ok());
  }

  TEST_CASE("gguf tensors: states that cannot be are named") {
    for (const float rate : {0.0f, 2.0f, std::nanf("")}) {
      GgufSample grows = tiny_mamba2();
      grows.put_tensor("blk.0.ssm_a", {1, 2}, 0, raw_bytes(-1.0f) + raw_bytes(rate));
      const std::string text = inspect_error(grows);
      CHECK(contains(text, "[blk.0.ssm_a]"));
      CHECK(contains(text, "below 0"));
    }
    GgufSample heads = tiny_mamba2();
    heads.keys.clear();
    heads.key_count = 0;
    heads.put_text("general.architecture", "mamba2");
    heads.put_number("mamba2.embedding_length", 4).put_number("mamba2.block_count", 1);
    heads.put_number("mamba2.ssm.inner_size", 8).put_number("mamba2.ssm.time_step_rank", 3);
    heads.put_float("mamba2.attention.layer_norm_rms_epsilon", 1e-5f);
    CHECK(contains(inspect_error(heads), "[mamba2.ssm.time_step_rank]"));
    GgufSample layers;
    layers.put_text("general.architecture", "lfm2");
    layers.put_number("lfm2.block_count", 3).put_number("lfm2.embedding_length", 8);
    layers.put_number("lfm2.attention.head_count", 2).put_number("lfm2.feed_forward_length", 1);
    layers.put_number("lfm2.context_length", 4).put_number("lfm2.shortconv.l_cache", 3);
    layers.put_float("lfm2.attention.layer_norm_rms_epsilon", 1e-5f);
    layers.put_floats("token_embd.weight", {8, 4});
    for (const std::vector<int32_t>& counts : {std::vector<int32_t>{0, 2}, {0, 0, 0}, {0, 1, 2}}) {
      GgufSample one = layers;
      one.put_list("lfm2.attention.head_count_kv", GgufKind::kI32, counts);
      CHECK(contains(inspect_error(one), "[lfm2.attention.head_count_kv]"));
    }
  }

  TEST_CASE("gguf tensors: OLMo 3's windows are refused by their key") {
    GgufSample windows;
    windows.put_text("general.architecture", "olmo2");
    windows.put_number("olmo2.attention.sliding_window", 4096);
    CHECK(contains(inspect_error(windows), "[olmo2.attention.sliding_window]"));
  }
}
