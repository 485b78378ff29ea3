/* What vkattn run prints at the end: tables for people, or one JSON object with the same. */
#ifndef VKA_TOOLS_RUN_REPORT_H
#define VKA_TOOLS_RUN_REPORT_H

#include "run.h"
#include "run_verify.h"

typedef struct run_result {
    const run_options *options;
    const run_layer *layer;
    const run_rows *rows;
    const run_engine *engine;
    const run_times *times;     /* of the timed pass */
    double first_ms;            /* what only the first pass had to do, and the making of pipelines before it */
    const run_verdict *verdict; /* NULL: not verified */
    bool repeated;              /* the timed pass gave the same bits as the first */
} run_result;

/* Whether everything that was checked holds. */
bool run_passed(const run_result *result);

/* Milliseconds of a stage by its best clock, the GPU's where the device has timestamps, and which clock that is. */
double run_stage_ms(const vka_stage_time *time);
const char *run_stage_clock(const vka_stage_time *time);

/* False for what a device had no part in. Adding is the host's work for all devices and stands with device 0. */
bool run_stage_ran(const run_result *result, uint32_t stage, uint32_t device);

/* Both return the exit status of the run. */
int run_report_text(const run_result *result);
int run_report_json(const run_result *result);

#endif
