#include "load/gguf_export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/check.h"
#include "base/message.h"
#include "base/work_sharing.h"
#include "checkpoint/ggml_encode.h"
#include "checkpoint/ggml_store.h"
#include "checkpoint/gguf_writer.h"
#include "checkpoint/message_text.h"
#include "checkpoint/pack_file.h"
#include "gguf/gguf_model.h"
#include "gguf/gguf_store.h"
#include "gguf/gguf_vocabulary.h"
#include "load/gguf_keys.h"
#include "load/loaded_model.h"
#include "load/quantize_model.h"
#include "model/sentence_files.h"
#include "weights/device_weights.h"
#include "weights/quantize.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchitectureKey = "general.architecture";
constexpr const char* kFileTypeKey = "general.file_type";
constexpr const char* kBlocksKey = "general.quantization_version";
constexpr uint32_t kBlocksVersion = 2;
constexpr size_t kRowsOfPiece = 32;  // that a thread encodes at a time

struct WrittenType {
  WeightFormat weights;
  GgmlType type;
  uint32_t file_type;  // general.file_type
};

constexpr WrittenType kTypes[] = {
    {WeightFormat::kF32, GgmlType::kF32, 0},      {WeightFormat::kF16, GgmlType::kF16, 1},
    {WeightFormat::kBF16, GgmlType::kBf16, 32},   {WeightFormat::kQ8_0, GgmlType::kQ8_0, 7},
    {WeightFormat::kQ4_0, GgmlType::kQ4_0, 2},    {WeightFormat::kQ4_1, GgmlType::kQ4_1, 3},
    {WeightFormat::kQ5_0, GgmlType::kQ5_0, 8},    {WeightFormat::kQ5_1, GgmlType::kQ5_1, 9},
    {WeightFormat::kQ2K, GgmlType::kQ2K, 10},     {WeightFormat::kQ3K, GgmlType::kQ3K, 11},
    {WeightFormat::kQ4K, GgmlType::kQ4K, 14},     {WeightFormat::kQ5K, GgmlType::kQ5K, 16},
    {WeightFormat::kQ6K, GgmlType::kQ6K, 18},     {WeightFormat::kIq4Nl, GgmlType::kIq4Nl, 25},
    {WeightFormat::kIq4Xs, GgmlType::kIq4Xs, 30}, {WeightFormat::kMxfp4, GgmlType::kMxfp4, 38},
};

const WrittenType* find_type(WeightFormat weights) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](const WrittenType& one) { return one.weights == weights; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string written_types() {
  std::string names;
  for (const WrittenType& one : kTypes) {
    names += (names.empty() ? "" : ", ") + std::string(choice_name(one.weights));
  }
  return names;
}

// Tensors that the format's programs read in f32 alone, or never in blocks: vectors, biases, and
// small tables.
bool stays_f32(const std::string& name, const Shape& shape) {
  if (shape.size() < 2 || name.ends_with(".bias")) return true;
  for (const char* part :
       {"_norm.", "ffn_gate_inp.", "position_embd.", "token_types.", "attn_rel_b."}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return false;
}

// What llama.cpp takes where rows are no whole blocks of 256.
GgmlType in_small_blocks(GgmlType type) {
  switch (type) {
    case GgmlType::kQ2K:
    case GgmlType::kQ3K:
    case GgmlType::kIq4Xs:
      return GgmlType::kIq4Nl;
    case GgmlType::kQ4K:
      return GgmlType::kQ5_0;
    case GgmlType::kQ5K:
      return GgmlType::kQ5_1;
    case GgmlType::kQ6K:
      return GgmlType::kQ8_0;
    default:
      return GgmlType::kF32;
  }
}

GgmlType type_of(const std::string& name, const Shape& shape, GgmlType wanted) {
  if (stays_f32(name, shape)) return GgmlType::kF32;
  GgmlType type = wanted;
  while (shape.back() % ggml_type_facts(static_cast<uint32_t>(type))->weights != 0) {
    type = in_small_blocks(type);
  }
  return type;
}

class TensorWriter {
 public:
  TensorWriter(const GgufNaming& naming, const Checkpoint& checkpoint, GgmlType type,
               GgufWriter& writer)
      : naming_(naming), checkpoint_(checkpoint), type_(type), writer_(writer) {}

  // A source in the same format. Tensors whose values or shapes a family reads in another way are
  // copied. Otherwise values would be rounded on the way.
  void copy_changed(const std::vector<GgufFile>& files) {
    for (const GgufFile& file : files) {
      for (const auto& [name, tensor] : file.tensors()) originals_[name] = &tensor;
    }
  }
  // `used`: the tensors that the model computes with, by their names in the checkpoint.
  Status put_all(const std::set<std::string>& used);
  int64_t matrices() const { return matrices_; }

 private:
  Status put(const GgufPlace& place, const std::vector<const TensorView*>& parts);
  Status put_experts(const std::string& name, const std::map<int64_t, const TensorView*>& experts);
  Status add_rows(const GgufPlace& place, const TensorView& view, GgmlType type,
                  std::vector<std::byte>& bytes);

  const GgufNaming& naming_;
  const Checkpoint& checkpoint_;
  GgmlType type_;
  GgufWriter& writer_;
  std::map<std::string, const GgufTensor*> originals_;
  int64_t matrices_ = 0;
  CoreThreads threads_;
};

// Blocks of types that ggml's reference does not round to in one pass: those that
// the search of the weights room finds.
Status encode_searched(GgmlType type, const std::string& name, std::span<const float> weights,
                       std::span<std::byte> out) {
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  const MatrixFormat format = ggml_format(type);
  if (!fits_blocks(weights, format)) {
    const float limit = block_limit(format);
    const auto odd = std::find_if(weights.begin(), weights.end(),
                                  [&](float w) { return !(std::abs(w) < limit); });
    return ggml_cannot_hold(type, name, *odd);
  }
  std::array<WeightBlock, kBlocksOfSuper> blocks;
  const auto some = std::span(blocks).first(facts.weights / kBlockSteps);
  for (size_t block = 0; block * facts.weights < weights.size(); ++block) {
    quantize_blocks(weights.subspan(block * facts.weights, facts.weights), format, some);
    store_ggml_block(type, some, out.subspan(block * facts.bytes, facts.bytes));
  }
  return {};
}

// The rows of a tensor in the order of the file.
Status TensorWriter::add_rows(const GgufPlace& place, const TensorView& view, GgmlType type,
                              std::vector<std::byte>& bytes) {
  const bool vector = view.shape.size() < 2;
  const Result<GgufRows> order =
      GgufRows::make(naming_, place.use, vector ? element_count(view.shape) : view.shape.front());
  if (!order.ok()) {
    return invalid_file(
        message({"The tensor ", bracketed(place.name), " is ", order.error().message}));
  }
  // A bias changes its order as the rows of its matrix do.
  const auto columns = static_cast<size_t>(vector && order->same() ? element_count(view.shape)
                                           : vector                ? 1
                                                                   : view.shape.back());
  const size_t rows = columns == 0 ? 0 : static_cast<size_t>(element_count(view.shape)) / columns;
  const GgmlTypeFacts& facts = *ggml_type_facts(static_cast<uint32_t>(type));
  const size_t row_bytes = columns / facts.weights * facts.bytes;
  const size_t at = bytes.size();
  bytes.resize(at + rows * row_bytes);
  const auto encode_row = [&](size_t row, std::vector<float>& values) -> Status {
    read_elements(view, order->of_model(row) * columns, 1, values);
    if (place.use == GgufUse::kGain) {
      for (float& value : values) value += 1.0f;
    }
    const auto out = std::span(bytes).subspan(at + row * row_bytes, row_bytes);
    return encodes_ggml(type) ? encode_ggml(type, place.name, values, out)
                              : encode_searched(type, place.name, values, out);
  };
  const size_t pieces = (rows + kRowsOfPiece - 1) / kRowsOfPiece;
  std::vector<Status> done(pieces);
  share_work(threads_.helpers(), pieces, [&](size_t piece) {
    std::vector<float> values(columns);
    const size_t end = std::min(rows, (piece + 1) * kRowsOfPiece);
    for (size_t row = piece * kRowsOfPiece; row < end && done[piece]; ++row) {
      done[piece] = encode_row(row, values);
    }
  });
  for (const Status& status : done) VKF_CHECK(status);
  return {};
}

Status TensorWriter::put(const GgufPlace& place, const std::vector<const TensorView*>& parts) {
  Shape shape = parts.front()->shape;
  if (place.use == GgufUse::kExperts)
    shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
  const GgmlType type = type_of(place.name, shape, type_);
  std::vector<std::byte> bytes;
  for (const TensorView* part : parts) {
    if (!holds_floats(*part) || part->shape != parts.front()->shape) {
      return invalid_file(
          message({bracketed(place.name), " is made of tensors that are no floats of one shape."}));
    }
    VKF_CHECK(add_rows(place, *part, type, bytes));
  }
  if (type == type_ && shape.size() > 1) ++matrices_;
  return writer_.put_tensor(place.name, type, shape, std::move(bytes));
}

Status TensorWriter::put_experts(const std::string& name,
                                 const std::map<int64_t, const TensorView*>& experts) {
  std::vector<const TensorView*> parts;
  for (const auto& [number, view] : experts) {
    if (number != static_cast<int64_t>(parts.size())) {
      return invalid_file(message({bracketed(name), " lacks the expert ", parts.size(), "."}));
    }
    parts.push_back(view);
  }
  return put({.name = name, .use = GgufUse::kExperts}, parts);
}

// Uses whose values or shape are others in a file.
bool is_changed(GgufUse use) {
  return use == GgufUse::kGain || use == GgufUse::kTaps || use == GgufUse::kFlat ||
         use == GgufUse::kRates;
}

Status TensorWriter::put_all(const std::set<std::string>& used) {
  std::map<std::string, std::map<int64_t, const TensorView*>> experts;
  for (const std::string& name : checkpoint_.names()) {
    const bool is_used = used.count(name) != 0;
    const auto place = gguf_place(naming_, name);
    // A classifier of two texts has a place where the source says that it is one.
    const bool head = place && place->name.starts_with("cls.");
    if (!place || (head && originals_.empty())) {
      if (!is_used || gguf_leaves_out(naming_.architecture, name)) continue;
      return unsupported(
          message({"The model computes with the tensor ", bracketed(name), " of ",
                   checkpoint_.file_of(name), ", which a GGUF file of the architecture ",
                   naming_.architecture, " has no place for."}));
    }
    // A head that is the embedding is no tensor of a file.
    if (!is_used && place->name.starts_with("output.")) continue;
    const TensorView* view = checkpoint_.find(name);
    const auto original = originals_.find(place->name);
    const bool merged = view != &checkpoint_.unmerged(name);
    if (is_changed(place->use) && original != originals_.end() && !merged) {
      const GgufTensor& tensor = *original->second;
      VKF_CHECK(writer_.put_tensor(place->name, tensor.type, tensor.shape,
                                   {tensor.bytes.begin(), tensor.bytes.end()}));
      continue;
    }
    if (place->use == GgufUse::kExperts) {
      experts[place->name][place->expert] = view;
    } else {
      VKF_CHECK(put(*place, {view}));
    }
  }
  for (const auto& [name, parts] : experts) VKF_CHECK(put_experts(name, parts));
  return {};
}

// Names of tensors that the family's rows are made of.
std::set<std::string> used_tensors(const WeightTable& table) {
  std::set<std::string> used;
  for (const WeightRow& row : table.rows) {
    used.insert(row.sources.begin(), row.sources.end());
    used.insert(row.biases.begin(), row.biases.end());
  }
  used.erase("");
  return used;
}

void put_general(const std::string& architecture, const WrittenType& type, GgufWriter& writer) {
  writer.put_text(kArchitectureKey, architecture);
  writer.put_text("general.type", "model");
  writer.put_number(kFileTypeKey, type.file_type);
  if (ggml_dtype(type.type) == DType::kU8) writer.put_number(kBlocksKey, kBlocksVersion);
}

// Token ids of config.json and generation_config.json, which comes first.
Result<GgufTokenIds> token_ids(const ModelFiles& files) {
  GgufTokenIds ids;
  for (const JsonConfig* config : {&files.config, &files.generation}) {
    VKF_ASSIGN(const int64_t bos, config->get_int_or("bos_token_id", -1));
    if (bos >= 0) ids.bos = bos;
    VKF_ASSIGN(const int64_t pad, config->get_int_or("pad_token_id", -1));
    if (pad >= 0) ids.pad = pad;
    VKF_ASSIGN(const std::vector<int64_t> ends, config->get_int_list_or("eos_token_id", {}));
    if (!ends.empty()) ids.ends = ends;
  }
  return ids;
}

Result<ModelFiles> read_files(const FileStore& store) {
  ModelFiles files;
  VKF_ASSIGN(files.config, JsonConfig::load_from(store, "config.json"));
  if (store.has("generation_config.json")) {
    VKF_ASSIGN(files.generation, JsonConfig::load_from(store, "generation_config.json"));
  }
  VKF_ASSIGN(files.sentence, read_sentence_files(store));
  return files;
}

// Rows of the embedding of tokens.
int64_t embedding_rows(const GgufNaming& naming, const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.names()) {
    const auto place = gguf_place(naming, name);
    const TensorView& view = *checkpoint.find(name);
    if (place && place->name == "token_embd.weight" && !view.shape.empty()) return view.shape[0];
  }
  return 0;
}

// What is read, and written anew.
struct Source {
  const FileStore& store;
  const Checkpoint& checkpoint;
  const std::set<std::string>& used;
};

Result<int64_t> put_directory(const Source& source, const WrittenType& type, GgufWriter& writer) {
  VKF_ASSIGN(const ModelFiles files, read_files(source.store));
  VKF_ASSIGN(const std::string architecture, gguf_architecture_of(files));
  VKF_ASSIGN(const GgufNaming naming, gguf_naming(architecture, files.config));
  put_general(architecture, type, writer);
  VKF_CHECK(put_gguf_keys(files, writer));
  VKF_ASSIGN(const GgufTokenIds ids, token_ids(files));
  VKF_CHECK(put_gguf_vocabulary(source.store, architecture,
                                embedding_rows(naming, source.checkpoint), ids, writer));
  TensorWriter tensors(naming, source.checkpoint, type.type, writer);
  VKF_CHECK(tensors.put_all(source.used));
  return tensors.matrices();
}

// A file's metadata stays as it is, but for what says how weights are stored, and parts.
Status copy_values(const GgufFile& file, const WrittenType& type, GgufWriter& writer) {
  VKF_ASSIGN(const std::string architecture, file.get_string(kArchitectureKey));
  put_general(architecture, type, writer);
  for (const auto& [key, value] : file.values()) {
    const bool own = key == kArchitectureKey || key == "general.type" || key == kFileTypeKey ||
                     key == kBlocksKey || key == "general.alignment" || key.starts_with("split.");
    if (!own) writer.put_value(key, value);
  }
  return {};
}

// Tensors of the metadata's kind, which no model computes with as weights.
Status copy_ignored(const std::vector<GgufFile>& files, const GgufNaming& naming,
                    GgufWriter& writer) {
  for (const GgufFile& file : files) {
    for (const auto& [name, tensor] : file.tensors()) {
      if (!gguf_ignores(naming, name)) continue;
      VKF_CHECK(writer.put_tensor(name, tensor.type, tensor.shape,
                                  {tensor.bytes.begin(), tensor.bytes.end()}));
    }
  }
  return {};
}

Result<int64_t> put_gguf(const std::string& model, const Source& source, const WrittenType& type,
                         GgufWriter& writer) {
  VKF_ASSIGN(const std::vector<GgufFile> files, open_gguf_parts(model));
  std::vector<const GgufFile*> parts;
  for (const GgufFile& file : files) parts.push_back(&file);
  VKF_ASSIGN(const GgufModel read, read_gguf_model(parts));
  VKF_CHECK(copy_values(files.front(), type, writer));
  VKF_CHECK(copy_ignored(files, read.naming, writer));
  TensorWriter tensors(read.naming, source.checkpoint, type.type, writer);
  tensors.copy_changed(files);
  VKF_CHECK(tensors.put_all(source.used));
  return tensors.matrices();
}

}  // namespace

Result<QuantizeReport> write_gguf_file(const std::string& model, const std::string& target,
                                       const GgufOptions& options) {
  const WrittenType* type = find_type(options.weights);
  if (type == nullptr) {
    return invalid_argument(
        message({"[weights] is '", choice_name(options.weights),
                 "', which GGUF files are not written in. Use ", written_types(), "."}));
  }
  if (is_pack_file(model)) {
    return invalid_argument(message({"[", model,
                                     "] is a packed model; give the directory or the GGUF file "
                                     "that it was made of."}));
  }
  std::error_code code;
  if (fs::equivalent(path_from_utf8(model), path_from_utf8(target), code)) {
    return invalid_argument(message({"[", target, "] is the model itself; choose another file."}));
  }
  const auto store = make_model_store(model);
  VKF_ASSIGN(const std::unique_ptr<ModelFamily> family, load_family(*store));
  VKF_CHECK(check_stores_values(*store, "[quantize]"));
  VKF_ASSIGN(Checkpoint checkpoint, Checkpoint::open_store(*store));
  VKF_CHECK(family->prepare(checkpoint));
  VKF_ASSIGN(const WeightTable table, family->weight_table(checkpoint));
  VKF_ASSIGN(const std::vector<ScaledAdapter> adapters, open_adapters(*store, options.adapters));
  VKF_CHECK(merge_adapters(table, adapters, checkpoint));
  VKF_CHECK(resolve_weights(table, checkpoint, WeightFormat::kAsStored));
  const std::set<std::string> used = used_tensors(table);
  const Source source{*store, checkpoint, used};
  GgufWriter writer;
  VKF_ASSIGN(const int64_t matrices, is_gguf_file(model) ? put_gguf(model, source, *type, writer)
                                                         : put_directory(source, *type, writer));
  VKF_CHECK(writer.write(target));
  QuantizeReport report = count_stored(checkpoint);
  report.matrices = matrices;
  report.bytes_after = writer.tensor_bytes();
  return report;
}

}  // namespace vkformer
