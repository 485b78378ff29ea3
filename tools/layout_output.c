/* A layer and its ranks, as text and as JSON. */
#include "layout_output.h"

#include <stdio.h>

#include "layer_options.h"
#include "output.h"

void output_layer(const layout_source *source)
{
    const vka_layer_desc *desc = &source->desc;

    printf("%s: %u query heads, %u KV heads, head size %u", source->name ? source->name : "layer", desc->heads,
           desc->kv_heads, desc->head_dim);
    if (desc->v_head_dim != desc->head_dim)
        printf(" (V: %u)", desc->v_head_dim);
    printf(", hidden size %u\n", desc->hidden_size);
    if (source->note)
        printf("note: %s\n", source->note);
    if (source->not_run)
        printf("laid out, not run: %s\n", source->not_run);
}

enum { OPTIONS_BYTES = 512 };

/* False for what is laid out only: what it computes was not read. */
static bool describe_options(const layout_source *source, char line[OPTIONS_BYTES])
{
    vka_text text = {line, OPTIONS_BYTES, 0};

    if (source->not_run)
        return false;
    layer_options_append(&text, &source->desc);
    return true;
}

void output_options(const layout_source *source)
{
    char line[OPTIONS_BYTES];

    if (describe_options(source, line))
        printf("attention: %s\n", line);
}

json_t *output_json_layer(const layout_source *source)
{
    const vka_layer_desc *desc = &source->desc;
    char line[OPTIONS_BYTES];
    json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:I}", "heads", (json_int_t)desc->heads, "kv_heads",
                               (json_int_t)desc->kv_heads, "head_dim", (json_int_t)desc->head_dim, "v_head_dim",
                               (json_int_t)desc->v_head_dim, "hidden_size", (json_int_t)desc->hidden_size);

    json_object_set_new(object, "model", source->name ? output_json_text(source->name) : json_null());
    json_object_set_new(object, "note", source->note ? output_json_text(source->note) : json_null());
    json_object_set_new(object, "attention", describe_options(source, line) ? json_string(line) : json_null());
    json_object_set_new(object, "not_run", source->not_run ? output_json_text(source->not_run) : json_null());
    return object;
}

void output_ranks(const vka_rank *ranks, uint32_t count)
{
    static const char *const headings[] = {"rank", "t", "c", "d", "query heads", "KV heads", "replica", "device"};
    output_table *table = output_table_new(headings, "rrrrrrrr");

    for (uint32_t i = 0; i < count; i++) {
        const vka_rank *rank = &ranks[i];

        output_cell(table, "%u", rank->rank);
        output_cell(table, "%u", rank->t);
        output_cell(table, "%u", rank->c);
        output_cell(table, "%u", rank->d);
        output_cell(table, "%u..%u", rank->q_begin, rank->q_begin + rank->q_count - 1);
        output_cell(table, "%u..%u", rank->kv_begin, rank->kv_begin + rank->kv_count - 1);
        output_cell(table, "%u of %u", rank->replica + 1, rank->replicas);
        output_cell(table, "%u", rank->device);
    }
    output_table_end(table);
}

json_t *output_json_ranks(const vka_rank *ranks, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++)
        json_array_append_new(array, output_json_rank(&ranks[i]));
    return array;
}
