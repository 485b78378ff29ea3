/* What becomes of a row when all its keys are in: its sink joins the sum, it is divided, and the gate is applied.
 *
 * The including shader has `parameters`, `push` and load_quad() of q's buffer, and defines VKA_FINISH_ID, the first of
 * two specialisation constants. */
#include "softmax.glsl"

layout(constant_id = VKA_FINISH_ID) const bool SINKS = false;
layout(constant_id = VKA_FINISH_ID + 1) const bool GATE = false;

float sink_of(uint head)
{
    return uintBitsToFloat(parameters[push.sinks_offset + head]);
}

/* What the unnormalised sum of a row is divided by; 0 if it saw nothing. */
float divisor(uint head, float maximum, float total)
{
    if (SINKS)
        return total == 0.0 ? 0.0 : total + exp(sink_of(head) - maximum);
    return total;
}

float log_sum_exp_with_sink(uint head, float maximum, float total)
{
    if (SINKS) {
        float sink = sink_of(head);
        float joined = max(maximum, sink);
        total = (total == 0.0 ? 0.0 : total * exp(maximum - joined)) + exp(sink - joined);
        maximum = joined;
    }
    return log_sum_exp(maximum, total);
}

/* Quad `quad` of the output of (row, head): `sum` divided, and gated. */
vec4 finished(vec4 sum, float by, uint row, uint head, uint quad, uint head_quads)
{
    vec4 value = normalised(sum, by);
    if (GATE)
        value *= load_quad((push.gate_offset + row * push.gate_stride) / 4u + head * head_quads + quad);
    return value;
}
