/* See script.h. */
#include "layer/script.h"

static void call(layer_rig *rig, const script_tensors *tensors, const vka_batch_entry *entries, uint32_t count)
{
    rig_forward(rig, &(rig_call){.entries = entries,
                                 .count = count,
                                 .input = tensors->input,
                                 .output = tensors->output,
                                 .input_gap = tensors->input_gap,
                                 .output_gap = tensors->output_gap});
}

void run_script(layer_rig *rig, const script_tensors *tensors)
{
    uint32_t a = rig_sequence(rig), b = rig_sequence(rig), c = rig_sequence(rig);

    call(rig, tensors, (const vka_batch_entry[]){{a, 9}, {b, 1}}, 2);
    call(rig, tensors, (const vka_batch_entry[]){{c, 3}, {a, 1}, {b, 40}}, 3);
    call(rig, tensors, (const vka_batch_entry[]){{b, 1}, {c, 1}, {a, 1}}, 3);
    call(rig, tensors, (const vka_batch_entry[]){{a, 1}}, 1);
}

void run_case(vka_context *context, const layer_case *setup)
{
    static const script_tensors plain;
    layer_rig rig;

    rig_open(&rig, context, setup);
    run_script(&rig, &plain);
    rig_close(&rig);
}
