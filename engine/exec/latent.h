/* Latent attention (DeepSeek's MLA) on one device. The cache holds one vector per token, [normed latent | turned part
 * of K], and K and V of no head are ever made: since (W_uk latent) . q = latent . (W_uk^T q), each query head takes
 * W_uk into itself and attends over latents, and W_uv is applied to the sum of latents that attention returns. So the
 * layer runs the ordinary attention kernels with one KV head, all query heads in its group, and V as a view of K.
 *
 *     hidden -> [Q's latent | latent | K rotary]      qkv; without q_lora_rank [Q plain | Q rotary | latent | K rotary]
 *     RMSNorm of Q's latent -> [Q plain | Q rotary]   q_up: first the plain parts of all heads, then the rotary ones
 *     per head [W_uk^T plain | turned rotary]         k_up, epilogue: the query
 *     RMSNorm of the latent | turned K rotary         epilogue: the cache
 *     attention, then per head W_uv                   v_up
 *
 * Every part is padded to a multiple of 8 (vka_latent). Heads are sharded, what belongs to no head is on every device.
 */
#ifndef VKA_EXEC_LATENT_H
#define VKA_EXEC_LATENT_H

#include "exec/forward.h"

/* latent_weights.c: all matrices but the output projection, and the norm weights. */
vka_status latent_weights_create(vka_layer *layer, uint32_t device, const vka_layer_weights *weights, vka_error *error);

/* Floats between rows of Q from its latent. */
uint32_t latent_q_stride(const vka_layer *layer, const vka_shard *shard);

/* What the epilogues of a layer do. */
void latent_epilogues(const vka_layer *layer, epilogue_kind kinds[EPILOGUE_PARTS]);

/* Floats of the widest scratch row and operations of the projections of one row, with `q_heads` heads. */
uint64_t latent_widest_row(const vka_layer *layer, uint32_t q_heads);
double latent_projection_flops(const vka_layer *layer, uint32_t q_heads);

/* After the first projection: Q from its latent. Nothing to do without q_lora_rank. */
vka_status latent_record_q(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                           vka_error *error);
/* The queries: W_uk taken in, the rotary part turned. */
vka_status latent_record_queries(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                 vka_error *error);
/* After attention: values from sums of latents. */
vka_status latent_record_values(forward_call *call, const forward_chunk *chunk, forward_device *device, recorder *rec,
                                vka_error *error);

#endif
