/* See unsupported.h. */
#include "exec/unsupported.h"

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

vka_status unsupported_check(const vka_layer_desc *desc, vka_error *error)
{
    const struct {
        bool asked;
        const char *field;
    } rows[] = {
        {desc->gate != VKA_GATE_NONE, "gate"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].asked) {
            return vka_fail(error, VKA_ERR_UNSUPPORTED, "this release lays out layers with %s, and does not run them",
                            rows[i].field);
        }
    }
    return VKA_OK;
}
