/* Device memory that a caller may hand to and fro between calls. */
#ifndef VKATTN_BUFFER_H
#define VKATTN_BUFFER_H

#include "vkattn/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vka_buffer vka_buffer;

/* `bytes` of device memory on device `device` of the context; contents undefined. Belongs to the caller, who destroys
 * it before the context. */
VKA_API vka_status vka_buffer_create(vka_buffer **out, vka_context *context, uint32_t device, uint64_t bytes,
                                     vka_error *error);
VKA_API void vka_buffer_destroy(vka_buffer **buffer);
VKA_API vka_status vka_buffer_write(vka_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes,
                                    vka_error *error);
VKA_API vka_status vka_buffer_read(vka_buffer *buffer, uint64_t offset, void *data, uint64_t bytes, vka_error *error);

#ifdef __cplusplus
}
#endif

#endif
