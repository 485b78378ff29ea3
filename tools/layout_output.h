/* How commands show a layer and its ranks. */
#ifndef VKA_TOOLS_LAYOUT_OUTPUT_H
#define VKA_TOOLS_LAYOUT_OUTPUT_H

#include <jansson.h>

#include "layout_args.h"

/* Name and geometry in one line, and the preset's note below. */
void output_layer(const layout_source *source);
/* What the layer computes, in one line; nothing for what is laid out only. */
void output_options(const layout_source *source);
json_t *output_json_layer(const layout_source *source);

void output_ranks(const vka_rank *ranks, uint32_t count);
json_t *output_json_ranks(const vka_rank *ranks, uint32_t count);

#endif
