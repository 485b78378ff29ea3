/* What a description may ask for and this release does not run yet. */
#ifndef VKA_EXEC_UNSUPPORTED_H
#define VKA_EXEC_UNSUPPORTED_H

#include "vkattn/layer_desc.h"

/* VKA_ERR_UNSUPPORTED names the first field of the resolved description that the devices would ignore. */
vka_status unsupported_check(const vka_layer_desc *desc, vka_error *error);

#endif
