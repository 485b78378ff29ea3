/* The tuned choices of a context's devices: read from their files when the context is made; changed, written and
 * removed only where that is asked for. */
#ifndef VKA_EXEC_TUNED_H
#define VKA_EXEC_TUNED_H

#include "exec/context.h"
#include "vkattn/tune.h"

/* Fills tuned and tuning_path of all devices. A file that cannot be used is passed over with a warning in the log. */
vka_status tuned_open(vka_context *context, const vka_context_params *params, vka_error *error);

/* Adds the choices in `found` to those of the device, and of the same device where the context opened it twice; then
 * writes its file, unless the context has none or pretends. */
vka_status tuned_add(vka_context *context, uint32_t device, const tuning_table *found, vka_error *error);

/* Forgets all choices of the device, likewise, and removes the file. */
vka_status tuned_forget(vka_context *context, uint32_t device, vka_error *error);

/* Writes up to `capacity` choices and returns how many there are. */
uint32_t tuned_list(const vka_context *context, uint32_t device, vka_tuned_info *out, uint32_t capacity);

#endif
