/* See timing.h. */
#include "exec/timing.h"

#include <string.h>

#include "base/clock.h"

/* The stage that each mark ends. */
static const vka_stage ended_stage[] = {
    [MARK_UPLOAD] = VKA_STAGE_UPLOAD,       [MARK_QKV] = VKA_STAGE_QKV,       [MARK_EPILOGUE] = VKA_STAGE_EPILOGUE,
    [MARK_ATTENTION] = VKA_STAGE_ATTENTION, [MARK_OUTPUT] = VKA_STAGE_OUTPUT, [MARK_DOWNLOAD] = VKA_STAGE_DOWNLOAD,
};

void timing_begin(call_timing *timing, vka_timing *out, uint32_t devices)
{
    timing->out = out;
    timing->started_ms = vka_clock_ms();
    if (out == NULL) {
        return;
    }
    out->wall_ms = out->first_ms = 0;
    out->chunks = 0;
    memset(out->devices, 0, devices * sizeof(*out->devices));
    for (uint32_t d = 0; d < devices; d++) {
        for (int stage = VKA_STAGE_ADD; stage < VKA_STAGE_COUNT; stage++) {
            out->devices[d][stage].gpu_ms = -1;
        }
    }
}

void timing_end(call_timing *timing)
{
    if (timing->out != NULL) {
        timing->out->wall_ms = vka_clock_ms() - timing->started_ms;
    }
}

void timing_first(call_timing *timing, double since_ms)
{
    if (timing->out != NULL) {
        timing->out->first_ms += vka_clock_ms() - since_ms;
    }
}

void timing_chunk(call_timing *timing)
{
    if (timing->out != NULL) {
        timing->out->chunks++;
    }
}

void timing_mark_gpu(const call_timing *timing, recorder *rec, timing_mark mark)
{
    if (timing->out != NULL) {
        gpu_cmd_timestamp(rec->commands, (uint32_t)mark);
    }
}

void timing_read_gpu(call_timing *timing, gpu_device *gpu, uint32_t device, timing_mark first, timing_mark last)
{
    if (timing->out == NULL) {
        return;
    }
    for (uint32_t mark = first; mark <= last; mark++) {
        vka_stage_time *stage = &timing->out->devices[device][ended_stage[mark]];
        double ms = gpu_elapsed_ms(gpu, mark - 1, mark);
        stage->gpu_ms = ms < 0 ? -1 : stage->gpu_ms + ms;
    }
}

void timing_host(call_timing *timing, uint32_t device, vka_stage stage, double since_ms)
{
    if (timing->out != NULL) {
        timing->out->devices[device][stage].wall_ms += vka_clock_ms() - since_ms;
    }
}

void timing_work(call_timing *timing, uint32_t device, vka_stage stage, double flops, double bytes)
{
    if (timing->out != NULL) {
        timing->out->devices[device][stage].flops += flops;
        timing->out->devices[device][stage].bytes += bytes;
    }
}
