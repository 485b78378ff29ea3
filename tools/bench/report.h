/* What the benchmark prints: JSON lines for machines, as the results come, and a table for people at the end. */
#ifndef VKA_BENCH_REPORT_H
#define VKA_BENCH_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "bench/session.h"
#include "output.h"

/* Of the format of the JSON lines; readers ignore keys that they do not know. */
#define BENCH_SCHEMA_VERSION 1

/* The first line: program, machine, devices, drivers. argv are the words of the command line. */
json_t *bench_json_environment(const bench_session *session, int argc, char **argv);

/* One line per case and device. Times that were not measured are null, never 0. */
json_t *bench_json_result(const bench_session *session, const bench_result *result);

/* Writes one line and drops the reference; false when that fails. */
bool bench_json_write(FILE *file, json_t *line);

/* The command that runs this case again in the same way. */
void bench_command(const bench_session *session, const bench_result *result, char *out, size_t size);

output_table *bench_table_new(void);
void bench_table_add(output_table *table, const bench_session *session, const bench_result *result);

#endif
