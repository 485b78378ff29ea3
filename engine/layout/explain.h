/* The text of a refusal. */
#ifndef VKA_LAYOUT_EXPLAIN_H
#define VKA_LAYOUT_EXPLAIN_H

#include "vkattn/layout.h"

/* Fills *error with the refusal that `verdict` (rule != VKA_RULE_NONE) stands for and returns VKA_ERR_LAYOUT. The
 * grid has no zeros. */
vka_status vka_layout_refuse(const vka_layer_desc *desc, vka_grid grid, vka_kv_policy policy,
                             const vka_verdict *verdict, vka_error *error);

#endif
