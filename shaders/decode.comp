#version 450
/* Attention of one query row for up to four heads of a group, which share every fetch of K and V; online softmax over
 * blocks of 256 keys. The keys that a row sees are consecutive, so only the last block is short. Per block: every
 * invocation scores 8 keys x 4 heads; the maxima are joined in shared memory; then invocations take columns of V.
 * Components of a vec4 named `by_head` belong to the heads of the record; those it lacks repeat the last one. */
#include "common.glsl"
#include "attention.glsl"

const uint HEADS = VKA_TILE_COLS;
const uint KEYS = 8u; /* per invocation */
const uint BLOCK = KEYS * VKA_LOCAL;
const uint COLUMNS = (V_PAD / 8u + VKA_LOCAL - 1u) / VKA_LOCAL; /* octets of V per invocation, rounded up */

shared vec4 weights[BLOCK];        /* by head */
shared uint values[BLOCK];         /* octet at which V of a key begins */
shared vec4 exchanged[VKA_LOCAL];  /* by head: maxima, at the end sums */

octet sums[COLUMNS][HEADS];

void score_keys(uint q_at[HEADS], uint k_at[KEYS], out vec4 by_head[KEYS])
{
    [[unroll]] for (uint t = 0u; t < KEYS; t++)
        by_head[t] = vec4(0.0);
    for (uint d = 0u; d < QK_PAD / 8u; d++) {
        octet query[HEADS];
        [[unroll]] for (uint h = 0u; h < HEADS; h++)
            query[h] = load_floats(q_at[h] + 2u * d);
        [[unroll]] for (uint t = 0u; t < KEYS; t++) {
            octet key = load_stored(k_at[t] + d);
            [[unroll]] for (uint h = 0u; h < HEADS; h++)
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    by_head[t][h] = fma(query[h].lo[i], key.lo[i], by_head[t][h]);
            [[unroll]] for (uint h = 0u; h < HEADS; h++)
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    by_head[t][h] = fma(query[h].hi[i], key.hi[i], by_head[t][h]);
        }
    }
}

/* Scores of key `key`, scaled and adjusted; seen.h: head h sees it. */
vec4 finish_scores(vec4 score, attention_tile tile, attention_heads heads, uint key, inout bvec4 seen)
{
    score *= scale;
    [[unroll]] for (uint h = 0u; h < HEADS; h++) {
        uint head = heads.q_begin + min(h, heads.q_count - 1u);
        score[h] = adjusted(score[h], tile, 0u, head, key);
        if (MASK)
            seen[h] = seen[h] && !is_masked(tile, 0u, head, key);
    }
    return score;
}

/* Scores of this invocation's keys into weights in shared memory; maximum and total are m and l by head, l of this
 * invocation's keys only. Returns the factors for old sums. */
vec4 weigh_keys(vec4 score[KEYS], bvec4 seen[KEYS], uint index, inout vec4 maximum, inout vec4 total)
{
    vec4 highest = maximum;
    [[unroll]] for (uint t = 0u; t < KEYS; t++)
        highest = max(highest, mix(vec4(LOWEST), score[t], seen[t]));
    exchanged[index] = highest;
    barrier();
    for (uint i = 0u; i < VKA_LOCAL; i++)
        highest = max(highest, exchanged[i]);

    vec4 factor;
    [[unroll]] for (uint h = 0u; h < HEADS; h++)
        factor[h] = rescale(maximum[h], highest[h]);
    total *= factor;
    [[unroll]] for (uint t = 0u; t < KEYS; t++) {
        vec4 weight = mix(vec4(0.0), exp(score[t] - highest), seen[t]);
        weights[index + t * VKA_LOCAL] = weight;
        total += weight;
    }
    maximum = highest;
    return factor;
}

/* Adds weights x V of `count` keys to all columns of this invocation. */
void add_values(uint index, uint count, vec4 factor)
{
    for (uint column = index, n = 0u; column < V_PAD / 8u; column += VKA_LOCAL, n++) {
        octet sum[HEADS];
        [[unroll]] for (uint h = 0u; h < HEADS; h++)
            sum[h] = octet(sums[n][h].lo * factor[h], sums[n][h].hi * factor[h]);
        for (uint key = 0u; key < count; key += 4u) {
            [[unroll]] for (uint c = 0u; c < 4u; c++) {
                vec4 weight = weights[key + c];
                octet value = load_stored(values[key + c] + column);
                [[unroll]] for (uint h = 0u; h < HEADS; h++) {
                    octet added = octet(fma(vec4(weight[h]), value.lo, sum[h].lo),
                                        fma(vec4(weight[h]), value.hi, sum[h].hi));
                    bvec4 skip = bvec4(MASK && weight[h] == 0.0); /* masked, perhaps: then not even times 0 */
                    sum[h] = octet(mix(added.lo, sum[h].lo, skip), mix(added.hi, sum[h].hi, skip));
                }
            }
        }
        [[unroll]] for (uint h = 0u; h < HEADS; h++)
            sums[n][h] = sum[h];
    }
}

void main()
{
    attention_tile tile = load_tile(gl_WorkGroupID.x);
    attention_heads heads = load_heads(gl_WorkGroupID.y);
    uint index = gl_LocalInvocationID.x;
    key_range range = visible_keys(tile, 0u);
    uint q_at[HEADS];
    [[unroll]] for (uint h = 0u; h < HEADS; h++)
        q_at[h] = (tile.row * push.q_stride + (heads.q_begin + min(h, heads.q_count - 1u)) * QK_PAD) / 4u;
    for (uint n = 0u; n < COLUMNS; n++)
        [[unroll]] for (uint h = 0u; h < HEADS; h++)
            sums[n][h] = octet(vec4(0.0), vec4(0.0));
    vec4 maximum = vec4(LOWEST);
    vec4 total = vec4(0.0);

    for (uint block = range.begin; block < range.end; block += BLOCK) {
        uint count = min(BLOCK, range.end - block);
        uint k_at[KEYS];
        [[unroll]] for (uint t = 0u; t < KEYS; t++) {
            uint i = index + t * VKA_LOCAL;
            uvec2 address = key_address(tile, heads.kv_head, block + min(i, count - 1u));
            k_at[t] = address.x;
            values[i] = address.y;
        }
        vec4 score[KEYS];
        score_keys(q_at, k_at, score);
        bvec4 seen[KEYS];
        [[unroll]] for (uint t = 0u; t < KEYS; t++) {
            uint i = index + t * VKA_LOCAL;
            seen[t] = bvec4(i < count);
            score[t] = finish_scores(score[t], tile, heads, block + min(i, count - 1u), seen[t]);
        }
        vec4 factor = weigh_keys(score, seen, index, maximum, total);
        barrier();
        add_values(index, count, factor);
        barrier();
    }

    exchanged[index] = total;
    barrier();
    total = vec4(0.0);
    for (uint i = 0u; i < VKA_LOCAL; i++)
        total += exchanged[i];
    for (uint h = 0u; h < heads.q_count; h++) {
        float by = divisor(heads.q_begin + h, maximum[h], total[h]);
        if (index == h)
            store_state(tile, 0u, heads.q_begin + h, maximum[h], total[h]);
        for (uint column = index, n = 0u; column < V_PAD / 8u; column += VKA_LOCAL, n++)
            store_output(tile, 0u, heads.q_begin + h, column, sums[n][h], by);
    }
}
