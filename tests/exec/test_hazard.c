/* Which steps need a barrier before them, against a list that forgets nothing. */
#include "exec/hazard.h"

#include "exec/exec_tests.h"
#include "support/random.h"
#include "support/require.h"

enum { COMPUTE = 1, TRANSFER = 2, HOST = 4 }; /* as GPU_STAGE_* */

static const char a[8], b[8]; /* resources are known by their address only */

static uint32_t step(hazard_tracker *tracker, uint32_t stage, const void *resource, uint32_t part, bool write)
{
    const hazard_access access = {resource, part, write};

    return hazard_step(tracker, stage, &access, 1);
}

static void the_three_hazards(void **state)
{
    hazard_tracker read_after_write = {0}, write_after_read = {0}, write_after_write = {0}, reads = {0};

    (void)state;
    assert_int_equal(step(&read_after_write, COMPUTE, a, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&read_after_write, COMPUTE, a, HAZARD_WHOLE, false), COMPUTE);
    assert_int_equal(step(&write_after_read, TRANSFER, a, HAZARD_WHOLE, false), 0);
    assert_int_equal(step(&write_after_read, COMPUTE, a, HAZARD_WHOLE, true), TRANSFER);
    assert_int_equal(step(&write_after_write, COMPUTE, a, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&write_after_write, TRANSFER, a, HAZARD_WHOLE, true), COMPUTE);
    assert_int_equal(step(&reads, COMPUTE, a, HAZARD_WHOLE, false), 0);
    assert_int_equal(step(&reads, HOST, a, HAZARD_WHOLE, false), 0);
}

static void other_resources_do_not_matter(void **state)
{
    hazard_tracker tracker = {0};

    (void)state;
    assert_int_equal(step(&tracker, COMPUTE, a, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, b, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, a + 1, HAZARD_WHOLE, false), 0);
}

static void parts(void **state)
{
    hazard_tracker tracker = {0};

    (void)state;
    assert_int_equal(step(&tracker, COMPUTE, a, 1, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, a, 2, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, a, 3, false), 0);
    assert_int_equal(step(&tracker, COMPUTE, a, 2, false), COMPUTE);            /* the part that was written */
    assert_int_equal(step(&tracker, TRANSFER, a, HAZARD_WHOLE, true), COMPUTE); /* the whole includes part 2 */
    assert_int_equal(step(&tracker, COMPUTE, a, 9, false), TRANSFER);           /* and every part is in the whole */
}

/* A step that reads what it writes, or names a buffer twice, does not wait for itself. */
static void a_step_is_no_hazard_to_itself(void **state)
{
    const hazard_access both[2] = {{a, HAZARD_WHOLE, false}, {a, HAZARD_WHOLE, true}};
    hazard_tracker tracker = {0};

    (void)state;
    assert_int_equal(hazard_step(&tracker, COMPUTE, both, 2), 0);
    assert_int_equal(hazard_step(&tracker, COMPUTE, both, 2), COMPUTE);
}

static void a_barrier_joins_all_stages_and_settles_all(void **state)
{
    hazard_tracker tracker = {0};

    (void)state;
    assert_int_equal(step(&tracker, TRANSFER, a, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, b, HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, b, HAZARD_WHOLE, false), COMPUTE | TRANSFER);
    assert_int_equal(step(&tracker, COMPUTE, a, HAZARD_WHOLE, false), 0);
    assert_int_equal(step(&tracker, HOST, b, HAZARD_WHOLE, true), COMPUTE); /* what came after the barrier counts */
}

/* More accesses than the tracker holds: a barrier too many, never one too few, and no stage is forgotten. */
static void overflow(void **state)
{
    static const char many[HAZARD_MAX_PENDING + 2];
    hazard_tracker tracker = {0};

    (void)state;
    for (int i = 0; i < HAZARD_MAX_PENDING; i++)
        assert_int_equal(step(&tracker, COMPUTE, &many[i], HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, TRANSFER, &many[HAZARD_MAX_PENDING], HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, HOST, &many[HAZARD_MAX_PENDING], HAZARD_WHOLE, false), COMPUTE | TRANSFER);
    assert_int_equal(step(&tracker, COMPUTE, &many[HAZARD_MAX_PENDING + 1], HAZARD_WHOLE, true), 0);
    assert_int_equal(step(&tracker, COMPUTE, &many[0], HAZARD_WHOLE, true), 0);
}

/* ---- random steps ---- */

enum { MOST = 4096, RESOURCES = 6 };

/* Every access since the last barrier. */
typedef struct oracle {
    hazard_access seen[MOST];
    uint32_t stages, count;
} oracle;

static bool overlap(const hazard_access *x, const hazard_access *y)
{
    bool parts_meet = x->part == HAZARD_WHOLE || y->part == HAZARD_WHOLE || x->part == y->part;

    return x->resource == y->resource && parts_meet && (x->write || y->write);
}

static bool oracle_conflicts(const oracle *o, const hazard_access *accesses, uint32_t count)
{
    bool found = false;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < o->count; j++)
            found = found || overlap(&accesses[i], &o->seen[j]);
    return found;
}

static void random_steps(void **state)
{
    static oracle o;
    hazard_tracker tracker = {0};
    uint64_t random = 42;
    uint32_t barriers = 0;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint32_t stage = 1u << random_below(&random, 3), count = 1 + random_below(&random, 6);
        uint32_t writes = random_below(&random, 100) == 0; /* rare, so that long lists occur */
        hazard_access accesses[6];

        for (uint32_t k = 0; k < count; k++)
            accesses[k] =
                (hazard_access){a + random_below(&random, RESOURCES), random_below(&random, 4), writes && k == 0};
        bool conflict = oracle_conflicts(&o, accesses, count);
        bool may_be_extra = o.count > HAZARD_MAX_PENDING;
        uint32_t from = hazard_step(&tracker, stage, accesses, count);

        require(!conflict || from != 0, "step %d lacks a barrier", i);
        require(from == 0 || conflict || may_be_extra, "step %d has a barrier too many", i);
        if (from != 0) {
            assert_int_equal(from, o.stages);
            o.count = o.stages = 0;
            barriers++;
        }
        assert_true(o.count + count <= MOST);
        for (uint32_t k = 0; k < count; k++)
            o.seen[o.count++] = accesses[k];
        o.stages |= stage;
    }
    assert_in_range(barriers, 1000, 90000);
}

int run_hazard_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_hazards),
        cmocka_unit_test(other_resources_do_not_matter),
        cmocka_unit_test(parts),
        cmocka_unit_test(a_step_is_no_hazard_to_itself),
        cmocka_unit_test(a_barrier_joins_all_stages_and_settles_all),
        cmocka_unit_test(overflow),
        cmocka_unit_test(random_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
