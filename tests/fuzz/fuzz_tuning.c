/* A tuning file that is accepted names rows that serve what they are chosen for. The input stands between a right key
 * and a right hash, which no mutation would hit; and alone. */
#include "fuzz/fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "kernels/tuning.h"

#define START "vkattn tuning 1\nkey k\n"

static void parse(const void *text, size_t size)
{
    tuning_table table;
    vka_error error = {0};

    if (tuning_parse(text, size, "k", &table, &error) != VKA_OK) {
        PROMISE(error.status == VKA_ERR_FORMAT && strlen(error.message) > 0);
        return;
    }
    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++)
        for (int dtype = 0; dtype < TUNING_DTYPES; dtype++)
            for (int shape = 0; shape < TUNING_CLASSES; shape++) {
                const vka_variant *row = table.choice[kernel][dtype][shape];
                PROMISE(!row || (vka_variant_serves(row, (vka_kernel)kernel, (vka_dtype)dtype) &&
                                 tuning_has_class((vka_kernel)kernel, (tuning_class)shape)));
            }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t start = sizeof(START) - 1;
    char *text = malloc(start + size + 32);

    PROMISE(text);
    memcpy(text, START, start);
    if (size > 0)
        memcpy(text + start, data, size);
    int end = snprintf(text + start + size, 32, "hash %016" PRIx64 "\n", vka_hash(VKA_HASH_START, text, start + size));
    parse(text, start + size + (size_t)end);
    parse(data, size);
    free(text);
    return 0;
}
