/* See matrix.h. */
#include "exec/matrix.h"

#include <string.h>

#include "base/error.h"
#include "base/threads.h"
#include "exec/staged.h"

#define ROWS_PER_TASK 16

uint32_t matrix_panel_rows(const vka_caps *caps, uint32_t depth, vka_dtype dtype)
{
    uint64_t rows = vka_caps_max_tensor(caps) / ((uint64_t)depth * vka_dtype_size(dtype));

    return rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
}

typedef struct panel_fill {
    matrix_row_fn fill;
    void *user;
    uint32_t first_row; /* of the panel */
    uint64_t row_bytes;
    unsigned char *target; /* of the piece being filled */
    uint32_t piece_row;    /* its first row */
} panel_fill;

static void fill_rows(void *user, size_t begin, size_t end)
{
    const panel_fill *panel = user;

    for (size_t row = begin; row < end; row++) {
        panel->fill(panel->user, panel->piece_row + (uint32_t)row, panel->target + row * panel->row_bytes);
    }
}

static void fill_piece(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    panel_fill *panel = user;

    panel->target = target;
    panel->piece_row = panel->first_row + (uint32_t)(offset / panel->row_bytes);
    vka_parallel_for((size_t)(bytes / panel->row_bytes), ROWS_PER_TASK, fill_rows, panel);
}

static vka_status create_panel(weight_matrix *matrix, gpu_device *device, uint32_t index, const char *name,
                               matrix_row_fn fill, void *user, vka_error *error)
{
    uint32_t first = index * matrix->panel_rows;
    uint32_t rows = matrix->rows - first < matrix->panel_rows ? matrix->rows - first : matrix->panel_rows;
    uint64_t row_bytes = (uint64_t)matrix->depth * vka_dtype_size(matrix->dtype);
    panel_fill panel = {.fill = fill, .user = user, .first_row = first, .row_bytes = row_bytes};
    vka_status status =
        gpu_buffer_create(&matrix->panel[index], device, rows * row_bytes, GPU_MEMORY_DEVICE, name, error);

    return status == VKA_OK
               ? staged_upload(device, matrix->panel[index], 0, rows * row_bytes, row_bytes, fill_piece, &panel, error)
               : status;
}

vka_status matrix_create(weight_matrix *out, gpu_device *device, uint32_t rows, uint32_t depth, vka_dtype dtype,
                         const char *name, matrix_row_fn fill, void *user, const vka_allocator *allocator,
                         vka_error *error)
{
    weight_matrix matrix = {.rows = rows, .depth = depth, .dtype = dtype};
    vka_status status = VKA_OK;

    matrix.panel_rows = matrix_panel_rows(gpu_device_caps(device), depth, dtype);
    matrix.panels = (rows - 1) / matrix.panel_rows + 1;
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
