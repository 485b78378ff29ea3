/* The text of a tuning file: see tuning.h. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "kernels/tuning.h"

#define FORMAT_LINE "vkattn tuning 1"
#define HASH_DIGITS 16u
#define HASH_LINE   (sizeof("hash ") - 1 + HASH_DIGITS + 1) /* bytes, with the end of the line */

static void append_hash(vka_text *out, const char *data, size_t size)
{
    vka_append(out, "hash %0*" PRIx64 "\n", (int)HASH_DIGITS, vka_hash(VKA_HASH_START, data, size));
}

size_t tuning_write(const tuning_table *table, const char *key, char out[TUNING_FILE_BYTES])
{
    vka_text text = {out, TUNING_FILE_BYTES, 0};

    vka_append(&text, "%s\nkey %s\n", FORMAT_LINE, key);
    for (int kernel = 0; kernel < VKA_KERNEL_COUNT; kernel++)
        for (int dtype = 0; dtype < TUNING_DTYPES; dtype++)
            for (int shape = 0; shape < TUNING_CLASSES; shape++) {
                const vka_variant *row = table->choice[kernel][dtype][shape];
                if (row)
                    vka_append(&text, "choice %s %s %s %s\n", vka_kernel_name((vka_kernel)kernel),
                               vka_dtype_name((vka_dtype)dtype), tuning_class_text((tuning_class)shape), row->name);
            }
    append_hash(&text, out, text.used);
    assert(text.used + 1 < text.size);
    return text.used;
}

/* Bytes that need not end with a NUL. */
typedef struct piece {
    const char *start;
    size_t length;
} piece;

static bool piece_is(piece text, const char *expected)
{
    return strlen(expected) == text.length && memcmp(text.start, expected, text.length) == 0;
}

/* Takes what stands before `end` off *rest, and `end` with it; false when there is no `end`. */
static bool take(piece *rest, char end, piece *out)
{
    const char *found = rest->length > 0 ? memchr(rest->start, end, rest->length) : NULL;

    if (!found)
        return false;
    *out = (piece){rest->start, (size_t)(found - rest->start)};
    rest->start += out->length + 1;
    rest->length -= out->length + 1;
    return true;
}

static vka_status check_whole(piece file, vka_error *error)
{
    char expected[HASH_LINE + 1];
    vka_text hash = {expected, sizeof(expected), 0};

    if (file.length < HASH_LINE || file.length > TUNING_FILE_BYTES)
        return vka_fail(error, VKA_ERR_FORMAT, "it has %zu bytes, expected %zu to %u", file.length, HASH_LINE,
                        TUNING_FILE_BYTES);
    append_hash(&hash, file.start, file.length - HASH_LINE);
    if (memcmp(file.start + file.length - HASH_LINE, expected, HASH_LINE) != 0)
        return vka_fail(error, VKA_ERR_FORMAT, "it was cut short or changed: its hash does not fit");
    return VKA_OK;
}

static vka_status check_key(piece *rest, const char *key, vka_error *error)
{
    piece line, word;

    if (!take(rest, '\n', &line) || !piece_is(line, FORMAT_LINE))
        return vka_fail(error, VKA_ERR_FORMAT, "its first line is not \"%s\"", FORMAT_LINE);
    if (!take(rest, '\n', &line) || !take(&line, ' ', &word) || !piece_is(word, "key"))
        return vka_fail(error, VKA_ERR_FORMAT, "its second line is not its key");
    if (!piece_is(line, key))
        return vka_fail(error, VKA_ERR_FORMAT, "it was made for another device, driver or version of this library");
    return VKA_OK;
}

/* The number below `count` whose name is `text`, or `count`. */
static int find_name(piece text, const char *(*name)(int number), int count)
{
    int found = 0;

    while (found < count && !piece_is(text, name(found)))
        found++;
    return found;
}

static const char *kernel_name(int number)
{
    return vka_kernel_name((vka_kernel)number);
}

static const char *dtype_name(int number)
{
    return vka_dtype_name((vka_dtype)number);
}

static const char *class_name(int number)
{
    return tuning_class_text((tuning_class)number);
}

static const char *row_name(int number)
{
    return vka_variant_row((uint32_t)number)->name;
}

/* Of one line; false when it is not five words, of which the first is "choice". */
static bool split_choice(piece line, piece words[4])
{
    piece first;

    if (!take(&line, ' ', &first) || !piece_is(first, "choice"))
        return false;
    for (int i = 0; i < 3; i++)
        if (!take(&line, ' ', &words[i]) || words[i].length == 0)
            return false;
    words[3] = line;
    return line.length > 0 && !memchr(line.start, ' ', line.length);
}

typedef struct choices {
    tuning_table table;
    bool seen[VKA_KERNEL_COUNT][TUNING_DTYPES][TUNING_CLASSES];
} choices;

/* False when there was such a choice before. */
static bool store_choice(const piece words[4], choices *out)
{
    int kernel = find_name(words[0], kernel_name, VKA_KERNEL_COUNT);
    int dtype = find_name(words[1], dtype_name, TUNING_DTYPES);
    int shape = find_name(words[2], class_name, TUNING_CLASSES);
    int index = find_name(words[3], row_name, (int)vka_variant_rows());

    if (kernel == VKA_KERNEL_COUNT || dtype == TUNING_DTYPES || shape == TUNING_CLASSES ||
        !tuning_has_class((vka_kernel)kernel, (tuning_class)shape))
        return true;
    if (out->seen[kernel][dtype][shape])
        return false;
    out->seen[kernel][dtype][shape] = true;
    const vka_variant *row = vka_variant_row((uint32_t)index); /* NULL past the last */
    if (row && vka_variant_serves(row, (vka_kernel)kernel, (vka_dtype)dtype))
        out->table.choice[kernel][dtype][shape] = row;
    return true;
}

vka_status tuning_parse(const void *text, size_t size, const char *key, tuning_table *out, vka_error *error)
{
    piece rest = {text, size}, line, words[4];
    choices found = {0};
    vka_status status = check_whole(rest, error);

    if (status != VKA_OK)
        return status;
    rest.length -= HASH_LINE;
    status = check_key(&rest, key, error);
    if (status != VKA_OK)
        return status;
    for (unsigned number = 3; rest.length > 0; number++) {
        if (!take(&rest, '\n', &line) || !split_choice(line, words))
            return vka_fail(error, VKA_ERR_FORMAT, "line %u is not a choice of kernel, type, class and variant",
                            number);
        if (!store_choice(words, &found))
            return vka_fail(error, VKA_ERR_FORMAT, "line %u repeats a choice", number);
    }
    *out = found.table;
    return VKA_OK;
}
