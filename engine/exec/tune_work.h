/* What tuning measures: the projections and the attention of one layer on one device, over generated operands, through
 * the same steps as every other call. */
#ifndef VKA_EXEC_TUNE_WORK_H
#define VKA_EXEC_TUNE_WORK_H

#include "exec/attention.h"
#include "exec/buffer.h"
#include "exec/projection.h"
#include "vkattn/tune.h"

/* A kernel, and the sizes that stand for a class of shapes. */
typedef struct tune_shape {
    vka_kernel kernel;
    vka_dtype dtype;
    tuning_class sizes;
    uint32_t rows, keys; /* keys: 0 for projections */
} tune_shape;

typedef struct tune_work {
    vka_tune_params params; /* resolved */
    vka_context *context;
    vka_matrix matrices[2]; /* QKV and output projection; none when hidden_size is 0 */
    uint32_t matrix_count;
    vka_buffer source, target; /* all floats that kernels read, and room for what they write */
    attention_call attention;
    bool opened;  /* matrices and buffers are there */
    bool attends; /* `attention` is open */
} tune_work;

/* For calls of up to params->rows rows and params->keys keys; makes nothing yet. */
void tune_work_init(tune_work *work, vka_context *context, const vka_tune_params *params);
void tune_work_close(tune_work *work);

/* Makes ready what runs of `shape` need, until the next one begins; matrices and buffers the first time. */
vka_status tune_work_begin(tune_work *work, const tune_shape *shape, vka_error *error);

typedef struct tune_time {
    double ms;      /* of one run, the mean of `repeat` */
    bool gpu_clock; /* the GPU's own time, else the host's */
} tune_time;

/* Runs `variant` for the shape that was begun, `repeat` times in one submission. */
vka_status tune_work_run(tune_work *work, const tune_shape *shape, const vka_variant *variant, uint32_t repeat,
                         tune_time *out, vka_error *error);

#endif
