/* What every public function does first: takes the caller's parameter struct whatever its version, and claims the
 * context for this thread. */
#ifndef VKA_API_GUARD_H
#define VKA_API_GUARD_H

#include "exec/context.h"

/* Copies a parameter struct that starts with struct_size: an older, shorter one is completed with zeros (defaults), a
 * longer one is taken when what we do not know of it is zero. VKA_ERR_ARGUMENT when NULL, without a size, or newer. */
vka_status guard_params(void *out, size_t size, const void *params, const char *type, vka_error *error);

/* VKA_ERR_ARGUMENT for NULL; VKA_ERR_BUSY when another call is inside the context. Pair with guard_leave(). */
vka_status guard_enter(vka_context *context, vka_error *error);
void guard_leave(vka_context *context);

#endif
