/* Keys at boundaries (first and last key, diagonal of the first and last row and what comes after it, both ends of the
 * window, pages, splits, the kernels' blocks) score higher than the rest and have values found nowhere else, so that
 * one key too many or too few is seen. */
#include "kernels/attention_data.h"

#include <math.h>

static bool beside(int64_t key, int64_t boundary)
{
    return key == boundary || key == boundary - 1;
}

static bool is_planted(const attention_case *c, uint32_t key)
{
    int64_t first = c->position;
    int64_t last = first + c->rows - 1;
    bool planted = key == 0 || key + 1 == c->keys || key % 64 == 0 || key % 64 == 63;
    planted = planted || beside(key, first + 1) || beside(key, last + 1);
    planted = planted || (c->window > 0 && (beside(key, first - c->window + 1) || beside(key, last - c->window + 1)));
    planted = planted ||
              (c->window_right > 0 && (beside(key, first + c->window_right) || beside(key, last + c->window_right)));
    planted = planted || (c->page_size > 4 && (key % c->page_size == 0 || (key + 1) % c->page_size == 0));
    for (uint32_t s = 1; s < c->splits; s++)
        planted = planted || beside(key, (int64_t)c->keys * s / c->splits);
    return planted;
}

double case_scale(const attention_case *c)
{
    return 1 / sqrt(c->qk_dim);
}

static float amplitude(const attention_case *c)
{
    return c->amplitude > 0 ? c->amplitude : 1;
}

float case_q(const attention_case *c, uint32_t row, uint32_t head, uint32_t i)
{
    float value = i == 0 ? 2 : noise(20 + head, row * 1000 + i);
    return value * amplitude(c);
}

float case_sink(uint32_t head)
{
    return 1.5f + noise(140, head);
}

float case_slope(uint32_t head)
{
    return 0.25f / (float)(1 + head);
}

/* From every row and head. */
static bool is_hidden_key(const attention_case *c, uint32_t key)
{
    return c->mask == MASK_KEYS && (key % 11 == 5 || key + 3 >= c->keys);
}

float case_mask(const attention_case *c, uint32_t row, uint32_t head, uint32_t key)
{
    if (c->mask == MASK_NONE)
        return 0;
    if (c->mask == MASK_KEYS)
        return is_hidden_key(c, key) ? -INFINITY : noise(150, key);
    if (row % 7 == 5) /* sees nothing */
        return -INFINITY;
    if (c->mask == MASK_ROWS)
        return noise(151, row);
    return (row + head + key) % 5 == 3 ? -INFINITY : noise(152 + head, row * 10000 + key);
}

float case_gate(uint32_t row, uint32_t head, uint32_t i)
{
    return 0.5f + 0.5f * noise(180 + head, row * 1000 + i);
}

float case_k(const attention_case *c, vka_dtype dtype, uint32_t key, uint32_t kv_head, uint32_t i)
{
    if (is_hidden_key(c, key))
        return NAN;
    float value = noise(60 + kv_head, (c->equal_keys ? 0 : key) * 1000 + i);
    if (i == 0 && is_planted(c, key) && !c->equal_keys)
        value = 1.5f / (float)case_scale(c); /* a score of 3 more */
    return rounded(value * amplitude(c), dtype);
}

float case_v(const attention_case *c, vka_dtype dtype, uint32_t key, uint32_t kv_head, uint32_t i)
{
    if (c->v_in_k)
        return case_k(c, dtype, key, kv_head, i);
    float value = noise(100 + kv_head, key * 1000 + i) + 0.25f * (float)kv_head;
    if ((c->bad_key > 0 && key == c->bad_key) || is_hidden_key(c, key))
        return NAN;
    if (is_planted(c, key))
        value += 2 + (float)(key % 29) / 8;
    return rounded(value, dtype);
}
