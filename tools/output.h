/* What commands print: tables for people, JSON for machines. */
#ifndef VKA_TOOLS_OUTPUT_H
#define VKA_TOOLS_OUTPUT_H

#include <jansson.h>

#include "vkattn/layout.h"

/* ---- text tables: cells are added row by row, columns get the width of their widest cell ---- */

typedef struct output_table output_table;

/* `headings` [columns]; `align` has one 'l' or 'r' per column. NULL when memory is out; the functions below accept it.
 */
output_table *output_table_new(const char *const *headings, const char *align);
void output_cell(output_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints to stdout, each line behind two spaces, and frees the table. */
void output_table_end(output_table *table);

/* "1.50 MiB", "512 B"; returns `text`. */
typedef struct output_size {
    char text[24];
} output_size;
output_size output_bytes(uint64_t bytes);

/* ---- JSON ---- */

/* Prints `value` to stdout with a newline and drops the reference. NULL (memory is out) is reported on stderr. Returns
 * the exit status. */
int output_json(json_t *value);

/* A string; bytes that are no UTF-8, as a path or a driver may have, come out as '?'. */
json_t *output_json_text(const char *text);
json_t *output_json_grid(vka_grid grid);
json_t *output_json_rank(const vka_rank *rank);
json_t *output_json_valid(const vka_verdict *verdict); /* {"strict": [...], "replicate": [...]} */
/* VKA_KV_DEFAULT stands for the policy of the resolved description. */
const char *output_policy_name(vka_kv_policy policy, const vka_layer_desc *desc);

#endif
