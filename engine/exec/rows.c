/* See rows.h. */
#include "exec/rows.h"

#include <string.h>

#include "base/half.h"
#include "base/tensor.h"
#include "base/threads.h"

#define ROWS_PER_TASK 16

typedef struct upload_job {
    const vka_tensor *input;
    row_range rows;
    float *target;
} upload_job;

static void convert_rows(void *user, size_t begin, size_t end)
{
    const upload_job *job = user;
    const vka_tensor *input = job->input;

    for (size_t r = begin; r < end; r++) {
        float *to = job->target + r * job->rows.pad;
        vka_convert(to, VKA_F32, vka_tensor_element(input, job->rows.first + r, 0), input->dtype, (size_t)input->cols);
        memset(to + input->cols, 0, (job->rows.pad - (size_t)input->cols) * sizeof(float));
    }
}

vka_status rows_upload(staged_tensor *tensor, recorder *rec, const vka_tensor *input, row_range rows, vka_error *error)
{
    upload_job job = {input, rows, staged_host(tensor)};

    vka_parallel_for(rows.count, ROWS_PER_TASK, convert_rows, &job);
    return staged_push(tensor, rec, (uint64_t)rows.count * rows.pad * sizeof(float), error);
}

pack_push rows_pack(uint32_t rows, uint32_t src_cols, uint32_t src_stride, uint32_t dst_cols, uint32_t dst_stride)
{
    return (pack_push){.batch = 1,
                       .tokens = rows,
                       .heads = 1,
                       .src_dim = src_cols,
                       .dst_dim = dst_cols,
                       .src_length_stride = src_stride,
                       .dst_length_stride = dst_stride};
}
