/* Sequences over the life of a cache: truncated, freed, reused, on several layers; and nothing that a stranger left in
 * a page, in scratch memory or in the same batch changes a bit. */
#include "layer/layer_tests.h"

#include <stdlib.h>
#include <string.h>

#include "layer/harness.h"

enum { HIDDEN = 65 };

static const layer_case setup = {
    .name = "sequences",
    .desc = {.hidden_size = HIDDEN, .heads = 8, .kv_heads = 4, .head_dim = 5, .rotary_dim = 4},
    .tp = 4,
    .place = "0,1,1,0",
    .page_size = 7,
    .pages = 40,
    .qkv_bias = true,
};

static uint32_t sequence_of(layer_rig *rig, uint32_t stream)
{
    uint32_t sequence = rig_sequence(rig);

    rig->stream[sequence] = stream;
    return sequence;
}

static void free_sequence(layer_rig *rig, uint32_t sequence)
{
    assert_int_equal(vka_cache_sequence_free(rig->cache, sequence, NULL), VKA_OK);
}

static void truncate_sequence(layer_rig *rig, uint32_t sequence, uint32_t length)
{
    assert_int_equal(vka_cache_sequence_truncate(rig->cache, sequence, length, NULL), VKA_OK);
}

/* Prefill, a second prefill, decoding: all rows of it. */
enum { STORY_ROWS = 30 + 11 + 1 };

static void tell_story(layer_rig *rig, uint32_t sequence, float *rows)
{
    rig_run(rig, sequence, 30, rows);
    rig_run(rig, sequence, 11, rows + 30 * HIDDEN);
    rig_run(rig, sequence, 1, rows + 41 * HIDDEN);
}

/* Cut back to nothing, to the middle of a page, and to where the first call ended. */
static void truncated_is_as_fresh(void **state)
{
    float fresh[STORY_ROWS * HIDDEN], again[STORY_ROWS * HIDDEN];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    uint32_t a = sequence_of(&rig, 5);
    tell_story(&rig, a, fresh);
    for (uint32_t keep = 0; keep <= 30; keep += 15) {
        uint32_t b = sequence_of(&rig, 5);
        rig_run(&rig, b, 30, again);
        rig_run(&rig, b, 60, NULL);
        truncate_sequence(&rig, b, keep);
        assert_int_equal(rig_length(&rig, b, 0), keep);
        assert_int_equal(vka_cache_free_pages(rig.cache), 40 - 6 - (keep + 6) / 7);
        if (keep < 30)
            rig_run(&rig, b, 30 - keep, again + keep * HIDDEN);
        rig_run(&rig, b, 11, again + 30 * HIDDEN);
        rig_run(&rig, b, 1, again + 41 * HIDDEN);
        assert_memory_equal(fresh, again, sizeof(fresh));
        truncate_sequence(&rig, b, 1000); /* longer than it is: nothing happens */
        assert_int_equal(rig_length(&rig, b, 0), STORY_ROWS);
        rig_extend(&rig, b, 8, NULL);
        free_sequence(&rig, b);
    }
    rig_close(&rig);
}

/* Fills every page, and all scratch memory on the way, with what `stream` makes of it, and gives the pages back. */
static void pollute(layer_rig *rig, uint32_t stream)
{
    uint32_t sequence = sequence_of(rig, stream), tokens = vka_cache_free_pages(rig->cache) * rig->setup.page_size;

    rig_run(rig, sequence, tokens - 1, NULL);
    rig_run(rig, sequence, 1, NULL);
    assert_int_equal(vka_cache_free_pages(rig->cache), 0);
    free_sequence(rig, sequence);
}

/* Pages and scratch memory full of NaN, infinities or numbers that overflow: the same bits as before. */
static void leftovers_do_not_matter(void **state)
{
    float clean[STORY_ROWS * HIDDEN], again[STORY_ROWS * HIDDEN];

    (void)state;
    for (uint32_t kind = 0; kind < 2; kind++) {
        layer_case both = setup;
        both.cache = kind == 0 ? VKA_F32 : VKA_F16;
        both.desc.window = kind == 0 ? 0 : 9;
        layer_rig rig;
        rig_open(&rig, harness_context(), &both);
        uint32_t first = sequence_of(&rig, 5);
        tell_story(&rig, first, clean);
        free_sequence(&rig, first);
        for (uint32_t stream = STREAM_NAN; stream <= STREAM_HUGE; stream++) {
            pollute(&rig, stream);
            uint32_t sequence = sequence_of(&rig, 5);
            tell_story(&rig, sequence, again);
            assert_memory_equal(clean, again, sizeof(clean));
            rig_extend(&rig, sequence, 1, NULL);
            free_sequence(&rig, sequence);
        }
        rig_close(&rig);
    }
}

/* Three sequences, `stream` on both sides of the middle one: its rows of a prefill and of a decoding call. */
static void run_between(layer_rig *rig, uint32_t stream, float middle[10 * HIDDEN])
{
    float rows[3 * 9 * HIDDEN];
    uint32_t a = sequence_of(rig, stream), b = sequence_of(rig, 8), c = sequence_of(rig, stream);
    const vka_batch_entry prefill[3] = {{a, 9}, {b, 9}, {c, 9}}, decode[3] = {{a, 1}, {b, 1}, {c, 1}};

    rig_forward(rig, &(rig_call){.entries = prefill, .count = 3, .result = rows, .unchecked = true});
    memcpy(middle, rows + 9 * HIDDEN, 9 * HIDDEN * sizeof(float));
    rig_forward(rig, &(rig_call){.entries = decode, .count = 3, .result = rows, .unchecked = true});
    memcpy(middle + 9 * HIDDEN, rows + HIDDEN, HIDDEN * sizeof(float));
    free_sequence(rig, a);
    free_sequence(rig, b);
    free_sequence(rig, c);
}

/* A sequence of NaN in the same batch, before and behind: rows of the others keep their bits. */
static void neighbours_do_not_matter(void **state)
{
    float clean[10 * HIDDEN], again[10 * HIDDEN];
    layer_rig rig;

    (void)state;
    rig_open(&rig, harness_context(), &setup);
    run_between(&rig, 7, clean);
    for (uint32_t stream = STREAM_NAN; stream <= STREAM_HUGE; stream++) {
        run_between(&rig, stream, again);
        assert_memory_equal(clean, again, sizeof(clean));
    }
    rig_close(&rig);
}

/* Layers of one cache share pages, not lengths. */
static void several_layers(void **state)
{
    layer_case three = setup;
    layer_rig rig;

    (void)state;
    three.cache_layers = 3;
    rig_open(&rig, harness_context(), &three);
    uint32_t a = sequence_of(&rig, 1), b = sequence_of(&rig, 2);
    const vka_batch_entry first[2] = {{a, 20}, {b, 3}}, second[2] = {{b, 5}, {a, 1}};
    for (uint32_t layer = 0; layer < 3; layer++) {
        rig_forward(&rig, &(rig_call){.entries = first, .count = 2, .cache_layer = layer});
        assert_int_equal(vka_cache_free_pages(rig.cache), 40 - 3 - 1);
    }
    rig_forward(&rig, &(rig_call){.entries = second, .count = 2, .cache_layer = 1});
    assert_int_equal(rig_length(&rig, a, 0), 20);
    assert_int_equal(rig_length(&rig, a, 1), 21);
    assert_int_equal(vka_cache_free_pages(rig.cache), 40 - 3 - 2);
    truncate_sequence(&rig, b, 4);
    assert_int_equal(rig_length(&rig, b, 0), 3);
    assert_int_equal(rig_length(&rig, b, 1), 4);
    assert_int_equal(vka_cache_free_pages(rig.cache), 40 - 3 - 1);
    for (uint32_t layer = 0; layer < 3; layer++)
        rig_forward(&rig, &(rig_call){.entries = second, .count = 2, .cache_layer = layer});
    rig_close(&rig);
}

int run_sequences_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_is_as_fresh),
        cmocka_unit_test(leftovers_do_not_matter),
        cmocka_unit_test(neighbours_do_not_matter),
        cmocka_unit_test(several_layers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
