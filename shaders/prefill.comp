#version 450
/* Attention of a tile of query rows of one head, online softmax over blocks of 64 keys. Blocks begin at absolute
 * multiples of 64 and those that nobody in the tile sees are skipped, so a row's result does not depend on the other
 * rows. Per block: every invocation scores 8 rows x 8 keys in registers; then one invocation per row turns scores into
 * weights; then every invocation adds weights x V for 8 rows x 8 columns at a time. */
#include "common.glsl"
#include "attention.glsl"

const uint ROWS = 8u;       /* rows per invocation */
const uint LANES = 8u;      /* invocations that share these rows */
const uint BLOCK = 64u;     /* keys */
const uint QUADS = BLOCK / 4u;
const uint COLUMNS = (V_PAD / 8u + LANES - 1u) / LANES; /* octets of V per invocation, rounded up */

shared vec4 weights[VKA_TILE_ROWS][QUADS + 1u]; /* scores, then weights; one more against bank conflicts */
shared float factors[VKA_TILE_ROWS];            /* what old sums of a row are multiplied by; at the end divisors */
shared uvec2 addresses[2][BLOCK];               /* of this block and the next */

octet sums[COLUMNS][ROWS];

void score_block(attention_tile tile, uint head, uint row, uint lane, uint parity)
{
    uint q_at[ROWS];
    uint k_at[8];
    float score[8][ROWS];
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        q_at[r] = ((tile.row + min(row + r, tile.rows - 1u)) * push.q_stride + head * QK_PAD) / 4u;
    [[unroll]] for (uint c = 0u; c < 8u; c++) {
        k_at[c] = addresses[parity][lane * 8u + c].x;
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            score[c][r] = 0.0;
    }
    for (uint d = 0u; d < QK_PAD / 8u; d++) {
        octet query[ROWS];
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            query[r] = load_floats(q_at[r] + 2u * d);
        [[unroll]] for (uint c = 0u; c < 8u; c++) {
            octet key = load_stored(k_at[c] + d);
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                [[unroll]] for (uint r = 0u; r < ROWS; r++)
                    score[c][r] = fma(query[r].lo[i], key.lo[i], score[c][r]);
            [[unroll]] for (uint i = 0u; i < 4u; i++)
                [[unroll]] for (uint r = 0u; r < ROWS; r++)
                    score[c][r] = fma(query[r].hi[i], key.hi[i], score[c][r]);
        }
    }
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        weights[row + r][2u * lane] = vec4(score[0][r], score[1][r], score[2][r], score[3][r]) * scale;
        weights[row + r][2u * lane + 1u] = vec4(score[4][r], score[5][r], score[6][r], score[7][r]) * scale;
    }
}

bvec4 visible(attention_tile tile, uint row, uint head, key_range range, uint key)
{
    bvec4 seen = lessThan(key + uvec4(0u, 1u, 2u, 3u) - range.begin, uvec4(range.end - range.begin));
    if (MASK)
        [[unroll]] for (uint c = 0u; c < 4u; c++)
            seen[c] = seen[c] && !is_masked(tile, row, head, key + c);
    return seen;
}

/* Scores of a row into weights; state is (m, l). */
void weigh_row(attention_tile tile, uint row, uint head, uint block, key_range range, inout vec2 state)
{
    float maximum = state.x;
    for (uint i = 0u; i < QUADS; i++) {
        if (SOFTCAP || ALIBI || MASK)
            [[unroll]] for (uint c = 0u; c < 4u; c++)
                weights[row][i][c] = adjusted(weights[row][i][c], tile, row, head, block + 4u * i + c);
        vec4 score = mix(vec4(LOWEST), weights[row][i], visible(tile, row, head, range, block + 4u * i));
        maximum = max(maximum, max(max(score.x, score.y), max(score.z, score.w)));
    }
    vec4 total = vec4(0.0);
    for (uint i = 0u; i < QUADS; i++) {
        vec4 weight =
            mix(vec4(0.0), exp(weights[row][i] - maximum), visible(tile, row, head, range, block + 4u * i));
        weights[row][i] = weight;
        total += weight;
    }
    float factor = rescale(state.x, maximum);
    factors[row] = factor;
    state = vec2(maximum, state.y * factor + ((total.x + total.y) + (total.z + total.w)));
}

/* Adds weights x V over quads first .. last-1. V of a key that a row does not see is not used, not even times 0. */
void add_values(inout octet sum[ROWS], uint row, uint column, uint first, uint last, uint parity)
{
    for (uint quad = first; quad < last; quad++) {
        vec4 weight[ROWS];
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            weight[r] = weights[row + r][quad];
        [[unroll]] for (uint c = 0u; c < 4u; c++) {
            octet value = load_stored(addresses[parity][4u * quad + c].y + column);
            [[unroll]] for (uint r = 0u; r < ROWS; r++) {
                octet added = octet(fma(vec4(weight[r][c]), value.lo, sum[r].lo),
                                    fma(vec4(weight[r][c]), value.hi, sum[r].hi));
                bvec4 use = bvec4(weight[r][c] > 0.0);
                sum[r] = octet(mix(sum[r].lo, added.lo, use), mix(sum[r].hi, added.hi, use));
            }
        }
    }
}

/* `group` holds the keys that some of the eight rows sees. */
void add_block(uint row, uint lane, uint block, key_range group, uint parity)
{
    uint first = (max(group.begin, block) - block) / 4u;
    uint last = (min(group.end, block + BLOCK) - block + 3u) / 4u;
    for (uint column = lane, n = 0u; column < V_PAD / 8u; column += LANES, n++) {
        octet sum[ROWS];
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            float factor = factors[row + r];
            sum[r] = octet(sums[n][r].lo * factor, sums[n][r].hi * factor);
        }
        add_values(sum, row, column, first, last, parity);
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            sums[n][r] = sum[r];
    }
}

void main()
{
    attention_tile tile = load_tile(gl_WorkGroupID.x);
    attention_heads heads = load_heads(gl_WorkGroupID.y);
    uint index = gl_LocalInvocationID.x;
    uint lane = index % LANES;
    uint row = index / LANES * ROWS;
    for (uint n = 0u; n < COLUMNS; n++)
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            sums[n][r] = octet(vec4(0.0), vec4(0.0));

    key_range all = key_range(visible_keys(tile, 0u).begin, visible_keys(tile, tile.rows - 1u).end);
    uint last_row = min(row + ROWS, tile.rows) - 1u;
    key_range group = key_range(visible_keys(tile, row).begin, visible_keys(tile, last_row).end);
    key_range own = visible_keys(tile, index);
    if (index >= tile.rows || own.end <= own.begin)
        own = key_range(0u, 0u);
    vec2 state = vec2(LOWEST, 0.0);

    uint parity = 0u;
    for (uint block = all.begin / BLOCK * BLOCK; block < all.end; block += BLOCK) {
        bool busy = row < tile.rows && group.begin < block + BLOCK && block < group.end;
        for (uint i = index; i < BLOCK; i += VKA_LOCAL)
            addresses[parity][i] = key_address(tile, heads.kv_head, clamp(block + i, all.begin, all.end - 1u));
        barrier();
        if (busy)
            score_block(tile, heads.q_begin, row, lane, parity);
        barrier();
        weigh_row(tile, index, heads.q_begin, block, own, state);
        barrier();
        if (busy)
            add_block(row, lane, block, group, parity);
        parity = 1u - parity;
    }

    barrier();
    factors[index] = divisor(heads.q_begin, state.x, state.y);
    barrier();
    if (index < tile.rows)
        store_state(tile, index, heads.q_begin, state.x, state.y);
    for (uint column = lane, n = 0u; column < V_PAD / 8u; column += LANES, n++)
        for (uint r = 0u; r < ROWS; r++)
            if (row + r < tile.rows)
                store_output(tile, row + r, heads.q_begin, column, sums[n][r], factors[row + r]);
}
