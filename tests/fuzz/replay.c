/* A fuzz target without libFuzzer: runs every file of the corpus, then a fixed number of mutations of them. The
 * mutations come from the counter-based generator, so a failing input is found again by the same run, and a debugger
 * shows it. Inputs lie in blocks of exactly their size, for AddressSanitizer. */
#include "fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "vkattn/model.h"

enum { MAX_FILES = 64, MUTATIONS = 20000, MAX_EDITS = 4, MAX_CHUNK = 64, LENGTH_BYTES = 8 };

typedef struct corpus {
    vka_mapping files[MAX_FILES];
    size_t count;
} corpus;

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input;

/* Numbers of one mutation. */
typedef struct dice {
    uint32_t mutation;
    uint64_t next;
} dice;

static size_t roll(dice *d, size_t sides)
{
    double unit = (vka_random_value(1, d->mutation, d->next++) + 1.0) / 2.0;

    return sides > 0 ? (size_t)(unit * (double)sides) % sides : 0;
}

static int load(corpus *all, const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    if (!dir) {
        fprintf(stderr, "cannot open folder %s\n", folder);
        return 1;
    }
    while ((entry = readdir(dir)) != NULL && all->count < MAX_FILES) {
        char path[1024];

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (vka_is_file(path) && vka_map_file(&all->files[all->count], path, NULL) == VKA_OK)
            all->count++;
    }
    closedir(dir);
    return all->count == 0;
}

/* Order of folders differs between file systems; the order of mutations must not. */
static int by_content(const void *a, const void *b)
{
    const vka_mapping *x = a, *y = b;

    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->size > 0 ? memcmp(x->data, y->data, x->size) : 0;
}

/* Replaces `cut` bytes at `at` by `size` bytes of `with`. */
static void splice(input *in, size_t at, size_t cut, const uint8_t *with, size_t size)
{
    size_t total = in->size - cut + size;
    uint8_t *bytes = malloc(total > 0 ? total : 1);

    if (!bytes)
        abort();
    memcpy(bytes, in->bytes, at);
    memcpy(bytes + at, with, size);
    memcpy(bytes + at + size, in->bytes + at + cut, in->size - at - cut);
    free(in->bytes);
    *in = (input){bytes, total};
}

static void edit(input *in, const corpus *all, dice *d)
{
    static const char *const tokens[] = {
        "0",    "-1",     "18446744073709551616", "9223372036854775807", "1e308", "null", "[]", "{}", "true", "\"\"",
        "[[[[", "\\u0000"};
    const vka_mapping *other = &all->files[roll(d, all->count)];
    size_t at = roll(d, in->size + 1), left = in->size - at;
    size_t chunk = roll(d, MAX_CHUNK) + 1, from = roll(d, other->size + 1);
    size_t cut = roll(d, (left < chunk ? left : chunk) + 1);
    const char *token = tokens[roll(d, sizeof(tokens) / sizeof(tokens[0]))];
    const uint8_t byte = (uint8_t)roll(d, 256);

    if (other->size - from < chunk)
        chunk = other->size - from;
    switch (roll(d, 5)) {
    case 0: /* one byte */
        splice(in, at, left > 0 ? 1 : 0, &byte, 1);
        break;
    case 1: /* a piece of another file */
        splice(in, at, cut, (const uint8_t *)other->data + from, chunk);
        break;
    case 2: /* erase */
        splice(in, at, cut, &byte, 0);
        break;
    case 3: /* cut short */
        splice(in, at, left, &byte, 0);
        break;
    default: /* a token */
        splice(in, at, cut, (const uint8_t *)token, strlen(token));
        break;
    }
}

/* Makes the first 8 bytes the length of a safetensors header that ends at the last '}', so that edits get past them. */
static void mend_length(input *in)
{
    size_t length = in->size;

    if (in->size <= LENGTH_BYTES)
        return;
    while (length > LENGTH_BYTES && in->bytes[length - 1] != '}')
        length--;
    length -= LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++)
        in->bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
}

static void run(const uint8_t *data, size_t size, const corpus *all, dice *d, int has_length)
{
    input in = {malloc(1), 0};
    size_t edits = d ? roll(d, MAX_EDITS) + 1 : 0;

    if (!in.bytes)
        abort();
    splice(&in, 0, 0, size > 0 ? data : in.bytes, size);
    for (size_t i = 0; i < edits; i++)
        edit(&in, all, d);
    if (d && has_length && roll(d, 4) != 0)
        mend_length(&in);
    LLVMFuzzerTestOneInput(in.bytes, in.size);
    free(in.bytes);
}

int main(int argc, char **argv)
{
    static corpus all;
    int has_length = argc > 2 && strcmp(argv[2], "length") == 0;

    if (argc < 2 || load(&all, argv[1]) != 0) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER [length]\n", argv[0]);
        return 2;
    }
    qsort(all.files, all.count, sizeof(all.files[0]), by_content);
    for (size_t i = 0; i < all.count; i++)
        run(all.files[i].data, all.files[i].size, &all, NULL, has_length);
    for (uint32_t i = 0; i < MUTATIONS; i++) {
        dice d = {.mutation = i};
        const vka_mapping *file = &all.files[roll(&d, all.count)];

        run(file->data, file->size, &all, &d, has_length);
    }
    for (size_t i = 0; i < all.count; i++)
        vka_unmap_file(&all.files[i]);
    printf("%zu files, %d mutations\n", all.count, MUTATIONS);
    return 0;
}
