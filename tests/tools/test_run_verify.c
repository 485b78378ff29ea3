/* The test of the test: what `vkattn run --verify` accepts when all is well, it must refuse, at the right stage, once
 * a device's results, or the reference, are wrong by little. One engine over both devices serves all cases. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run_verify.h"
#include "support/devices.h"

static run_options options = {
    .layout = {.heads = 8, .kv_heads = 4, .head_dim = 16, .hidden = 40, .tp = 4},
    .tokens = 20,
    .decode = 2,
    .sequences = 2,
    .page_size = 4,
};
static run_layer layer;
static run_rows rows;
static run_engine engine;
static float *output;

/* ---- planted bugs ---- */

typedef struct bug {
    const char *name;
    run_check stage;                     /* that must refuse it */
    bool missing;                        /* nothing is wrong, but something was not checked */
    void (*reference)(run_layer *wrong); /* makes the reference wrong, or NULL */
    /* Hands the trace on, made wrong or not; NULL: as it is. Writing to it is fine: it is a copy for the callback. */
    int (*trace)(const run_observer *verifier, const vka_trace *trace);
} bug;

static void wrong_scale(run_layer *wrong)
{
    wrong->source.desc.scale *= 1.01;
}

static void dropped_key(run_layer *wrong)
{
    wrong->source.desc.window = rows.prefill[0] - 1; /* the last rows of the prefill lose their oldest key */
}

static void wrong_rope_base(run_layer *wrong)
{
    wrong->source.desc.rope_theta *= 1.01;
}

static void no_rope(run_layer *wrong)
{
    wrong->source.desc.rope_type = VKA_ROPE_NONE;
}

/* The first query head takes the place of one with another KV head. */
static int wrong_kv_head(const run_observer *verifier, const vka_trace *trace)
{
    uint32_t heads[64];
    vka_trace wrong = *trace;

    assert_true(trace->kv_heads >= 2 && trace->q_heads <= 64);
    memcpy(heads, trace->q_head, trace->q_heads * sizeof(heads[0]));
    heads[0] = trace->q_head[trace->q_heads - 1];
    heads[trace->q_heads - 1] = trace->q_head[0];
    wrong.q_head = heads;
    return verifier->trace(verifier->user, &wrong);
}

static int partial_twice(const run_observer *verifier, const vka_trace *trace)
{
    int refused = verifier->trace(verifier->user, trace);

    return refused || trace->device != 0 ? refused : verifier->trace(verifier->user, trace);
}

static int lost_device(const run_observer *verifier, const vka_trace *trace)
{
    return trace->device == 0 ? verifier->trace(verifier->user, trace) : 0;
}

static int lost_row(const run_observer *verifier, const vka_trace *trace)
{
    vka_trace wrong = *trace;

    wrong.rows -= wrong.rows > 1;
    return verifier->trace(verifier->user, &wrong);
}

/* One element in the middle of an array that is off by a little. */
static int off(const run_observer *verifier, const vka_trace *trace, const float *array, size_t columns)
{
    ((float *)(uintptr_t)array)[trace->rows / 2 * columns + columns / 2] += 0.01f;
    return verifier->trace(verifier->user, trace);
}

static int hidden_off(const run_observer *verifier, const vka_trace *trace)
{
    return off(verifier, trace, trace->hidden, options.layout.hidden);
}

static int qkv_off(const run_observer *verifier, const vka_trace *trace)
{
    return off(verifier, trace, trace->qkv, (size_t)(trace->q_heads + 2 * trace->kv_heads) * 16);
}

static int q_off(const run_observer *verifier, const vka_trace *trace)
{
    return off(verifier, trace, trace->q, (size_t)trace->q_heads * 16);
}

static int attention_off(const run_observer *verifier, const vka_trace *trace)
{
    return off(verifier, trace, trace->attention, (size_t)trace->q_heads * 16);
}

static int attention_not_a_number(const run_observer *verifier, const vka_trace *trace)
{
    *(float *)(uintptr_t)trace->attention = NAN;
    return verifier->trace(verifier->user, trace);
}

static int partial_off(const run_observer *verifier, const vka_trace *trace)
{
    return off(verifier, trace, trace->partial, options.layout.hidden);
}

static const bug bugs[] = {
    {.name = "wrong scale", .stage = RUN_CHECK_ATTENTION, .reference = wrong_scale},
    {.name = "dropped key", .stage = RUN_CHECK_ATTENTION, .reference = dropped_key},
    {.name = "wrong KV head", .stage = RUN_CHECK_ATTENTION, .trace = wrong_kv_head},
    {.name = "wrong RoPE base", .stage = RUN_CHECK_EPILOGUE, .reference = wrong_rope_base},
    {.name = "no RoPE", .stage = RUN_CHECK_EPILOGUE, .reference = no_rope},
    {.name = "partial counted twice", .stage = RUN_CHECK_SUM, .trace = partial_twice},
    {.name = "uploaded hidden state off", .stage = RUN_CHECK_UPLOAD, .trace = hidden_off},
    {.name = "projection off", .stage = RUN_CHECK_QKV, .trace = qkv_off},
    {.name = "Q off", .stage = RUN_CHECK_EPILOGUE, .trace = q_off},
    {.name = "attention off", .stage = RUN_CHECK_ATTENTION, .trace = attention_off},
    {.name = "attention not a number", .stage = RUN_CHECK_ATTENTION, .trace = attention_not_a_number},
    {.name = "partial off", .stage = RUN_CHECK_OUTPUT, .trace = partial_off},
    {.name = "partial off", .stage = RUN_CHECK_SUM, .trace = partial_off},
    {.name = "device not traced", .missing = true, .trace = lost_device},
    {.name = "row not traced", .missing = true, .trace = lost_row},
};

/* ---- passes ---- */

typedef struct bugged {
    const bug *bug;
    run_observer verifier;
} bugged;

static int hand_on(void *user, const vka_trace *trace)
{
    const bugged *of = user;

    return of->bug->trace ? of->bug->trace(&of->verifier, trace) : of->verifier.trace(of->verifier.user, trace);
}

static vka_status call_done(void *user, const run_call *call, vka_error *error)
{
    const bugged *of = user;

    return of->verifier.done(of->verifier.user, call, error);
}

static run_verdict verify(const bug *planted)
{
    bugged of = {.bug = planted};
    run_observer observer = {.trace = hand_on, .done = call_done, .user = &of};
    run_layer reference = layer;
    run_verifier *verifier = NULL;
    run_times times = {0};
    run_verdict verdict = {0};
    vka_error error = {0};
    vka_status status;

    if (planted->reference)
        planted->reference(&reference);
    status = run_verifier_create(&verifier, &reference, &engine, &error);
    if (!status)
        status = run_times_make(&times, engine.devices, &error);
    if (!status) {
        of.verifier = run_verifier_observer(verifier);
        status = run_pass(&engine, &rows, output, &observer, &times, &error);
    }
    if (!status)
        status = run_verifier_verdict(verifier, &rows, output, &verdict, &error);
    run_times_free(&times);
    run_verifier_destroy(&verifier);
    if (status)
        fail_msg("%s: %s", planted->name, error.message);
    return verdict;
}

static void correct_device_passes(void **state)
{
    static const bug none = {.name = "no bug"};
    run_verdict verdict = verify(&none);

    (void)state;
    assert_true(verdict.max_error_over_bound <= 1);
    assert_true(verdict.nmse < 1e-6);
    for (size_t c = 0; c < RUN_CHECK_COUNT; c++)
        assert_true(verdict.elements[c] > 0);
}

static void planted_bugs_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
        run_verdict verdict = verify(&bugs[i]);

        if (!(verdict.max_error_over_bound > 1))
            fail_msg("%s: passed with error/bound %g", bugs[i].name, verdict.max_error_over_bound);
        if (!bugs[i].missing && !(verdict.worst[bugs[i].stage].ratio > 1))
            fail_msg("%s: stage %s passed", bugs[i].name, run_check_name(bugs[i].stage));
    }
}

static int open_engine(void **state)
{
    support_devices devices;
    vka_error error = {0};
    vka_status status;

    (void)state;
    support_find_devices(&devices);
    options.devices = devices.grammar;
    status = layout_args_source(&options.layout, &layer.source, &error);
    if (!status)
        status = run_layer_load(&layer, &options, &error);
    if (!status)
        status = run_rows_make(&rows, &options, &layer.source.desc, &error);
    if (!status)
        status = run_engine_open(&engine, &options, &layer, &rows, &error);
    if (status)
        fail_msg("%s", error.message);
    output = calloc(rows.rows, rows.hidden * sizeof(float));
    return output ? 0 : -1;
}

static int close_engine(void **state)
{
    (void)state;
    run_engine_close(&engine);
    run_rows_free(&rows);
    run_layer_close(&layer);
    free(output);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_device_passes),
        cmocka_unit_test(planted_bugs_fail),
    };

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
