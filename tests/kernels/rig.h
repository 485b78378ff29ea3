/* One opened device, buffers that the host sees, and a way to run one variant on them. Everything asserts. */
#ifndef VKA_TEST_KERNELS_RIG_H
#define VKA_TEST_KERNELS_RIG_H

#include "kernels/data.h"
#include "kernels/kernels.h"
#include "vk/gpu.h"

typedef struct test_rig {
    gpu_instance *instance;
    gpu_device *device;
} test_rig;

/* Opens the promised device under `pretend` (as in vka_context_params). */
void rig_open(test_rig *out, const char *pretend);
void rig_close(test_rig *rig);

/* Calls body for every row of `kernel` that the device can run. */
void rig_each_variant(test_rig *rig, vka_kernel kernel, void (*body)(test_rig *rig, const vka_variant *variant));
/* The selected row. */
const vka_variant *rig_variant(test_rig *rig, vka_kernel kernel, vka_dtype dtype);

/* Mapped device memory, filled with RIG_GUARD: what nobody may read or write. It is a NaN as F32, and as a pair of F16
 * or BF16. `written` has a flag per word: the shader has to write exactly the words that are set. */
#define RIG_GUARD 0x7fc07fc1u
#define RIG_EDGE  64u /* words that tests leave as guards before the content of buffers with offsets */

typedef struct rig_buffer {
    gpu_buffer *gpu;
    size_t words;
    uint32_t *u; /* the memory as words */
    float *f;    /* ... and as floats */
    bool *written;
} rig_buffer;

rig_buffer rig_buffer_new(test_rig *rig, size_t words);
void rig_buffer_free(rig_buffer *buffer);
/* Fails unless exactly the flagged words were written. */
void rig_check_written(const rig_buffer *buffer, const char *what);

/* Elements of any type, counted from the start of the buffer. */
void rig_put(rig_buffer *buffer, vka_dtype dtype, size_t element, float value);
float rig_get(const rig_buffer *buffer, vka_dtype dtype, size_t element);
/* Elements that RIG_EDGE words hold. */
size_t rig_edge(vka_dtype dtype);

/* Runs `variant` and waits. Buffers in the order of the kernel's bindings. */
typedef struct rig_job {
    const vka_variant *variant;
    const rig_buffer *buffers[4];
    const void *push;
    uint32_t groups[3];
    vka_spec spec;
} rig_job;

void rig_run(test_rig *rig, const rig_job *job);

#endif
