#version 450
/* Attention by one quad of invocations, which is a workgroup, for devices that gather what four invocations load (see
 * gemm_quad.comp): both products are made as there. A query is a row of one head: prefill takes eight rows, decoding
 * four heads of a row.
 *
 * Keys are taken in blocks. Scores: invocation l loads query l of a group of four, and key l of four; queries change places
 * within the quad, so that score [s] is of query l ^ s and key l. Weights lie in shared memory, where invocation l turns
 * those of query l. Values: invocation l loads four elements of a key; weights change places as the queries did.
 *
 * Blocks begin at multiples of their size, so what a row gets does not depend on the other rows. Where some queries do not
 * see a key its weight is zero; only if its value is not finite does that matter, and then the queries are computed again,
 * one by one, without the values whose weight is zero.
 *
 * Loops test at their end: see gemm_quad.comp. No branches in loops: the time in which SwiftShader compiles a loop doubles
 * with each; so no && and ?: either, but where an option is on that has them. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_quad : require
#include "common.glsl"
#define VKA_WORDWISE
#include "attention.glsl"
#include "quad.glsl"

const uint QUERIES = VKA_TILE_ROWS * VKA_TILE_COLS;
const bool HEADS = VKA_TILE_COLS > 1u; /* queries are heads of one row; else rows of one head */
const uint GROUPS = QUERIES / SIDE;
const uint KEYS = GROUPS > 1u ? 4u : 8u;   /* groups of four, whose scores are made together */
const uint PARTS = GROUPS > 1u ? 1u : 2u;  /* groups of four half octets of V, likewise */
const uint TILE = KEYS * SIDE;
const uint BLOCK = 128u; /* keys */
const uint QK_HALVES = QK_PAD / 4u;
const uint V_HALVES = V_PAD / 4u;
const uint V_TILES = (V_HALVES + PARTS * SIDE - 1u) / (PARTS * SIDE);
const uint TILE_SUMS = GROUPS * SIDE * PARTS;
#define HIDDEN 0xff800000u /* bits of the score of a key that is not seen */

/* Queries first .. first + count - 1 of the tile. */
struct pass {
    uint first;
    uint count;
};

shared vec4 weights[QUERIES][BLOCK / 4u]; /* scores first */
shared uvec4 values[BLOCK / 4u];          /* half octets at which V of four keys begins */

vec4 sums[V_TILES * TILE_SUMS]; /* of query l ^ s and half octet l: [V tile][group][s][part] */
/* Of query l of a group. */
float maxima[GROUPS];
float totals[GROUPS];
float factors[GROUPS]; /* what old sums are multiplied by; at the end divisors */

uint query_index(pass now, uint query)
{
    return now.first + min(query, now.count - 1u);
}

uint query_row(pass now, uint query)
{
    return HEADS ? 0u : query_index(now, query);
}

uint query_head(attention_heads heads, pass now, uint query)
{
    return heads.q_begin + (HEADS ? query_index(now, query) : 0u);
}

/* Where V of the keys of a block lies; keys that nobody sees repeat one that somebody sees. */
void find_values(attention_tile tile, uint kv_head, uint lane, uint block, key_range all)
{
    uint i = 0u;
    do {
        uint key = clamp(block + i + lane, all.begin, all.end - 1u);
        values[i / 4u][lane] = 2u * key_address(tile, kv_head, key).y;
        i += SIDE;
    } while (i < BLOCK);
}

/* Scores of the keys key .. key + TILE - 1 of a block. */
void score_tile(attention_tile tile, attention_heads heads, pass now, uint lane, uint block, uint key, key_range all)
{
    uint q_at[GROUPS];
    uint k_at[KEYS];
    float score[GROUPS][SIDE][KEYS];
    [[unroll]] for (uint c = 0u; c < KEYS; c++)
        k_at[c] = 2u * key_address(tile, heads.kv_head, clamp(key + SIDE * c + lane, all.begin, all.end - 1u)).x;
    [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
        uint query = SIDE * g + lane;
        uint row = tile.row + query_row(now, query);
        q_at[g] = (row * push.q_stride + query_head(heads, now, query) * QK_PAD) / 4u;
        [[unroll]] for (uint s = 0u; s < SIDE; s++)
            [[unroll]] for (uint c = 0u; c < KEYS; c++)
                score[g][s][c] = 0.0;
    }
    uint d = 0u;
    do {
        vec4 own_key[KEYS];
        [[unroll]] for (uint c = 0u; c < KEYS; c++)
            own_key[c] = load_half(k_at[c] + d);
        [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
            vec4 own = load_quad(q_at[g] + d);
            [[unroll]] for (uint s = 0u; s < SIDE; s++) {
                vec4 query = swapped(own, s);
                [[unroll]] for (uint c = 0u; c < KEYS; c++)
                    [[unroll]] for (uint i = 0u; i < 4u; i++)
                        score[g][s][c] = fma(query[i], own_key[c][i], score[g][s][c]);
            }
        }
        d++;
    } while (d < QK_HALVES);

    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        [[unroll]] for (uint s = 0u; s < SIDE; s++) {
            uint query = SIDE * g + (lane ^ s);
            uint row = query_row(now, query);
            uint head = query_head(heads, now, query);
            key_range seen = visible_keys(tile, row);
            uint count = max(seen.end, seen.begin) - seen.begin;
            [[unroll]] for (uint c = 0u; c < KEYS; c++) {
                uint own = key + SIDE * c + lane;
                bool visible = own - seen.begin < count;
                if (MASK)
                    visible = visible && !is_masked(tile, row, head, own);
                weights[query][(key - block) / 4u + c][lane] = mix(
                    uintBitsToFloat(HIDDEN), adjusted(score[g][s][c] * scale, tile, row, head, own), visible);
            }
        }
}

/* Scores of quads first .. last - 1 of a block into weights. */
void weigh_block(uint lane, uint first, uint last)
{
    uint g = 0u;
    do {
        uint query = SIDE * g + lane;
        float old = maxima[g];
        float maximum = old;
        uint i = first;
        do {
            vec4 score = weights[query][i];
            maximum = max(maximum, max(max(score.x, score.y), max(score.z, score.w)));
            i++;
        } while (i < last);

        float factor = rescale(old, maximum);
        vec4 total = vec4(0.0);
        i = first;
        do {
            vec4 score = weights[query][i];
            vec4 weight = mix(exp(score - maximum), vec4(0.0), equal(floatBitsToUint(score), uvec4(HIDDEN)));
            weights[query][i] = weight;
            total += weight;
            i++;
        } while (i < last);

        maxima[g] = maximum;
        factors[g] = factor;
        totals[g] = totals[g] * factor + ((total.x + total.y) + (total.z + total.w));
        g++;
    } while (g < GROUPS);
}

/* Adds weights x V of quads first .. last - 1 of a block to a tile of V. */
void add_values(pass now, uint lane, uint v_tile, uint first, uint last)
{
    uint column[PARTS];
    vec4 sum[GROUPS][SIDE][PARTS];
    [[unroll]] for (uint p = 0u; p < PARTS; p++)
        column[p] = min((v_tile * PARTS + p) * SIDE + lane, V_HALVES - 1u);
    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        [[unroll]] for (uint s = 0u; s < SIDE; s++) {
            float factor = swapped(factors[g], s);
            [[unroll]] for (uint p = 0u; p < PARTS; p++)
                sum[g][s][p] = sums[v_tile * TILE_SUMS + (g * SIDE + s) * PARTS + p] * factor;
        }
    float unused = now.count == 1u ? 0.0 : -1.0; /* weight of values to be left out */
    uint quad = first;
    do {
        uvec4 at = values[quad];
        vec4 value[4][PARTS];
        vec4 weight = weights[lane][quad];
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            [[unroll]] for (uint p = 0u; p < PARTS; p++)
                value[i][p] = mix(load_half(at[i] + column[p]), vec4(0.0), bvec4(weight[i] == unused));
        [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
            vec4 own = g == 0u ? weight : weights[SIDE * g + lane][quad];
            [[unroll]] for (uint s = 0u; s < SIDE; s++) {
                vec4 other = swapped(own, s);
                [[unroll]] for (uint p = 0u; p < PARTS; p++)
                    [[unroll]] for (uint c = 0u; c < 4u; c++)
                        [[unroll]] for (uint i = 0u; i < 4u; i++)
                            sum[g][s][p][c] = fma(other[i], value[i][p][c], sum[g][s][p][c]);
            }
        }
        quad++;
    } while (quad < last);
    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        [[unroll]] for (uint s = 0u; s < SIDE; s++)
            [[unroll]] for (uint p = 0u; p < PARTS; p++)
                sums[v_tile * TILE_SUMS + (g * SIDE + s) * PARTS + p] = sum[g][s][p];
}

void attend_block(attention_tile tile, attention_heads heads, pass now, uint lane, uint block, key_range all)
{
    uint first = (max(all.begin, block) - block) / 4u;
    uint last = (min(all.end, block + BLOCK) - block + 3u) / 4u;
    find_values(tile, heads.kv_head, lane, block, all);
    uint key = block + first / KEYS * TILE;
    do {
        score_tile(tile, heads, now, lane, block, key, all);
        key += TILE;
    } while (key < block + 4u * last);
    subgroupMemoryBarrierShared();
    weigh_block(lane, first, last);
    subgroupMemoryBarrierShared();
    uint v_tile = 0u;
    do {
        add_values(now, lane, v_tile, first, last);
        v_tile++;
    } while (v_tile < V_TILES);
}

void attend(attention_tile tile, attention_heads heads, pass now, uint lane)
{
    uint i = 0u;
    do {
        sums[i] = vec4(0.0);
        i++;
    } while (i < V_TILES * TILE_SUMS);
    [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
        maxima[g] = LOWEST;
        totals[g] = 0.0;
    }
    key_range all =
        key_range(visible_keys(tile, query_row(now, 0u)).begin, visible_keys(tile, query_row(now, QUERIES)).end);
    uint block = all.begin / BLOCK * BLOCK;
    if (all.begin < all.end) {
        do {
            attend_block(tile, heads, now, lane, block, all);
            block += BLOCK;
        } while (block < all.end);
    }
}

/* Bits, because compilers may assume that floats are finite. */
bool is_finite()
{
    vec4 sum = vec4(0.0);
    uint i = 0u;
    do {
        sum += abs(sums[i]);
        i++;
    } while (i < V_TILES * TILE_SUMS);
    float all = (sum.x + sum.y) + (sum.z + sum.w);
    all += subgroupQuadSwapHorizontal(all);
    all += subgroupQuadSwapVertical(all);
    return (floatBitsToUint(all) & 0x7f800000u) != 0x7f800000u;
}

/* One copy of the storing code, as sums are many. */
void store_queries(attention_tile tile, attention_heads heads, pass now, uint lane)
{
    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        factors[g] = divisor(query_head(heads, now, SIDE * g + lane), maxima[g], totals[g]);
    uint i = 0u;
    do {
        uint s = i / PARTS % SIDE;
        uint g = i / PARTS / SIDE % GROUPS;
        uint query = SIDE * g + (lane ^ s);
        uint column = (i / TILE_SUMS * PARTS + i % PARTS) * SIDE + lane;
        float own = factors[g], by = own;
        float other[3] = float[](swapped(own, 1u), swapped(own, 2u), swapped(own, 3u));
        [[unroll]] for (uint t = 1u; t < SIDE; t++)
            by = mix(by, other[t - 1u], s == t);
        if (max(query - min(query, now.count - 1u), column - min(column, V_HALVES - 1u)) == 0u)
            store_quad(tile, query_row(now, query), query_head(heads, now, query), column, sums[i], by);
        i++;
    } while (i < V_TILES * TILE_SUMS);

    uint g = 0u;
    do {
        uint query = SIDE * g + lane;
        if (query < now.count)
            store_state(tile, query_row(now, query), query_head(heads, now, query), maxima[g], totals[g]);
        g++;
    } while (g < GROUPS);
}

void main()
{
    attention_tile tile = load_tile(gl_WorkGroupID.x);
    attention_heads heads = load_heads(gl_WorkGroupID.y);
    uint lane = gl_SubgroupInvocationID;
    uint used = HEADS ? heads.q_count : tile.rows;
    pass now = pass(0u, used);
    do {
        attend(tile, heads, now, lane);
        if (now.count > 1u && !is_finite()) {
            now.count = 1u;
        } else {
            store_queries(tile, heads, now, lane);
            now.first += now.count;
        }
    } while (now.first < used);
}
