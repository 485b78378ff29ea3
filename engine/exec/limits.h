/* Every tensor of a layer or cache against the limits of its device, before anything is allocated. What can be cut
 * (weights in row panels, the cache in slabs, scratch in row chunks) is asked for its smallest piece. */
#ifndef VKA_EXEC_LIMITS_H
#define VKA_EXEC_LIMITS_H

#include "exec/layer.h"

/* VKA_ERR_LIMIT names the tensor, its smallest piece, the limit and what to do. */
vka_status limits_check_layer(const vka_layer *layer, uint32_t device, vka_error *error);

/* VKA_ERR_LIMIT when `bytes` of `what` do not fit one buffer of device `position`. */
vka_status limits_check(const vka_caps *caps, uint32_t position, uint64_t bytes, const char *what, const char *advice,
                        vka_error *error);

#endif
