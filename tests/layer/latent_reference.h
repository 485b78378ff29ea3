/* Latent attention in float64 from the formula as it is published: K and V of every head and token are made, nothing is
 * taken into the queries. Shares no code with the engine. */
#ifndef VKA_TESTS_LAYER_LATENT_REFERENCE_H
#define VKA_TESTS_LAYER_LATENT_REFERENCE_H

#include "layer/harness.h"

/* Planted mistakes. */
typedef enum latent_mistake {
    LATENT_CORRECT,
    LATENT_NO_KV_NORM,   /* the latent of K and V is not normed */
    LATENT_NO_Q_NORM,    /* that of Q is not; no change without q_lora_rank */
    LATENT_PAIRING,      /* the other pairing */
    LATENT_OTHER_HEAD,   /* K and V of the next head */
    LATENT_FIRST_TURNED, /* Q turns its first elements */
    LATENT_V_BEFORE_K,   /* rows of kv_b are taken for [V | K] */
    LATENT_MISTAKES
} latent_mistake;

/* What tokens first .. first + rows - 1 of `stream` give: [rows, hidden]. */
void latent_reference(const layer_rig *rig, uint32_t stream, uint32_t first, uint32_t rows, latent_mistake mistake,
                      double *out);

#endif
