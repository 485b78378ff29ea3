/* Exit statuses and how a failure is told, the same in every command. */
#ifndef VKA_TOOLS_FAILURE_H
#define VKA_TOOLS_FAILURE_H

#include <stdbool.h>

#include "vkattn/layout.h"

enum {
    EXIT_STATUS_OK = 0,
    EXIT_STATUS_FAILED = 1,  /* includes a failed verification */
    EXIT_STATUS_USAGE = 2,   /* wrong options, or arguments that no machine could satisfy */
    EXIT_STATUS_REFUSED = 3, /* the layout was refused */
    EXIT_STATUS_LOST = 5,    /* a device was lost, or something crashed */
};

int failure_exit_status(vka_status status);

/* What was asked of the layout, for a refusal in JSON. */
typedef struct failure_layout {
    const vka_layer_desc *desc;
    vka_grid grid;
    vka_kv_policy kv_policy;
} failure_layout;

/* Reports *error: as text on stderr, or with `json` as one object on stdout (status "failed", "usage", "refused" or
 * "lost", the code and the message; a refusal adds the rule, the numbers and the valid sizes when `layout` is given).
 * Returns the exit status. */
int failure_report(const vka_error *error, bool json, const failure_layout *layout);

#endif
