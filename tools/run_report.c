/* What both forms of the report agree on. */
#include "run_report.h"

bool run_passed(const run_result *result)
{
    bool verified = !result->verdict || result->verdict->max_error_over_bound <= 1;

    return verified && result->repeated && result->engine->validation_messages == 0;
}

double run_stage_ms(const vka_stage_time *time)
{
    return time->gpu_ms >= 0 ? time->gpu_ms : time->wall_ms;
}

const char *run_stage_clock(const vka_stage_time *time)
{
    return time->gpu_ms >= 0 ? "gpu" : "host";
}

bool run_stage_ran(const run_result *result, uint32_t stage, uint32_t device)
{
    const vka_stage_time *prefill = &result->times->prefill[device][stage];
    const vka_stage_time *decode = &result->times->decode[device][stage];

    if (stage == VKA_STAGE_ADD)
        return device == 0;
    return run_stage_ms(prefill) > 0 || run_stage_ms(decode) > 0 || prefill->bytes > 0 || decode->bytes > 0;
}
