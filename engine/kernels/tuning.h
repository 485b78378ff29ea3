/* Tuning: which variant was measured to be the fastest on one device, by kernel, type and class of shape; the text of
 * its file; and the rule by which measurements decide. Policy only: no Vulkan, no clock, no files. */
#ifndef VKA_KERNELS_TUNING_H
#define VKA_KERNELS_TUNING_H

#include "kernels/kernels.h"

/* X(ENUM, "text", least, most, kernels): classes of shapes, coarse and few, so that tuning a layer is a matter of
 * seconds and one choice serves many layers. Projections are classed by the rows of a call: what pays for one row does
 * not pay for hundreds. (Whether GEMV or GEMM runs the rows of a class is fixed, not measured.) Attention is classed by
 * the larger of the padded head sizes, which decides what fits registers and shared memory. The widths of matrices and
 * the numbers of heads and keys matter less, and have no classes. */
#define TUNING_CLASS_LIST(X)                                                                                           \
    X(TUNING_ROWS_1, "rows=1", 1, 1, TUNING_GEMV)                                                                      \
    X(TUNING_ROWS_4, "rows=2-4", 2, 4, TUNING_GEMV)                                                                    \
    X(TUNING_ROWS_32, "rows=5-32", 5, 32, TUNING_GEMM)                                                                 \
    X(TUNING_ROWS_128, "rows=33-128", 33, 128, TUNING_GEMM)                                                            \
    X(TUNING_ROWS_MANY, "rows=129+", 129, UINT32_MAX, TUNING_GEMM)                                                     \
    X(TUNING_HEAD_64, "head=1-64", 1, 64, TUNING_ATTENTION)                                                            \
    X(TUNING_HEAD_128, "head=65-128", 65, 128, TUNING_ATTENTION)                                                       \
    X(TUNING_HEAD_256, "head=129-256", 129, 256, TUNING_ATTENTION)                                                     \
    X(TUNING_HEAD_MANY, "head=257+", 257, UINT32_MAX, TUNING_ATTENTION)

typedef enum tuning_class {
#define TUNING_CLASS_ENUM(name, text, least, most, kernels) name,
    TUNING_CLASS_LIST(TUNING_CLASS_ENUM)
#undef TUNING_CLASS_ENUM
    TUNING_CLASSES,
    TUNING_ROW_CLASSES = TUNING_HEAD_64, /* 0 .. TUNING_ROW_CLASSES - 1 are those of projections */
} tuning_class;

const char *tuning_class_text(tuning_class shape);  /* "rows=5-32" */
uint32_t tuning_class_least(tuning_class shape);    /* rows or padded head size */
uint32_t tuning_class_most(tuning_class shape);
bool tuning_has_class(vka_kernel kernel, tuning_class shape); /* which kernels are tuned, by which classes */

tuning_class tuning_rows_class(uint32_t rows);
tuning_class tuning_head_class(uint32_t qk_pad, uint32_t v_pad);

/* ---- the table of one device; all zero: nothing was tuned ---- */

#define TUNING_DTYPES (VKA_BF16 + 1)

typedef struct tuning_table {
    const vka_variant *choice[VKA_KERNEL_COUNT][TUNING_DTYPES][TUNING_CLASSES]; /* NULL: not tuned */
} tuning_table;

/* NULL where nothing was tuned, or where such a shape has no class. */
const vka_variant *tuning_choice(const tuning_table *table, vka_kernel kernel, vka_dtype dtype, tuning_class shape);

/* Takes over every choice that `other` has. */
void tuning_add(tuning_table *table, const tuning_table *other);

/* ---- its file ----
 *
 * Lines of text: the format, the key, a line "choice KERNEL DTYPE CLASS VARIANT" for each choice, and the hash of all
 * that stands before it. The key says which device, driver and library the choices are good for: it is repeated inside,
 * since the name of the file is only a hash of it. A file that is not exactly as it was written is not used at all: to
 * choose by hand there is vka_context_params.variants. */
#define TUNING_FILE_BYTES 16384u /* no file is larger */

/* Returns the length of what it writes. `key` is one line. */
size_t tuning_write(const tuning_table *table, const char *key, char out[TUNING_FILE_BYTES]);

/* Reads bytes of any origin. VKA_ERR_FORMAT, with *out untouched, when they are cut short, damaged, malformed, name a
 * choice twice, or have another key. Kernels, types, classes and variants that this library does not have are passed
 * over, and so is a variant for a kernel or type that it does not serve. */
vka_status tuning_parse(const void *text, size_t size, const char *key, tuning_table *out, vka_error *error);

/* ---- deciding ---- */

/* What to run of `count` candidates with these median times: the fastest when it takes at most TUNING_GAIN of the time
 * of `standard`, which untuned selection gives; else `standard`. */
#define TUNING_GAIN 0.97
uint32_t tuning_decide(const double *median_ms, uint32_t count, uint32_t standard);

/* vka_variant_reason() for a device with tuned choices. A row that runs for some shapes counts as selected; then, too,
 * *reason says for which shapes tuning chose it or another. */
bool tuning_reason(uint32_t index, const vka_caps *caps, const char *forced, const tuning_table *table, char *reason,
                   size_t size);

#endif
