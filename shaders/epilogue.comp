#version 450
/* What follows the QKV projection: bias, RMSNorm over a head, RoPE, store to float rows or into the paged cache. Eight
 * invocations share a (row, head); each owns whole quads of elements, so that packed words are written once. The
 * partner of a turned element is read again rather than exchanged.
 *
 * What is to be done is given by specialisation constants, since some devices run both sides of a branch. */
#include "common.glsl"
#include "half.glsl"

layout(constant_id = 0) const uint ROTARY_DIM = 0u; /* 0: no RoPE */
layout(constant_id = 1) const bool PAGED = false;
layout(constant_id = 2) const bool BIAS = false;
layout(constant_id = 3) const uint NORM = 0u; /* EPILOGUE_NORM_* */
layout(constant_id = 4) const uint NORM_DIM = 0u; /* elements of a head that are normed, the first; 0: all */
layout(constant_id = 5) const uint ROTARY_OFFSET = 0u;
layout(constant_id = 6) const bool INTERLEAVED = false; /* pairs (2i, 2i + 1); else (i, i + ROTARY_DIM / 2) */
layout(constant_id = 7) const bool SIGMOID = false;
layout(constant_id = 8) const float CLIP = 0.0; /* 0: none */
layout(constant_id = 9) const bool SQUARES = false; /* only the sum of squares of each head */

layout(push_constant) uniform Push { epilogue_push push; };
layout(std430, set = 0, binding = 0) readonly buffer Parameters { uint parameters[]; };
layout(std430, set = 0, binding = 0) readonly buffer Angles { vec4 angles[]; };
layout(std430, set = 0, binding = 1) readonly buffer Constants { vec4 constants[]; };
layout(std430, set = 0, binding = 2) readonly buffer Source { vec4 source[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Rows { vec4 rows_out[]; };
layout(std430, set = 0, binding = 3) writeonly buffer Sums { float sums_out[]; };
#ifdef VKA_F16
layout(std430, set = 0, binding = 3) writeonly buffer Pairs { uvec2 pairs_out[]; };
#endif

const uint HEAD_LANES = VKA_LOCAL / VKA_TILE_COLS;

shared float squares[VKA_LOCAL];

/* The head that an invocation works on: where its quads begin. */
struct head_view {
    uint source;
    uint bias;
    uint norm;
    float factor; /* 1 / root mean square */
};

/* The values of those elements of a quad that stand before element `end`, and `rest` for the others. */
vec4 cut(vec4 values, uint quad, uint end, vec4 rest)
{
    return mix(values, rest, greaterThanEqual(4u * quad + uvec4(0u, 1u, 2u, 3u), uvec4(end)));
}

vec4 biased(head_view view, uint quad)
{
    vec4 values = source[view.source + quad];
    if (BIAS)
        values += constants[view.bias + quad];
    if (CLIP != 0.0)
        values = clamp(values, vec4(-CLIP), vec4(CLIP));
    return cut(values, quad, push.head_dim, vec4(0.0));
}

vec4 normed(head_view view, uint quad)
{
    vec4 values = biased(view, quad);
    if (NORM == EPILOGUE_NORM_NONE)
        return values;
    vec4 scaled = values * (view.factor * constants[view.norm + quad]);
    return NORM_DIM == 0u ? scaled : cut(scaled, quad, NORM_DIM, values);
}

/* The element that one is turned with; itself when it is not turned. */
uint partner_of(uint element)
{
    const uint distance = ROTARY_DIM / 2u;
    uint turning = element - ROTARY_OFFSET;
    if (turning >= ROTARY_DIM)
        return element;
    if (INTERLEAVED)
        return ROTARY_OFFSET + (turning ^ 1u);
    return turning < distance ? element + distance : element - distance;
}

/* What the elements of a quad are turned with: whole quads where pairs allow it. */
vec4 partners(head_view view, uint quad)
{
    if (INTERLEAVED && ROTARY_OFFSET % 2u == 0u)
        return normed(view, quad).yxwz;
    if (!INTERLEAVED && ROTARY_OFFSET % 4u == 0u && ROTARY_DIM % 8u == 0u)
        return normed(view, partner_of(4u * quad) / 4u);
    vec4 values;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        uint partner = partner_of(4u * quad + i);
        values[i] = normed(view, partner / 4u)[partner % 4u];
    }
    return values;
}

/* `angle`: the quad at which the cosines of the row begin. */
vec4 turned(head_view view, uint angle, uint quad)
{
    const uint quads = EPILOGUE_ANGLES(ROTARY_OFFSET, ROTARY_DIM) / 4u;
    uint turning = quad - ROTARY_OFFSET / 4u;
    vec4 values = normed(view, quad);
    if (turning >= quads)
        return values;
    vec4 turn = values * angles[angle + turning] + partners(view, quad) * angles[angle + quads + turning];
    if (ROTARY_OFFSET % 4u != 0u)
        turn = cut(values, quad, ROTARY_OFFSET, turn);
    if ((ROTARY_OFFSET + ROTARY_DIM) % 4u != 0u)
        turn = cut(turn, quad, ROTARY_OFFSET + ROTARY_DIM, values);
    return turn;
}

/* 1 / (1 + exp(-x)), with no exponential that overflows. */
vec4 activated(vec4 values, uint quad)
{
    if (!SIGMOID)
        return values;
    vec4 small = exp(-abs(values));
    vec4 sigmoid = mix(small, vec4(1.0), greaterThanEqual(values, vec4(0.0))) / (1.0 + small);
    return cut(sigmoid, quad, push.head_dim, vec4(0.0));
}

/* Of a head, from the sums of its eight invocations. */
float sum_of_squares(head_view view, bool busy, uint lane)
{
    float sum = 0.0;
    for (uint quad = lane % HEAD_LANES; busy && quad < push.head_pad / 4u; quad += HEAD_LANES) {
        vec4 values = biased(view, quad);
        if (NORM_DIM != 0u)
            values = cut(values, quad, NORM_DIM, vec4(0.0));
        sum += dot(values, values);
    }
    squares[lane] = sum;
    barrier();
    sum = 0.0;
    for (uint i = 0u; i < HEAD_LANES; i++)
        sum += squares[lane - lane % HEAD_LANES + i];
    return sum;
}

/* 1 / sqrt(mean of squares + eps) */
float norm_factor(float sum)
{
    return 1.0 / sqrt(sum / float(NORM_DIM != 0u ? NORM_DIM : push.head_dim) + push.norm_eps);
}

void store(uint element, vec4 values)
{
#ifdef VKA_F16
    if (PAGED) {
        pairs_out[element / 4u] = uvec2(half_pair(values.x, values.y), half_pair(values.z, values.w));
        return;
    }
#endif
    rows_out[element / 4u] = values;
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint head = gl_WorkGroupID.x * VKA_TILE_COLS + lane / HEAD_LANES;
    uint row = gl_WorkGroupID.y + gl_WorkGroupID.z * gl_NumWorkGroups.y;
    bool busy = head < push.heads && row < push.rows;

    head_view view;
    view.source = (push.src_offset + row * push.src_stride + head * push.head_pad) / 4u;
    view.bias = (push.bias_offset + head * push.head_pad) / 4u;
    view.norm = push.norm_offset / 4u;
    view.factor = 1.0;
    if (NORM == EPILOGUE_NORM_HEAD || SQUARES)
        view.factor = sum_of_squares(view, busy, lane);
    if (!busy)
        return;
    if (SQUARES) {
        if (lane % HEAD_LANES == 0u)
            sums_out[push.dst_offset + row * push.dst_stride + head] = view.factor;
        return;
    }
    if (NORM == EPILOGUE_NORM_HEAD)
        view.factor = norm_factor(view.factor);
    if (NORM == EPILOGUE_NORM_ROW) {
        view.factor = uintBitsToFloat(parameters[push.factor_offset + 2u * row]);
        view.norm += head * push.head_pad / 4u;
    }

    uint record = push.record_offset + row * push.record_words;
    uint target = push.dst_offset;
    if (PAGED) {
        if (parameters[record] != push.slab)
            return;
        target += parameters[record + 1u] * push.page_stride +
                  (head * push.page_size + parameters[record + 2u]) * push.head_pad;
    } else {
        target += row * push.dst_stride + head * push.dst_head_stride;
    }
    for (uint quad = lane % HEAD_LANES; quad < push.head_pad / 4u; quad += HEAD_LANES)
        store(target + 4u * quad, activated(turned(view, (record + EPILOGUE_ROW_WORDS) / 4u, quad), quad));
}
