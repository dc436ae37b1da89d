// What nodes of some operators carry beside their tensors: of the operators and of their twins on
// the host (conformance/twin).
#pragma once

#include "ops/beam_select.h"
#include "ops/head_linear.h"
#include "ops/recurrence.h"
#include "ops/resize_grid.h"
#include "ops/token_candidates.h"
#include "params/recurrent.h"

namespace vkformer {

struct ExpertsNodeAttrs {
  ExpertsAttrs attrs;
  ExpertWeight up, down;
};

struct HeadLinearNodeAttrs {
  HeadLinearAttrs attrs;
  ExpertWeight weight;  // of each head as of an expert
};

// Of a layer in one kernel.
struct RecurrenceNodeAttrs {
  CellKind cell;
  LinearWeight weight;
};

struct MoveColumnsAttrs {
  MoveColumnsParams params;
  enum class Kind : uint8_t { kPlain, kStore, kLoad } kind = Kind::kPlain;
};

struct BeamSelectAttrs {
  SearchParams search;
  BeamSelectKind kind;
};

struct CandidateAttrs {
  SearchParams search;
  ScoresFrom from;
  BeamChoice choice;
};

// How a place of a resized grid becomes one of x: (i * factor + shift) / divisor.
struct SideMap {
  uint32_t factor = 0;
  uint32_t divisor = 1;
  int32_t shift = 0;
};
SideMap side_map(uint32_t from, uint32_t to, ResizeGridAttrs::Corners corners);

}  // namespace vkformer
