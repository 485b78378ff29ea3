/* The sequences of a call: they enter it with pages for all their tokens, grow as chunks are done, and leave it; after
 * a failure as they were before it. */
#include "exec/forward.h"

#include "base/error.h"
#include "model/rope.h"

static const vka_batch_entry *entry_at(const forward_call *call, uint32_t index)
{
    return &call->params->batch.entries[index];
}

static page_sequence *sequence_at(const forward_call *call, uint32_t index)
{
    return &call->cache->pool.sequences[entry_at(call, index)->sequence];
}

static uint32_t *length_of(const forward_call *call, page_sequence *sequence)
{
    return &sequence->lengths[call->params->cache_layer];
}

/* Tokens that entry `index` appends to the cache. */
static uint32_t appended_tokens(const forward_call *call, uint32_t index)
{
    if (call->layer->desc.attend != VKA_ATTEND_CROSS) {
        return entry_at(call, index)->new_tokens;
    }
    return call->params->kv_tokens != NULL ? call->params->kv_tokens[index] : 0;
}

static vka_status check_counts(const forward_call *call, uint32_t index, uint32_t past, vka_error *error)
{
    const vka_batch_entry *entry = entry_at(call, index);
    uint32_t tokens = appended_tokens(call, index), most = INT32_MAX - past;

    if (entry->new_tokens == 0 || tokens > most || entry->new_tokens > INT32_MAX - call->rows ||
        tokens > INT32_MAX - call->kv_rows) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "sequence %u has %u tokens and shall get %u: expected 1 to %u new ones, and 2^31 - 1 in all",
                        entry->sequence, past, entry->new_tokens == 0 ? 0 : tokens, most);
    }
    if (past + tokens == 0) {
        return vka_fail(error, VKA_ERR_ARGUMENT,
                        "sequence %u has no keys: the first call of a cross attention needs kv_input and kv_tokens",
                        entry->sequence);
    }
    return VKA_OK;
}

/* RoPE types that turn long sequences in another way than short ones: keys of both kinds do not go together. */
static vka_status check_rope_length(const forward_call *call, const vka_batch_entry *entry,
                                    const page_sequence *sequence, uint32_t past, vka_error *error)
{
    uint32_t limit = rope_length_limit(&call->layer->desc), length = past + entry->new_tokens;
    uint32_t turned_for = sequence->turned_for[call->params->cache_layer];

    if (past == 0 || (turned_for > limit) == (length > limit)) {
        return VKA_OK;
    }
    return vka_fail(error, VKA_ERR_ARGUMENT,
                    "sequence %u holds %u keys that were turned for a length of %u and shall get %u more: RoPE is "
                    "another one past %u tokens; truncate the sequence to 0 and prefill it again",
                    entry->sequence, past, turned_for, entry->new_tokens, limit);
}

static vka_status enter_sequence(forward_call *call, uint32_t index, vka_error *error)
{
    const vka_batch_entry *entry = entry_at(call, index);
    page_sequence *sequence = page_sequence_get(&call->cache->pool, entry->sequence, error);

    if (sequence == NULL) {
        return VKA_ERR_ARGUMENT;
    }
    if (sequence->in_call) {
        return vka_fail(error, VKA_ERR_ARGUMENT, "sequence %u is twice in the batch", entry->sequence);
    }
    uint32_t past = *length_of(call, sequence), tokens = appended_tokens(call, index);
    vka_status status = check_counts(call, index, past, error);
    if (status == VKA_OK) {
        status = check_rope_length(call, entry, sequence, past, error);
    }
    if (status != VKA_OK) {
        return status;
    }
    sequence->in_call = true;
    sequence->past = past;
    call->rows += entry->new_tokens;
    call->kv_rows += tokens;
    return page_sequence_grow(&call->cache->pool, sequence, past + tokens, error);
}

vka_status forward_enter(forward_call *call, vka_error *error)
{
    uint32_t count = call->params->batch.count;
    vka_status status = call_reserve_sequences(call->context, count, error);

    for (uint32_t i = 0; status == VKA_OK && i < count; i++) {
        status = enter_sequence(call, i, error);
    }
    return status;
}

void forward_leave(forward_call *call, bool failed)
{
    for (uint32_t i = 0; i < call->params->batch.count; i++) {
        page_sequence *sequence =
            entry_at(call, i)->sequence < call->cache->pool.sequence_capacity ? sequence_at(call, i) : NULL;
        if (sequence == NULL || !sequence->used || !sequence->in_call) {
            continue;
        }
        sequence->in_call = false;
        if (failed) {
            *length_of(call, sequence) = sequence->past;
            page_sequence_settle(&call->cache->pool, sequence);
        } else {
            sequence->turned_for[call->params->cache_layer] = *length_of(call, sequence);
        }
    }
}

uint32_t forward_list_sequences(forward_call *call)
{
    bool cross = call->layer->desc.attend == VKA_ATTEND_CROSS, append = call->pass == FORWARD_APPEND;
    uint32_t count = 0;

    for (uint32_t i = 0; i < call->params->batch.count; i++) {
        const page_sequence *sequence = sequence_at(call, i);
        uint32_t tokens = appended_tokens(call, i);
        const call_sequence listed = {.rows = append ? tokens : entry_at(call, i)->new_tokens,
                                      .position = cross && !append ? 0 : sequence->past,
                                      .keys = sequence->past + tokens,
                                      .pages = sequence->pages};
        if (listed.rows > 0) {
            call->context->call.sequences[count++] = listed;
        }
    }
    return count;
}

/* Of `rows` appended rows of the call, those of each entry. */
static void grow_to(forward_call *call, uint32_t rows)
{
    for (uint32_t i = 0; i < call->params->batch.count; i++) {
        page_sequence *sequence = sequence_at(call, i);
        uint32_t tokens = appended_tokens(call, i), done = rows < tokens ? rows : tokens;
        *length_of(call, sequence) = sequence->past + done;
        rows -= done;
    }
}

void forward_grow(forward_call *call, const forward_chunk *chunk)
{
    grow_to(call, chunk->end.total);
}

void forward_grow_all(forward_call *call)
{
    grow_to(call, call->kv_rows);
}
