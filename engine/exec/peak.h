/* Measuring what a device can do at best. */
#ifndef VKA_EXEC_PEAK_H
#define VKA_EXEC_PEAK_H

#include "exec/context.h"
#include "vkattn/peak.h"

vka_status exec_measure_peak(vka_context *context, uint32_t device, vka_peak_kind kind, vka_peak *peak,
                             vka_error *error);

#endif
