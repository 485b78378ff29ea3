/* One line per option that is on, in the order in which a layer applies them. */
#include "layer_options.h"

#include <math.h>

static const char *const rope_names[] = {
    [VKA_ROPE_DEFAULT] = "default",   [VKA_ROPE_NONE] = "none",       [VKA_ROPE_LINEAR] = "linear",
    [VKA_ROPE_NTK] = "ntk",           [VKA_ROPE_DYNAMIC] = "dynamic", [VKA_ROPE_YARN] = "yarn",
    [VKA_ROPE_LONGROPE] = "longrope", [VKA_ROPE_LLAMA3] = "llama3",
};

static void append_scaling(vka_text *out, const vka_rope_scaling *scaling)
{
    if (scaling->factor > 0)
        vka_append(out, ", factor %g", scaling->factor);
    if (scaling->original_context > 0)
        vka_append(out, ", trained length %u", scaling->original_context);
    if (scaling->attention_factor > 0)
        vka_append(out, ", attention factor %g", scaling->attention_factor);
    if (scaling->no_truncate)
        vka_append(out, ", not truncated");
}

static void append_rope(vka_text *out, const vka_layer_desc *desc)
{
    if (desc->rope_type == VKA_ROPE_NONE) {
        vka_append(out, ", no RoPE");
        return;
    }
    vka_append(out, ", RoPE %s (base %.10g", rope_names[desc->rope_type], desc->rope_theta);
    append_scaling(out, &desc->rope_scaling);
    if (desc->rotary_dim != desc->head_dim)
        vka_append(out, ", elements %u..%u", desc->rotary_offset, desc->rotary_offset + desc->rotary_dim - 1);
    if (desc->rope_pairing == VKA_ROPE_INTERLEAVED)
        vka_append(out, ", interleaved pairs");
    if (desc->mrope_section[0] + desc->mrope_section[1] + desc->mrope_section[2] > 0)
        vka_append(out, ", sections %u %u %u%s", desc->mrope_section[0], desc->mrope_section[1], desc->mrope_section[2],
                   desc->mrope_interleaved ? " interleaved" : "");
    vka_append(out, ")");
}

static void append_norms(vka_text *out, const vka_layer_desc *desc)
{
    if (desc->clip_qkv > 0)
        vka_append(out, ", Q, K, V clipped at %g", desc->clip_qkv);
    if (desc->qk_norm != VKA_QK_NORM_NONE)
        vka_append(out, ", QK-norm %s%s", desc->qk_norm == VKA_QK_NORM_FULL_WIDTH ? "over the full width" : "per head",
                   desc->norm_unit_offset ? " (1 + w)" : "");
    if (desc->k_out_norm)
        vka_append(out, ", a norm for keys handed on");
}

static void append_scores(vka_text *out, const vka_layer_desc *desc)
{
    if (fabs(desc->scale * sqrt((double)desc->head_dim) - 1.0) > 1e-6)
        vka_append(out, ", scale %.6g", desc->scale);
    if (desc->softcap > 0)
        vka_append(out, ", softcap %g", desc->softcap);
    if (desc->window > 0)
        vka_append(out, ", window %u", desc->window);
    if (desc->window_right > 0)
        vka_append(out, ", window to the right %u", desc->window_right);
    if (desc->sinks)
        vka_append(out, ", sinks");
    if (desc->alibi)
        vka_append(out, ", ALiBi");
    if (desc->gate != VKA_GATE_NONE)
        vka_append(out, ", output gate");
}

void layer_options_append(vka_text *out, const vka_layer_desc *desc)
{
    static const char *const attends[] = {
        [VKA_ATTEND_CAUSAL] = "causal", [VKA_ATTEND_FULL] = "full", [VKA_ATTEND_CROSS] = "cross attention"};

    vka_append(out, "%s", attends[desc->attend]);
    if (desc->kv_lora_rank > 0)
        vka_append(out, ", KV latent %u", desc->kv_lora_rank);
    if (desc->q_lora_rank > 0)
        vka_append(out, ", Q latent %u", desc->q_lora_rank);
    append_norms(out, desc);
    append_rope(out, desc);
    append_scores(out, desc);
}
