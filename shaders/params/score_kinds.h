// Kinds of score terms, for kernels that are compiled for those that there are (a specialization
// constant). A software device need not mask terms that are omitted.
#ifndef VKFORMER_PARAMS_SCORE_KINDS_H
#define VKFORMER_PARAMS_SCORE_KINDS_H

#define VKF_KIND_NEAR 1u  // causal or a window
#define VKF_KIND_KEY_MASK 2u
#define VKF_KIND_MASK 4u
#define VKF_KIND_BIAS 8u
#define VKF_KIND_DISTANCE 16u  // slopes, or a bias by distance
#define VKF_KIND_SPARSE 32u    // what needs sparse_offset, and VKF_TERM_MASKED_QUERIES
#define VKF_KIND_MASKS (VKF_KIND_KEY_MASK | VKF_KIND_MASK)
#endif
