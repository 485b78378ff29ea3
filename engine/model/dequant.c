/* Blocks of quantised weights -> float32. Layouts and formulas: ggml's block_q4_0, block_q8_0, block_q4_K, block_q5_K
 * and block_q6_K, and gguf/quants.py, whose order of operations is kept. Compiled without contraction of a * b - c
 * (CMakeLists.txt), which would differ from it in the last bit. */
#include "model/dequant.h"

#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "base/threads.h"

enum { SMALL = 32, LARGE = 256, GRAIN = 64 }; /* elements of a block; blocks that are decoded in one go */

static float read_half(const unsigned char *at)
{
    uint16_t bits;

    memcpy(&bits, at, sizeof(bits));
    return vka_f16_to_f32(bits);
}

/* [scale f16][32 signed bytes] */
static void decode_q8_0(float *out, const unsigned char *block)
{
    float scale = read_half(block);

    for (int i = 0; i < SMALL; i++)
        out[i] = (float)(int8_t)block[2 + i] * scale;
}

/* [scale f16][16 bytes: low halves are elements 0 .. 15, high halves 16 .. 31], less 8 */
static void decode_q4_0(float *out, const unsigned char *block)
{
    float scale = read_half(block);

    for (int i = 0; i < SMALL / 2; i++) {
        out[i] = scale * (float)((block[2 + i] & 15) - 8);
        out[i + SMALL / 2] = scale * (float)((block[2 + i] >> 4) - 8);
    }
}

/* The 6-bit scale and minimum of the sub-block i of 8, from 12 bytes. */
static void k_scale(const unsigned char *packed, int i, unsigned *scale, unsigned *minimum)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *minimum = packed[i + 4] & 63;
    } else {
        *scale = (packed[i + 4] & 15u) | (packed[i - 4] >> 2 & 48u);
        *minimum = (packed[i + 4] >> 4) | (packed[i] >> 2 & 48u);
    }
}

/* [scale f16][scale of minima f16][12 bytes of scales and minima]([32 bytes: bit i is bit 4 of sub-block i])[128 bytes:
 * 32 for two sub-blocks of 32 each, in low and high halves] */
static void decode_k(float *out, const unsigned char *block, const unsigned char *fifth, const unsigned char *quads)
{
    float scale = read_half(block), scale_of_minima = read_half(block + 2);

    for (int sub = 0; sub < 8; sub++) {
        unsigned part, least;

        k_scale(block + 4, sub, &part, &least);
        float step = scale * (float)part, minimum = scale_of_minima * (float)least;
        for (int i = 0; i < SMALL; i++) {
            unsigned value = quads[sub / 2 * SMALL + i] >> (sub % 2 * 4) & 15u;

            if (fifth)
                value |= (fifth[i] >> sub & 1u) << 4;
            float product = step * (float)value;
            out[sub * SMALL + i] = product - minimum;
        }
    }
}

static void decode_q4_k(float *out, const unsigned char *block)
{
    decode_k(out, block, NULL, block + 16);
}

static void decode_q5_k(float *out, const unsigned char *block)
{
    decode_k(out, block, block + 16, block + 48);
}

/* [128 bytes of low 4 bits][64 bytes of high 2 bits][16 signed scales][scale f16], less 32. Each half of 128 elements
 * has 64 bytes of low and 32 of high bits; its four runs of 32 take their low bits from bytes 0 .. 31 and 32 .. 63, low
 * halves first. */
static void decode_q6_k(float *out, const unsigned char *block)
{
    float scale = read_half(block + 208);

    for (int i = 0; i < LARGE; i++) {
        int half = i / 128, run = i % 128 / 32, at = i % 32;
        unsigned low = block[half * 64 + run % 2 * 32 + at] >> (run / 2 * 4) & 15u;
        unsigned high = block[128 + half * 32 + at] >> (run * 2) & 3u;
        float step = scale * (float)(int8_t)block[192 + i / 16];

        out[i] = step * (float)((int)(low | high << 4) - 32);
    }
}

#define OTHER VKA_DTYPE_DEFAULT

static const vka_ggml_type types[] = {
    {0, "F32", 1, 4, VKA_F32, NULL},
    {1, "F16", 1, 2, VKA_F16, NULL},
    {2, "Q4_0", SMALL, 18, OTHER, decode_q4_0},
    {3, "Q4_1", SMALL, 20, OTHER, NULL},
    {6, "Q5_0", SMALL, 22, OTHER, NULL},
    {7, "Q5_1", SMALL, 24, OTHER, NULL},
    {8, "Q8_0", SMALL, 34, OTHER, decode_q8_0},
    {9, "Q8_1", SMALL, 40, OTHER, NULL},
    {10, "Q2_K", LARGE, 84, OTHER, NULL},
    {11, "Q3_K", LARGE, 110, OTHER, NULL},
    {12, "Q4_K", LARGE, 144, OTHER, decode_q4_k},
    {13, "Q5_K", LARGE, 176, OTHER, decode_q5_k},
    {14, "Q6_K", LARGE, 210, OTHER, decode_q6_k},
    {15, "Q8_K", LARGE, 292, OTHER, NULL},
    {16, "IQ2_XXS", LARGE, 66, OTHER, NULL},
    {17, "IQ2_XS", LARGE, 74, OTHER, NULL},
    {18, "IQ3_XXS", LARGE, 98, OTHER, NULL},
    {19, "IQ1_S", LARGE, 50, OTHER, NULL},
    {20, "IQ4_NL", SMALL, 18, OTHER, NULL},
    {21, "IQ3_S", LARGE, 110, OTHER, NULL},
    {22, "IQ2_S", LARGE, 82, OTHER, NULL},
    {23, "IQ4_XS", LARGE, 136, OTHER, NULL},
    {24, "I8", 1, 1, OTHER, NULL},
    {25, "I16", 1, 2, OTHER, NULL},
    {26, "I32", 1, 4, OTHER, NULL},
    {27, "I64", 1, 8, OTHER, NULL},
    {28, "F64", 1, 8, OTHER, NULL},
    {29, "IQ1_M", LARGE, 56, OTHER, NULL},
    {30, "BF16", 1, 2, VKA_BF16, NULL},
    {34, "TQ1_0", LARGE, 54, OTHER, NULL},
    {35, "TQ2_0", LARGE, 66, OTHER, NULL},
    {39, "MXFP4", SMALL, 17, OTHER, NULL},
};

const vka_ggml_type *vka_ggml_type_of(uint32_t number)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i].number == number)
            return &types[i];
    return NULL;
}

typedef struct job {
    float *out;
    const vka_ggml_type *type;
    const unsigned char *data;
} job;

static void decode_blocks(void *user, size_t begin, size_t end)
{
    const job *j = user;

    for (size_t i = begin; i < end; i++)
        j->type->decode(j->out + i * j->type->block, j->data + i * j->type->block_bytes);
}

void vka_dequantise(float *out, const vka_ggml_type *type, const void *data, uint64_t blocks)
{
    job j = {out, type, data};

    vka_parallel_for((size_t)blocks, GRAIN, decode_blocks, &j);
}
