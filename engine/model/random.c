/* Counter-based random numbers. Value number i of a stream is lane i % 4 of the Philox block whose counter is
 * {i / 4 (two words), stream, 0}, and whose key is the seed; its upper 24 bits give a float without rounding. */
#include "vkattn/model.h"

#include "base/threads.h"
#include "model/philox.h"

enum { ROUNDS = 10, FILL_GRAIN = 1 << 16 };

void vka_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = 0xD2511F53ull * c0;
        uint64_t product1 = 0xCD9E8D57ull * c2;

        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product1;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static void make_block(uint64_t seed, uint32_t stream, uint64_t block, uint32_t words[4])
{
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream, 0};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};

    vka_philox4x32(counter, key, words);
}

/* [-1, 1) in steps of 2^-23 */
static float to_unit(uint32_t word)
{
    return (float)((int32_t)(word >> 8) - (1 << 23)) * 0x1p-23f;
}

float vka_random_value(uint64_t seed, uint32_t stream, uint64_t index)
{
    uint32_t words[4];

    make_block(seed, stream, index / 4, words);
    return to_unit(words[index % 4]);
}

typedef struct fill_job {
    float *out;
    double amplitude;
    uint64_t seed;
    uint64_t first;
    uint32_t stream;
} fill_job;

static void fill_piece(void *user, size_t begin, size_t end)
{
    const fill_job *job = user;
    uint32_t words[4];

    for (size_t i = begin; i < end; i++) {
        uint64_t index = job->first + i;

        if (i == begin || index % 4 == 0)
            make_block(job->seed, job->stream, index / 4, words);
        job->out[i] = (float)(job->amplitude * (double)to_unit(words[index % 4]));
    }
}

void vka_random_fill(float *out, size_t count, double amplitude, uint64_t seed, uint32_t stream, uint64_t first)
{
    fill_job job = {.out = out, .amplitude = amplitude, .seed = seed, .first = first, .stream = stream};

    vka_parallel_for(count, FILL_GRAIN, fill_piece, &job);
}
