/* Y = X W^T for many rows. Every invocation keeps a tile of Y in registers and walks the whole depth, eight elements at a
 * time: no shared memory, no barriers. It holds the weights of its columns and passes over its rows, so that an octet of
 * floats serves all columns while their sums stay in registers. Eight neighbouring invocations read the interleaved
 * octets of eight columns side by side. An element is one chain of additions in order of depth, whatever tile it falls
 * in. Rows and columns past the end repeat the last one and are not stored.
 *
 * The including shader says where rows of X come from: see gemm.comp and gemm_lanes.comp. */
#include "common.glsl"

layout(push_constant) uniform Push { gemm_push push; };
#define VKA_QUAD_BINDING   0
#define VKA_STORED_BINDING 1
#define VKA_VIEW_BINDING   3
#include "operands.glsl"
#include "columns.glsl"
layout(std430, set = 0, binding = 2) writeonly buffer Y { float y[]; };

const uint LANE_ROWS = VKA_LOCAL / LANE_COLS;
const uint ROWS = VKA_TILE_ROWS / LANE_ROWS;
const uint COLS = VKA_TILE_COLS / LANE_COLS;

/* Quad at which row `row` of X begins. */
uint row_quad(uint row)
{
    uint x_offset = push.x_offset + gl_WorkGroupID.z * push.x_step;
    return (x_offset + min(row, push.rows - 1u) * push.x_stride) / 4u;
}

/* To be defined: `row` is the first of the invocation's ROWS; begin_octet comes before row_values of its k,
 * which gives half 0 or 1 of that octet of row + r. Only the first `rows` are asked for. */
void locate_rows(uint row, uint lane);
void begin_octet(uint k, uint rows);
vec4 row_values(uint r, uint k, uint half_octet);

/* `rows`: a constant up to ROWS, more than which there are not. */
void multiply(uint lane, uint rows)
{
    uint row = gl_WorkGroupID.y * VKA_TILE_ROWS + lane / LANE_COLS * ROWS;
    uint col = gl_WorkGroupID.x * VKA_TILE_COLS + lane % LANE_COLS;
    if (row >= push.rows)
        return;

    uint w_at[COLS];
    float sum[COLS][ROWS];
    locate_rows(row, lane);
    [[unroll]] for (uint c = 0u; c < COLS; c++) {
        w_at[c] = column_octet(col + c * LANE_COLS);
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            sum[c][r] = 0.0;
    }

    uint octets = push.depth / 8u;
    for (uint k = 0u; k < octets; k++) {
        octet weight[COLS];
        [[unroll]] for (uint c = 0u; c < COLS; c++)
            weight[c] = load_stored(w_at[c] + LANE_COLS * k);
        begin_octet(k, rows);
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            if (r >= rows)
                continue;
            vec4 lo = row_values(r, k, 0u);
            [[unroll]] for (uint c = 0u; c < COLS; c++)
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    sum[c][r] = fma(lo[i], weight[c].lo[i], sum[c][r]);
            vec4 hi = row_values(r, k, 1u);
            [[unroll]] for (uint c = 0u; c < COLS; c++)
                [[unroll]] for (uint i = 0u; i < 4u; i++)
                    sum[c][r] = fma(hi[i], weight[c].hi[i], sum[c][r]);
        }
    }

    uint y_offset = push.y_offset + gl_WorkGroupID.z * push.y_step;
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint c = 0u; c < COLS; c++)
            if (r < rows && row + r < push.rows && col + c * LANE_COLS < push.cols)
                y[y_offset + (row + r) * push.y_stride + col + c * LANE_COLS] = sum[c][r];
}
