/* One function of gemv.comp and gemv_quad.comp, included for each number of rows: GEMV_SUM is its name, GEMV_ROWS the
 * rows it has room for. It sums the octets depth_lane, depth_lane + DEPTH_LANES, ... of columns column,
 * column + COL_STEP, ... */
void GEMV_SUM(uint row, uint rows, uint column, uint depth_lane)
{
    uint x_offset = push.x_offset + gl_WorkGroupID.z * push.x_step;
    uint x_at[GEMV_ROWS];
    uint w_at[COLS];
    float sum[COLS][GEMV_ROWS];
    [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
        x_at[r] = (x_offset + (row + min(r, rows - 1u)) * push.x_stride) / 4u;
    [[unroll]] for (uint c = 0u; c < COLS; c++) {
        w_at[c] = column_octet(column + c * COL_STEP);
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            sum[c][r] = 0.0;
    }
    uint octets = push.depth / 8u; /* read once, not at every test */
    for (uint k = depth_lane; k < octets; k += DEPTH_LANES) {
        octet x[GEMV_ROWS];
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            x[r] = load_floats(x_at[r] + 2u * k);
        [[unroll]] for (uint c = 0u; c < COLS; c++) {
            octet weight = load_stored(w_at[c] + LANE_COLS * k);
            [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
                [[unroll]] for (uint i = 0u; i < 4u; i++) {
                    sum[c][r] = fma(x[r].lo[i], weight.lo[i], sum[c][r]);
                    sum[c][r] = fma(x[r].hi[i], weight.hi[i], sum[c][r]);
                }
        }
    }
    [[unroll]] for (uint c = 0u; c < COLS; c++)
        [[unroll]] for (uint r = 0u; r < GEMV_ROWS; r++)
            if (r < rows)
                keep(row + r, column + c * COL_STEP, depth_lane, sum[c][r]);
}
#undef GEMV_SUM
#undef GEMV_ROWS
