/* Check of a projection. An item is 8 columns by all rows; depth is cut so that the weights of an item stay in the
 * first-level cache as doubles. Each dot product has eight accumulators, which compilers turn into vectors. */
#include "verify/internal.h"

#include <math.h>

#include "base/error.h"

enum { COLS = 8, ROWS = 128, DEPTH = 256, LANES = 8 };

typedef struct dot {
    double sum;
    double magnitude; /* sum of |x||w| */
} dot;

static void add_dot(dot *total, const double *x, const double *w, size_t depth)
{
    double sum[LANES] = {0};
    double magnitude[LANES] = {0};
    size_t k = 0;
    for (; k + LANES <= depth; k += LANES) {
        for (size_t i = 0; i < LANES; i++) {
            double product = x[k + i] * w[k + i];
            sum[i] += product;
            magnitude[i] += fabs(product);
        }
    }
    for (; k < depth; k++) {
        sum[0] += x[k] * w[k];
        magnitude[0] += fabs(x[k] * w[k]);
    }
    for (size_t i = 0; i < LANES; i++) {
        total->sum += sum[i];
        total->magnitude += magnitude[i];
    }
}

/* `count` weights of column `col` from depth `first`, as the device holds them. */
static void load_weights(double *out, const verify_projection_params *p, size_t col, size_t first, size_t count)
{
    size_t stride = p->weights.row_stride ? (size_t)p->weights.row_stride : (size_t)p->weights.cols;
    size_t element = p->weights.dtype == VKA_F32 ? 4 : 2;
    verify_load(out, (const unsigned char *)p->weights.data + (col * stride + first) * element, p->weights.dtype,
                count);
    if (p->stored == p->weights.dtype || p->stored == VKA_F32)
        return;
    for (size_t i = 0; i < count; i++)
        out[i] = verify_round(out[i], p->stored);
}

static void add_block(const verify_projection_params *p, size_t row, size_t rows, size_t col, size_t cols, size_t first,
                      dot dots[ROWS][COLS])
{
    double w[COLS][DEPTH];
    double x[DEPTH];
    size_t depth = p->depth - first < DEPTH ? p->depth - first : DEPTH;
    for (size_t c = 0; c < cols; c++)
        load_weights(w[c], p, col + c, first, depth);
    for (size_t r = 0; r < rows; r++) {
        const float *from = p->x + (row + r) * p->x_stride + first;
        for (size_t k = 0; k < depth; k++)
            x[k] = (double)from[k];
        for (size_t c = 0; c < cols; c++)
            add_dot(&dots[r][c], x, w[c], depth);
    }
}

static bool check_columns(const void *params, size_t item, verify_result results[2])
{
    const verify_projection_params *p = params;
    size_t col = item * COLS;
    size_t cols = p->cols - col < COLS ? p->cols - col : COLS;
    double units = ((double)p->depth + 2) * UNIT;
    double flushed = (double)p->depth * 0x1p-126;
    for (size_t row = 0; row < p->rows; row += ROWS) {
        size_t rows = p->rows - row < ROWS ? p->rows - row : ROWS;
        dot dots[ROWS][COLS] = {{{0}}};
        for (size_t first = 0; first < p->depth; first += DEPTH)
            add_block(p, row, rows, col, cols, first, dots);
        for (size_t r = 0; r < rows; r++) {
            for (size_t c = 0; c < cols; c++) {
                double got = (double)p->y[(row + r) * p->y_stride + col + c];
                double bound = units * dots[r][c].magnitude + flushed;
                verify_element(&results[0], (row + r) * p->cols + col + c, got, dots[r][c].sum, bound);
            }
        }
    }
    return true;
}

vka_status verify_projection(const verify_projection_params *params, verify_result *result, vka_error *error)
{
    if (params->weights.rows < params->cols || params->weights.cols < params->depth)
        return vka_fail(error, VKA_ERR_ARGUMENT, "verify: weights are [%llu, %llu], the projection needs [%zu, %zu]",
                        (unsigned long long)params->weights.rows, (unsigned long long)params->weights.cols,
                        params->cols, params->depth);
    return verify_items((params->cols + COLS - 1) / COLS, check_columns, params, result, NULL, error);
}
