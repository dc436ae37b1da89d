#include "model/blocks/stack_parts.h"

#include <algorithm>

#include "base/message.h"

namespace vkformer {
namespace {

using QueryKeyNorm = StackConfig::QueryKeyNorm;

// What layers have that no part can have a piece of; empty: nothing.
std::string indivisible(const StackConfig& c) {
  const std::vector<uint8_t>& experts = c.experts.layers;
  if (std::any_of(experts.begin(), experts.end(), [](uint8_t has) { return has != 0; })) {
    return "experts";
  }
  if (c.states.any()) return "recurrent states";
  if (c.latent.rank > 0) return "latents of keys and values";
  if (c.cross == StackConfig::Cross::kYes) return "cross-attention";
  if (c.qk_norm == QueryKeyNorm::kWhole) return "a norm over all heads of a token";
  if (c.output_gate == StackConfig::OutputGate::kYes) return "gates after attention";
  if (!c.slopes.empty() || c.distance.reach > 0) return "biases by distance";
  if (!c.sinks.empty()) return "sink scores";
  if (!c.rows_of.empty()) return "weights that they share";
  return {};
}

Status check_count(const char* what, int64_t count, int64_t parts) {
  if (count % parts == 0) return {};
  return unsupported(message({"[group] this model has ", count, " ", what,
                              ", which cannot be divided evenly among ", parts,
                              " devices; use another number of devices, or split by layers "
                              "(DeviceGroupOptions::split, --split layers)"}));
}

void add_range(std::vector<uint32_t>& rows, int64_t first, int64_t count) {
  for (int64_t i = 0; i < count; ++i) rows.push_back(static_cast<uint32_t>(first + i));
}

Status check_plain(const WeightRow& row) {
  const bool plain = row.layout == WeightLayout::kLinear && !row.make && row.experts == 0 &&
                     row.first_row < 0 && row.row_scale.empty() && row.row_scales.empty() &&
                     row.batch_norm.empty();
  if (plain) return {};
  return unsupported(message({"[", row.name,
                              "] is not a plain matrix of the files, and cannot be divided among "
                              "devices; split by layers (DeviceGroupOptions::split, --split "
                              "layers)"}));
}

// Some of the output features.
Result<WeightRow> some_rows(WeightRow row, std::vector<uint32_t> rows) {
  VKF_CHECK(check_plain(row));
  row.part = MatrixPart{.whole_rows = row.rows, .whole_width = row.width, .rows = std::move(rows)};
  row.rows = static_cast<int64_t>(row.part->rows.size());
  return row;
}

// Some of the input features. The bias is the first part's alone, for the parts are added up.
Result<WeightRow> some_inputs(WeightRow row, int64_t part, int64_t parts) {
  VKF_CHECK(check_plain(row));
  row.part = MatrixPart{.whole_rows = row.rows, .whole_width = row.width, .rows = {}};
  add_range(row.part->rows, 0, row.rows);
  row.width /= parts;
  row.part->first_input = part * row.width;
  if (part > 0) row.biases.clear();
  return row;
}

// The gains of a part's heads, of a table with a source for each head.
Result<WeightRow> some_gains(WeightRow row, const StackConfig& whole, const StackConfig& own,
                             int64_t part) {
  const auto heads = static_cast<size_t>(whole.heads + whole.kv());
  if (row.sources.size() != heads || row.source_rows.size() != heads) {
    return unsupported(message({"[", row.name,
                                "] has the gains of all heads in one tensor, and cannot be divided "
                                "among devices; split by layers (DeviceGroupOptions::split, "
                                "--split layers)"}));
  }
  std::vector<uint32_t> chosen;
  add_range(chosen, part * own.heads, own.heads);
  add_range(chosen, whole.heads + part * own.kv(), own.kv());
  std::vector<std::string> sources;
  for (const uint32_t head : chosen) sources.push_back(row.sources[head]);
  row.sources = std::move(sources);
  row.source_rows.assign(chosen.size(), 1);
  row.rows = static_cast<int64_t>(chosen.size());
  return row;
}

// A row of a layer as a part has it; `name` follows the layer's prefix.
Result<WeightRow> part_of_row(const WeightRow& row, const std::string& name,
                              const StackConfig& whole, int64_t part) {
  const StackConfig own = part_of_stack(whole, part);
  std::vector<uint32_t> rows;
  if (name == ".self.qkv") {
    const int64_t queries = own.heads * own.head();
    const int64_t keys = own.kv() * own.head(), values = own.kv() * own.values();
    const int64_t parts = whole.parts;
    add_range(rows, part * queries, queries);
    add_range(rows, parts * queries + part * keys, keys);
    add_range(rows, parts * (queries + keys) + part * values, values);
    return some_rows(row, std::move(rows));
  }
  if (name == ".ffn.up") {
    const int64_t columns = row.rows / whole.parts;  // pairs where there is a gate
    add_range(rows, part * columns, columns);
    return some_rows(row, std::move(rows));
  }
  if (name == ".self.out" || name == ".ffn.down") return some_inputs(row, part, whole.parts);
  if (name == ".self.qk_norm") return some_gains(row, whole, own, part);
  if (row.layout == WeightLayout::kNorm) return row;
  return unsupported(message({"[", row.name,
                              "] cannot be divided among devices; split by layers "
                              "(DeviceGroupOptions::split, --split layers)"}));
}

}  // namespace

std::string part_prefix(int64_t part) {
  return "part." + std::to_string(part) + ".";
}

Status check_divisible(const StackConfig& stack, int64_t parts) {
  const std::string what = indivisible(stack);
  if (!what.empty()) {
    return unsupported(message({"[group] the layers of this model have ", what,
                                ", which are not divided among devices; split by layers "
                                "(DeviceGroupOptions::split, --split layers)"}));
  }
  VKF_CHECK(check_count("attention heads", stack.heads, parts));
  VKF_CHECK(check_count("heads of keys and values", stack.kv(), parts));
  return check_count("columns of feed-forward layers", stack.ffn, parts);
}

StackConfig part_of_stack(const StackConfig& stack, int64_t part) {
  StackConfig own = stack;
  own.parts = 1;
  own.rows = part_prefix(part) + stack.rows;
  own.cache_name = ".part" + std::to_string(part);
  own.head_width = stack.head();
  own.heads = stack.heads / stack.parts;
  own.kv_heads = stack.kv() / stack.parts;
  own.ffn = stack.ffn / stack.parts;
  return own;
}

Status divide_rows(const StackConfig& stack, WeightTable& table) {
  std::map<std::string, std::string> names;  // of rows of layers: what follows the layer's prefix
  for (const WeightRow& row : table.rows) {
    for (int64_t i = 0; i < stack.layers; ++i) {
      const std::string layer = stack.layer_rows(i);
      if (row.name.starts_with(layer + ".")) names[row.name] = row.name.substr(layer.size());
    }
  }
  std::vector<WeightRow> divided;
  for (int64_t part = 0; part < stack.parts; ++part) {
    for (const WeightRow& row : table.rows) {
      const auto name = names.find(row.name);
      if (name == names.end()) continue;
      VKF_ASSIGN(WeightRow own, part_of_row(row, name->second, stack, part));
      own.name = part_prefix(part) + row.name;
      divided.push_back(std::move(own));
    }
  }
  std::erase_if(table.rows, [&](const WeightRow& row) { return names.count(row.name) != 0; });
  table.rows.insert(table.rows.end(), std::make_move_iterator(divided.begin()),
                    std::make_move_iterator(divided.end()));
  return {};
}

}  // namespace vkformer
