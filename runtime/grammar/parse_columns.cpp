#include "grammar/parse_columns.h"

#include <algorithm>
#include <functional>
#include <tuple>

#include "base/check.h"
#include "base/message.h"

namespace vkformer {
namespace {

// Columns to keep before those that nobody needs are dropped.
constexpr size_t kKeptColumns = 1u << 15;
// Items in all columns, and in one of them. Beyond it a text is too deeply nested, or the grammar
// has too many ways to read it.
constexpr size_t kMostItems = 1u << 20;
constexpr size_t kMostColumnItems = 1u << 14;

size_t hash_of(const ParseItem& item) {
  constexpr size_t kMultiplier = 0x9E3779B97F4A7C15u;
  const size_t place = (size_t{item.state} << 32 | item.rule) * kMultiplier;
  return (place ^ reinterpret_cast<size_t>(item.origin)) * kMultiplier;
}

bool is_before(const ParseItem& a, const ParseItem& b) {
  if (a.state != b.state) return a.state < b.state;
  if (a.rule != b.rule) return a.rule < b.rule;
  return std::less<>()(a.origin, b.origin);
}

}  // namespace

size_t ParseColumns::Known::operator()(const ParseColumn* column) const {
  size_t hash = size_t{column->may_end()} * 2 + size_t{column->leaves()};
  for (const ParseItem& item : column->items()) hash = (hash ^ (hash >> 29)) * 31 + hash_of(item);
  return hash;
}

bool ParseColumns::Known::operator()(const ParseColumn* a, const ParseColumn* b) const {
  return a->may_end() == b->may_end() && a->leaves() == b->leaves() && a->items() == b->items();
}

ParseColumns::ParseColumns(const CompiledGrammar& grammar)
    : grammar_(grammar), forget_at_(kKeptColumns), forget_items_(kMostItems / 4) {}
ParseColumns::~ParseColumns() = default;

Status ParseColumns::status() const {
  if (!is_full_) return {};
  return invalid_argument(
      message({"[grammar] The text nests too deeply or can be read in too many ways: matching it "
               "needs more than the limit of ",
               kMostItems, " places, or ", kMostColumnItems,
               " at one byte; make the grammar less ambiguous or the text shorter."}));
}

ParseColumn* ParseColumns::start() {
  const uint32_t state = grammar_.rule_starts[grammar_.root];
  return find({{state, grammar_.root, nullptr}}, grammar_.states[state].may_end, false);
}

ParseColumn* ParseColumns::start_inside(uint32_t state) {
  return find({{state, 0, &unknown_}}, false, false);
}

size_t ParseColumns::ItemHash::operator()(const ParseItem& item) const {
  return hash_of(item);
}

void ParseColumns::forget_seen() {
  few_seen_.clear();
  many_seen_.clear();
}

bool ParseColumns::is_new(const ParseItem& item) {
  constexpr size_t kFew = 24;
  if (few_seen_.size() > kFew) return many_seen_.insert(item).second;
  if (std::find(few_seen_.begin(), few_seen_.end(), item) != few_seen_.end()) return false;
  few_seen_.push_back(item);
  if (few_seen_.size() > kFew) many_seen_.insert(few_seen_.begin(), few_seen_.end());
  return true;
}

// Predicts: rules that may be called here begin here. A rule that is called from several places is
// begun once, and all of them wait for it. The column takes the whole at the end, so that it stays
// open where memory runs out before.
void ParseColumns::close(ParseColumn& column) {
  std::vector<ParseItem> active;
  std::vector<ParseColumn::Caller> callers;
  forget_seen();
  std::vector<ParseItem> waiting = column.items_;
  for (const ParseItem& item : waiting) is_new(item);
  for (size_t i = 0; i < waiting.size(); ++i) {
    const ParseItem item = waiting[i];
    const CompiledGrammar::State& state = grammar_.states[item.state];
    if (state.bytes_begin < state.bytes_end) active.push_back(item);
    for (uint32_t c = state.calls_begin; c < state.calls_end; ++c) {
      const CompiledGrammar::CallEdge& call = grammar_.call_edges[c];
      ParseItem begun = {grammar_.rule_starts[call.rule], item.rule, item.origin};
      if (!call.is_tail) {
        callers.push_back({call.rule, {call.to, item.rule, item.origin}});
        begun.rule = call.rule;
        begun.origin = &column;
      }
      if (is_new(begun)) waiting.push_back(begun);
    }
    if (waiting.size() + callers.size() > 4 * kMostColumnItems) {
      is_full_ = true;
      return;
    }
  }
  item_count_ += active.size() + callers.size();
  std::sort(
      callers.begin(), callers.end(),
      [](const ParseColumn::Caller& a, const ParseColumn::Caller& b) { return a.rule < b.rule; });
  column.active_ = std::move(active);
  column.callers_ = std::move(callers);
  column.is_closed_ = true;
}

void ParseColumns::complete(std::vector<ParseItem>& items, bool& may_end, bool& leaves) {
  forget_seen();
  size_t kept = 0;
  for (const ParseItem& item : items) {
    if (is_new(item)) items[kept++] = item;
  }
  items.resize(kept);
  for (size_t i = 0; i < items.size() && !is_full_; ++i) {
    const ParseItem item = items[i];
    if (!grammar_.states[item.state].may_end) continue;
    if (item.origin == nullptr) {
      may_end = true;
    } else if (item.origin == &unknown_) {
      leaves = true;
    } else {
      const auto& callers = item.origin->callers_;
      auto at = std::lower_bound(
          callers.begin(), callers.end(), item.rule,
          [](const ParseColumn::Caller& caller, uint32_t rule) { return caller.rule < rule; });
      for (; at != callers.end() && at->rule == item.rule; ++at) {
        if (is_new(at->next)) items.push_back(at->next);
      }
    }
    is_full_ = is_full_ || items.size() > kMostColumnItems;
  }
  std::erase_if(items,
                [&](const ParseItem& item) { return !grammar_.states[item.state].has_edges(); });
}

ParseColumn* ParseColumns::find(std::vector<ParseItem> items, bool may_end, bool leaves) {
  std::sort(items.begin(), items.end(), is_before);
  auto column = std::make_shared<ParseColumn>();
  column->items_ = std::move(items);
  column->may_end_ = may_end;
  column->leaves_ = leaves;
  const auto [found, is_new] = columns_.emplace(column.get(), column);
  if (is_new) {
    item_count_ += column->items_.size() + 1;
    is_full_ = is_full_ || item_count_ > kMostItems;
  }
  return found->second.get();
}

ParseColumn* ParseColumns::make_step(ParseColumn* column, uint8_t byte_class) {
  if (is_full_) return nullptr;
  if (!column->is_closed_) close(*column);
  if (!column->next_) {
    column->next_ = std::make_unique<ParseColumn*[]>(grammar_.classes);
    std::fill_n(column->next_.get(), grammar_.classes, &unknown_);
    item_count_ += grammar_.classes / 2;
  }
  std::vector<ParseItem> items;
  for (const ParseItem& item : column->active_) {
    const CompiledGrammar::State& state = grammar_.states[item.state];
    for (uint32_t b = state.bytes_begin; b < state.bytes_end; ++b) {
      const CompiledGrammar::ByteEdge& edge = grammar_.byte_edges[b];
      if (edge.first_class > byte_class || byte_class > edge.last_class) continue;
      items.push_back({edge.to, item.rule, item.origin});
    }
  }
  ParseColumn* next = nullptr;
  if (!items.empty()) {
    bool may_end = false;
    bool leaves = false;
    complete(items, may_end, leaves);
    if (!is_full_) next = find(std::move(items), may_end, leaves);
  }
  if (is_full_) return nullptr;
  column->next_[byte_class] = next;
  return next;
}

ColumnRef ParseColumns::hold(ParseColumn* column) const {
  return columns_.find(column)->second;
}

void ParseColumns::drop_tokens() {
  for (const auto& [key, column] : columns_) column->tokens.reset();
}

void ParseColumns::forget() {
  if (!is_full_ && columns_.size() < forget_at_ && item_count_ < forget_items_) return;
  std::vector<ParseColumn*> waiting;
  for (const auto& [key, column] : columns_) {
    column->is_marked_ = column.use_count() > 1;
    if (column->is_marked_) waiting.push_back(column.get());
  }
  while (!waiting.empty()) {
    const ParseColumn* column = waiting.back();
    waiting.pop_back();
    for (const ParseItem& item : column->items_) {
      if (item.origin == nullptr || item.origin == &unknown_) continue;
      ParseColumn* origin = columns_.find(item.origin)->second.get();
      if (!origin->is_marked_) waiting.push_back(origin);
      origin->is_marked_ = true;
    }
  }
  std::erase_if(columns_, [](const auto& entry) { return !entry.second->is_marked_; });
  item_count_ = 0;
  for (const auto& [key, column] : columns_) {
    column->next_.reset();
    item_count_ += column->items_.size() + column->active_.size() + column->callers_.size() + 1;
  }
  forget_at_ = std::max(kKeptColumns, 2 * columns_.size());
  forget_items_ = std::max(kMostItems / 4, item_count_ + item_count_ / 2);
  is_full_ = item_count_ > kMostItems;
}

}  // namespace vkformer
