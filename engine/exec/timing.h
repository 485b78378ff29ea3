/* Where the time of a call went, summed over its chunks. */
#ifndef VKA_EXEC_TIMING_H
#define VKA_EXEC_TIMING_H

#include "exec/recorder.h"
#include "vkattn/forward.h"

/* Marks in GPU time; mark m ends the stage that mark m-1 began. */
typedef enum timing_mark {
    MARK_BEGIN,
    MARK_UPLOAD,
    MARK_QKV,
    MARK_EPILOGUE,
    MARK_ATTENTION,
    MARK_OUTPUT,
    MARK_DOWNLOAD,
} timing_mark;

typedef struct call_timing {
    vka_timing *out; /* NULL: nobody asked, nothing is measured */
    double started_ms;
} call_timing;

/* Zeroes the caller's record and starts the clock. */
void timing_begin(call_timing *timing, vka_timing *out, uint32_t devices);
void timing_end(call_timing *timing);
/* Adds to `first_ms` the time since `since`. */
void timing_first(call_timing *timing, double since_ms);
void timing_chunk(call_timing *timing);

/* Records a GPU timestamp when somebody asked. */
void timing_mark_gpu(const call_timing *timing, recorder *rec, timing_mark mark);
/* After the wait: reads marks `first` .. `last` of `device` into the stages that they end. */
void timing_read_gpu(call_timing *timing, gpu_device *gpu, uint32_t device, timing_mark first, timing_mark last);
/* Host work of one stage on one device. */
void timing_host(call_timing *timing, uint32_t device, vka_stage stage, double since_ms);
/* Work that a stage did, by definition. */
void timing_work(call_timing *timing, uint32_t device, vka_stage stage, double flops, double bytes);

#endif
