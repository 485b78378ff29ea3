/* See system.h. What Linux tells in files is read there; on other systems it stays unknown. */
#define _DEFAULT_SOURCE /* getloadavg */
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The value behind "model name<tab>: " in /proc/cpuinfo. */
static void read_cpu(char *out, size_t size)
{
    static const char key[] = "model name";
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];

    while (file && fgets(line, sizeof(line), file)) {
        const char *value = strchr(line, ':');

        if (!value || strncmp(line, key, sizeof(key) - 1) != 0)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (file)
        fclose(file);
}

static void read_time(char *out, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;

    if (gmtime_r(&now, &utc))
        strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

void vka_system_describe(vka_system *out)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    struct utsname names;

    memset(out, 0, sizeof(*out));
    if (uname(&names) == 0)
        snprintf(out->os, sizeof(out->os), "%.80s %.80s %.80s", names.sysname, names.release, names.machine);
    read_cpu(out->cpu, sizeof(out->cpu));
    out->cpus = cpus > 0 ? (uint32_t)cpus : 0;
    out->memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    if (getloadavg(&out->load, 1) != 1)
        out->load = -1;
    read_time(out->time, sizeof(out->time));
}
