/* JSON from files that are not trusted: duplicate keys, invalid UTF-8 and embedded NULs are refused, nesting and size
 * are bounded, and no number is taken without its range being checked. `label` (a path) starts every message. */
#ifndef VKA_MODEL_JSON_H
#define VKA_MODEL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vkattn/status.h"

/* What the reference implementation of safetensors allows a header; the other files are far smaller. */
#define VKA_JSON_MAX_BYTES 100000000u

/* Room for what vka_printable() writes. */
#define VKA_PRINTABLE_BYTES 128

/* Parses an object; anything else is VKA_ERR_FORMAT. The caller owns *out (json_decref). */
vka_status vka_json_parse(json_t **out, const void *data, size_t size, const char *label, vka_error *error);
vka_status vka_json_read(json_t **out, const char *path, vka_error *error);

/* NULL when the key is absent or its value is null. */
json_t *vka_json_get(const json_t *object, const char *key);

/* Typed reads. An absent or null key leaves *out as it is and is VKA_OK; a value of another type or out of range is
 * VKA_ERR_FORMAT. */
vka_status vka_json_count(const json_t *object, const char *key, uint32_t least, uint32_t most, uint32_t *out,
                          const char *label, vka_error *error);
/* Finite and above 0. */
vka_status vka_json_positive(const json_t *object, const char *key, double *out, const char *label, vka_error *error);
vka_status vka_json_flag(const json_t *object, const char *key, bool *out, const char *label, vka_error *error);

/* A value in words for messages: numbers and text as they are (text cut and cleaned), else its type. */
const char *vka_json_describe(const json_t *value, char out[VKA_PRINTABLE_BYTES]);

/* Copies text from a file for use in a message: cut, anything but printable ASCII replaced. Returns `out`. */
const char *vka_printable(const char *text, char out[VKA_PRINTABLE_BYTES]);

#endif
