/* Q, K and V of an attention case as plain arrays, from its description alone. */
#ifndef VKA_TEST_KERNELS_ATTENTION_DATA_H
#define VKA_TEST_KERNELS_ATTENTION_DATA_H

#include "kernels/attention_case.h"

/* Element i of row, head. */
float case_q(const attention_case *c, uint32_t row, uint32_t head, uint32_t i);
/* Element i of key, KV head, as `dtype` holds it. */
float case_k(const attention_case *c, vka_dtype dtype, uint32_t key, uint32_t kv_head, uint32_t i);
float case_v(const attention_case *c, vka_dtype dtype, uint32_t key, uint32_t kv_head, uint32_t i);
/* Options. */
float case_sink(uint32_t head);
float case_slope(uint32_t head);
float case_mask(const attention_case *c, uint32_t row, uint32_t head, uint32_t key);
float case_gate(uint32_t row, uint32_t head, uint32_t i);
double case_scale(const attention_case *c);

#endif
