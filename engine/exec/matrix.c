/* See matrix.h. */
#include "exec/matrix.h"

#include <string.h>

#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "exec/staged.h"
#include "kernels/kernels.h"

uint64_t matrix_group_bytes(uint32_t depth, vka_dtype dtype)
{
    return (uint64_t)MATRIX_GROUP * depth * vka_dtype_size(dtype);
}

uint32_t matrix_panel_rows(const vka_caps *caps, uint32_t depth, vka_dtype dtype)
{
    uint64_t groups = vka_caps_max_tensor(caps) / matrix_group_bytes(depth, dtype);
    uint64_t columns = vka_gemm_max_cols(caps);
    uint64_t most = (columns < UINT32_MAX ? columns : UINT32_MAX) / MATRIX_GROUP;

    return (uint32_t)(groups < most ? groups : most) * MATRIX_GROUP;
}

static size_t octet_bytes(const matrix_row *row)
{
    return MATRIX_OCTET * vka_dtype_size(row->dtype);
}

void matrix_put(matrix_row *row, const void *elements, vka_dtype dtype, uint32_t count)
{
    const unsigned char *from = elements;
    size_t size = vka_dtype_size(row->dtype), step = MATRIX_OCTET * vka_dtype_size(dtype);

    for (uint32_t done = 0; done < count; done += MATRIX_OCTET, from += step) {
        uint32_t part = count - done < MATRIX_OCTET ? count - done : MATRIX_OCTET;
        vka_convert(row->next, row->dtype, from, dtype, part);
        memset(row->next + part * size, 0, (MATRIX_OCTET - part) * size);
        row->next += MATRIX_GROUP * octet_bytes(row);
    }
}

void matrix_put_zeros(matrix_row *row, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += MATRIX_OCTET) {
        memset(row->next, 0, octet_bytes(row));
        row->next += MATRIX_GROUP * octet_bytes(row);
    }
}

typedef struct panel_fill {
    const weight_matrix *matrix;
    matrix_row_fn fill;
    void *user;
    uint32_t first_row;    /* of the panel */
    unsigned char *target; /* of the piece being filled */
    uint32_t piece_row;    /* its first row */
} panel_fill;

static void fill_groups(void *user, size_t begin, size_t end)
{
    const panel_fill *panel = user;
    const weight_matrix *matrix = panel->matrix;
    uint64_t group_bytes = matrix_group_bytes(matrix->depth, matrix->dtype);

    for (size_t i = begin * MATRIX_GROUP; i < end * MATRIX_GROUP; i++) {
        matrix_row out = {panel->target + i / MATRIX_GROUP * group_bytes, matrix->dtype};
        uint32_t row = panel->piece_row + (uint32_t)i;
        out.next += i % MATRIX_GROUP * octet_bytes(&out);
        if (row < matrix->rows) {
            panel->fill(panel->user, row, &out);
        } else {
            matrix_put_zeros(&out, matrix->depth);
        }
    }
}

static void fill_piece(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    panel_fill *panel = user;
    uint64_t group_bytes = matrix_group_bytes(panel->matrix->depth, panel->matrix->dtype);

    panel->target = target;
    panel->piece_row = panel->first_row + (uint32_t)(offset / group_bytes) * MATRIX_GROUP;
    vka_parallel_for((size_t)(bytes / group_bytes), 1, fill_groups, panel);
}

static vka_status create_panel(weight_matrix *matrix, gpu_device *device, uint32_t index, const char *name,
                               matrix_row_fn fill, void *user, vka_error *error)
{
    uint32_t first = index * matrix->panel_rows;
    uint32_t rows = matrix->rows - first < matrix->panel_rows ? matrix->rows - first : matrix->panel_rows;
    uint64_t group_bytes = matrix_group_bytes(matrix->depth, matrix->dtype);
    uint64_t bytes = (rows + MATRIX_GROUP - 1) / MATRIX_GROUP * group_bytes;
    panel_fill panel = {.matrix = matrix, .fill = fill, .user = user, .first_row = first};
    vka_status status = gpu_buffer_create(&matrix->panel[index], device, bytes, GPU_MEMORY_DEVICE, name, error);

    return status == VKA_OK
               ? staged_upload(device, matrix->panel[index], 0, bytes, group_bytes, fill_piece, &panel, error)
               : status;
}

vka_status matrix_create(weight_matrix *out, gpu_device *device, const weight_matrix *shape, const char *name,
                         matrix_row_fn fill, void *user, const vka_allocator *allocator, vka_error *error)
{
    weight_matrix matrix = *shape;
    vka_status status = VKA_OK;

    matrix.panel_rows = matrix_panel_rows(gpu_device_caps(device), shape->depth, shape->dtype);
    if (shape->block_rows > 0) {
        matrix.panel_rows -= matrix.panel_rows % shape->block_rows;
    }
    matrix.panels = (shape->rows - 1) / matrix.panel_rows + 1;
    matrix.panel = vka_alloc(allocator, matrix.panels, sizeof(*matrix.panel));
    if (matrix.panel == NULL) {
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no host memory for %u panels of %s", matrix.panels, name);
    }
    for (uint32_t i = 0; status == VKA_OK && i < matrix.panels; i++) {
        status = create_panel(&matrix, device, i, name, fill, user, error);
    }
    if (status != VKA_OK) {
        matrix_destroy(&matrix, allocator);
        return status;
    }
    *out = matrix;
    return VKA_OK;
}

void matrix_destroy(weight_matrix *matrix, const vka_allocator *allocator)
{
    for (uint32_t i = 0; matrix->panel != NULL && i < matrix->panels; i++) {
        gpu_buffer_destroy(&matrix->panel[i]);
    }
    vka_free(allocator, matrix->panel);
    memset(matrix, 0, sizeof(*matrix));
}
