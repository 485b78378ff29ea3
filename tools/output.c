/* Text tables and JSON. */
#include "output.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "failure.h"

enum { CELL = 256 };

struct output_table {
    const char *align;
    size_t columns;
    size_t cells; /* headings included */
    size_t capacity;
    char (*text)[CELL];
};

static bool add_cell(output_table *table, const char *format, va_list arguments)
{
    if (table->cells == table->capacity) {
        size_t capacity = 2 * table->capacity;
        void *larger = vka_realloc(NULL, table->text, capacity, sizeof(table->text[0]));

        if (!larger)
            return false;
        table->text = larger;
        table->capacity = capacity;
    }
    vsnprintf(table->text[table->cells++], CELL, format, arguments);
    return true;
}

void output_cell(output_table *table, const char *format, ...)
{
    va_list arguments;

    if (!table)
        return;
    va_start(arguments, format);
    if (!add_cell(table, format, arguments))
        fprintf(stderr, "vkattn: no memory for a cell of a table\n");
    va_end(arguments);
}

output_table *output_table_new(const char *const *headings, const char *align)
{
    output_table *table = vka_alloc(NULL, 1, sizeof(*table));

    if (!table)
        return NULL;
    table->align = align;
    table->columns = strlen(align);
    table->capacity = 8 * table->columns;
    table->text = vka_alloc(NULL, table->capacity, sizeof(table->text[0]));
    if (!table->text) {
        vka_free(NULL, table);
        return NULL;
    }
    for (size_t i = 0; i < table->columns; i++)
        output_cell(table, "%s", headings[i]);
    return table;
}

static int column_width(const output_table *table, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < table->cells; i += table->columns) {
        size_t length = strlen(table->text[i]);

        width = length > width ? length : width;
    }
    return (int)width;
}

void output_table_end(output_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->cells; i++) {
        size_t column = i % table->columns;
        bool last = column + 1 == table->columns;
        int width = column_width(table, column);

        if (table->align[column] == 'l')
            width = last ? 0 : -width; /* no blanks behind the last column */
        printf("  %*s%s", width, table->text[i], last ? "\n" : "");
    }
    vka_free(NULL, table->text);
    vka_free(NULL, table);
}

output_size output_bytes(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    output_size size;
    double value = (double)bytes;
    size_t unit = 0;

    if (bytes < 1024) {
        snprintf(size.text, sizeof(size.text), "%u B", (unsigned)bytes);
        return size;
    }
    for (value /= 1024; value >= 1024 && unit < 3; unit++)
        value /= 1024;
    snprintf(size.text, sizeof(size.text), "%.2f %s", value, units[unit]);
    return size;
}

int output_json(json_t *value)
{
    char *text = value ? json_dumps(value, JSON_INDENT(2) | JSON_ENCODE_ANY) : NULL;
    bool printed = text && printf("%s\n", text) >= 0;

    if (!printed)
        fprintf(stderr, "vkattn: the JSON output could not be made or written\n");
    if (text) {
        json_malloc_t allocate;
        json_free_t release;

        json_get_alloc_funcs(&allocate, &release);
        release(text);
    }
    json_decref(value);
    return printed ? EXIT_STATUS_OK : EXIT_STATUS_FAILED;
}

json_t *output_json_text(const char *text)
{
    json_t *string = json_string(text);
    size_t length = strlen(text);
    char *copy;

    if (string)
        return string;
    copy = vka_alloc(NULL, length + 1, 1);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < length; i++)
        copy[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    string = json_string(copy);
    vka_free(NULL, copy);
    return string;
}

json_t *output_json_grid(vka_grid grid)
{
    return json_pack("{s:I, s:I, s:I}", "tp", (json_int_t)grid.tp, "cp", (json_int_t)grid.cp, "dp",
                     (json_int_t)grid.dp);
}

json_t *output_json_rank(const vka_rank *rank)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "rank", (json_int_t)rank->rank, "t",
                     (json_int_t)rank->t, "c", (json_int_t)rank->c, "d", (json_int_t)rank->d, "q_begin",
                     (json_int_t)rank->q_begin, "q_count", (json_int_t)rank->q_count, "kv_begin",
                     (json_int_t)rank->kv_begin, "kv_count", (json_int_t)rank->kv_count, "replica",
                     (json_int_t)rank->replica, "replicas", (json_int_t)rank->replicas, "device",
                     (json_int_t)rank->device);
}

static json_t *numbers(const uint32_t *values, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, json_integer(values[i]));
    return array;
}

json_t *output_json_valid(const vka_verdict *verdict)
{
    return json_pack("{s:o, s:o}", "strict", numbers(verdict->valid_strict, verdict->valid_strict_count), "replicate",
                     numbers(verdict->valid_replicate, verdict->valid_replicate_count));
}

const char *output_policy_name(vka_kv_policy policy, const vka_layer_desc *desc)
{
    return (policy == VKA_KV_DEFAULT ? desc->kv_policy : policy) == VKA_KV_STRICT ? "strict" : "replicate";
}
