/* The parallel loop covers everything exactly once, in pieces of the grain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/test_base.h"
#include "base/threads.h"

enum { MOST = 5000 };

typedef struct marks {
    atomic_int seen[MOST];
    atomic_int bad_pieces; /* asserting inside a thread would longjmp out of it */
    size_t count;
    size_t grain;
} marks;

static void mark(void *user, size_t begin, size_t end)
{
    marks *m = user;

    if (begin >= end || end > m->count || begin % m->grain != 0 || (end != m->count && end % m->grain != 0))
        atomic_fetch_add(&m->bad_pieces, 1);
    for (size_t i = begin; i < end && i < MOST; i++)
        atomic_fetch_add(&m->seen[i], 1);
}

static void covers_once(void **state)
{
    static const size_t counts[] = {0, 1, 2, 7, 63, 64, 65, 1000, MOST};
    static const size_t grains[] = {1, 2, 3, 64, 999, MOST, SIZE_MAX};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (size_t g = 0; g < sizeof(grains) / sizeof(grains[0]); g++) {
            static marks m;

            m = (marks){.count = counts[c], .grain = grains[g]};
            vka_parallel_for(m.count, m.grain, mark, &m);
            assert_int_equal(atomic_load(&m.bad_pieces), 0);
            for (size_t i = 0; i < MOST; i++)
                assert_int_equal(atomic_load(&m.seen[i]), i < m.count ? 1 : 0);
        }
    }
}

int run_threads_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_once),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
