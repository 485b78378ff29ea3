/* What scores go through between the scaled product and the softmax; everything is optional. */

layout(constant_id = 3) const bool SOFTCAP = false;
layout(constant_id = 4) const bool ALIBI = false;
layout(constant_id = 5) const bool MASK = false;

/* Good to 2^-21 everywhere, and to a few units in the last place where x is small: the built-in may be
 * sinh(x) / cosh(x), which is neither for small x nor for large. */
float hyperbolic_tangent(float x)
{
    float size = abs(x);
    float square = x * x;
    float far = 1.0 - 2.0 / (exp(2.0 * size) + 1.0);
    float series = fma(square, fma(square, fma(square, 62.0 / 2835.0, -17.0 / 315.0), 2.0 / 15.0), -1.0 / 3.0);
    float near = fma(size * square, series, size);
    float result = size < 0.25 ? near : far;
    return x < 0.0 ? -result : result;
}

float mask_of(attention_tile tile, uint row, uint head, uint key)
{
    uint query = push.mask_first_row + tile.row + min(row, tile.rows - 1u); /* prefill asks for rows past the end */
    uint batch = query / push.mask_queries;
    uint at = push.mask_offset + batch * push.mask_batch_stride + head * push.mask_head_stride +
              (query - batch * push.mask_queries) * push.mask_row_stride +
              min(key, push.mask_keys - 1u) * push.mask_key_stride;
    return load_quad(at / 4u)[at % 4u];
}

/* Told from the bits of the mask, never from a score: compilers may assume that floats are finite. */
bool is_masked(attention_tile tile, uint row, uint head, uint key)
{
    return key >= push.mask_keys || floatBitsToUint(mask_of(tile, row, head, key)) == 0xff800000u;
}

/* Of a key that is not masked. */
float adjusted(float score, attention_tile tile, uint row, uint head, uint key)
{
    if (SOFTCAP)
        score = push.softcap * hyperbolic_tangent(score / push.softcap);
    if (ALIBI)
        score += uintBitsToFloat(parameters[push.slopes_offset + head]) * float(int(key) - tile.position - int(row));
    if (MASK)
        score += mask_of(tile, row, head, key);
    return score;
}
