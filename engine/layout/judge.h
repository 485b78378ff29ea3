/* Shared by the files of this folder. */
#ifndef VKA_LAYOUT_JUDGE_H
#define VKA_LAYOUT_JUDGE_H

#include "vkattn/layout.h"

/* The grid with every 0 replaced by the 1 it stands for. */
vka_grid vka_grid_normal(vka_grid grid);

#endif
