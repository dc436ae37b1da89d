// ParseColumns: texts being matched against a grammar, byte by byte.
// Needs: CompiledGrammar, Result.
//
// The method is Earley's (1970) over automata: a column holds every place of the grammar that a
// text may have come to. Three changes make it fit for decoding token by token. A column is never
// changed, and columns with the same places are one object. So a text's state is one pointer,
// copies of it are free, and equal contexts share what has been computed for them. A column stores
// the column that follows each byte once it is known: text that repeats is matched by table. Tail
// calls keep the caller's origin (as Leo, 1991, does for right recursion). So columns do not grow
// with lists that are written as right recursion.
//
// Threading: one thread at a time, but for the columns' own reference counts.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/compiled_grammar.h"
#include "grammar/token_set.h"
#include "vkformer/result.h"

namespace vkformer {

class ParseColumn;

// A place: a state, the rule to complete when it ends, and the column where that rule began.
struct ParseItem {
  uint32_t state = 0;
  uint32_t rule = 0;
  const ParseColumn* origin = nullptr;
  bool operator==(const ParseItem&) const = default;
};

class ParseColumn {
 public:
  // Whether the text may end here.
  bool may_end() const { return may_end_; }
  // Whether a rule ended here of which nobody knows where it began (ParseColumns::start_inside).
  bool leaves() const { return leaves_; }
  // Sorted; without places where nothing can follow.
  const std::vector<ParseItem>& items() const { return items_; }

  // Calls `visit` for every place that goes on where `rule`, which was called here, ends.
  template <class Visit>
  void for_callers(uint32_t rule, Visit&& visit) const {
    for (const Caller& caller : callers_) {
      if (caller.rule == rule) visit(caller.next);
    }
  }

  // The tokens that may come next; kept here by whoever computes them.
  std::unique_ptr<const TokenSet> tokens;
  // Bytes to the end of the text at least, from here and after any token that may come next. The
  // code that computes them stores them here.
  static constexpr uint64_t kUnknown = UINT64_MAX;
  uint64_t shortest_end = kUnknown;
  uint64_t furthest_end = kUnknown;

 private:
  friend class ParseColumns;
  // What to go on with when `rule`, which was called in this column, ends.
  struct Caller {
    uint32_t rule = 0;
    ParseItem next;
  };

  std::vector<ParseItem> items_;
  bool may_end_ = false;
  bool leaves_ = false;
  bool is_marked_ = false;
  // Filled in by close(): items that wait for a byte, and callers sorted by rule.
  bool is_closed_ = false;
  std::vector<ParseItem> active_;
  std::vector<Caller> callers_;
  std::unique_ptr<ParseColumn*[]> next_;  // by byte class
};

// A text's state. It keeps its column alive; its ParseColumns must live as well.
using ColumnRef = std::shared_ptr<ParseColumn>;

class ParseColumns {
 public:
  explicit ParseColumns(const CompiledGrammar& grammar);
  ~ParseColumns();
  ParseColumns(const ParseColumns&) = delete;
  ParseColumns& operator=(const ParseColumns&) = delete;

  // The column of the empty text.
  ParseColumn* start();
  // A column in a state of which it is not known where its rule began.
  ParseColumn* start_inside(uint32_t state);
  // The column after a byte, or null if no text goes on with it.
  ParseColumn* step(ParseColumn* column, uint8_t byte) {
    ParseColumn* const* next = column->next_.get();
    const uint8_t byte_class = grammar_.class_of_byte[byte];
    if (next == nullptr || next[byte_class] == &unknown_) return make_step(column, byte_class);
    return next[byte_class];
  }
  // Good unless a step since the last call of forget() went beyond a limit; steps then give null.
  Status status() const;

  ColumnRef hold(ParseColumn* column) const;
  // Drops columns that no held one needs once there are many. Only to be called between tokens.
  void forget();
  // Drops what columns keep in `tokens`.
  void drop_tokens();
  size_t size() const { return columns_.size(); }

 private:
  struct Known {
    size_t operator()(const ParseColumn* column) const;
    bool operator()(const ParseColumn* a, const ParseColumn* b) const;
  };
  using ColumnMap = std::unordered_map<const ParseColumn*, ColumnRef, Known, Known>;

  struct ItemHash {
    size_t operator()(const ParseItem& item) const;
  };

  ParseColumn* make_step(ParseColumn* column, uint8_t byte_class);
  // The column with these items, which may have doubles and need no order.
  ParseColumn* find(std::vector<ParseItem> items, bool may_end, bool leaves);
  void close(ParseColumn& column);
  // Appends what follows where the rules of items end.
  void complete(std::vector<ParseItem>& items, bool& may_end, bool& leaves);
  void forget_seen();
  bool is_new(const ParseItem& item);

  const CompiledGrammar& grammar_;
  ColumnMap columns_;
  size_t item_count_ = 0;  // of all columns
  size_t forget_at_;
  bool is_full_ = false;
  size_t forget_items_;
  // Stands for "not known yet" in a column's table, and for the origin that nobody knows.
  ParseColumn unknown_;
  // Scratch of is_new(): few items in a list, many in a table.
  std::vector<ParseItem> few_seen_;
  std::unordered_set<ParseItem, ItemHash> many_seen_;
};

}  // namespace vkformer
