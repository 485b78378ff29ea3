/* The exchange alone: one partial sum per device, added on the host and handed back. */
#ifndef VKATTN_EXCHANGE_H
#define VKATTN_EXCHANGE_H

#include "vkattn/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Host times of one exchange. */
typedef struct vka_exchange_timing {
    double wall_ms;     /* all of it */
    double download_ms; /* devices to host memory; 0 when added in place */
    double add_ms;      /* in place this includes writing the sum back */
    double upload_ms;   /* host memory to devices; 0 when added in place */
    uint32_t in_place;  /* nonzero: added where the buffers lie, without a staging copy */
} vka_exchange_timing;

typedef struct vka_all_reduce_params {
    uint32_t struct_size;        /* sizeof(vka_all_reduce_params) */
    vka_buffer *const *buffers;  /* one per device of the context, in its order */
    uint64_t count;              /* F32 values from the beginning of each buffer, at least 1 */
    uint32_t staged;             /* nonzero: never add in place (to measure what that saves) */
    vka_exchange_timing *timing; /* NULL: not wanted */
} vka_all_reduce_params;

/* Replaces the first `count` values of every buffer by buffers[0] + buffers[1] + ..., added in that order in F32, so
 * all devices hold the same bits. In place where the host may read the memory of all buffers at full speed, else over
 * host memory. On failure the contents of the buffers are unspecified. */
VKA_API vka_status vka_all_reduce(vka_context *context, const vka_all_reduce_params *params, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
