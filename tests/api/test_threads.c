/* Contexts and threads: different contexts run side by side; one context serves one thread at a time and says so to the
 * others, whatever they call. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "layer/harness.h"

enum { HIDDEN = 65, TOKENS = 12, STEPS = 25 };

static const layer_case setup = {
    .name = "threads",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 4, .head_dim = 8},
    .tp = 2,
    .place = "0,1",
};

/* ---- a context for each ---- */

typedef struct worker {
    vka_context *context;
    vka_layer *layer;
    vka_cache *cache;
    uint32_t sequence;
    const float *input;
    float rows[(TOKENS + STEPS) * HIDDEN];
    uint32_t busy; /* how often the context was with another thread */
    vka_status status;
    vka_error error;
} worker;

/* Prefill, then decoding, asking again when the context is busy; no assertions, since this runs in threads of its own.
 */
static void *work(void *argument)
{
    worker *w = argument;

    for (uint32_t done = 0, tokens = TOKENS; done < TOKENS + STEPS && w->status == VKA_OK; done += tokens, tokens = 1) {
        const vka_batch_entry entry = {w->sequence, tokens};
        const vka_forward_params params = {.struct_size = sizeof(params),
                                           .layer = w->layer,
                                           .cache = w->cache,
                                           .batch = {&entry, 1},
                                           .input = {w->input + done * HIDDEN, VKA_F32, tokens, HIDDEN, 0},
                                           .output = {w->rows + done * HIDDEN, VKA_F32, tokens, HIDDEN, 0}};
        while ((w->status = vka_forward(&params, &w->error)) == VKA_ERR_BUSY)
            w->busy++;
    }
    return NULL;
}

static void adopt(worker *w, layer_rig *rig, const float *input)
{
    *w = (worker){.context = rig->context,
                  .layer = rig->layer,
                  .cache = rig->cache,
                  .sequence = rig_sequence(rig),
                  .input = input};
}

static void contexts_are_independent(void **state)
{
    static worker alone, together[2];
    static float input[(TOKENS + STEPS) * HIDDEN];
    vka_context_params params = harness_params();
    vka_context *contexts[2] = {harness_context(), NULL};
    layer_rig rigs[2];
    pthread_t threads[2];

    (void)state;
    vka_random_fill(input, (TOKENS + STEPS) * HIDDEN, 1, 3, 0, 0);
    params.devices = harness_grammar();
    assert_int_equal(vka_context_create(&contexts[1], &params, NULL), VKA_OK);
    for (int i = 0; i < 2; i++) {
        rig_open(&rigs[i], contexts[i], &setup);
        adopt(&together[i], &rigs[i], input);
    }
    adopt(&alone, &rigs[0], input);
    work(&alone);
    assert_int_equal(alone.status, VKA_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &together[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        require(together[i].status == VKA_OK, "thread %d: %s", i, together[i].error.message);
        assert_int_equal(together[i].busy, 0);
        assert_memory_equal(together[i].rows, alone.rows, sizeof(alone.rows));
        rig_close(&rigs[i]);
    }
    vka_context_destroy(&contexts[1]);
}

/* ---- one context for several ---- */

typedef struct meddler {
    worker *victim;
    layer_rig *rig;
    vka_buffer *buffer;
    atomic_bool stop;
    uint32_t answered, busy, wrong;
} meddler;

static void note(meddler *m, vka_status status)
{
    m->answered += status == VKA_OK;
    m->busy += status == VKA_ERR_BUSY;
    m->wrong += status != VKA_OK && status != VKA_ERR_BUSY;
}

/* What another thread may think of while a call runs. */
static void meddle_once(meddler *m)
{
    float values[8] = {0};
    uint32_t id = 0, length;
    vka_memory_use use;
    vka_status made = vka_cache_sequence_new(m->rig->cache, &id, NULL);

    note(m, made);
    if (made == VKA_OK) {
        note(m, vka_cache_sequence_truncate(m->rig->cache, id, 0, NULL));
        while (vka_cache_sequence_free(m->rig->cache, id, NULL) == VKA_ERR_BUSY)
            m->busy++;
    }
    note(m, vka_cache_sequence_length(m->rig->cache, m->victim->sequence, 0, &length, NULL));
    note(m, vka_cache_read(m->rig->cache, 0, 0, m->victim->sequence, 0, 0, 1, values, NULL, NULL));
    note(m, vka_context_memory(m->rig->context, 0, &use, NULL));
    note(m, vka_buffer_write(m->buffer, 0, values, sizeof(values), NULL));
    note(m, vka_forward_prewarm(m->rig->layer, m->rig->cache, NULL));
}

static void *meddle(void *argument)
{
    meddler *m = argument;

    while (!atomic_load(&m->stop))
        meddle_once(m);
    return NULL;
}

/* Whoever comes second is told so, and the results are as if nobody had come. */
static void one_context_serves_one_thread(void **state)
{
    static worker alone, disturbed;
    static float input[(TOKENS + STEPS) * HIDDEN];
    layer_rig rig;
    pthread_t threads[2];

    (void)state;
    vka_random_fill(input, (TOKENS + STEPS) * HIDDEN, 1, 3, 0, 0);
    rig_open(&rig, harness_context(), &setup);
    adopt(&alone, &rig, input);
    work(&alone);
    adopt(&disturbed, &rig, input);
    rig_run(&rig, rig_sequence(&rig), 1, NULL);
    meddler m = {.victim = &alone, .rig = &rig};
    assert_int_equal(vka_buffer_create(&m.buffer, rig.context, 0, 64, NULL), VKA_OK);
    assert_int_equal(pthread_create(&threads[0], NULL, meddle, &m), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, work, &disturbed), 0);
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    atomic_store(&m.stop, true);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    require(disturbed.status == VKA_OK, "%s", disturbed.error.message);
    assert_memory_equal(disturbed.rows, alone.rows, sizeof(alone.rows));
    assert_true(m.answered + m.busy > 0);
    assert_int_equal(m.wrong, 0);
    vka_buffer_destroy(&m.buffer);
    rig_close(&rig);
}

/* ---- inside a trace callback ---- */

typedef struct inside {
    layer_rig *rig;
    uint32_t sequence;
    uint32_t calls;
    vka_status own_read, own_length, own_memory, own_new, other_read;
} inside;

static void *read_from_outside(void *argument)
{
    inside *i = argument;
    float k[8];

    i->other_read = vka_cache_read(i->rig->cache, 0, 0, i->sequence, 0, 0, 1, k, NULL, NULL);
    return NULL;
}

static int trace(void *user, const vka_trace *traced)
{
    inside *i = user;
    float k[8];
    uint32_t length, id;
    vka_memory_use use;
    pthread_t thread;

    (void)traced;
    i->calls++;
    i->own_read = vka_cache_read(i->rig->cache, 0, 0, i->sequence, 0, 0, 1, k, NULL, NULL);
    i->own_length = vka_cache_sequence_length(i->rig->cache, i->sequence, 0, &length, NULL);
    i->own_memory = vka_context_memory(i->rig->context, 0, &use, NULL);
    i->own_new = vka_cache_sequence_new(i->rig->cache, &id, NULL);
    if (pthread_create(&thread, NULL, read_from_outside, i) == 0)
        pthread_join(thread, NULL);
    return 0;
}

/* The callback's own thread may read the cache, and nothing else; no other thread may. */
static void only_the_callback_reads_the_cache(void **state)
{
    float row[HIDDEN] = {0};
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    inside i = {.rig = &rig, .sequence = rig_sequence(&rig), .other_read = VKA_OK};
    const vka_batch_entry entry = {i.sequence, 1};
    const vka_forward_params params = {.struct_size = sizeof(params),
                                       .layer = rig.layer,
                                       .cache = rig.cache,
                                       .batch = {&entry, 1},
                                       .input = {row, VKA_F32, 1, HIDDEN, 0},
                                       .output = {row, VKA_F32, 1, HIDDEN, 0},
                                       .trace = trace,
                                       .trace_user = &i};
    assert_int_equal(vka_forward(&params, NULL), VKA_OK);
    assert_int_equal(i.calls, 2);
    assert_int_equal(i.own_read, VKA_OK);
    assert_int_equal(i.own_length, VKA_ERR_BUSY);
    assert_int_equal(i.own_memory, VKA_ERR_BUSY);
    assert_int_equal(i.own_new, VKA_ERR_BUSY);
    assert_int_equal(i.other_read, VKA_ERR_BUSY);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_are_independent),
        cmocka_unit_test(one_context_serves_one_thread),
        cmocka_unit_test(only_the_callback_reads_the_cache),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    harness_close();
    return failed;
}
