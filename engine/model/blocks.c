/* The formats. Layouts of blocks: ggml's quantisation, as the gguf package of PyPI (0.19) reads them. Scales are F16,
 * little-endian. The K formats have super-blocks of 256: eight or sixteen groups with small integer scales of their
 * own, which one or two F16 scale. */
#include "model/blocks.h"

#include <stddef.h>
#include <string.h>

#include "base/half.h"
#include "base/threads.h"

enum { GRAIN = 256 }; /* blocks a thread takes at a time */

static float half_at(const unsigned char *bytes)
{
    return vka_f16_to_f32((uint16_t)(bytes[0] | bytes[1] << 8));
}

/* d | 32 signed bytes */
static void decode_q8_0(float *out, const unsigned char *block)
{
    float d = half_at(block);

    for (int i = 0; i < 32; i++)
        out[i] = (float)(int8_t)block[2 + i] * d;
}

/* d | 16 bytes: low halves are elements 0 .. 15, high ones 16 .. 31, each less 8 */
static void decode_q4_0(float *out, const unsigned char *block)
{
    float d = half_at(block);

    for (int i = 0; i < 16; i++) {
        out[i] = d * (float)((block[2 + i] & 15) - 8);
        out[16 + i] = d * (float)((block[2 + i] >> 4) - 8);
    }
}

/* Six-bit scale and minimum of group g < 8, packed in twelve bytes. */
typedef struct group_scale {
    float scale, least;
} group_scale;

static group_scale scale_of(const unsigned char *packed, int g)
{
    unsigned scale, least;

    if (g < 4) {
        scale = packed[g] & 63u;
        least = packed[4 + g] & 63u;
    } else {
        scale = (packed[4 + g] & 15u) | ((unsigned)packed[g - 4] >> 6 << 4);
        least = (unsigned)packed[4 + g] >> 4 | ((unsigned)packed[g] >> 6 << 4);
    }
    return (group_scale){(float)scale, (float)least};
}

/* d | dmin | scales 12 | [high bits 32] | 128 bytes of low halves: 64 elements in each 32 bytes */
static void decode_groups(float *out, const unsigned char *block, const unsigned char *high, const unsigned char *low)
{
    float d = half_at(block), least = half_at(block + 2);

    for (int g = 0; g < 8; g++) {
        group_scale s = scale_of(block + 4, g);
        float step = d * s.scale, offset = least * s.least;

        for (int i = 0; i < 32; i++) {
            unsigned bits = (unsigned)low[g / 2 * 32 + i] >> g % 2 * 4 & 15u;

            if (high != NULL)
                bits |= ((unsigned)high[i] >> g & 1u) << 4;
            float product = step * (float)bits; /* a statement of its own: not fused with the subtraction */
            out[32 * g + i] = product - offset;
        }
    }
}

static void decode_q4_k(float *out, const unsigned char *block)
{
    decode_groups(out, block, NULL, block + 16);
}

static void decode_q5_k(float *out, const unsigned char *block)
{
    decode_groups(out, block, block + 16, block + 48);
}

/* low halves 128 | upper two bits 64 | 16 signed scales | d; elements less 32, sixteen to a scale */
static void decode_q6_k(float *out, const unsigned char *block)
{
    const unsigned char *low = block, *high = block + 128, *scales = block + 192;
    float d = half_at(block + 208);

    for (int i = 0; i < 256; i++) {
        int part = i / 128, inside = i % 128, quarter = inside / 32, at = inside % 32;
        unsigned bits = (unsigned)low[64 * part + inside % 64] >> inside / 64 * 4 & 15u;

        bits |= ((unsigned)high[32 * part + at] >> 2 * quarter & 3u) << 4;
        out[i] = d * (float)(int8_t)scales[i / 16] * (float)((int)bits - 32);
    }
}

static const vka_block_format formats[] = {
    {"F32", 0, 1, 4, VKA_F32, NULL},
    {"F16", 1, 1, 2, VKA_F16, NULL},
    {"BF16", 30, 1, 2, VKA_BF16, NULL},
    {"Q4_0", 2, 32, 18, VKA_DTYPE_DEFAULT, decode_q4_0},
    {"Q8_0", 8, 32, 34, VKA_DTYPE_DEFAULT, decode_q8_0},
    {"Q4_K", 12, 256, 144, VKA_DTYPE_DEFAULT, decode_q4_k},
    {"Q5_K", 13, 256, 176, VKA_DTYPE_DEFAULT, decode_q5_k},
    {"Q6_K", 14, 256, 210, VKA_DTYPE_DEFAULT, decode_q6_k},
    /* known by size only */
    {"Q4_1", 3, 32, 20, VKA_DTYPE_DEFAULT, NULL},
    {"Q5_0", 6, 32, 22, VKA_DTYPE_DEFAULT, NULL},
    {"Q5_1", 7, 32, 24, VKA_DTYPE_DEFAULT, NULL},
    {"Q8_1", 9, 32, 40, VKA_DTYPE_DEFAULT, NULL},
    {"Q2_K", 10, 256, 84, VKA_DTYPE_DEFAULT, NULL},
    {"Q3_K", 11, 256, 110, VKA_DTYPE_DEFAULT, NULL},
    {"Q8_K", 15, 256, 292, VKA_DTYPE_DEFAULT, NULL},
    {"IQ2_XXS", 16, 256, 66, VKA_DTYPE_DEFAULT, NULL},
    {"IQ2_XS", 17, 256, 74, VKA_DTYPE_DEFAULT, NULL},
    {"IQ3_XXS", 18, 256, 98, VKA_DTYPE_DEFAULT, NULL},
    {"IQ1_S", 19, 256, 50, VKA_DTYPE_DEFAULT, NULL},
    {"IQ4_NL", 20, 32, 18, VKA_DTYPE_DEFAULT, NULL},
    {"IQ3_S", 21, 256, 110, VKA_DTYPE_DEFAULT, NULL},
    {"IQ2_S", 22, 256, 82, VKA_DTYPE_DEFAULT, NULL},
    {"IQ4_XS", 23, 256, 136, VKA_DTYPE_DEFAULT, NULL},
    {"I8", 24, 1, 1, VKA_DTYPE_DEFAULT, NULL},
    {"I16", 25, 1, 2, VKA_DTYPE_DEFAULT, NULL},
    {"I32", 26, 1, 4, VKA_DTYPE_DEFAULT, NULL},
    {"I64", 27, 1, 8, VKA_DTYPE_DEFAULT, NULL},
    {"F64", 28, 1, 8, VKA_DTYPE_DEFAULT, NULL},
    {"IQ1_M", 29, 256, 56, VKA_DTYPE_DEFAULT, NULL},
    {"TQ1_0", 34, 256, 54, VKA_DTYPE_DEFAULT, NULL},
    {"TQ2_0", 35, 256, 66, VKA_DTYPE_DEFAULT, NULL},
    {"MXFP4", 39, 32, 17, VKA_DTYPE_DEFAULT, NULL},
};

const vka_block_format *vka_block_format_find(uint32_t id)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (formats[i].id == id)
            return &formats[i];
    return NULL;
}

typedef struct decode_job {
    float *out;
    const vka_block_format *format;
    const unsigned char *data;
} decode_job;

static void decode_some(void *user, size_t begin, size_t end)
{
    const decode_job *job = user;

    for (size_t i = begin; i < end; i++)
        job->format->decode(job->out + i * job->format->elements, job->data + i * job->format->bytes);
}

void vka_blocks_decode(float *out, const vka_block_format *format, const void *data, uint64_t blocks)
{
    decode_job job = {out, format, data};

    vka_parallel_for((size_t)blocks, GRAIN, decode_some, &job);
}
