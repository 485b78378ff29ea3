/* What prefill and decoding share: bindings, the tile and its head record, visible keys, addresses in the paged cache,
 * and where results go. */
layout(constant_id = 0) const uint QK_PAD = 8u;
layout(constant_id = 1) const uint V_PAD = 8u;
layout(constant_id = 2) const uint V_STRIDE = 8u; /* elements from one vector of V to the next */

layout(push_constant) uniform Push { attention_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Parameters { uint parameters[]; };
#define VKA_QUAD_BINDING   1
#define VKA_STORED_BINDING 2
#define VKA_VIEW_BINDING   4
#include "operands.glsl"
#define VKA_FINISH_ID 6
#include "finish.glsl"
layout(std430, set = 0, binding = 3) writeonly buffer Out { vec4 rows_out[]; };
layout(std430, set = 0, binding = 3) writeonly buffer OutScalars { float scalars_out[]; };

/* Read once: some devices read a push constant anew at each use, as memory with limits to be checked. */
uint page_size = push.page_size;
uint page_stride = push.page_stride;
uint k_offset = push.k_offset;
uint v_offset = push.v_offset;
float scale = push.scale;

attention_tile load_tile(uint index)
{
    uint at = push.tile_offset + index * ATTENTION_TILE_WORDS;
    return attention_tile(parameters[at], parameters[at + 1u], int(parameters[at + 2u]), parameters[at + 3u],
                          parameters[at + 4u], parameters[at + 5u], parameters[at + 6u], parameters[at + 7u]);
}

attention_heads load_heads(uint index)
{
    uint at = push.heads_offset + index * ATTENTION_HEADS_WORDS;
    return attention_heads(parameters[at], parameters[at + 1u], parameters[at + 2u], 0u);
}

/* The keys begin .. end-1 that a row of the tile sees; empty when end <= begin. Both grow with the row. */
struct key_range {
    uint begin;
    uint end;
};

key_range visible_keys(attention_tile tile, uint row)
{
    int position = tile.position + int(row);
    uint after = uint(max(position + 1, 0)); /* keys up to the row's own */
    uint before_first = uint(max(-position, 0)); /* of the row, and key 0 */
    uint begin = after - min(after, push.left);
    uint end = uint(max(position, 0)) + push.right - min(push.right, before_first);
    return key_range(max(tile.key_begin, begin), min(tile.key_end, end));
}

/* Octets of K (x) and V (y) at which the first vectors of a page begin. */
uvec2 page_address(attention_tile tile, uint kv_head, uint page)
{
    uint base = parameters[tile.pages + page] * page_stride;
    uint vector = kv_head * page_size;
    return uvec2(base + k_offset + vector * QK_PAD, base + v_offset + vector * V_STRIDE) / 8u;
}

/* ... at which the vectors of a key begin. */
uvec2 key_address(attention_tile tile, uint kv_head, uint key)
{
    uint page = key / page_size;
    uint slot = key - page * page_size;
    return page_address(tile, kv_head, page) + slot * uvec2(QK_PAD / 8u, V_STRIDE / 8u);
}

bool is_partial(attention_tile tile)
{
    return tile.slot_stride != 0u;
}

/* Float at which the output of (row, head) begins. */
uint output_address(attention_tile tile, uint row, uint head)
{
    if (is_partial(tile))
        return ((tile.slot + row * tile.slot_stride) * push.heads + head) * (V_PAD + 8u);
    return (tile.row + row) * push.out_stride + head * V_PAD;
}

/* Quad `quad` of the output of (row, head), given its unnormalised sum and divisor(). */
void store_quad(attention_tile tile, uint row, uint head, uint quad, vec4 sum, float by)
{
    vec4 value = finished(sum, by, tile.row + row, head, quad, V_PAD / 4u);
    rows_out[output_address(tile, row, head) / 4u + quad] = mix(value, sum, bvec4(is_partial(tile)));
}

/* Octet `column`, likewise. */
void store_output(attention_tile tile, uint row, uint head, uint column, octet sum, float by)
{
    store_quad(tile, row, head, 2u * column, sum.lo, by);
    store_quad(tile, row, head, 2u * column + 1u, sum.hi, by);
}

/* What accompanies the output of (row, head): m and l, or the log-sum-exp. */
void store_state(attention_tile tile, uint row, uint head, float maximum, float total)
{
    if (is_partial(tile)) {
        uint at = output_address(tile, row, head) + V_PAD;
        scalars_out[at] = maximum;
        scalars_out[at + 1u] = total;
    } else if (push.lse_offset != VKA_NO_OFFSET) {
        scalars_out[push.lse_offset + (tile.row + row) * push.heads + head] =
            log_sum_exp_with_sink(head, maximum, total);
    }
}

#include "score.glsl"
