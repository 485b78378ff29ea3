/* The machine that we run on, for reports. */
#ifndef VKA_BASE_SYSTEM_H
#define VKA_BASE_SYSTEM_H

#include <stdint.h>

typedef struct vka_system {
    char os[256];    /* e.g. "Linux 6.1.0 x86_64"; empty when unknown, as are the others */
    char cpu[128];   /* model name */
    uint32_t cpus;   /* online; 0: unknown */
    uint64_t memory; /* bytes; 0: unknown */
    double load;     /* processes that want to run, mean of the last minute; negative: unknown */
    char time[32];   /* now, in UTC: "2026-01-31T12:00:00Z" */
} vka_system;

void vka_system_describe(vka_system *out);

#endif
