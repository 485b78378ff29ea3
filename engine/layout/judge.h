/* Shared by the files of this folder. */
#ifndef VKA_LAYOUT_JUDGE_H
#define VKA_LAYOUT_JUDGE_H

#include "vkattn/layout.h"

/* The grid with every 0 replaced by the 1 it stands for. */
/* VKA_KV_DEFAULT stands for the description's own policy. */
vka_kv_policy vka_kv_policy_of(const vka_layer_desc *desc, vka_kv_policy policy);

vka_grid vka_grid_normal(vka_grid grid);

/* VKA_KV_DEFAULT stands for the policy of the description. */
vka_kv_policy vka_kv_policy_of(const vka_layer_desc *desc, vka_kv_policy policy);

#endif
