/* See peak.h. Every variant of the kernel that can run is tried and the fastest counts: a peak is what can be had, not
 * what selection would take. The first run compiles and is not looked at; then dispatches are repeated within one
 * submission until that takes long enough to be timed well. */
#include "exec/peak.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/median.h"
#include "exec/pipelines.h"
#include "exec/recorder.h"
#include "exec/staged.h"

#define VECTOR_BYTES  16u
#define GROUP_VECTORS 2048u /* that a workgroup reads or copies: few enough for the first-level cache */
#define FMA_COUNT     64u   /* rounds of an invocation, each PEAK_FMA_STEPS multiply-adds of every chain */
#define ENOUGH_MS     10.0
#define WANTED_MS     20.0
#define MAX_REPEAT    256u
#define MOST_MS       500.0 /* of all runs of a variant together */
#define NEVER_THE_SUM 3.0e38f
#define FILL_PATTERN  0x3f800000u /* floats in [1, 2) */
#define FILL_HASH     2654435761u /* Knuth's multiplier: 2^32 / golden ratio */

typedef struct peak_run {
    exec_device *device;
    kernel_pipeline kernel; /* without a variant: the copy command */
    peak_push push;
    uint32_t groups;
    uint32_t repeat;
    double work;                         /* of one dispatch */
    uint64_t source_bytes, target_bytes; /* source: 0 where there is none */
    gpu_buffer *source, *target;
    double gpu_ms, wall_ms; /* of the last submission */
} peak_run;

/* Bytes that are read: more than caches hold, within the limits of the device. */
static uint64_t memory_bytes(const vka_caps *caps)
{
    uint64_t wanted = caps->type == VKA_DEVICE_CPU ? 64ull << 20 : 256ull << 20;
    uint64_t most = vka_caps_max_tensor(caps);

    return wanted < most ? wanted : most;
}

/* Workgroups of the FMA kernel that fill a device of a type several times over. */
static uint32_t fma_groups(vka_device_type type)
{
    switch (type) {
    case VKA_DEVICE_DISCRETE:
        return 8192;
    case VKA_DEVICE_INTEGRATED:
    case VKA_DEVICE_VIRTUAL:
        return 1024;
    default:
        return 64;
    }
}

static void fill_source(void *user, void *target, uint64_t offset, uint64_t bytes)
{
    (void)user;
    for (uint64_t i = 0; i < bytes / sizeof(uint32_t); i++) {
        uint32_t word = FILL_PATTERN | ((uint32_t)(offset / sizeof(word) + i) * FILL_HASH) >> 9;
        memcpy((unsigned char *)target + i * sizeof(word), &word, sizeof(word));
    }
}

static void size_fma(peak_run *run)
{
    const vka_variant *variant = run->kernel.variant;

    run->groups = fma_groups(gpu_device_caps(run->device->gpu)->type);
    run->push = (peak_push){.count = FMA_COUNT, .factor = 0.5f, .term = 0.25f};
    run->work = 2.0 * run->groups * variant->local_size * FMA_COUNT * PEAK_FMA_STEPS * variant->tile_cols;
    run->target_bytes = (uint64_t)run->groups * variant->local_size * sizeof(float);
}

/* READ, COPY: whole pieces of workgroups. */
static void size_memory(peak_run *run, bool copy)
{
    const vka_caps *caps = gpu_device_caps(run->device->gpu);
    uint64_t group_bytes = (uint64_t)GROUP_VECTORS * VECTOR_BYTES, groups = memory_bytes(caps) / group_bytes;

    run->groups = groups < caps->max_groups[0] ? (uint32_t)groups : caps->max_groups[0];
    run->source_bytes = run->groups * group_bytes;
    run->target_bytes = copy ? run->source_bytes : sizeof(float);
    run->work = (double)run->source_bytes * (copy ? 2 : 1);
    if (run->kernel.variant != NULL) {
        run->push = (peak_push){.count = GROUP_VECTORS / run->kernel.variant->local_size, .term = NEVER_THE_SUM};
    }
}

static vka_status create_buffers(peak_run *run, vka_error *error)
{
    gpu_device *gpu = run->device->gpu;
    vka_status status = gpu_buffer_create(&run->target, gpu, run->target_bytes, GPU_MEMORY_DEVICE,
                                          "target of a peak measurement", error);

    if (status != VKA_OK || run->source_bytes == 0) {
        return status;
    }
    status = gpu_buffer_create(&run->source, gpu, run->source_bytes, GPU_MEMORY_DEVICE, "source of a peak measurement",
                               error);
    return status == VKA_OK
               ? staged_upload(gpu, run->source, 0, run->source_bytes, sizeof(uint32_t), fill_source, NULL, error)
               : status;
}

static vka_status record_one(const peak_run *run, recorder *rec, vka_error *error)
{
    const uint32_t groups[3] = {run->groups, 1, 1};
    step_buffer buffers[GPU_MAX_BINDINGS];
    uint32_t count = 0;

    if (run->kernel.variant == NULL) {
        recorder_copy(rec, run->source, 0, run->target, 0, run->source_bytes);
        return VKA_OK;
    }
    if (run->source != NULL) {
        buffers[count++] = reads(run->source);
    }
    buffers[count++] = writes(run->target, HAZARD_WHOLE);
    if (run->kernel.variant->texel_bindings > 0) {
        buffers[count] = reads(run->source);
        buffers[count++].texel = GPU_TEXEL_RGBA32F;
    }
    return recorder_dispatch(rec, run->kernel.pipeline, buffers, count, &run->push, sizeof(run->push), groups, error);
}

static vka_status record(const peak_run *run, recorder *rec, vka_error *error)
{
    vka_status status = VKA_OK;

    gpu_cmd_timestamp(rec->commands, 0);
    for (uint32_t i = 0; status == VKA_OK && i < run->repeat; i++) {
        status = record_one(run, rec, error);
    }
    gpu_cmd_timestamp(rec->commands, 1);
    return status;
}

static vka_status run_once(peak_run *run, vka_error *error)
{
    recorder rec;
    vka_status status = recorder_begin(&rec, run->device->gpu, error);

    if (status != VKA_OK) {
        return status;
    }
    status = record(run, &rec, error);
    if (status != VKA_OK) {
        recorder_abandon(&rec);
        return status;
    }
    double since = vka_clock_ms();
    status = recorder_submit(&rec, &run->device->pending, error);
    if (status == VKA_OK) {
        status = gpu_wait(run->device->gpu, run->device->pending, error);
        run->device->pending = 0;
    }
    run->wall_ms = vka_clock_ms() - since;
    run->gpu_ms = gpu_elapsed_ms(run->device->gpu, 0, 1);
    return status;
}

static double best_clock(double gpu_ms, double wall_ms)
{
    return gpu_ms >= 0 ? gpu_ms : wall_ms;
}

/* Chooses `repeat` so that a submission takes about WANTED_MS. */
static vka_status calibrate(peak_run *run, vka_error *error)
{
    run->repeat = 1;
    vka_status status = run_once(run, error); /* some drivers compile only now */

    for (;;) {
        status = status == VKA_OK ? run_once(run, error) : status;
        double ms = best_clock(run->gpu_ms, run->wall_ms);
        if (status != VKA_OK || ms >= ENOUGH_MS || run->repeat == MAX_REPEAT) {
            return status;
        }
        double wanted = run->repeat * WANTED_MS / (ms > WANTED_MS / MAX_REPEAT ? ms : WANTED_MS / MAX_REPEAT) + 1;
        run->repeat = wanted < MAX_REPEAT ? (uint32_t)wanted : MAX_REPEAT;
    }
}

static double median_rate(const vka_peak *peak)
{
    double ms[VKA_PEAK_RUNS];

    for (uint32_t i = 0; i < peak->runs; i++) {
        ms[i] = best_clock(peak->gpu_ms[i], peak->wall_ms[i]);
    }
    double median = vka_median(ms, peak->runs);
    return median > 0 ? peak->work / (median * 1e-3) : 0;
}

/* A variant whose first look is not even half as fast as what there is is not looked at again. */
static vka_status measure(peak_run *run, double best_rate, vka_peak *peak, vka_error *error)
{
    vka_status status = calibrate(run, error);
    double rate = run->work * run->repeat / (best_clock(run->gpu_ms, run->wall_ms) * 1e-3);
    double most_ms = rate < best_rate / 2 ? 0 : MOST_MS;
    double started = vka_clock_ms();

    while (status == VKA_OK && peak->runs < VKA_PEAK_RUNS && (peak->runs == 0 || vka_clock_ms() - started < most_ms)) {
        status = run_once(run, error);
        peak->gpu_ms[peak->runs] = run->gpu_ms;
        peak->wall_ms[peak->runs] = run->wall_ms;
        peak->runs++;
    }
    if (status != VKA_OK) {
        return status;
    }
    peak->variant = run->kernel.variant != NULL ? run->kernel.variant->name : "vkCmdCopyBuffer";
    peak->work = run->work * run->repeat;
    peak->rate = median_rate(peak);
    return VKA_OK;
}

/* `variant` NULL: the copy command. *best is replaced by what is faster. */
static vka_status try_variant(exec_device *device, const vka_variant *variant, vka_peak_kind kind, vka_peak *best,
                              vka_error *error)
{
    peak_run run = {.device = device};
    vka_peak peak = {0};
    vka_status status = variant != NULL ? pipelines_make(device, variant, NULL, &run.kernel, error) : VKA_OK;

    if (status == VKA_OK && kind == VKA_PEAK_FMA_F32) {
        size_fma(&run);
    } else {
        size_memory(&run, kind == VKA_PEAK_COPY);
    }
    if (status == VKA_OK) {
        status = create_buffers(&run, error);
    }
    if (status == VKA_OK) {
        status = measure(&run, best->rate, &peak, error);
    }
    gpu_buffer_destroy(&run.source);
    gpu_buffer_destroy(&run.target);
    if (status == VKA_OK && peak.rate > best->rate) {
        *best = peak;
    }
    return status;
}

static bool can_run(const exec_device *device, const vka_variant *row)
{
    const vka_variant *chosen;

    return vka_variant_select(row->kernel, row->dtype, gpu_device_caps(device->gpu), row->name, &chosen, NULL) ==
           VKA_OK;
}

vka_status exec_measure_peak(vka_context *context, uint32_t device, vka_peak_kind kind, vka_peak *peak,
                             vka_error *error)
{
    static const vka_kernel kernels[VKA_PEAK_COUNT] = {VKA_KERNEL_PEAK_FMA, VKA_KERNEL_PEAK_READ, VKA_KERNEL_PEAK_COPY};
    exec_device *measured = &context->devices[device];
    vka_peak best = {0};
    vka_status status = kind == VKA_PEAK_COPY ? try_variant(measured, NULL, kind, &best, error) : VKA_OK;

    for (uint32_t i = 0; status == VKA_OK && i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (row->kernel == kernels[kind] && can_run(measured, row)) {
            status = try_variant(measured, row, kind, &best, error);
        }
    }
    if (status != VKA_OK) {
        return status;
    }
    if (best.runs == 0) {
        return vka_fail(error, VKA_ERR_UNSUPPORTED, "no variant of kernel %s runs on device %u",
                        vka_kernel_name(kernels[kind]), device);
    }
    *peak = best;
    return VKA_OK;
}
