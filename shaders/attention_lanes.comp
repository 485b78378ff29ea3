#version 450
/* Attention by one subgroup of eight invocations, which is a workgroup: no shared memory, no barriers. A query is a row
 * of one head: prefill takes eight rows, decoding four heads of a row, and all share each fetch of K and V.
 *
 * Lane l reads octets l and l + 8 of a chunk of 128 elements, of queries and keys for the scores, of values for the
 * output; queries and output stay in registers. Partial dot products are then added across the lanes, four queries x
 * two keys at a time, so that lane l holds query l % 4 of a group with key l / 4 of a pair: there weights are computed
 * once each, and given to all lanes by shuffles.
 *
 * Blocks of four keys begin at multiples of four from the start of a page, so what a row gets does not depend on the
 * other rows. Where some rows do not see a key its weight is zero; only if its value is not finite does that matter,
 * and then the rows are computed again, one by one.
 *
 * K and V of a block are fetched before anything is computed from them, so that the waits for memory overlap.
 *
 * Loops test at their end: a device that runs the lanes as one vector pays for a last round with all of them masked. */
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common.glsl"
#include "attention.glsl"

const uint QUERIES = VKA_TILE_ROWS * VKA_TILE_COLS;
const bool HEADS = VKA_TILE_COLS > 1u; /* queries are heads of one row; else rows of one head */
const uint GROUPS = QUERIES / 4u;
const uint BLOCK = 4u; /* keys */
const uint PAIRS = BLOCK / 2u;
const uint LANES = 8u;
const uint COLUMNS = 2u; /* octets of a lane */
const uint CHUNK = COLUMNS * LANES;
const uint QK_OCTETS = QK_PAD / 8u;
const uint V_OCTETS = V_PAD / 8u;
const uint QK_CHUNKS = (QK_OCTETS + CHUNK - 1u) / CHUNK;
const uint V_CHUNKS = (V_OCTETS + CHUNK - 1u) / CHUNK;

/* Queries first .. first + count - 1 of the tile, and chunk `chunk` of V. */
struct pass {
    uint first;
    uint count;
    uint chunk;
};

octet queries[COLUMNS][QUERIES];
octet sums[COLUMNS][QUERIES];
packed_octet values[COLUMNS][BLOCK]; /* of a block */
float weights[GROUPS][PAIRS]; /* scores first */
float maxima[GROUPS];
float totals[GROUPS]; /* of the keys of this lane only */
float factors[GROUPS];

uint query_row(pass now, uint query)
{
    return HEADS ? 0u : now.first + min(query, now.count - 1u);
}

uint query_head(pass now, uint query)
{
    return HEADS ? min(query, now.count - 1u) : 0u;
}

/* Octet `column` of a lane in a chunk of vectors of `octets`; past their end the last one. */
uint octet_of(uint lane, uint chunk, uint column, uint octets)
{
    return min(chunk * CHUNK + column * LANES + lane, octets - 1u);
}

/* Whether the octets of a column may pass the end, for some lane. */
bool is_ragged(uint chunk, uint column, uint octets)
{
    return chunk * CHUNK + (column + 1u) * LANES > octets;
}

void load_queries(attention_tile tile, attention_heads heads, pass now, uint lane, uint chunk)
{
    [[unroll]] for (uint i = 0u; i < QUERIES; i++) {
        uint head = heads.q_begin + query_head(now, i);
        uint at = ((tile.row + query_row(now, i)) * push.q_stride + head * QK_PAD) / 4u;
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++) {
            octet query = load_floats(at + 2u * octet_of(lane, chunk, n, QK_OCTETS));
            if (is_ragged(chunk, n, QK_OCTETS)) {
                bvec4 past = bvec4(chunk * CHUNK + n * LANES + lane >= QK_OCTETS);
                query = octet(mix(query.lo, vec4(0.0), past), mix(query.hi, vec4(0.0), past));
            }
            queries[n][i] = query;
        }
    }
}

float add_dot(octet a, octet b, float sum)
{
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        sum = fma(a.lo[i], b.lo[i], sum);
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        sum = fma(a.hi[i], b.hi[i], sum);
    return sum;
}

/* Adds a and b over pairs of lanes that differ in `bit`: where it is clear the sum of a comes out, else that of b. */
float fold(float a, float b, uint lane, uint bit)
{
    bool upper = (lane & bit) != 0u;
    return (upper ? b : a) + subgroupShuffleXor(upper ? a : b, bit);
}

/* `at`: the octet at which K of each key begins. */
void score_block(attention_tile tile, attention_heads heads, pass now, uint lane, uint at[BLOCK])
{
    float partial[BLOCK][QUERIES];
    [[unroll]] for (uint k = 0u; k < BLOCK; k++)
        [[unroll]] for (uint i = 0u; i < QUERIES; i++)
            partial[k][i] = 0.0;
    uint chunk = 0u;
    do {
        if (QK_CHUNKS > 1u)
            load_queries(tile, heads, now, lane, chunk);
        packed_octet keys[COLUMNS][BLOCK];
        [[unroll]] for (uint k = 0u; k < BLOCK; k++)
            [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
                if (n * LANES < QK_OCTETS)
                    keys[n][k] = fetch_stored(at[k] + octet_of(lane, chunk, n, QK_OCTETS));
        [[unroll]] for (uint k = 0u; k < BLOCK; k++) {
            [[unroll]] for (uint n = 0u; n < COLUMNS; n++) {
                if (n * LANES < QK_OCTETS) {
                    octet key = unpacked(keys[n][k]);
                    [[unroll]] for (uint i = 0u; i < QUERIES; i++)
                        partial[k][i] = add_dot(queries[n][i], key, partial[k][i]);
                }
            }
        }
        chunk++;
    } while (chunk < QK_CHUNKS);

    [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
        [[unroll]] for (uint p = 0u; p < PAIRS; p++) {
            float of_key[2];
            [[unroll]] for (uint k = 0u; k < 2u; k++) {
                float even = fold(partial[2u * p + k][4u * g], partial[2u * p + k][4u * g + 1u], lane, 1u);
                float odd = fold(partial[2u * p + k][4u * g + 2u], partial[2u * p + k][4u * g + 3u], lane, 1u);
                of_key[k] = fold(even, odd, lane, 2u);
            }
            weights[g][p] = fold(of_key[0], of_key[1], lane, 4u);
        }
    }
}

/* Scores into weights. `key`: the first of the block; `seen`: what the lane's query of each group sees of the page. */
void weigh_block(attention_tile tile, attention_heads heads, pass now, uint lane, uint key, key_range seen[GROUPS])
{
    [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
        uint row = query_row(now, 4u * g + lane % 4u);
        uint head = heads.q_begin + query_head(now, 4u * g + lane % 4u);
        bool visible[PAIRS];
        float maximum = maxima[g];
        [[unroll]] for (uint p = 0u; p < PAIRS; p++) {
            uint own = key + 2u * p + lane / 4u;
            visible[p] = own >= seen[g].begin && own < seen[g].end;
            if (MASK)
                visible[p] = visible[p] && !is_masked(tile, row, head, own);
            weights[g][p] =
                visible[p] ? adjusted(weights[g][p] * scale, tile, row, head, own) : LOWEST;
            maximum = max(maximum, weights[g][p]);
        }
        maximum = max(maximum, subgroupShuffleXor(maximum, 4u));
        factors[g] = rescale(maxima[g], maximum);
        maxima[g] = maximum;
        totals[g] *= factors[g];
        [[unroll]] for (uint p = 0u; p < PAIRS; p++) {
            weights[g][p] = visible[p] ? exp(weights[g][p] - maximum) : 0.0;
            totals[g] += weights[g][p];
        }
    }
}

/* `at`: the octet at which V of each key begins. */
void fetch_values(pass now, uint lane, uint at[BLOCK])
{
    [[unroll]] for (uint k = 0u; k < BLOCK; k++)
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
            if (n * LANES < V_OCTETS)
                values[n][k] = fetch_stored(at[k] + octet_of(lane, now.chunk, n, V_OCTETS));
}

void add_values()
{
    octet value[COLUMNS][BLOCK];
    [[unroll]] for (uint k = 0u; k < BLOCK; k++)
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
            if (n * LANES < V_OCTETS)
                value[n][k] = unpacked(values[n][k]);
    [[unroll]] for (uint i = 0u; i < QUERIES; i++) {
        float factor = subgroupShuffle(factors[i / 4u], i % 4u);
        float weight[BLOCK];
        [[unroll]] for (uint k = 0u; k < BLOCK; k++)
            weight[k] = subgroupShuffle(weights[i / 4u][k / 2u], k % 2u * 4u + i % 4u);
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++) {
            if (n * LANES < V_OCTETS) {
                [[unroll]] for (uint c = 0u; c < 4u; c++) {
                    float lo = sums[n][i].lo[c] * factor;
                    float hi = sums[n][i].hi[c] * factor;
                    [[unroll]] for (uint k = 0u; k < BLOCK; k++) {
                        bool skip = MASK && weight[k] == 0.0; /* masked, perhaps: then not even times 0 */
                        lo = skip ? lo : fma(weight[k], value[n][k].lo[c], lo);
                        hi = skip ? hi : fma(weight[k], value[n][k].hi[c], hi);
                    }
                    sums[n][i].lo[c] = lo;
                    sums[n][i].hi[c] = hi;
                }
            }
        }
    }
}

/* All blocks of the page that begins at key `start`; `all` is what some query sees. */
void attend_page(attention_tile tile, attention_heads heads, pass now, uint lane, uint page, key_range all,
                 key_range seen[GROUPS])
{
    uvec2 base = page_address(tile, heads.kv_head, page);
    uint start = page * page_size;
    uint end = min(start + page_size, all.end);
    uint key = start + (max(all.begin, start) - start) / BLOCK * BLOCK;
    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        seen[g].end = min(seen[g].end, end);
    do {
        uint k_at[BLOCK];
        uint v_at[BLOCK];
        [[unroll]] for (uint k = 0u; k < BLOCK; k++) {
            uint slot = clamp(key + k, all.begin, end - 1u) - start;
            k_at[k] = base.x + slot * QK_OCTETS;
            v_at[k] = base.y + slot * (V_STRIDE / 8u);
        }
        fetch_values(now, lane, v_at);
        score_block(tile, heads, now, lane, k_at);
        weigh_block(tile, heads, now, lane, key, seen);
        add_values();
        key += BLOCK;
    } while (key < end);
}

void attend(attention_tile tile, attention_heads heads, pass now, uint lane)
{
    key_range seen[GROUPS];
    [[unroll]] for (uint g = 0u; g < GROUPS; g++) {
        seen[g] = visible_keys(tile, query_row(now, 4u * g + lane % 4u));
        maxima[g] = LOWEST;
        totals[g] = 0.0;
    }
    [[unroll]] for (uint i = 0u; i < QUERIES; i++)
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
            sums[n][i] = octet(vec4(0.0), vec4(0.0));
    if (QK_CHUNKS == 1u)
        load_queries(tile, heads, now, lane, 0u);

    key_range all =
        key_range(visible_keys(tile, query_row(now, 0u)).begin, visible_keys(tile, query_row(now, QUERIES)).end);
    uint page = all.begin / page_size;
    if (all.begin < all.end) {
        do {
            attend_page(tile, heads, now, lane, page, all, seen);
            page++;
        } while (page * page_size < all.end);
    }
    [[unroll]] for (uint g = 0u; g < GROUPS; g++)
        totals[g] += subgroupShuffleXor(totals[g], 4u);
}

/* Bits, because compilers may assume that floats are finite. */
bool is_finite(uint lane)
{
    float sum = 0.0;
    [[unroll]] for (uint i = 0u; i < QUERIES; i++)
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
            [[unroll]] for (uint c = 0u; c < 4u; c++)
                sum += sums[n][i].lo[c] + sums[n][i].hi[c];
    [[unroll]] for (uint bit = 1u; bit < LANES; bit *= 2u)
        sum += subgroupShuffleXor(sum, bit);
    return (floatBitsToUint(sum) & 0x7f800000u) != 0x7f800000u;
}

/* Stores the first query and moves the others down, so that there is one copy of the storing code. */
void store_queries(attention_tile tile, attention_heads heads, pass now, uint lane)
{
    uint query = 0u;
    do {
        uint row = query_row(now, query);
        uint head = heads.q_begin + query_head(now, query);
        float maximum = subgroupShuffle(maxima[0], query % 4u);
        float total = subgroupShuffle(totals[0], query % 4u);
        float by = divisor(head, maximum, total);
        [[unroll]] for (uint n = 0u; n < COLUMNS; n++) {
            uint column = now.chunk * CHUNK + n * LANES + lane;
            if (column < V_OCTETS)
                store_output(tile, row, head, column, sums[n][0], by);
        }
        if (lane == 0u)
            store_state(tile, row, head, maximum, total);
        [[unroll]] for (uint i = 1u; i < QUERIES; i++)
            [[unroll]] for (uint n = 0u; n < COLUMNS; n++)
                sums[n][i - 1u] = sums[n][i];
        query++;
        if (query % 4u == 0u) {
            [[unroll]] for (uint g = 1u; g < GROUPS; g++) {
                maxima[g - 1u] = maxima[g];
                totals[g - 1u] = totals[g];
            }
        }
    } while (query < now.count);
}

void main()
{
    attention_tile tile = load_tile(gl_WorkGroupID.x);
    attention_heads heads = load_heads(gl_WorkGroupID.y);
    uint lane = gl_SubgroupInvocationID;
    uint used = HEADS ? heads.q_count : tile.rows;
    pass now = pass(0u, used, 0u);
    do {
        attend(tile, heads, now, lane);
        if (!HEADS && now.count > 1u && !is_finite(lane)) {
            now.count = 1u;
        } else {
            store_queries(tile, heads, now, lane);
            now.first += now.count;
            if (now.first == used)
                now = pass(0u, now.count, now.chunk + 1u);
        }
    } while (now.chunk < V_CHUNKS);
}
