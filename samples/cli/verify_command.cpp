// `vkformer verify`: a model directory against what transformers computes of it
// (tools/verify_reference.py).
#include <algorithm>
#include <cmath>
#include <memory>

#include "command_line.h"
#include "vkformer/session.h"
#include "vkformer/tokenizer.h"

namespace vkformer::cli {

namespace {

struct VerifyCommandOptions {
  std::string model;
  std::string reference;
  double tolerance = 0;  // 0: by the reference's own rounding
  ModelOptions load;
};

// A reference file: what goes in, what comes out, and how far float32 is from that.
struct Reference {
  std::string text;  // whose tokens input_ids are; empty: none
  TensorMap inputs;
  TensorMap expected;
  std::map<std::string, double> tolerance;  // of |x - y| / (1 + |y|), by output
};

// One output beside the expected one.
struct Comparison {
  std::string name;
  Shape shape;
  double largest = 0;    // |x - y| / (1 + |y|); NaN where an element is none that can be compared
  double relative = 0;   // |x - y| over |y|, both as vectors
  double same_best = 0;  // part of the rows whose largest element is at the same place
  double allowed = 0;    // for `largest`; 0: nothing is stated
  bool passes() const { return allowed == 0 || largest <= allowed; }
};

// Ten times what float32 costs the reference, and no less than a few roundings: another order of
// sums is as right.
constexpr double kRoundings = 10;
constexpr double kLeastTolerance = 1e-5;

Error not_a_reference(const std::string& path, const std::string& why) {
  return {ErrorCode::kInvalidFile,
          "[" + path + "] " + why + "; make the file with tools/verify_reference.py"};
}

Result<Reference> read_reference(const std::string& path) {
  const Result<TensorMap> tensors = read_tensor_file(path);
  if (!tensors) return tensors.error();
  Reference reference;
  for (const auto& [name, tensor] : *tensors) {
    const auto rest = [&, &full = name](std::string_view prefix) {
      return full.starts_with(prefix) ? full.substr(prefix.size()) : std::string();
    };
    if (name == "text" && tensor.dtype == DType::kU8) {
      reference.text.assign(reinterpret_cast<const char*>(tensor.bytes.data()),
                            tensor.bytes.size());
    } else if (const std::string input = rest("input."); !input.empty()) {
      reference.inputs.emplace(input, tensor);
    } else if (const std::string output = rest("expected."); !output.empty()) {
      reference.expected.emplace(output, tensor);
    } else if (const std::string rounded = rest("rounding."); !rounded.empty()) {
      const Result<std::vector<float>> value = tensor.to_floats();
      if (!value || value->size() != 1) {
        return not_a_reference(path, "tensor '" + name + "' is not one number");
      }
      reference.tolerance[rounded] =
          std::max(kLeastTolerance, kRoundings * static_cast<double>(value->front()));
    } else {
      return not_a_reference(
          path, "tensor '" + name + "' is none of text, input.*, expected.* " + "and rounding.*");
    }
  }
  if (reference.inputs.empty() || reference.expected.empty()) {
    return not_a_reference(path, "it has no tensors input.* or expected.*");
  }
  for (const auto& [name, tensor] : reference.expected) {
    if (reference.tolerance.count(name) == 0) {
      return not_a_reference(path, "tensor 'rounding." + name + "' is missing");
    }
  }
  return reference;
}

// The directory's tokenizer must read the text as the reference's did.
Status check_tokens(const std::string& directory, const Reference& reference) {
  const auto given = reference.inputs.find("input_ids");
  if (reference.text.empty() || given == reference.inputs.end()) return {};
  const Result<std::vector<int64_t>> expected = given->second.to_ints();
  if (!expected) return expected.error();
  const Result<Tokenizer> tokenizer = Tokenizer::load(directory);
  if (!tokenizer) return tokenizer.error();
  Result<Encoding> encoding = tokenizer->encode(reference.text);
  if (!encoding) return encoding.error();
  std::vector<TokenId>& ids = encoding->ids;
  // The reference keeps the first tokens of a text that has many.
  if (ids.size() > expected->size()) ids.resize(expected->size());
  const auto [ours, theirs] =
      std::mismatch(ids.begin(), ids.end(), expected->begin(), expected->end());
  if (ours == ids.end() && theirs == expected->end()) return {};
  const auto shown = [](const auto& at, const auto& end) {
    return at == end ? std::string("none") : std::to_string(*at);
  };
  return Error{ErrorCode::kInvalidFile,
               "[" + directory + "] token " + std::to_string(ours - ids.begin()) +
                   " of the reference's text is " + shown(ours, ids.end()) + " here and " +
                   shown(theirs, expected->end()) +
                   " in the reference; both must be of the same tokenizer.json"};
}

size_t best_of(const std::vector<float>& values, size_t begin, size_t width) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return static_cast<size_t>(std::max_element(first, first + static_cast<std::ptrdiff_t>(width)) -
                             first);
}

Result<Comparison> compare(const std::string& name, const Tensor& actual, const Tensor& expected) {
  if (actual.shape != expected.shape) {
    return Error{ErrorCode::kInvalidFile, "[" + name + "] has the shape " +
                                              shape_text(actual.shape) + " here and " +
                                              shape_text(expected.shape) + " in the reference"};
  }
  const Result<std::vector<float>> x = actual.to_floats();
  if (!x) return x.error();
  const Result<std::vector<float>> y = expected.to_floats();
  if (!y) return y.error();
  Comparison found{name, expected.shape};
  double squares = 0, errors = 0;
  for (size_t i = 0; i < y->size(); ++i) {
    const double wanted = (*y)[i], difference = std::abs((*x)[i] - wanted);
    // A NaN is never within a tolerance.
    if (!(difference / (1 + std::abs(wanted)) <= found.largest)) {
      found.largest = difference / (1 + std::abs(wanted));
    }
    squares += wanted * wanted;
    errors += difference * difference;
    if (std::isnan(found.largest)) break;
  }
  found.relative = squares > 0 ? std::sqrt(errors / squares) : std::sqrt(errors);
  const size_t width = expected.shape.empty() ? 1 : static_cast<size_t>(expected.shape.back());
  const size_t rows = width == 0 ? 0 : y->size() / width;
  size_t same = 0;
  for (size_t row = 0; row < rows; ++row) {
    same += best_of(*x, row * width, width) == best_of(*y, row * width, width) ? 1 : 0;
  }
  found.same_best = rows == 0 ? 1 : static_cast<double>(same) / static_cast<double>(rows);
  return found;
}

// Whether weights and arithmetic are those of the reference.
bool is_exact(const ModelOptions& load) {
  return load.precision == Precision::kF32 &&
         (load.weights == WeightFormat::kAsStored || load.weights == WeightFormat::kF32);
}

void print_comparisons(const std::vector<Comparison>& all, bool as_json, bool passes) {
  if (as_json) {
    Json outputs = Json::array();
    for (const Comparison& c : all) {
      outputs.push_back({{"name", c.name},
                         {"shape", c.shape},
                         {"difference", c.largest},
                         {"allowed", c.allowed == 0 ? Json() : Json(c.allowed)},
                         {"relative", c.relative},
                         {"same_best", c.same_best},
                         {"passes", c.passes()}});
    }
    print_json(Json{{"passes", passes}, {"outputs", std::move(outputs)}});
    return;
  }
  print_line(padded("output", 28) + padded("shape", 20) + padded("difference", 12) +
             padded("allowed", 12) + padded("relative", 12) + "same best");
  for (const Comparison& c : all) {
    print_line(
        padded(c.name, 28) + padded(shape_text(c.shape), 20) + padded(fixed(c.largest, 8), 12) +
        padded(c.allowed == 0 ? "-" : fixed(c.allowed, 8), 12) + padded(fixed(c.relative, 8), 12) +
        fixed(100 * c.same_best, 1) + " %" + (c.passes() ? "" : "  too far"));
  }
  print_line(!passes               ? "not verified: an output differs by more than is allowed"
             : all[0].allowed == 0 ? "differences are shown and not judged: weights or arithmetic "
                                     "are not the reference's; --tolerance judges them"
                                   : "verified");
}

int run_verify(const CommonOptions& common, const VerifyCommandOptions& options) {
  const Result<Reference> reference = read_reference(options.reference);
  if (!reference) return report(reference.error());
  if (const Status same = check_tokens(options.model, *reference); !same) {
    return report(same.error());
  }
  const Result<Device> device = open_device(common);
  if (!device) return report_device(device.error());
  const Result<Model> model = load_model(common, *device, options.model, options.load);
  if (!model) return report(model.error());
  Result<Session> session = Session::create(*model);
  if (!session) return report(session.error());
  const Result<TensorMap> outputs = session->run(reference->inputs);
  if (!outputs) return report(outputs.error());
  std::vector<Comparison> all;
  for (const auto& [name, expected] : reference->expected) {
    const auto actual = outputs->find(name);
    if (actual == outputs->end()) {
      return report({ErrorCode::kUnsupported, "[" + options.model + "] the model gives no '" +
                                                  name + "', which the reference has"});
    }
    Result<Comparison> found = compare(name, actual->second, expected);
    if (!found) return report(found.error());
    found->allowed = options.tolerance;
    if (options.tolerance == 0 && is_exact(options.load)) {
      found->allowed = reference->tolerance.at(name);
    }
    all.push_back(*std::move(found));
  }
  const bool passes =
      std::all_of(all.begin(), all.end(), [](const Comparison& c) { return c.passes(); });
  if (!common.quiet || common.json) print_comparisons(all, common.json, passes);
  return passes ? kExitOk : kExitFailed;
}

}  // namespace

void add_verify_command(CLI::App& app, CommandLine& line) {
  CLI::App* command = app.add_subcommand(
      "verify", "Compare a model's outputs on a fixed input with those of transformers.");
  const auto options = std::make_shared<VerifyCommandOptions>();
  add_model_argument(*command, line, options->model);
  command
      ->add_option("REFERENCE", options->reference,
                   "what tools/verify_reference.py wrote of that directory")
      ->required();
  command
      ->add_option("--tolerance", options->tolerance,
                   "largest |x - y| / (1 + |y|) that passes; else 10 times what float32 costs "
                   "transformers, for weights as stored and arithmetic in f32")
      ->check(CLI::PositiveNumber);
  add_model_options(*command, options->load);
  add_output_options(*command, line.common);
  add_device_options(*command, line.common);
  add_group_options(*command, line.common);
  add_examples(*command,
               "  python3 tools/verify_reference.py models/g2p-en g2p.safetensors\n"
               "  vkformer verify models/g2p-en g2p.safetensors\n"
               "  vkformer verify models/g2p-en g2p.safetensors --weights q8 --tolerance 0.2\n");
  command->callback([&line, options] {
    line.run = [&line, options] { return run_verify(line.common, *options); };
  });
}

}  // namespace vkformer::cli
