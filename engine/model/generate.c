/* Generated weights. A uniform value in [-a, a) has the variance a^2 / 3, so a = sqrt(3 / columns) keeps the size of
 * what goes through a projection. Every tensor is a stream of its own: its elements do not depend on its neighbours,
 * nor on the element type asked for (but for rounding). */
#include "vkattn/model.h"

#include <math.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/half.h"
#include "base/threads.h"
#include "model/weights.h"

enum { PIECE = 1024, GRAIN = 64 * PIECE };

struct vka_generated_weights {
    vka_layer_weights view;
    void *data[VKA_WEIGHT_COUNT];
};

typedef struct tensor_job {
    char *out;
    vka_dtype dtype;
    double amplitude, offset;
    uint64_t seed;
    uint32_t stream;
} tensor_job;

static void generate_piece(void *user, size_t begin, size_t end)
{
    const tensor_job *job = user;
    float values[PIECE];

    for (size_t first = begin; first < end; first += PIECE) {
        size_t count = end - first < PIECE ? end - first : PIECE;

        vka_random_fill(values, count, job->amplitude, job->seed, job->stream, first);
        for (size_t i = 0; i < count; i++)
            values[i] = (float)(values[i] + job->offset);
        vka_convert(job->out + first * vka_dtype_size(job->dtype), job->dtype, values, VKA_F32, count);
    }
}

/* Values are uniform around an offset. Norm weights lie around what leaves a vector as it is, slopes are positive. */
static void choose_values(tensor_job *job, vka_weight_kind kind, double columns, bool unit_offset)
{
    job->amplitude = kind == VKA_KIND_MATRIX ? sqrt(3.0 / columns) : kind == VKA_KIND_SLOPE ? 0.1 : 0.5;
    job->offset = kind == VKA_KIND_NORM && !unit_offset ? 1.0 : kind == VKA_KIND_SLOPE ? 0.2 : 0.0;
}

static bool is_wanted(int weight, vka_weight_need need, const vka_generate_params *params)
{
    if (need == VKA_NEED_OPTIONAL)
        return weight == VKA_WEIGHT_O_BIAS ? params->o_bias != 0 : params->qkv_bias != 0;
    return need == VKA_NEED_REQUIRED;
}

static vka_status generate_tensor(vka_generated_weights *made, int weight, const vka_weight_shape *shape,
                                  bool unit_offset, const vka_generate_params *params, vka_error *error)
{
    tensor_job job = {.dtype = shape->kind == VKA_KIND_MATRIX ? params->dtype : VKA_F32,
                      .seed = params->seed,
                      .stream = (uint32_t)weight};
    size_t elements = (size_t)(shape->rows * shape->cols); /* each below 2^31, see vka_layer_desc_resolve() */

    choose_values(&job, shape->kind, (double)shape->cols, unit_offset);
    job.out = vka_alloc(NULL, elements, vka_dtype_size(job.dtype));
    if (!job.out)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for generated tensor '%s' [%llu, %llu], %zu bytes each",
                        shape->name, (unsigned long long)shape->rows, (unsigned long long)shape->cols,
                        vka_dtype_size(job.dtype));
    made->data[weight] = job.out;
    vka_parallel_for(elements, GRAIN, generate_piece, &job);
    *vka_weight_at(&made->view, weight) =
        (vka_tensor){.data = job.out, .dtype = job.dtype, .rows = shape->rows, .cols = shape->cols};
    return VKA_OK;
}

static vka_status read_params(vka_generate_params *out, const vka_generate_params *params, vka_error *error)
{
    *out = (vka_generate_params){.struct_size = sizeof(*out)};
    if (params) {
        if (params->struct_size != sizeof(*params))
            return vka_fail(error, VKA_ERR_ARGUMENT, "struct_size of vka_generate_params is %u, expected %zu",
                            params->struct_size, sizeof(*params));
        *out = *params;
    }
    if (out->dtype == VKA_DTYPE_DEFAULT)
        out->dtype = VKA_F16;
    if (vka_dtype_size(out->dtype) == 0)
        return vka_fail(error, VKA_ERR_ARGUMENT, "dtype is %d, expected F32, F16 or BF16", (int)out->dtype);
    return VKA_OK;
}

vka_status vka_weights_generate(vka_generated_weights **out, const vka_layer_desc *desc,
                                const vka_generate_params *params, vka_error *error)
{
    vka_generated_weights *made = NULL;
    vka_generate_params wanted;
    vka_layer_desc resolved;
    vka_status status;

    if (!out || !desc)
        return vka_fail(error, VKA_ERR_ARGUMENT, "%s is NULL", out ? "desc" : "out");
    resolved = *desc;
    status = vka_layer_desc_resolve(&resolved, error);
    if (status == VKA_OK)
        status = read_params(&wanted, params, error);
    if (status != VKA_OK)
        return status;
    made = vka_alloc(NULL, 1, sizeof(*made));
    if (!made)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for generated weights");
    made->view.struct_size = sizeof(made->view);
    for (int i = 0; i < VKA_WEIGHT_COUNT && status == VKA_OK; i++) {
        vka_weight_shape shape = vka_weight_shape_of(&resolved, i);

        if (is_wanted(i, shape.need, &wanted))
            status = generate_tensor(made, i, &shape, resolved.norm_unit_offset != 0, &wanted, error);
    }
    if (status != VKA_OK)
        vka_weights_free(&made);
    else
        *out = made;
    return status;
}

const vka_layer_weights *vka_weights_view(const vka_generated_weights *weights)
{
    return weights ? &weights->view : NULL;
}

void vka_weights_free(vka_generated_weights **weights)
{
    if (!weights || !*weights)
        return;
    for (int i = 0; i < VKA_WEIGHT_COUNT; i++)
        vka_free(NULL, (*weights)->data[i]);
    vka_free(NULL, *weights);
    *weights = NULL;
}
