# The one list of compiled variants: vkf_kernel(<variant> <source> [FEATURES ...] [DEFINES ...]).
# Names: <op>_<strategy>__<in>_<weight>_<acc>[_<feature>].
vkf_kernel(fill_words__u32 fill.comp)
vkf_kernel(fill_add__u32 fill.comp DEFINES VKF_ADD=1)
vkf_kernel(rms_norm_row__f32_f32_f32 rms_norm.comp)
vkf_kernel(rms_norm_row__f32_f32_f32_subgroup rms_norm.comp FEATURES subgroup)
vkf_kernel(activation_run__f32_none_f32 activation.comp)
vkf_kernel(argmax_row__f32_none_u32 argmax.comp)
vkf_kernel(argmax_row__f32_none_u32_subgroup argmax.comp FEATURES subgroup)
vkf_kernel(combine_run__f32_none_f32 combine.comp)
vkf_kernel(concat_columns_run__f32_none_f32 concat_columns.comp)
vkf_kernel(embedding_row__u32_f32_f32 embedding.comp)
vkf_kernel(embedding_row__u32_f16_f32 embedding.comp DEFINES VKF_TABLE_F16=1)
vkf_kernel(embedding_step__u32_f32_f32 embedding.comp DEFINES VKF_STEP=1)
vkf_kernel(embedding_step__u32_f16_f32 embedding.comp DEFINES VKF_STEP=1 VKF_TABLE_F16=1)
vkf_kernel(embedding_row__u32_blocks_f32 embedding.comp DEFINES VKF_BLOCKS=1)
vkf_kernel(embedding_step__u32_blocks_f32 embedding.comp DEFINES VKF_STEP=1 VKF_BLOCKS=1)
vkf_kernel(embedding_normed__u32_f32_f32 embedding.comp DEFINES VKF_NORM=1)
vkf_kernel(embedding_normed__u32_f16_f32 embedding.comp DEFINES VKF_NORM=1 VKF_TABLE_F16=1)
vkf_kernel(embedding_normed__u32_blocks_f32 embedding.comp DEFINES VKF_NORM=1 VKF_BLOCKS=1)
vkf_kernel(embedding_normed_step__u32_f32_f32 embedding.comp DEFINES VKF_NORM=1 VKF_STEP=1)
vkf_kernel(embedding_normed_step__u32_f16_f32 embedding.comp
           DEFINES VKF_NORM=1 VKF_STEP=1 VKF_TABLE_F16=1)
vkf_kernel(embedding_normed_step__u32_blocks_f32 embedding.comp
           DEFINES VKF_NORM=1 VKF_STEP=1 VKF_BLOCKS=1)
vkf_kernel(gated_activation_run__f32_none_f32 gated_activation.comp)
vkf_kernel(gather_rows_run__f32_none_f32 gather_rows.comp)
vkf_kernel(group_norm_row__f32_f32_f32 group_norm.comp)
vkf_kernel(group_norm_row__f32_f32_f32_subgroup group_norm.comp FEATURES subgroup)
vkf_kernel(layer_norm_row__f32_f32_f32 layer_norm.comp)
vkf_kernel(layer_norm_row__f32_f32_f32_subgroup layer_norm.comp FEATURES subgroup)
vkf_kernel(log_softmax_row__f32_none_f32 log_softmax.comp)
vkf_kernel(log_softmax_row__f32_none_f32_subgroup log_softmax.comp FEATURES subgroup)
vkf_kernel(mean_pool_row__f32_none_f32 mean_pool.comp)
vkf_kernel(mean_pool_row__f32_none_f32_subgroup mean_pool.comp FEATURES subgroup)
vkf_kernel(rotary_row__f32_f32_f32 rotary.comp)
vkf_kernel(rotary_append__f32_f32_f32 rotary_append.comp)
vkf_kernel(row_entropy_row__f32_none_f32 row_entropy.comp)
vkf_kernel(row_entropy_row__f32_none_f32_subgroup row_entropy.comp FEATURES subgroup)
vkf_kernel(softmax_row__f32_none_f32 softmax.comp)
vkf_kernel(softmax_row__f32_none_f32_subgroup softmax.comp FEATURES subgroup)
vkf_kernel(top_k_row__f32_none_f32 top_k.comp)
vkf_kernel(top_k_row__f32_none_f32_subgroup top_k.comp FEATURES subgroup)
vkf_kernel(unfold_row__f32_none_f32 unfold.comp)
vkf_kernel(conv_span__f32_f32_f32 conv.comp)
vkf_kernel(attention_tiled__f32_f32_f32 attention_tiled.comp)
vkf_kernel(attention_tiled__f32_f32_f32_subgroup attention_tiled.comp FEATURES subgroup)
vkf_kernel(attention_literal__f32_f32_f32_subgroup attention_tiled.comp UNROLLED FEATURES subgroup
           DEFINES VKF_LITERAL=1)
vkf_kernel(attention_stationary__f32_f32_f32_tables attention_stationary.comp UNROLLED
           FEATURES tables)
vkf_kernel(attention_lanes__f32_f32_f32_subgroup_int64 attention_lanes.comp FEATURES subgroup int64)
vkf_kernel(attention_decode__f32_f32_f32 attention_decode.comp)
vkf_kernel(attention_decode__f32_f32_f32_subgroup attention_decode.comp FEATURES subgroup)
vkf_kernel(attention_decode__f32_packed_f32 attention_decode.comp DEFINES VKF_PACKED=1)
vkf_kernel(attention_decode__f32_packed_f32_subgroup attention_decode.comp FEATURES subgroup
           DEFINES VKF_PACKED=1)
vkf_kernel(attention_weights_row__f32_f32_f32 attention_weights.comp)
vkf_kernel(attention_weights_row__f32_f32_f32_subgroup attention_weights.comp FEATURES subgroup)
vkf_kernel(kv_append_slot__f32_none_f32 kv_append.comp)
vkf_kernel(kv_append_prompt__f32_none_f32 kv_append.comp DEFINES VKF_PROMPT=1)
vkf_kernel(kv_append_slot__f32_none_packed kv_append.comp DEFINES VKF_PACKED=1)
vkf_kernel(kv_append_prompt__f32_none_packed kv_append.comp DEFINES VKF_PACKED=1 VKF_PROMPT=1)
vkf_kernel(linear_attention_features__f32_f32_f32 linear_attention_features.comp)
vkf_kernel(linear_attention_state__f32_f32_f32 linear_attention_state.comp)
vkf_kernel(linear_attention_scan__f32_f32_f32 linear_attention_scan.comp)
vkf_kernel(linear_attention_output__f32_f32_f32 linear_attention_output.comp)
vkf_kernel(linear_attention_weights__f32_f32_f32 linear_attention_weights.comp)
vkf_kernel(linear_attention_step__f32_f32_f32 linear_attention_step.comp)

# Reformer and Nystroemformer.
vkf_kernel(lsh_hash_token__f32_f32_u32 lsh_hash.comp)
vkf_kernel(lsh_sort_unit__u32_none_u32 lsh_sort.comp)
vkf_kernel(chunk_attention_query__f32_none_f32 chunk_attention.comp)
vkf_kernel(mix_rounds_row__f32_none_f32 mix_rounds.comp)
vkf_kernel(segment_means_column__f32_none_f32 segment_means.comp)
vkf_kernel(inverse_start_matrix__f32_none_f32 inverse_start.comp)

# One decoding step's token choice.
vkf_kernel(token_candidates_row__f32_u32_f32 token_candidates.comp)
vkf_kernel(token_candidates_row__f32_u32_f32_subgroup token_candidates.comp FEATURES subgroup)
vkf_kernel(token_scores_row__f32_u32_f32 token_scores.comp)
vkf_kernel(token_sample_row__f32_u32_f32 token_sample.comp)
vkf_kernel(greedy_select_slot__u32 greedy_select.comp)
vkf_kernel(beam_select_item__u32 beam_select.comp)
vkf_kernel(step_advance_all__u32 step_advance.comp)

# Matrix products: rows (1-8 rows), wide (software devices), tiled (GPUs, any strides), and parts,
# which ends products that tiled took in parts of K.
vkf_kernel(matmul_rows__f32_f32_f32 matmul_rows.comp)
vkf_kernel(matmul_rows__f32_f16_f32 matmul_rows.comp DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_rows__f32_f32_f32_int64 matmul_rows.comp FEATURES int64)
vkf_kernel(matmul_rows__f32_f16_f32_int64 matmul_rows.comp FEATURES int64 DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_rows__f32_f32_f32_fp16 matmul_rows.comp FEATURES fp16)
vkf_kernel(matmul_rows__f32_f16_f32_fp16 matmul_rows.comp FEATURES fp16 DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_wide__f32_f32_f32 matmul_wide.comp)
vkf_kernel(matmul_wide__f32_f16_f32 matmul_wide.comp DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_wide__f32_f32_f32_subgroup matmul_wide.comp FEATURES subgroup)
vkf_kernel(matmul_wide__f32_f16_f32_subgroup matmul_wide.comp FEATURES subgroup
           DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_wide__f32_f32_f32_subgroup_int64 matmul_wide.comp FEATURES subgroup int64)
vkf_kernel(matmul_wide__f32_f32_f32_fp16 matmul_wide.comp FEATURES fp16)
vkf_kernel(matmul_wide__f32_f16_f32_fp16 matmul_wide.comp FEATURES fp16 DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_strided__f32_f32_f32 matmul_wide.comp DEFINES VKF_STRIDED=1)
vkf_kernel(matmul_strided__f32_f32_f32_subgroup matmul_wide.comp FEATURES subgroup
           DEFINES VKF_STRIDED=1)
vkf_kernel(matmul_stream__f32_f32_f32_int64 matmul_stream.comp FEATURES int64)
vkf_kernel(matmul_stream__f32_f16_f32_int64 matmul_stream.comp FEATURES int64
           DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_single__f32_f32_f32 matmul_rows.comp UNROLLED DEFINES VKF_LITERAL=1)
vkf_kernel(matmul_single__f32_f16_f32 matmul_rows.comp UNROLLED
           DEFINES VKF_LITERAL=1 VKF_WEIGHT_F16=1)
vkf_kernel(matmul_literal__f32_f32_f32_subgroup matmul_wide.comp UNROLLED FEATURES subgroup
           DEFINES VKF_LITERAL=1)
vkf_kernel(matmul_literal__f32_f16_f32_subgroup matmul_wide.comp UNROLLED FEATURES subgroup
           DEFINES VKF_LITERAL=1 VKF_WEIGHT_F16=1)
vkf_kernel(matmul_strided__f32_f32_f32_subgroup_literal matmul_wide.comp UNROLLED FEATURES subgroup
           DEFINES VKF_LITERAL=1 VKF_STRIDED=1)
vkf_kernel(matmul_slabs__f32_f32_f32_tables matmul_slabs.comp UNROLLED FEATURES tables)
vkf_kernel(matmul_stationary__f32_any_f32_tables matmul_stationary.comp UNROLLED FEATURES tables)
vkf_kernel(matmul_stationary__f32_any_f32_tables_short matmul_stationary.comp UNROLLED
           FEATURES tables DEFINES VKF_SHORT=1)
vkf_kernel(matmul_tiled__f32_f32_f32 matmul_tiled.comp)
vkf_kernel(matmul_tiled__f32_f16_f32 matmul_tiled.comp DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(matmul_parts__f32_any_f32 matmul_parts.comp)
# By cooperative matrices, weights in any format.
vkf_kernel(matmul_units__f32_any_f32_matrix matmul_units.comp FEATURES matrix)

# The same for weights in blocks: bfloat16 and quantised (params/weight_blocks.h).
vkf_kernel(matmul_rows__f32_blocks_f32 matmul_rows.comp DEFINES VKF_BLOCKS=1)
vkf_kernel(matmul_rows__f32_blocks_f32_int64 matmul_rows.comp FEATURES int64 DEFINES VKF_BLOCKS=1)
vkf_kernel(matmul_wide__f32_blocks_f32 matmul_wide.comp DEFINES VKF_BLOCKS=1)
vkf_kernel(matmul_wide__f32_blocks_f32_subgroup matmul_wide.comp FEATURES subgroup
           DEFINES VKF_BLOCKS=1)
vkf_kernel(matmul_stream__f32_blocks_f32_int64 matmul_stream.comp FEATURES int64
           DEFINES VKF_BLOCKS=1)
vkf_kernel(matmul_single__f32_blocks_f32 matmul_rows.comp UNROLLED
           DEFINES VKF_LITERAL=1 VKF_BLOCKS=1)
vkf_kernel(matmul_literal__f32_blocks_f32_subgroup matmul_wide.comp UNROLLED FEATURES subgroup
           DEFINES VKF_LITERAL=1 VKF_BLOCKS=1)
vkf_kernel(matmul_tiled__f32_blocks_f32 matmul_tiled.comp DEFINES VKF_BLOCKS=1)

# Recurrent models: a layer, one cell, their states' moves, and alignment.
vkf_kernel(recurrence_run__f32_f32_f32 recurrence.comp)
vkf_kernel(recurrence_run__f32_f16_f32 recurrence.comp DEFINES VKF_WEIGHT_F16=1)
vkf_kernel(recurrence_run__f32_blocks_f32 recurrence.comp DEFINES VKF_BLOCKS=1)
vkf_kernel(recurrent_cell_run__f32_none_f32 recurrent_cell.comp)
vkf_kernel(move_columns_run__f32_none_f32 move_columns.comp)
vkf_kernel(move_columns_step__f32_none_f32 move_columns.comp DEFINES VKF_STEP=1)
vkf_kernel(additive_attention_row__f32_f32_f32 additive_attention.comp)
vkf_kernel(additive_attention_step__f32_f32_f32 additive_attention.comp DEFINES VKF_STEP=1)

# Pictures of the application's images.
vkf_kernel(picture_values_run__u32_none_f32 picture_values.comp)

# What the device does at best; no model uses them.
vkf_kernel(roofline_fma__f32 roofline_fma.comp)
vkf_kernel(roofline_fma__f16_fp16 roofline_fma.comp FEATURES fp16)
vkf_kernel(roofline_fma__u32 roofline_fma.comp DEFINES VKF_INTEGER=1)
vkf_kernel(roofline_units__f16_matrix roofline_units.comp FEATURES matrix)
vkf_kernel(roofline_copy__f32 roofline_copy.comp)
vkf_kernel(roofline_copy__f32_int64 roofline_copy.comp FEATURES int64)

# Decoding steps on software devices, and what joins the parts of long ones.
vkf_kernel(attention_decode_lanes__f32_f32_f32_subgroup_int64 attention_decode_lanes.comp
           FEATURES subgroup int64)
vkf_kernel(attention_decode_lanes__f32_packed_f32_subgroup_int64 attention_decode_lanes.comp
           FEATURES subgroup int64 DEFINES VKF_PACKED=1)
vkf_kernel(attention_merge__f32_none_f32 attention_merge.comp)
vkf_kernel(lsh_hash_token__f32_f32_u32_subgroup lsh_hash.comp FEATURES subgroup)
# Attention by cooperative matrices.
vkf_kernel(attention_units__f32_f32_f32_matrix attention_units.comp FEATURES matrix)
vkf_kernel(attention_units_nv__f32_f32_f32_matrix2 attention_units_nv.comp FEATURES matrix matrix2)
