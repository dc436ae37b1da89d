// Push constants of latent_queries.
#ifndef VKFORMER_PARAMS_LATENT_QUERIES_H
#define VKFORMER_PARAMS_LATENT_QUERIES_H
#include "types.h"

struct LatentQueriesParams {
  uint_t rows;        // R
  uint_t heads;       // H
  uint_t head_width;  // E, of Q
  uint_t absorbed;    // columns of a head of Absorbed
  uint_t line;        // columns of a head of Y, and of Line
  uint_t width;       // of a row of Y
  uint_t unused[2];
};
#ifdef __cplusplus
static_assert(sizeof(LatentQueriesParams) == 32);
#endif
#endif
