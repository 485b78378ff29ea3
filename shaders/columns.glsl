/* How GEMM and GEMV find a column's weights: see gemm_push. Eight neighbouring invocations take the eight columns of a
 * group, whose octets lie side by side. */
const uint LANE_COLS = 8u;

/* The octet of `column` at depth 0; the next eight elements are LANE_COLS octets further on. A group past the end repeats
 * the last. */
uint column_octet(uint column)
{
    uint group = min(column, push.cols - 1u) / LANE_COLS;
    return (group * push.w_stride + push.w_offset + gl_WorkGroupID.z * push.w_step) / 8u * LANE_COLS + column % LANE_COLS;
}
