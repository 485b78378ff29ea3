/* See rows.h. */
#include "exec/rows.h"

#include <string.h>

#include "base/half.h"
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
    uint64_t stride = input->row_stride != 0 ? input->row_stride : input->cols;

    for (size_t r = begin; r < end; r++) {
        const unsigned char *from = input->data;
        float *to = job->target + r * job->rows.pad;
        from += (job->rows.first + r) * stride * vka_dtype_size(input->dtype);
        vka_convert(to, VKA_F32, from, input->dtype, (size_t)input->cols);
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
