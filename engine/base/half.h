/* Conversion between F32 and the 16-bit formats: round to nearest even, subnormals kept, NaN stays NaN, overflow to
 * infinity. */
#ifndef VKA_BASE_HALF_H
#define VKA_BASE_HALF_H

#include <stddef.h>
#include <stdint.h>

#include "vkattn/tensor.h"

uint16_t vka_f32_to_f16(float value);
float vka_f16_to_f32(uint16_t bits);
uint16_t vka_f32_to_bf16(float value);
float vka_bf16_to_f32(uint16_t bits);

/* Converts `count` elements; source and destination may be unaligned and must not overlap unless types are equal and
 * pointers too. */
void vka_convert(void *out, vka_dtype out_type, const void *in, vka_dtype in_type, size_t count);

#endif
