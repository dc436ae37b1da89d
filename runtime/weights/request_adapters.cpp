#include "weights/request_adapters.h"

#include <map>

#include "base/check.h"
#include "base/message.h"
#include "checkpoint/message_text.h"
#include "params/matmul.h"
#include "weights/adapter_names.h"
#include "weights/head_matrix.h"
#include "weights/read_floats.h"

namespace vkformer {
namespace {

// One module of an adapter, for the source of a weight row that it changes.
struct RowPart {
  std::shared_ptr<const AdapterFiles> files;  // keeps what `module` points to
  const AdapterModule* module = nullptr;
  size_t adapter = 0;
  int64_t first_row = 0;     // of the source, that the weight row takes
  int64_t rows = 0;          // that it takes
  int64_t first_column = 0;  // of the weight row's N, before row_order
  int64_t rank = 0;
};

std::vector<float> floats_of(const TensorView& view) {
  std::vector<float> values(static_cast<size_t>(element_count(view.shape)));
  read_elements(view, 0, 1, values);
  return values;
}

// (J, K): what the adapters' A are, one below the other.
MadeMatrix stacked_down(const std::vector<RowPart>& parts) {
  MadeMatrix made;
  for (const RowPart& part : parts) {
    const std::vector<float> down = floats_of(part.module->down);
    made.values.insert(made.values.end(), down.begin(), down.end());
  }
  return made;
}

// (N, J): what the adapters' B are, each in the columns of its source.
MadeMatrix stacked_up(const std::vector<RowPart>& parts, int64_t rows, int64_t ranks) {
  MadeMatrix made;
  made.values.resize(static_cast<size_t>(rows * ranks));
  int64_t first_rank = 0;
  for (const RowPart& part : parts) {
    const std::vector<float> up = floats_of(part.module->up);
    for (int64_t row = 0; row < part.rows; ++row) {
      const auto from = static_cast<size_t>((part.first_row + row) * part.rank);
      const auto to = static_cast<size_t>((part.first_column + row) * ranks + first_rank);
      for (size_t j = 0; j < static_cast<size_t>(part.rank); ++j) {
        made.values[to + j] = static_cast<float>(double{up[from + j]} * part.module->scale);
      }
    }
    first_rank += part.rank;
  }
  return made;
}

// (H, count, J) of the adapters' B: the rows that the matrix of every head has. Where it is
// transposed, (H, J, count).
MadeMatrix head_ups(const std::vector<RowPart>& parts, const HeadMatrix& of, int64_t ranks) {
  const bool across = of.transposed == HeadMatrix::Transposed::kYes;
  MadeMatrix made;
  made.values.resize(static_cast<size_t>(of.heads * of.count * ranks));
  int64_t first_rank = 0;
  for (const RowPart& part : parts) {
    const std::vector<float> up = floats_of(part.module->up);
    for (int64_t i = 0; i < of.heads * of.count; ++i) {
      const int64_t head = i / of.count, row = i % of.count;
      for (int64_t j = 0; j < part.rank; ++j) {
        const int64_t rank = first_rank + j;
        const int64_t at = across ? rank * of.count + row : row * ranks + rank;
        const int64_t from = (head * of.rows + of.first + row) * part.rank + j;
        made.values[static_cast<size_t>(head * of.count * ranks + at)] =
            static_cast<float>(double{up[static_cast<size_t>(from)]} * part.module->scale);
      }
    }
    first_rank += part.rank;
  }
  return made;
}

// (K, J): what the adapters' A are, transposed.
MadeMatrix transposed_down(const std::vector<RowPart>& parts, int64_t width, int64_t ranks) {
  const std::vector<float> down = stacked_down(parts).values;
  MadeMatrix made;
  made.values.resize(down.size());
  for (int64_t j = 0; j < ranks; ++j) {
    for (int64_t k = 0; k < width; ++k) {
      made.values[static_cast<size_t>(k * ranks + j)] = down[static_cast<size_t>(j * width + k)];
    }
  }
  return made;
}

// Why a module cannot be beside the weights, if so; it says what it changes.
Status refuse(const std::string& where, const std::string& what) {
  return unsupported(
      message({where, " ", what,
               ", but adapters of requests are LoRA or rsLoRA of linear layers; load "
               "it merged (ModelOptions::adapters, --adapter)."}));
}

Status check_module(const AdapterModule& module, const std::string& where) {
  if (!module.magnitude.bytes.empty()) return refuse(where, "has magnitudes (DoRA)");
  if (module.embedding) return refuse(where, "changes an embedding");
  return {};
}

// Whether products with x and these weights are all that becomes of a row.
bool is_plain_linear(const WeightRow& row) {
  return row.layout == WeightLayout::kLinear && row.experts == 0 && !row.make &&
         row.row_scale.empty() && row.row_scales.empty() && row.batch_norm.empty();
}

// The rows beside a row with a matrix for each head. To a head's x W they add (x A) B, or (x B) A
// where W is transposed. Each head has a B, and all have one A.
void add_head_rows(const WeightRow& base, const HeadMatrix& of, const std::vector<RowPart>& parts,
                   int64_t ranks, std::vector<WeightRow>& rows) {
  const bool across = of.transposed == HeadMatrix::Transposed::kYes;
  const auto row = [&](AdapterPart which, int64_t matrices, int64_t n, int64_t k) {
    WeightRow made{.name = adapter_row(base.name, which)};
    made.rows = (n + kPanelColumns - 1) / kPanelColumns * kPanelColumns * matrices;
    made.width = k;
    made.experts = matrices;
    made.expert_rows = n;
    made.format = WeightRow::Format::kExact;
    return made;
  };
  WeightRow own = across ? row(AdapterPart::kDown, of.heads, ranks, of.count)
                         : row(AdapterPart::kUp, of.heads, of.count, ranks);
  own.make = [=](const Checkpoint&) -> Result<MadeMatrix> { return head_ups(parts, of, ranks); };
  WeightRow shared = across ? row(AdapterPart::kUp, 1, of.width, ranks)
                            : row(AdapterPart::kDown, 1, ranks, of.width);
  shared.make = [=, width = of.width](const Checkpoint&) -> Result<MadeMatrix> {
    return across ? transposed_down(parts, width, ranks) : stacked_down(parts);
  };
  rows.push_back(std::move(own));
  rows.push_back(std::move(shared));
}

// Which adapter each rank belongs to, as often as there are heads.
WeightRow ranks_row(const WeightRow& base, const std::vector<RowPart>& parts) {
  WeightRow row{.name = adapter_row(base.name, AdapterPart::kRanks),
                .layout = WeightLayout::kTable,
                .rows = 1};
  const HeadMatrix* of = head_matrix_of(base);
  for (int64_t head = 0; head < (of != nullptr ? of->heads : 1); ++head) {
    for (const RowPart& part : parts) {
      row.computed.insert(row.computed.end(), static_cast<size_t>(part.rank),
                          static_cast<float>(part.adapter));
    }
  }
  row.width = static_cast<int64_t>(row.computed.size());
  return row;
}

class Stacker {
 public:
  Stacker(const Checkpoint& checkpoint, const WeightTable& table)
      : checkpoint_(checkpoint), table_(table), names_(checkpoint.names()) {}

  Status add(const NamedAdapter& adapter, size_t index);
  std::vector<WeightRow> rows() const;

 private:
  Status add_module(const NamedAdapter& adapter, size_t index, const AdapterModule& module);
  // Adds it to `row`, whose source number `source` it changes.
  Status add_part(RowPart part, size_t row, size_t source, const std::string& where);

  const Checkpoint& checkpoint_;
  const WeightTable& table_;
  std::vector<std::string> names_;
  std::map<size_t, std::vector<RowPart>> parts_;  // by the number of the weight row
};

Status Stacker::add_part(RowPart part, size_t index, size_t source, const std::string& where) {
  const WeightRow& row = table_.rows[index];
  if (!is_plain_linear(row) && head_matrix_of(row) == nullptr) {
    return refuse(where, "changes '" + row.name + "', which is not a linear layer alone");
  }
  const bool in_out = row.axes == WeightRow::Axes::kInOut;
  const Shape& base = checkpoint_.unmerged(row.sources[source]).shape;
  if (base.size() != 2) return refuse(where, "changes a convolution");
  const int64_t outputs = base[in_out ? 1 : 0], inputs = base[in_out ? 0 : 1];
  const Shape &down = part.module->down.shape, &up = part.module->up.shape;
  part.rank = down[0];
  const int64_t width = part.rank == 0 ? 0 : element_count(down) / part.rank;
  if (part.rank == 0 || width != inputs || up[0] != outputs ||
      element_count(up) != up[0] * part.rank) {
    return invalid_file(message({where, " changes a matrix of ", up[0], " outputs and ", width,
                                 " inputs, but the model's is ", shape_text(base),
                                 "; the adapter is of another model."}));
  }
  if (head_matrix_of(row) != nullptr) {
    parts_[index].push_back(std::move(part));
    return {};
  }
  for (size_t s = 0; s <= source; ++s) {
    part.first_column += s == 0 ? 0 : part.rows;
    part.rows = row.first_row >= 0         ? row.rows
                : !row.source_rows.empty() ? row.source_rows[s]
                                           : row.rows / static_cast<int64_t>(row.sources.size());
  }
  part.first_row = std::max<int64_t>(0, row.first_row);
  if (part.first_row + part.rows > outputs || part.first_column + part.rows > row.rows) {
    return refuse(where, "changes '" + row.name + "', which takes its rows from elsewhere");
  }
  parts_[index].push_back(std::move(part));
  return {};
}

Status Stacker::add_module(const NamedAdapter& adapter, size_t index, const AdapterModule& module) {
  const std::string where = bracketed(module.module) + " of the adapter " +
                            bracketed(adapter.name) + " (" + adapter.files->label + ")";
  VKF_CHECK(check_module(module, where));
  VKF_ASSIGN(const std::string name,
             adapted_tensor(checkpoint_, names_, module.module + ".weight", where));
  bool used = false;
  for (size_t r = 0; r < table_.rows.size(); ++r) {
    const std::vector<std::string>& sources = table_.rows[r].sources;
    for (size_t s = 0; s < sources.size(); ++s) {
      if (sources[s] != name) continue;
      used = true;
      VKF_CHECK(
          add_part({.files = adapter.files, .module = &module, .adapter = index}, r, s, where));
    }
  }
  if (used) return {};
  return refuse(where, "changes " + bracketed(name) + ", which this model does not multiply with");
}

Status Stacker::add(const NamedAdapter& adapter, size_t index) {
  for (const ReplacedTensor& tensor : adapter.files->replaced) {
    const std::string where =
        "The adapter " + bracketed(adapter.name) + " (" + adapter.files->label + ")";
    return refuse(where, "replaces " + bracketed(tensor.name));
  }
  for (const AdapterModule& module : adapter.files->modules) {
    VKF_CHECK(add_module(adapter, index, module));
  }
  return {};
}

std::vector<WeightRow> Stacker::rows() const {
  std::vector<WeightRow> rows;
  for (const auto& [index, parts] : parts_) {
    const WeightRow& base = table_.rows[index];
    int64_t count = 0;
    for (const RowPart& part : parts) count += part.rank;
    rows.push_back(ranks_row(base, parts));
    if (const HeadMatrix* of = head_matrix_of(base)) {
      add_head_rows(base, *of, parts, count, rows);
      continue;
    }
    WeightRow down{.name = adapter_row(base.name, AdapterPart::kDown)};
    down.rows = count;
    down.width = base.width;
    down.make = [parts = parts](const Checkpoint&) -> Result<MadeMatrix> {
      return stacked_down(parts);
    };
    down.format = WeightRow::Format::kExact;
    WeightRow up{.name = adapter_row(base.name, AdapterPart::kUp)};
    up.rows = base.rows;
    up.width = count;
    up.row_order = base.row_order;
    up.make = [parts = parts, all = base.rows, count](const Checkpoint&) -> Result<MadeMatrix> {
      return stacked_up(parts, all, count);
    };
    up.format = WeightRow::Format::kExact;
    rows.push_back(std::move(down));
    rows.push_back(std::move(up));
  }
  return rows;
}

}  // namespace

std::string adapter_row(const std::string& row, AdapterPart part) {
  switch (part) {
    case AdapterPart::kDown:
      return row + ".adapters.down";
    case AdapterPart::kUp:
      return row + ".adapters.up";
    case AdapterPart::kRanks:
      return row + ".adapters.ranks";
  }
  return row;
}

Status add_request_adapters(const std::vector<NamedAdapter>& adapters, const Checkpoint& checkpoint,
                            WeightTable& table) {
  Stacker stacker(checkpoint, table);
  for (size_t i = 0; i < adapters.size(); ++i) VKF_CHECK(stacker.add(adapters[i], i));
  std::vector<WeightRow> rows = stacker.rows();
  for (WeightRow& row : rows) table.rows.push_back(std::move(row));
  return {};
}

}  // namespace vkformer
