#include "vkformer/fingerprint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "base/fnv.h"
#include "base/guarded.h"
#include "base/handle_access.h"
#include "base/message.h"
#include "base/sha256.h"
#include "conformance/cases.h"
#include "conformance/host_twin.h"
#include "conformance/search_cases.h"
#include "conformance/watching.h"
#include "operators/graph_runner.h"
#include "reproducible/functions.h"
#include "vkformer/generation_batch.h"
#include "vkformer/session.h"

namespace vkformer {

using namespace conformance;

namespace {

using FingerprintDocument = nlohmann::ordered_json;
constexpr const char* kFingerprintFormat = "vkformer fingerprint 2";
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr size_t kMostParts = 64;
constexpr size_t kMostValueBytes = size_t{64} << 20;  // of one fingerprint
constexpr int64_t kMostElements = int64_t{1} << 40;   // of a tensor in a file

// A NaN has no bits that mean anything: IEEE 754 leaves open which one comes out. All count as one.
std::vector<std::byte> with_one_nan(DType dtype, std::span<const std::byte> bytes) {
  std::vector<std::byte> content(bytes.begin(), bytes.end());
  if (dtype != DType::kF32) return content;
  for (size_t at = 0; at < content.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &content[at], 4);
    if ((word & ~kSignBit) > kInfinityBits) word = kNanBits;
    std::memcpy(&content[at], &word, 4);
  }
  return content;
}

// Elements of each part of a tensor.
size_t part_length(size_t elements) {
  return std::max<size_t>(1, (elements + kMostParts - 1) / kMostParts);
}

FingerprintEntry entry_of(std::string name, std::string tensor, Shape shape, DType dtype,
                          std::span<const std::byte> bytes) {
  std::vector<std::byte> content = with_one_nan(dtype, bytes);
  FingerprintEntry entry{std::move(name), std::move(tensor), std::move(shape)};
  entry.digest = fnv1a(content.data(), content.size());
  const size_t size = dtype_size(dtype);
  const size_t length = size * part_length(content.size() / size);
  for (size_t at = 0; at < content.size(); at += length) {
    const uint64_t part = fnv1a(&content[at], std::min(length, content.size() - at));
    entry.parts.push_back(static_cast<uint32_t>(part ^ part >> 32));
  }
  entry.values = std::move(content);
  return entry;
}

// The bits of an element as a number: 3f800000 of 1.0f.
std::string bits_text(std::span<const std::byte> element) {
  uint64_t word = 0;
  std::memcpy(&word, element.data(), std::min(element.size(), sizeof(word)));
  return hex_text(word, static_cast<int>(2 * element.size()));
}

FingerprintDifference difference_of(const FingerprintEntry& a, const FingerprintEntry& b) {
  const int64_t elements = element_count(a.shape);
  const auto [in_a, in_b] =
      std::mismatch(a.values.begin(), a.values.end(), b.values.begin(), b.values.end());
  if (in_a != a.values.end() && in_b != b.values.end() && elements > 0) {
    const size_t size = a.values.size() / static_cast<size_t>(elements);
    const size_t element = static_cast<size_t>(in_a - a.values.begin()) / size;
    const auto bits = [&](const FingerprintEntry& e) {
      return bits_text(std::span(e.values).subspan(size * element, size));
    };
    const auto at = static_cast<int64_t>(element);
    return {a.name, a.tensor, at, at,
            message({"[", a.name, "] ", a.tensor, " ", shape_text(a.shape),
                     " is the first that differs, at element ", at, ": its bits are ", bits(a),
                     " and ", bits(b), "."})};
  }
  size_t part = 0;
  while (part < std::min(a.parts.size(), b.parts.size()) && a.parts[part] == b.parts[part]) ++part;
  const auto run = static_cast<int64_t>(part_length(static_cast<size_t>(elements)));
  FingerprintDifference d{a.name, a.tensor, static_cast<int64_t>(part) * run, 0, {}};
  d.last = std::min(elements, d.first + run) - 1;
  d.message = message({"[", a.name, "] ", a.tensor, " ", shape_text(a.shape),
                       " is the first that differs, from element ", d.first, " to ", d.last, "."});
  return d;
}

bool is_chosen(const FingerprintOptions& options, const std::string& name, bool quick) {
  if (options.filters.empty()) return quick;
  return std::any_of(options.filters.begin(), options.filters.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

class Taking {
 public:
  Taking(const Device& device, const FingerprintOptions& options)
      : device_(device), options_(options) {
    made_.vkformer = VKFORMER_VERSION;
    made_.device = device.info();
  }

  Result<Fingerprint> run() {
    std::vector<Check> checks = all_checks();
    std::erase_if(checks, [&](const Check& c) { return !is_chosen(options_, c.name, c.quick); });
    const int all = static_cast<int>(checks.size() + options_.models.size());
    for (const Check& check : checks) {
      VKF_CHECK(add_check(check));
      tell(check.name, all);
    }
    for (const FingerprintModel& model : options_.models) {
      const Status added = add_model(model);
      if (!added) return added.error().with_context(model.name);
      tell(model.name, all);
    }
    return std::move(made_);
  }

 private:
  void add(FingerprintEntry entry) {
    value_bytes_ += entry.values.size();
    if (value_bytes_ > kMostValueBytes) entry.values = {};
    made_.entries.push_back(std::move(entry));
  }

  void tell(const std::string& name, int all) {
    if (options_.progress) options_.progress(name, ++done_, all);
  }

  Status add_check(const Check& check) {
    auto made = check.make();
    if (!made) return made.error().with_context(check.name);
    if (made->precision != Precision::kF32) return {};  // it has no other
    GraphRunOptions run;
    run.precision = Precision::kReproducible;
    run.live_slots = made->live_slots;
    run.poison = GraphRunOptions::Poison::kOn;
    auto ran = run_graph(HandleAccess::impl(device_), made->op.graph, made->op.inputs, run);
    if (!ran && made->may_be_refused && ran.error().code == ErrorCode::kUnsupported) return {};
    if (!ran) return ran.error().with_context(check.name);
    // What an operator leaves unwritten is not compared.
    VKF_ASSIGN(const TensorMap outputs, finished(made->op, std::move(ran->outputs)));
    for (const auto& [name, expected] : made->expected) {
      const auto found = outputs.find(name);
      if (found == outputs.end()) continue;
      const Tensor& t = found->second;
      add(entry_of(check.name, name, t.shape, t.dtype, t.bytes));
    }
    return compare_with_host(check, *made, outputs);
  }

  static Result<TensorMap> finished(const PreparedOperator& op, TensorMap outputs) {
    if (op.finish == nullptr) return outputs;
    return op.finish(std::move(outputs));
  }

  // What the host gives for a check; nothing where it has no twin.
  static Result<std::optional<TensorMap>> host_outputs(const Check& check, const CheckCase& made,
                                                       const TensorMap& outputs) {
    if (is_exact(check.op)) return exact_outputs(made, outputs);
    auto twin = twin_outputs(made.op.graph, made.op.inputs);
    if (!twin) return std::optional<TensorMap>();
    VKF_ASSIGN(TensorMap host, finished(made.op, std::move(*twin)));
    return std::optional(std::move(host));
  }
  // What the reference expects, as the device's outputs store it.
  static std::optional<TensorMap> exact_outputs(const CheckCase& made, const TensorMap& outputs) {
    TensorMap map;
    for (const auto& [name, expected] : made.expected) {
      const auto found = outputs.find(name);
      if (found == outputs.end()) continue;
      const bool real = found->second.dtype == DType::kF32;
      const Tensor all = real ? floats(expected.values) : integers(expected.values);
      map.emplace(name, real ? all : narrowed(all, found->second.dtype));
    }
    return map;
  }
  // 64-bit integers as another type of the same.
  static Tensor narrowed(const Tensor& wide, DType dtype) {
    Tensor t{dtype, wide.shape, {}};
    const size_t size = dtype_size(dtype);
    t.bytes.resize(wide.bytes.size() / 8 * size);
    for (size_t i = 0; i < wide.bytes.size() / 8; ++i) {
      std::memcpy(&t.bytes[i * size], &wide.bytes[8 * i], std::min<size_t>(size, 8));
    }
    return t;
  }
  // Rows of a step that do not live stay as they were: the reference says NaN of these, or poison.
  static void forget_untouched(const Expected& expected, Tensor& got, Tensor& wanted) {
    const size_t size = dtype_size(got.dtype);
    for (size_t i = 0; i < expected.values.data.size(); ++i) {
      const double value = expected.values.data[i];
      if (!std::isnan(value) && value != kPoison) continue;
      for (Tensor* t : {&got, &wanted}) std::memset(&t->bytes[size * i], 0, size);
    }
  }

  Status compare_with_host(const Check& check, const CheckCase& made, const TensorMap& outputs) {
    VKF_ASSIGN(const std::optional<TensorMap> host, host_outputs(check, made, outputs));
    if (!host) return {};
    for (const auto& [name, expected] : made.expected) {
      const auto a = outputs.find(name), b = host->find(name);
      if (a == outputs.end() || b == host->end()) continue;
      Tensor got = a->second, wanted = b->second;
      if (made.op.graph.is_step()) forget_untouched(expected, got, wanted);
      const auto own = entry_of(check.name, name, got.shape, got.dtype, got.bytes);
      const auto other = entry_of(check.name, name, wanted.shape, wanted.dtype, wanted.bytes);
      ++made_.compared_with_host;
      if (own.digest == other.digest || made_.host_difference) continue;
      made_.host_difference = difference_of(own, other);
    }
    return {};
  }

  Status add_model(const FingerprintModel& given) {
    VKF_ASSIGN(const Model model,
               Model::load_from(device_, given.source, {.precision = Precision::kReproducible}));
    VKF_ASSIGN(Session session, Session::create(model));
    VKF_ASSIGN(const TensorMap inputs, given.inputs(model.info()));
    const std::string name = "model/" + given.name;
    {
      const Watching watching(device_);
      VKF_CHECK(
          watch_dispatches(HandleAccess::impl(device_), [&](const WatchedTensor& t) -> Status {
            if (t.shape.empty() || t.dtype != DType::kF32 || !t.finished) return {};
            add(entry_of(name + "/" + t.label + "/" + t.op, t.name, t.shape, t.dtype, t.bytes));
            return {};
          }));
      VKF_CHECK(session.run(inputs));
    }
    const ModelInfo info = model.info();
    if (given.new_tokens == 0 || info.kind == ModelKind::kEncoder) return {};
    GenerateOptions greedy = session.generation_defaults();
    greedy.beams = greedy.return_sequences = 1;
    greedy.max_new_tokens = given.new_tokens;
    const bool texts_alone = info.source == SourceKind::kTokens && !info.reads_images;
    if (!texts_alone) {
      if (info.head != HeadKind::kLanguage) return {};
      const TensorMap source = source_of(info, inputs);
      const auto generate = [&](const GenerateOptions& options) {
        return session.generate_masked(source, options);
      };
      return add_searches(generate, greedy, name);
    }
    const auto ids = inputs.find("input_ids");
    if (ids == inputs.end() || ids->second.shape.size() != 2) return {};
    VKF_ASSIGN(const std::vector<TokenId> all, ids->second.to_ints());
    const std::vector<TokenId> prompt(all.begin(), all.begin() + ids->second.shape[1]);
    // A batch whose texts are of different lengths.
    const std::vector<TokenId> shorter(prompt.begin() + prompt.size() / 2, prompt.end());
    const auto one = [&](const GenerateOptions& options) {
      return session.generate({prompt}, options);
    };
    const auto two = [&](const GenerateOptions& options) {
      return session.generate({prompt, shorter}, options);
    };
    VKF_CHECK(add_searches(one, greedy, name));
    VKF_CHECK(add_generation(two(greedy), name + "/batched"));
    return add_drafted(model, {prompt, shorter}, greedy, name + "/drafted");
  }

  // What a generation reads of a pass's inputs: of an encoder's pictures or sound these alone.
  static TensorMap source_of(const ModelInfo& info, TensorMap inputs) {
    if (info.source == SourceKind::kTokens) return inputs;
    std::erase_if(inputs, [](const auto& input) { return input.first.starts_with("decoder_"); });
    if (inputs.erase("input_ids") != 0) inputs.erase("attention_mask");
    return inputs;
  }

  template <class Generate>
  Status add_searches(const Generate& generate, const GenerateOptions& greedy,
                      const std::string& name) {
    GenerateOptions beams = greedy, sampled = greedy;
    beams.beams = 3;
    sampled.choice = TokenChoice::kSampled;
    sampled.sampling.seed = 7;
    VKF_CHECK(add_generation(generate(greedy), name + "/greedy"));
    VKF_CHECK(add_generation(generate(beams), name + "/beams"));
    return add_generation(generate(sampled), name + "/sampled");
  }

  Status add_generation(const Result<Generation>& found, const std::string& name) {
    if (!found && found.error().code == ErrorCode::kUnsupported) return {};  // it has none such
    if (!found) return found.error();
    for (const std::vector<Hypothesis>& of_item : *found) {
      const Hypothesis& best = of_item.at(0);
      add_ids(name, best.ids);
      const auto& logs = best.log_probabilities;
      const Tensor scores = Tensor::from_floats({static_cast<int64_t>(logs.size())}, logs);
      add(entry_of(name, "log_probabilities", scores.shape, scores.dtype, scores.bytes));
    }
    return {};
  }
  void add_ids(const std::string& name, const std::vector<TokenId>& tokens) {
    const Tensor ids = Tensor::from_ints({static_cast<int64_t>(tokens.size())}, tokens);
    add(entry_of(name, "ids", ids.shape, ids.dtype, ids.bytes));
  }

  // The same texts as requests of users, whose next tokens are drafted from what followed before.
  Status add_drafted(const Model& model, const std::vector<std::vector<TokenId>>& prompts,
                     const GenerateOptions& options, const std::string& name) {
    auto batch = GenerationBatch::create(model, {.rows = 2, .lookup = 2});
    if (!batch && batch.error().code == ErrorCode::kUnsupported) return {};
    if (!batch) return batch.error();
    std::map<uint64_t, std::vector<TokenId>> texts;
    for (const std::vector<TokenId>& prompt : prompts) {
      BatchRequest request{.prompt = prompt, .options = batch->generation_defaults()};
      request.options.max_new_tokens = options.max_new_tokens;
      VKF_ASSIGN(const uint64_t number, batch->submit(request));
      texts[number];
    }
    while (!batch->idle()) {
      VKF_ASSIGN(const std::vector<BatchUpdate> updates, batch->step());
      for (const BatchUpdate& u : updates) {
        if (u.state == BatchUpdate::State::kFailed) return u.error;
        texts[u.request].insert(texts[u.request].end(), u.tokens.begin(), u.tokens.end());
      }
    }
    for (const auto& [number, tokens] : texts) add_ids(name, tokens);
    return {};
  }

  Device device_;
  const FingerprintOptions& options_;
  Fingerprint made_;
  int done_ = 0;
  size_t value_bytes_ = 0;  // of all entries, also those without
};

FingerprintDocument entry_json(const FingerprintEntry& e) {
  std::string parts;
  for (const uint32_t part : e.parts) parts += hex_text(part, 8);
  FingerprintDocument json{{"name", e.name},
                           {"tensor", e.tensor},
                           {"shape", e.shape},
                           {"digest", hex_text(e.digest)},
                           {"parts", parts}};
  if (!e.values.empty()) json["values"] = hexadecimal(e.values);
  return json;
}

Result<uint64_t> from_hex(const std::string& text) {
  const bool digits = text.find_first_not_of(kHexDigits) == std::string::npos;
  if (text.empty() || text.size() > 16 || !digits) {
    return invalid_file("[fingerprint] The digest [" + text +
                        "] is no hexadecimal number; take the fingerprint again.");
  }
  return std::stoull(text, nullptr, 16);
}

// Elements of a tensor in a file; an error for a shape that none has.
Result<int64_t> elements_from(const FingerprintEntry& e) {
  int64_t elements = 1;
  for (const int64_t size : e.shape) {
    if (size < 0 || size > kMostElements || (size > 0 && elements > kMostElements / size)) {
      return invalid_file(message({"[fingerprint] [", e.name, "] has shape ", shape_text(e.shape),
                                   ", but a tensor has at most ", kMostElements,
                                   " elements; take the fingerprint again."}));
    }
    elements *= size;
  }
  return elements;
}

Status values_from(const std::string& digits, FingerprintEntry& e) {
  VKF_ASSIGN(const int64_t elements, elements_from(e));
  const size_t bytes = digits.size() / 2, count = static_cast<size_t>(elements);
  const bool hexadecimal = digits.find_first_not_of(kHexDigits) == std::string::npos;
  const bool whole =
      hexadecimal && digits.size() % 2 == 0 && (count == 0 ? bytes == 0 : bytes % count == 0);
  if (!whole || bytes > 8 * count) {
    return invalid_file(message({"[fingerprint] [", e.name, "] has ", digits.size(),
                                 " letters of values, but must have as many hexadecimal digits of "
                                 "each of its ",
                                 elements,
                                 " elements, an even number up to 16; take the "
                                 "fingerprint again."}));
  }
  e.values.reserve(bytes);
  const auto digit = [&](size_t at) { return kHexDigits.find(digits[at]); };
  for (size_t at = 0; at < digits.size(); at += 2) {
    e.values.push_back(static_cast<std::byte>(digit(at) << 4 | digit(at + 1)));
  }
  return {};
}

Result<FingerprintEntry> entry_from(const FingerprintDocument& json) {
  FingerprintEntry e;
  e.name = json.at("name").get<std::string>();
  e.tensor = json.at("tensor").get<std::string>();
  e.shape = json.at("shape").get<Shape>();
  VKF_ASSIGN(e.digest, from_hex(json.at("digest").get<std::string>()));
  const auto parts = json.at("parts").get<std::string>();
  if (parts.size() > 8 * kMostParts || parts.size() % 8 != 0) {
    return invalid_file(message({"[fingerprint] [", e.name, "] has ", parts.size(),
                                 " digits of parts, but must have a multiple of 8, at most ",
                                 8 * kMostParts, "; take the fingerprint again."}));
  }
  for (size_t at = 0; at < parts.size(); at += 8) {
    VKF_ASSIGN(const uint64_t part, from_hex(parts.substr(at, 8)));
    e.parts.push_back(static_cast<uint32_t>(part));
  }
  VKF_CHECK(values_from(json.value("values", std::string()), e));
  return e;
}

FingerprintDifference missing(const FingerprintEntry& e, const char* which) {
  return {e.name, e.tensor, 0, 0,
          "[" + e.name + "] " + e.tensor + " is only in the " + which + " fingerprint."};
}

}  // namespace

uint64_t Fingerprint::digest() const {
  uint64_t all = kFnvStart;
  for (const FingerprintEntry& e : entries) {
    for (const std::string& text : {e.name, e.tensor}) {
      all = fnv1a(text.c_str(), text.size() + 1, all);
    }
    all = fnv1a(e.shape.data(), e.shape.size() * sizeof(e.shape[0]), all);
    all = fnv1a(&e.digest, sizeof(e.digest), all);
  }
  return all;
}

Result<Fingerprint> take_fingerprint(const Device& device, const FingerprintOptions& options) {
  return guarded([&]() -> Result<Fingerprint> {
    if (!HandleAccess::impl(device)) {
      return invalid_argument("[fingerprint] The device is empty; make a Device first.");
    }
    return Taking(device, options).run();
  });
}

std::string fingerprint_json(const Fingerprint& fingerprint) {
  FingerprintDocument entries = FingerprintDocument::array();
  for (const FingerprintEntry& e : fingerprint.entries) entries.push_back(entry_json(e));
  const std::string host_difference =
      fingerprint.host_difference ? fingerprint.host_difference->message : std::string();
  const FingerprintDocument json{{"format", kFingerprintFormat},
                                 {"vkformer", fingerprint.vkformer},
                                 {"device", fingerprint.device.name},
                                 {"driver", fingerprint.device.driver},
                                 {"digest", hex_text(fingerprint.digest())},
                                 {"compared_with_host", fingerprint.compared_with_host},
                                 {"host_difference", host_difference},
                                 {"entries", std::move(entries)}};
  return json.dump(1) + "\n";
}

Result<Fingerprint> parse_fingerprint_json(const std::string& text) {
  return guarded([&]() -> Result<Fingerprint> {
    try {
      const auto json = FingerprintDocument::parse(text);
      if (json.at("format") != kFingerprintFormat) {
        return invalid_file(
            "[fingerprint] This file is none, or of another version; take the fingerprint "
            "again.");
      }
      Fingerprint f;
      f.vkformer = json.at("vkformer").get<std::string>();
      f.device.name = json.at("device").get<std::string>();
      f.device.driver = json.at("driver").get<std::string>();
      for (const auto& entry : json.at("entries")) {
        VKF_ASSIGN(FingerprintEntry e, entry_from(entry));
        f.entries.push_back(std::move(e));
      }
      return f;
    } catch (const nlohmann::json::exception&) {
      return invalid_file(
          "[fingerprint] This is not what `vkformer fingerprint --json` wrote; take "
          "the fingerprint again.");
    }
  });
}

std::optional<FingerprintDifference> compare_fingerprints(const Fingerprint& first,
                                                          const Fingerprint& second) {
  const size_t common = std::min(first.entries.size(), second.entries.size());
  for (size_t i = 0; i < common; ++i) {
    const FingerprintEntry& a = first.entries[i];
    const FingerprintEntry& b = second.entries[i];
    if (a.name != b.name || a.tensor != b.tensor || a.shape != b.shape) return missing(a, "first");
    if (a.digest != b.digest || a.parts != b.parts) return difference_of(a, b);
  }
  if (first.entries.size() > common) return missing(first.entries[common], "first");
  if (second.entries.size() > common) return missing(second.entries[common], "second");
  return std::nullopt;
}

}  // namespace vkformer
