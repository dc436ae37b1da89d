// Checkpoint: the tensors of a model directory, whether in one file or in shards.
//
// Threading: immutable once open; any thread may read.
// Lifetime: views point into mapped files and live as long as the Checkpoint, also when it moves.
//
// A quantized matrix and its scales (quantized_tensors.h, coded_tensors.h) are one tensor here.
// What other libraries quantized is understood where the store has a config.json that says so.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/file_store.h"
#include "checkpoint/quantization_method.h"
#include "checkpoint/quantized_tensors.h"
#include "checkpoint/safetensors.h"
#include "vkformer/result.h"

namespace vkformer {

class Checkpoint {
 public:
  // Opens, in this order, what a directory has: model.safetensors, the shards that
  // model.safetensors.index.json lists, or its only *.safetensors file. The path of a file opens
  // just that file. Every file is checked whole; an error names the file that is missing or wrong.
  static Result<Checkpoint> open(const std::string& model_dir);
  // The same from a store; one that cannot list its files must have one of the two usual names. A
  // store of another format (FileStore::tensors) gives its own tensors.
  static Result<Checkpoint> open_store(const FileStore& files);

  // Without tensors: of a model that is planned before its weights are there.
  static Checkpoint none() { return {}; }

  // Adds the tensors of model.safetensors in a folder of the model, a module of
  // sentence-transformers, as "<folder>/<name>".
  Status add_module(const FileStore& files, const std::string& folder);

  // Puts a tensor in the place of the one of that name, until the next of the name. Precondition:
  // there is one.
  void put_merged(const std::string& name, QuantizedTensor tensor);
  // The tensor as it was before put_merged. Precondition: there is one of that name.
  const TensorView& unmerged(const std::string& name) const;

  // The tensor of that name, or nullptr. Valid as long as the Checkpoint.
  const TensorView* find(const std::string& name) const;
  // Whether the tensor's elements are there: a pack may have weights only as GPUs read them
  // (checkpoint/sparse_file.h). Precondition: there is one of that name.
  bool has_values(const std::string& name) const;
  // From now on `reads` gets the name of every tensor that note_read is told of. Whoever reads
  // elements while a model's weight table is made tells it.
  void record_reads(std::shared_ptr<std::set<std::string>> reads) { reads_ = std::move(reads); }
  void note_read(const std::string& name) const {
    if (reads_ != nullptr) reads_->insert(name);
  }
  // All tensors, in name order.
  std::vector<std::string> names() const;
  // Where the model's other files are.
  const std::string& directory() const { return directory_; }
  // The path of the file that holds the tensor, or "" if there is none of that name.
  std::string file_of(const std::string& name) const;

 private:
  struct Entry {
    const TensorView* view = nullptr;
    size_t file = 0;  // whose tensor it is: in files_, or in stored_->files
    bool stored = false;
  };

  // Views of merged_ and quantized_ are pointed to.
  Checkpoint() = default;
  static Result<Checkpoint> open_unguarded(const std::string& model_dir);
  Status add_store(const FileStore& files);
  Status add_file(Result<MappedFile> file, const std::string& prefix = "");
  Status add_shards(const FileStore& files);
  Status join_quantized();
  Status join_mxfp4_tensors();
  Status join_coded_tensors(const QuantizationMethod& method);
  void take_quantized(const std::string& name, QuantizedTensor tensor, size_t file);

  std::string directory_;
  std::vector<SafetensorsFile> files_;
  std::shared_ptr<const StoredTensors> stored_;  // of a store with another format; or null
  std::map<std::string, Entry> entries_;
  std::map<std::string, QuantizedTensor> quantized_;
  struct Merged {
    const TensorView* before = nullptr;
    QuantizedTensor tensor;
  };
  std::map<std::string, Merged> merged_;
  std::shared_ptr<std::set<std::string>> reads_;  // null: nobody asks
};

}  // namespace vkformer
