#version 450
/* What follows the QKV projection: bias, RMSNorm over a head, RoPE, store to float rows or into the paged cache. Eight
 * invocations share a (row, head); each owns whole pairs of elements, so that packed words are written once. The
 * partner of a turned element is read again rather than exchanged. */
#include "common.glsl"
#include "half.glsl"

layout(push_constant) uniform Push { epilogue_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Parameters { uint parameters[]; };
layout(std430, set = 0, binding = 1) readonly buffer Constants { float constants[]; };
layout(std430, set = 0, binding = 2) readonly buffer Source { float source[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Rows { float rows_out[]; };
#ifdef VKA_F16
layout(std430, set = 0, binding = 3) writeonly buffer Words { uint words_out[]; };
#endif

const uint HEAD_LANES = VKA_LOCAL / VKA_TILE_COLS;

shared float squares[VKA_LOCAL];

/* The head that an invocation works on. */
struct head_view {
    uint source;
    uint bias;
    float factor; /* 1 / root mean square */
};

float biased(head_view view, uint i)
{
    float value = source[view.source + i];
    if (push.bias_offset != VKA_NO_OFFSET)
        value += constants[view.bias + i];
    return value;
}

float normed(head_view view, uint i)
{
    float value = biased(view, i);
    if (push.norm_offset != VKA_NO_OFFSET)
        value = value * view.factor * constants[push.norm_offset + i];
    return value;
}

float turned(head_view view, uint record, uint i)
{
    if (i >= push.head_dim)
        return 0.0;
    float value = normed(view, i);
    if (i >= push.rotary_dim)
        return value;
    uint half_dim = push.rotary_dim / 2u;
    bool first = i < half_dim;
    uint angle = record + EPILOGUE_ROW_WORDS + (first ? i : i - half_dim);
    float partner = normed(view, first ? i + half_dim : i - half_dim);
    float cosine = uintBitsToFloat(parameters[angle]);
    float sine = uintBitsToFloat(parameters[angle + half_dim]);
    return value * cosine + (first ? -partner : partner) * sine;
}

/* 1 / sqrt(mean of squares + eps) from the sums of the eight invocations of a head. */
float norm_factor(head_view view, bool busy, uint lane)
{
    float sum = 0.0;
    for (uint i = lane % HEAD_LANES; busy && i < push.head_dim; i += HEAD_LANES) {
        float value = biased(view, i);
        sum += value * value;
    }
    squares[lane] = sum;
    barrier();
    sum = 0.0;
    for (uint i = 0u; i < HEAD_LANES; i++)
        sum += squares[lane - lane % HEAD_LANES + i];
    return 1.0 / sqrt(sum / float(push.head_dim) + push.norm_eps);
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint head = gl_WorkGroupID.x * VKA_TILE_COLS + lane / HEAD_LANES;
    uint row = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    bool busy = head < push.heads && row < push.rows;

    head_view view;
    view.source = push.src_offset + row * push.src_stride + head * push.head_pad;
    view.bias = push.bias_offset + head * push.head_pad;
    view.factor = 1.0;
    if (push.norm_offset != VKA_NO_OFFSET)
        view.factor = norm_factor(view, busy, lane);
    if (!busy)
        return;

    uint record = push.record_offset + row * push.record_words;
    uint target = push.dst_offset;
    if (push.dst_paged != 0u) {
        if (parameters[record] != push.slab)
            return;
        target += parameters[record + 1u] * push.page_stride +
                  (head * push.page_size + parameters[record + 2u]) * push.head_pad;
    } else {
        target += row * push.dst_stride + head * push.head_pad;
    }
    for (uint i = lane % HEAD_LANES * 2u; i < push.head_pad; i += HEAD_LANES * 2u) {
        float low = turned(view, record, i);
        float high = turned(view, record, i + 1u);
#ifdef VKA_F16
        if (push.dst_paged != 0u) {
            words_out[(target + i) / 2u] = half_pair(low, high);
            continue;
        }
#endif
        rows_out[target + i] = low;
        rows_out[target + i + 1u] = high;
    }
}
