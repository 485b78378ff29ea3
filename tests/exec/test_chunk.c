/* Cutting a ragged batch into chunks: all rows in order, limits kept, no chunk smaller than it must be. */
#include "exec/chunk.h"

#include <string.h>

#include "exec/exec_tests.h"
#include "support/random.h"
#include "support/require.h"

enum { SEQUENCES = 9 };

/* Keys that a row sees, one by one. */
static uint32_t count_visible(const call_sequence *sequence, const chunk_limits *limits, uint32_t row)
{
    int64_t position = sequence->position + row;
    uint32_t seen = 0;

    for (int64_t key = 0; key < sequence->keys; key++)
        seen += position - key < limits->keys.left && key - position < limits->keys.right;
    return seen;
}

/* Causal or not, with and without windows of less than `most`. */
static key_limits random_limits(uint64_t *random, uint32_t most)
{
    bool causal = random_below(random, 2) != 0;
    uint32_t window = random_below(random, 2) * random_below(random, most);

    return key_limits_of(causal, window, random_below(random, 2) * random_below(random, most));
}

static double row_cost(const call_sequence *sequence, const chunk_limits *limits, uint32_t row)
{
    return limits->row_share + limits->key_share * count_visible(sequence, limits, row);
}

typedef struct walk {
    const call_sequence *sequences;
    uint32_t count;
    const chunk_limits *limits;
    uint32_t sequence, row, total; /* of the next row */
} walk;

static void skip_finished(walk *w)
{
    while (w->sequence < w->count && w->row == w->sequences[w->sequence].rows) {
        w->sequence++;
        w->row = 0;
    }
}

/* One chunk holds the next rows in order; returns what they cost. */
static double check_sources(walk *w, const tile_source *sources, uint32_t count, uint32_t rows)
{
    uint32_t at = 0;
    double cost = 0;

    for (uint32_t i = 0; i < count; i++) {
        skip_finished(w);
        const call_sequence *sequence = &w->sequences[w->sequence];
        assert_int_equal(sources[i].row, at);
        assert_true(sources[i].rows > 0);
        assert_int_equal(sources[i].position, sequence->position + w->row);
        assert_int_equal(sources[i].keys, sequence->keys);
        assert_ptr_equal(sources[i].pages, sequence->pages);
        assert_true(w->row + sources[i].rows <= sequence->rows);
        for (uint32_t r = 0; r < sources[i].rows; r++)
            cost += row_cost(sequence, w->limits, w->row + r);
        w->row += sources[i].rows;
        at += sources[i].rows;
    }
    assert_int_equal(at, rows);
    skip_finished(w);
    return cost;
}

static void check_batch(const call_sequence *sequences, uint32_t count, const chunk_limits *limits, uint32_t max_rows)
{
    walk w = {.sequences = sequences, .count = count, .limits = limits};
    chunk_cursor cursor = {0};
    tile_source sources[SEQUENCES];
    uint32_t rows, used, total = 0, wanted = 0;

    for (uint32_t i = 0; i < count; i++)
        wanted += sequences[i].rows;
    while ((rows = chunk_next(sequences, count, limits, max_rows, &cursor, sources, &used)) > 0) {
        double cost = check_sources(&w, sources, used, rows);
        total += rows;
        assert_int_equal(cursor.total, total);
        require(rows <= max_rows, "%u rows in a chunk of at most %u", rows, max_rows);
        require(cost < 1 + 1e-9 || rows == 1, "%u rows cost %g of the budget", rows, cost);
        if (total == wanted)
            continue;
        double next = row_cost(&sequences[w.sequence], limits, w.row);
        require(rows == max_rows || cost + next > 1 - 1e-9, "%u rows cost %g, one more for %g was left out", rows, cost,
                next);
    }
    assert_int_equal(total, wanted);
    assert_int_equal(used, 0);
}

static void random_batches(void **state)
{
    uint64_t random = 99;

    (void)state;
    for (int i = 0; i < 3000; i++) {
        uint32_t count = 1 + random_below(&random, SEQUENCES);
        call_sequence sequences[SEQUENCES];
        uint32_t pages[1] = {0};

        for (uint32_t s = 0; s < count; s++) {
            uint32_t rows = random_below(&random, 3) == 0 ? 1 + random_below(&random, 40) : 1;
            int64_t position = (int64_t)random_below(&random, 60) - 10;
            sequences[s] = (call_sequence){rows, position, random_below(&random, 90), pages};
        }
        const chunk_limits limits = {.max_rows = UINT32_MAX,
                                     .row_share = random_below(&random, 1000) * 2e-4,
                                     .key_share = random_below(&random, 1000) * 1e-5 * random_below(&random, 5),
                                     .keys = random_limits(&random, 30)};
        check_batch(sequences, count, &limits, 1 + random_below(&random, 50));
    }
}

/* A row that exceeds the whole budget goes alone. */
static void a_row_over_the_budget_goes_alone(void **state)
{
    const call_sequence sequences[3] = {{1, 100, 101, NULL}, {2, 0, 2, NULL}, {1, 100, 101, NULL}};
    const chunk_limits limits = {
        .max_rows = 100, .row_share = 0.1, .key_share = 0.01, .keys = key_limits_of(true, 0, 0)};

    (void)state;
    check_batch(sequences, 3, &limits, 100);
}

static void the_end_is_stable(void **state)
{
    const call_sequence sequence = {3, 0, 3, NULL};
    const chunk_limits limits = {.max_rows = 100, .keys = key_limits_of(true, 0, 0)};
    chunk_cursor cursor = {0};
    tile_source sources[1];
    uint32_t count;

    (void)state;
    assert_int_equal(chunk_next(&sequence, 1, &limits, 100, &cursor, sources, &count), 3);
    assert_int_equal(chunk_next(&sequence, 1, &limits, 100, &cursor, sources, &count), 0);
    assert_int_equal(chunk_next(&sequence, 1, &limits, 100, &cursor, sources, &count), 0);
    assert_int_equal(cursor.total, 3);
}

static void visible_keys(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        const call_sequence sequence = {8, (int64_t)random_below(&random, 40) - 20, random_below(&random, 40), NULL};
        const chunk_limits limits = {.keys = random_limits(&random, 12)};
        uint32_t row = random_below(&random, 8);

        assert_int_equal(chunk_visible_keys(&sequence, &limits, row), count_visible(&sequence, &limits, row));
    }
}

int run_chunk_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_batches),
        cmocka_unit_test(a_row_over_the_budget_goes_alone),
        cmocka_unit_test(the_end_is_stable),
        cmocka_unit_test(visible_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
