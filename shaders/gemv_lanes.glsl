/* Two functions of gemv_lanes.comp, included for each number of rows: GEMV_SUM and GEMV_ADD are their names, GEMV_ROWS the
 * rows they have room for, of which lane l loads quad l % QUADS of row l / QUADS. */
#define OCTETS (LOAD / GEMV_ROWS) /* of a row, that a load brings */
#define QUADS  (2u * OCTETS)

/* Adds octet k, which lies at octet `at` of what x brought for each row. */
void GEMV_ADD(uint k, vec4 x, uint at, uint w_at[COLS], inout float sum[COLS][GEMV_ROWS])
{
    octet rows[GEMV_ROWS];
    [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
        rows[r] = octet(subgroupShuffle(x, r * QUADS + 2u * at), subgroupShuffle(x, r * QUADS + 2u * at + 1u));
    [[unroll]] for (uint c = 0u; c < COLS; c++) {
        octet weight = load_stored(w_at[c] + LANE_COLS * k);
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            [[unroll]] for (uint i = 0u; i < 4u; i++) {
                sum[c][r] = fma(rows[r].lo[i], weight.lo[i], sum[c][r]);
                sum[c][r] = fma(rows[r].hi[i], weight.hi[i], sum[c][r]);
            }
    }
}

void GEMV_SUM(uint row, uint column, uint lane)
{
    uint x_at = row_quad(row + lane / QUADS);
    uint w_at[COLS];
    float sum[COLS][GEMV_ROWS];
    [[unroll]] for (uint c = 0u; c < COLS; c++) {
        w_at[c] = column_octet(column + c * LANE_COLS);
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            sum[c][r] = 0.0;
    }

    uint octets = push.depth / 8u;
    uint k = 0u;
    for (; k + OCTETS <= octets; k += OCTETS) {
        vec4 x = load_quad(x_at + 2u * k + lane % QUADS);
        [[unroll]] for (uint at = 0u; at < OCTETS; at++)
            GEMV_ADD(k + at, x, at, w_at, sum);
    }
    if (OCTETS > 1u) /* the last few, one by one */
        for (; k < octets; k++)
            GEMV_ADD(k, load_quad(x_at + 2u * k + lane % 2u), 0u, w_at, sum);

    uint y_offset = push.y_offset + gl_WorkGroupID.z * push.y_step;
    [[unroll]] for (uint c = 0u; c < COLS; c++)
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            if (row + r < push.rows && column + c * LANE_COLS < push.cols)
                y[y_offset + (row + r) * push.y_stride + column + c * LANE_COLS] = sum[c][r];
}
#undef GEMV_SUM
#undef GEMV_ADD
#undef GEMV_ROWS
#undef OCTETS
#undef QUADS
