// A model whose layers lie on several devices gives what it gives on one. The test device opened
// once for each member is as many devices.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "load/split_plan.h"
#include "session/group_case.h"
#include "vkformer/tasks.h"

namespace vkformer::testing {
namespace {

void check_refused(const Result<Model>& model, const std::string& reason) {
  REQUIRE(!model.ok());
  CHECK(model.error().code == ErrorCode::kUnsupported);
  CHECK_MESSAGE(model.error().message.find(reason) != std::string::npos, model.error().message);
}

// A prompt that two members read in parts of five tokens has the tokens of one device.
void check_parts(const Model& whole, const Model& split, const Rows& rows,
                 const GenerateOptions& options) {
  Session alone = make_session(whole), together = make_session(split);
  const Generation expected = generate(alone, rows, options);
  CHECK(alone.counters().prompt_parts == 0);
  size_t tokens = 0;
  for (const auto& row : rows) tokens += row.size() - 1;
  const auto parts = static_cast<int64_t>((tokens + 4) / 5);
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Generation found = generate(together, rows, options);
    check_equal(found, expected);
    if (have_one_order()) check_same(found, expected);
    CHECK(together.counters().prompt_parts == parts);
    // Both members are at work in all rounds but the first and the last.
    CHECK(together.counters().prompt_rounds == parts + 1);
  }
}

constexpr SplitDemand kEach = {.members = SplitDemand::Members::kAll};

// A model of eight layers, each with a matrix of 100 bytes.
struct EightLayers {
  std::vector<SplitPlace> places;
  std::vector<uint64_t> bytes = std::vector<uint64_t>(8, 100);

  EightLayers() {
    for (uint32_t i = 0; i < 8; ++i) {
      places.push_back({.name = "decoder." + std::to_string(i), .weights = {i}, .work = 100});
    }
  }
};

std::vector<size_t> first_places(const EightLayers& model,
                                 const std::vector<GroupMember>& members) {
  const auto plan = plan_ranges(model.places, model.bytes, members, kEach);
  REQUIRE_MESSAGE(plan.ok(), plan.error().message);
  std::vector<size_t> first;
  for (const PlaceRange& range : plan->ranges) first.push_back(range.begin);
  return first;
}

struct AtMember {
  std::string error;
  Generation generation;
  uint64_t bytes = 0;  // of weights
  GenerationCounters counters = {};
};

AtMember generate_at(const std::shared_ptr<DeviceLink>& link, const DeviceGroupOptions& group,
                     const Rows& rows, const GenerateOptions& options) {
  AtMember own;
  const auto model = load_linked(link, golden_case("llama-gqa").path("model"), group);
  if (!model) return {model.error().message, {}};
  own.bytes = model->weight_bytes();
  auto session = Session::create(*model);
  if (!session) return {session.error().message, {}};
  auto generation = session->generate(rows, options);
  if (!generation) return {generation.error().message, {}};
  own.generation = std::move(*generation);
  own.counters = session->counters();
  return own;
}

// A generation at each of several processes, which has the tokens of one.
std::vector<AtMember> generate_at_members(size_t members, const DeviceGroupOptions& group,
                                          std::chrono::milliseconds delay = {}, Rows rows = {}) {
  const Model& whole = golden_model("llama-gqa");
  Session alone = make_session(whole);
  if (rows.empty()) rows = random_rows(whole, 4, 5);
  const GenerateOptions options = options_for(alone, 2, 7, {});
  const Generation expected = generate(alone, rows, options);
  std::vector<AtMember> found = at_each_member(
      members,
      [&](const std::shared_ptr<DeviceLink>& link) {
        return generate_at(link, group, rows, options);
      },
      delay);
  for (const AtMember& own : found) {
    REQUIRE_MESSAGE(own.error.empty(), own.error);
    check_equal(own.generation, expected);
  }
  return found;
}

}  // namespace

TEST_SUITE("cpu") {
  TEST_CASE("a place is a layer, or what stands before or after layers") {
    CHECK(place_of("decoder.3.self.qkv") == "decoder.3");
    CHECK(place_of("encoder.12") == "encoder.12");
    CHECK(place_of("head") == "head");
    CHECK(place_of("decoder.norm") == "decoder.norm");
    CHECK(place_of("").empty());
  }

  TEST_CASE("places go to members by share, as far as memory allows") {
    const EightLayers model;
    std::vector<GroupMember> members(2);
    members[0] = {.device = nullptr, .name = "a", .share = 3, .memory = 10000};
    members[1] = {.device = nullptr, .name = "b", .share = 1, .memory = 10000};
    CHECK(first_places(model, members) == std::vector<size_t>{0, 6});
    members[0].memory = 340;  // nine tenths of it are three layers
    CHECK(first_places(model, members) == std::vector<size_t>{0, 3});
    members[1].memory = 340;
    auto plan = plan_ranges(model.places, model.bytes, members, kEach);
    REQUIRE(!plan.ok());
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
    CHECK(plan.error().message.find("800 bytes") != std::string::npos);
    members.resize(9, members[0]);
    plan = plan_ranges(model.places, model.bytes, members, kEach);
    REQUIRE(!plan.ok());
    CHECK(plan.error().code == ErrorCode::kUnsupported);
  }

  TEST_CASE("divided layers take what the slowest part and the exchange of sums take") {
    const std::vector<SplitPlace> places = {
        {.name = "embed", .weights = {0}, .dispatches = 1, .visits = 1},
        {.name = "part.0", .weights = {1}, .work = 100, .dispatches = 10, .visits = 4, .handed = 0},
        {.name = "part.1",
         .weights = {2},
         .work = 100,
         .dispatches = 10,
         .visits = 4,
         .handed = 80},
        {.name = "head", .weights = {3}, .work = 200, .dispatches = 1, .visits = 1}};
    const std::vector<uint64_t> bytes = {10, 100, 100, 200};
    std::vector<GroupMember> members(2);
    for (GroupMember& member : members) {
      member = {.device = nullptr,
                .name = "a",
                .together = {.read_rate = 100, .launch = 0.1, .submit = 0.5},
                .memory = 10000};
    }
    auto plan = plan_divided(places, bytes, members);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message);
    CHECK(plan->member_of == std::vector<size_t>{0, 0, 1, 0});
    CHECK(plan->stages[0].weight_bytes == 310);
    CHECK(plan->stages[1].weight_bytes == 100);
    CHECK(plan->stages[1].work == doctest::Approx(0.25));
    // 6 submits, 12 dispatches and 300 bytes at the first.
    CHECK(plan->step == doctest::Approx(3 + 1.2 + 3));
    members[1].memory = 110;
    plan = plan_divided(places, bytes, members);
    REQUIRE(!plan.ok());
    CHECK(plan.error().code == ErrorCode::kOutOfMemory);
  }

  TEST_CASE("the place of a divided layer's nodes is the part's") {
    CHECK(place_of("part.1.decoder.3.self.qkv") == "part.1");
    CHECK(member_of_part("part.12") == 12);
    CHECK(member_of_part("decoder.norm") == 0);
  }

  TEST_CASE("a slow link leaves a member out, a fast one does not") {
    const EightLayers model;  // a step reads 800 bytes
    std::vector<GroupMember> members(2);
    for (GroupMember& member : members) {
      member = {.device = nullptr, .name = "a", .speed = {.read_rate = 100}, .memory = 10000};
    }
    members[0].next = {.latency = 1e-3, .rate = 1e6};
    auto plan = plan_ranges(model.places, model.bytes, members, {.lanes = 2});
    REQUIRE(plan.ok());
    CHECK(plan->ranges[0].end == 4);
    CHECK(plan->ranges[1].end == 8);
    // Each member has 4 s of work, and both texts get a token in about 8 s.
    CHECK(plan->estimate.step == doctest::Approx(8.0).epsilon(0.01));
    CHECK(plan->estimate.tokens == doctest::Approx(0.25).epsilon(0.01));
    CHECK(plan->estimate.bubbles == doctest::Approx(0).epsilon(0.01));
    CHECK(plan->estimate.link_use < 0.01);
    members[0].next.latency = 20;
    plan = plan_ranges(model.places, model.bytes, members, {.lanes = 2});
    REQUIRE(plan.ok());
    CHECK(plan->ranges[1].empty() != plan->ranges[0].empty());
    CHECK(plan->estimate.tokens == doctest::Approx(0.125));
    // Where memory asks for both, both take part, however slow the link is.
    for (GroupMember& member : members) member.memory = 500;
    plan = plan_ranges(model.places, model.bytes, members, {.lanes = 2});
    REQUIRE(plan.ok());
    CHECK(!plan->ranges[0].empty());
    CHECK(!plan->ranges[1].empty());
    CHECK(plan->estimate.link_use > 0.4);
  }
}

TEST_SUITE("model") {
  TEST_CASE("generations of a split model have the tokens of the whole one") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gpt2-base", "bart-base", "t5-gated"}) {
      CAPTURE(name);
      const Model& whole = golden_model(name);
      const Model split = split_model(name, {.shares = {1, 1}});
      REQUIRE(split.group_plan().stages.size() == 2);
      for (const GroupStage& stage : split.group_plan().stages)
        CHECK(stage.weight_bytes < whole.weight_bytes());
      Session alone = make_session(whole), together = make_session(split);
      const Rows rows = random_rows(whole, 5, 7);
      for (const int beams : {1, 3}) {
        CAPTURE(beams);
        const GenerateOptions options =
            options_for(alone, beams, 9, alone.generation_defaults().eos);
        check_equal(generate(together, rows, options), generate(alone, rows, options));
      }
      GenerateOptions drawn = options_for(alone, 1, 9, {});
      drawn.choice = TokenChoice::kSampled;
      drawn.sampling.seed = 11;
      check_equal(generate(together, rows, drawn), generate(alone, rows, drawn));
    }
  }

  TEST_CASE("two members work on parts of a prompt at the same time, and give the same bits") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gpt2-base", "bloom-alibi", "mistral-window"}) {
      CAPTURE(name);
      const Model& whole = golden_model(name);
      const Model split = split_model(name, {.shares = {1, 1}, .prompt_part = 5});
      Session alone = make_session(whole);
      for (const size_t tokens : {size_t{7}, size_t{11}, size_t{23}, size_t{41}}) {
        CAPTURE(tokens);
        const Rows rows = {random_tokens(whole, tokens, 7)};
        check_parts(whole, split, rows, options_for(alone, 1, 9, {}));
        check_parts(whole, split, rows, options_for(alone, 3, 9, {}));
      }
      // Rows of one lane, for a callback is called on one thread.
      GenerateOptions followed = options_for(alone, 1, 9, {});
      followed.on_token = [](const NewToken&) { return TokenVerdict::kGoOn; };
      const Rows rows = {random_tokens(whole, 13, 1), random_tokens(whole, 2, 2),
                         random_tokens(whole, 1, 3), random_tokens(whole, 20, 4)};
      check_parts(whole, split, rows, followed);
    }
  }

  TEST_CASE("parts of a prompt have the bits of a whole one in reproducible precision") {
    if (!have_test_device()) return;
    const ModelOptions options{.precision = Precision::kReproducible};
    const auto whole = Model::load(*test_device(), golden_case("llama-gqa").path("model"), options);
    REQUIRE_MESSAGE(whole.ok(), whole.error().message);
    const Model split = split_model("llama-gqa", {.shares = {1, 2}, .prompt_part = 5}, options);
    Session alone = make_session(*whole), together = make_session(split);
    const Rows rows = {random_tokens(*whole, 23, 9)};
    const GenerateOptions greedy = options_for(alone, 1, 9, {});
    check_same(generate(together, rows, greedy), generate(alone, rows, greedy));
    CHECK(together.counters().prompt_rounds == together.counters().prompt_parts + 1);
  }

  TEST_CASE("prompts that only a whole pass reads are not cut") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "lfm2-base"}) {
      CAPTURE(name);
      const Model& whole = golden_model(name);
      // Of states no step of many tokens leaves what a step of one goes on from.
      const int part = std::string(name) == "llama-gqa" ? 0 : 5;
      const Model split = split_model(name, {.shares = {1, 1}, .prompt_part = part});
      Session alone = make_session(whole), together = make_session(split);
      const Rows rows = {random_tokens(whole, 23, 7)};
      const GenerateOptions options = options_for(alone, 1, 6, {});
      check_equal(generate(together, rows, options), generate(alone, rows, options));
      CHECK(together.counters().prompt_parts == 0);
    }
  }

  TEST_CASE("a token that is none in a part of a prompt is refused, and the group goes on") {
    if (!have_test_device()) return;
    const Model split = split_model("llama-gqa", {.shares = {1, 1}, .prompt_part = 5});
    Session together = make_session(split);
    const GenerateOptions options = options_for(together, 1, 4, {});
    Rows rows = {random_tokens(split, 23, 7)};
    rows[0][11] = split.info().source_vocab;
    const auto refused = together.generate(rows, options);
    REQUIRE(!refused.ok());
    CHECK(refused.error().code == ErrorCode::kInvalidArgument);
    rows[0][11] = 3;
    CHECK(together.generate(rows, options).ok());
  }

  TEST_CASE("processes read a long prompt in parts, as many at once as there are processes") {
    if (!have_test_device()) return;
    const Rows rows = {random_tokens(golden_model("llama-gqa"), 43, 5)};
    for (const size_t members : {size_t{2}, size_t{4}}) {
      CAPTURE(members);
      const DeviceGroupOptions group{.shares = std::vector<double>(members, 1), .prompt_part = 6};
      for (const AtMember& own : generate_at_members(members, group, {}, rows)) {
        CHECK(own.counters.prompt_parts == 7);
        // The stages that write keys: of four members the last one has the head alone.
        const int64_t stages = members == 2 ? 2 : 3;
        CHECK(own.counters.prompt_rounds == 7 + stages - 1);
      }
    }
  }

  TEST_CASE("generations of divided layers have the tokens of whole ones") {
    if (!have_test_device()) return;
    for (const char* name : {"llama-gqa", "gpt2-base"}) {
      CAPTURE(name);
      const Model& whole = golden_model(name);
      const auto divided = divided_model(name, 2);
      REQUIRE_MESSAGE(divided.ok(), divided.error().message);
      for (const GroupStage& stage : divided->group_plan().stages)
        CHECK(stage.weight_bytes < whole.weight_bytes());
      Session alone = make_session(whole), together = make_session(*divided);
      const Rows rows = random_rows(whole, 5, 7);
      for (const int beams : {1, 3}) {
        CAPTURE(beams);
        const GenerateOptions options =
            options_for(alone, beams, 9, alone.generation_defaults().eos);
        check_equal(generate(together, rows, options), generate(alone, rows, options));
      }
    }
  }

  TEST_CASE("a batch with a prefix cache on divided layers has the tokens of whole ones") {
    if (!have_test_device()) return;
    const auto divided = divided_model("llama-gqa", 2);
    REQUIRE_MESSAGE(divided.ok(), divided.error().message);
    SessionOptions kept;
    kept.prefix_reuse = true;
    auto session = Session::create(*divided, kept);
    REQUIRE(session.ok());
    Session alone = make_session(golden_model("llama-gqa"));
    const Rows rows = random_rows(*divided, 2, 3);
    const GenerateOptions options = options_for(alone, 1, 8, {});
    const Generation expected = generate(alone, rows, options);
    check_equal(generate(*session, rows, options), expected);
    check_equal(generate(*session, rows, options), expected);
  }

  TEST_CASE("processes that divide layers have the tokens of the whole model") {
    if (!have_test_device()) return;
    for (const AtMember& own : generate_at_members(2, {.split = GroupSplit::kTensors})) {
      CHECK(own.bytes < golden_model("llama-gqa").weight_bytes());
      CHECK(own.bytes > 0);
    }
  }

  TEST_CASE("the shorter estimate chooses the split, and says what the other takes") {
    if (!have_test_device()) return;
    const auto fastest = divided_model("llama-gqa", 2, {}, GroupSplit::kFastest);
    REQUIRE_MESSAGE(fastest.ok(), fastest.error().message);
    const GroupPlan& plan = fastest->group_plan();
    CHECK(plan.split != GroupSplit::kFastest);
    CHECK(plan.step_seconds > 0);
    CHECK(plan.other_step_seconds >= plan.step_seconds);
    const std::string other = plan.split == GroupSplit::kTensors ? "layers" : "tensors";
    CHECK(group_plan_text(plan).find("estimated for a split by " + other) != std::string::npos);
    Session alone = make_session(golden_model("llama-gqa")), together = make_session(*fastest);
    const Rows rows = random_rows(*fastest, 3, 5);
    const GenerateOptions options = options_for(alone, 1, 8, {});
    check_equal(generate(together, rows, options), generate(alone, rows, options));
  }

  TEST_CASE("layers are split where they cannot be divided, and the plan says why") {
    if (!have_test_device()) return;
    const auto check_layers = [](const Result<Model>& model, const std::string& reason) {
      REQUIRE_MESSAGE(model.ok(), model.error().message);
      const GroupPlan& plan = model->group_plan();
      CHECK(plan.split == GroupSplit::kLayers);
      CHECK(plan.other_step_seconds == 0);
      CHECK(plan.other_refused.find(reason) != std::string::npos);
      CHECK(group_plan_text(plan).find("a split by tensors cannot be: ") != std::string::npos);
    };
    check_layers(divided_model("bloom-alibi", 2, {}, GroupSplit::kFastest), "biases by distance");
    check_layers(divided_model("llama-gqa", 2, {.precision = Precision::kReproducible},
                               GroupSplit::kFastest),
                 "order of sums");
    const Device& device = *test_device();
    const auto shares =
        DeviceGroup::create({device, device}, {.shares = {1, 1}, .split = GroupSplit::kFastest});
    REQUIRE(!shares.ok());
    CHECK(shares.error().message.find("'fastest'") != std::string::npos);
  }

  TEST_CASE("processes choose one split") {
    if (!have_test_device()) return;
    generate_at_members(2, {.split = GroupSplit::kFastest});
  }

  TEST_CASE("what cannot be divided is refused, with a reason") {
    if (!have_test_device()) return;
    check_refused(divided_model("bart-base", 2), "not divided among devices");
    check_refused(divided_model("bloom-alibi", 2), "biases by distance");
    check_refused(divided_model("llama-gqa", 3), "cannot be divided evenly among 3 devices");
    check_refused(divided_model("llama-gqa", 2, {.precision = Precision::kReproducible}),
                  "split by tensors");
    const Device& device = *test_device();
    const auto shares =
        DeviceGroup::create({device, device}, {.shares = {1, 1}, .split = GroupSplit::kTensors});
    REQUIRE(!shares.ok());
    CHECK(shares.error().message.find("evenly") != std::string::npos);
  }

  TEST_CASE("requests of a batch on a split model have the tokens of the whole one") {
    if (!have_test_device()) return;
    const Model split = split_model("llama-gqa", {.shares = {1, 2}});
    SessionOptions kept;
    kept.prefix_reuse = true;
    auto session = Session::create(split, kept);
    REQUIRE(session.ok());
    Session alone = make_session(golden_model("llama-gqa"));
    const Rows rows = random_rows(split, 2, 3);
    const GenerateOptions options = options_for(alone, 1, 8, {});
    check_equal(generate(*session, rows, options), generate(alone, rows, options));
  }

  TEST_CASE("processes with a link have the tokens of the whole model, each its own weights") {
    if (!have_test_device()) return;
    const Model& whole = golden_model("llama-gqa");
    for (const size_t members : {size_t{2}, size_t{3}}) {
      CAPTURE(members);
      uint64_t bytes = 0;
      for (const AtMember& own :
           generate_at_members(members, {.shares = std::vector<double>(members, 1)})) {
        CHECK(own.bytes < whole.weight_bytes());
        CHECK(own.bytes > 0);
        bytes += own.bytes;
      }
      CHECK(bytes >= whole.weight_bytes());
    }
  }

  TEST_CASE("a slow link changes who has which layers, not the tokens") {
    if (!have_test_device()) return;
    size_t with_part = 0;
    for (const AtMember& own : generate_at_members(2, {}, std::chrono::milliseconds(100))) {
      if (own.bytes == 0) continue;
      CHECK(own.bytes == golden_model("llama-gqa").weight_bytes());
      ++with_part;
    }
    CHECK(with_part == 1);
  }

  TEST_CASE("processes that load two models are told so before any weight is read") {
    if (!have_test_device()) return;
    const auto errors = at_each_member(2, [&](const std::shared_ptr<DeviceLink>& link) {
      const char* name = link->own() == 0 ? "llama-gqa" : "gpt2-base";
      const auto model = load_linked(link, golden_case(name).path("model"), {.shares = {1, 1}});
      return model.ok() ? std::string() : model.error().message;
    });
    for (const std::string& error : errors) {
      CHECK_MESSAGE(error.find("has another model than process") != std::string::npos, error);
    }
  }

  TEST_CASE("a task holds its model on the group that it is given") {
    if (!have_test_device()) return;
    const ModelSource source = ModelSource::directory(VKFORMER_SOURCE_DIR "/models/g2p-en");
    const Device& device = *test_device();
    const auto group = DeviceGroup::create({device, device}, {.shares = {1, 1}});
    REQUIRE_MESSAGE(group.ok(), group.error().message);
    TaskOptions options;
    std::string plan;
    options.model.group = *group;
    options.model.planned = [&](const GroupPlan& made) { plan = group_plan_text(made); };
    const std::vector<std::string> words = {"attention", "all", "need"};
    auto together = TextGenerator::load(device, source, options);
    REQUIRE_MESSAGE(together.ok(), together.error().message);
    CHECK(std::count(plan.begin(), plan.end(), '\n') == 2);
    auto alone = TextGenerator::load(device, source);
    REQUIRE(alone.ok());
    const auto found = together->generate(words), expected = alone->generate(words);
    REQUIRE_MESSAGE(found.ok(), found.error().message);
    REQUIRE(expected.ok());
    for (size_t i = 0; i < words.size(); ++i) CHECK((*found)[i][0].text == (*expected)[i][0].text);
  }

  TEST_CASE("what needs a model on one device says so") {
    if (!have_test_device()) return;
    const Model split = split_model("bart-base", {.shares = {1, 1}});
    Session session = make_session(split);
    const TensorMap inputs = {{"input_ids", Tensor::from_ints({1, 2}, {3, 4})}};
    const Status started = session.start(inputs);
    REQUIRE(!started.ok());
    CHECK(started.error().code == ErrorCode::kUnsupported);
    CHECK(!session.warm_up({.new_tokens = 3}).ok());
    const auto batch = GenerationBatch::create(split);
    REQUIRE(!batch.ok());
    CHECK(batch.error().message.find("several devices") != std::string::npos);
  }

  TEST_CASE("groups are refused where they make no sense") {
    if (!have_test_device()) return;
    const Device& device = *test_device();
    CHECK(!DeviceGroup::create({device}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1}}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1, -1}}).ok());
    CHECK(!DeviceGroup::create({device, device}, {.shares = {1, 1}, .lanes = 65}).ok());
    for (const int part : {-1, 4081}) {
      const auto group =
          DeviceGroup::create({device, device}, {.shares = {1, 1}, .prompt_part = part});
      REQUIRE(!group.ok());
      CHECK(group.error().message.find("between 0 and 4080") != std::string::npos);
    }
  }
}

}  // namespace vkformer::testing
