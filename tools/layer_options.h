/* The options of a layer in words. */
#ifndef VKA_TOOLS_LAYER_OPTIONS_H
#define VKA_TOOLS_LAYER_OPTIONS_H

#include "base/text.h"
#include "vkattn/layer_desc.h"

/* Appends what a resolved description asks for beyond plain causal attention, or "causal" alone: one line, commas
 * between. */
void layer_options_append(vka_text *out, const vka_layer_desc *desc);

#endif
