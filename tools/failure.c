/* From a vka_status to an exit status, and from a vka_error to what a user or a machine reads. */
#include "failure.h"

#include <stdio.h>

#include "output.h"

int failure_exit_status(vka_status status)
{
    switch (status) {
    case VKA_OK:
        return EXIT_STATUS_OK;
    case VKA_ERR_ARGUMENT:
        return EXIT_STATUS_USAGE;
    case VKA_ERR_LAYOUT:
        return EXIT_STATUS_REFUSED;
    case VKA_ERR_DEVICE_LOST:
        return EXIT_STATUS_LOST;
    default:
        return EXIT_STATUS_FAILED;
    }
}

static const char *status_name(int exit_status)
{
    switch (exit_status) {
    case EXIT_STATUS_OK:
        return "ok";
    case EXIT_STATUS_USAGE:
        return "usage";
    case EXIT_STATUS_REFUSED:
        return "refused";
    case EXIT_STATUS_LOST:
        return "lost";
    default:
        return "failed";
    }
}

static void add_layout(json_t *object, const failure_layout *layout)
{
    vka_verdict verdict;

    if (vka_layout_judge(layout->desc, layout->grid, layout->kv_policy, &verdict, NULL) != VKA_OK)
        return;
    json_object_set_new(object, "rule", json_string(vka_layout_rule_name(verdict.rule)));
    json_object_set_new(object, "heads", json_integer(layout->desc->heads));
    json_object_set_new(object, "kv_heads", json_integer(layout->desc->kv_heads));
    json_object_set_new(object, "grid", output_json_grid(layout->grid));
    json_object_set_new(object, "kv_policy", json_string(output_policy_name(layout->kv_policy, layout->desc)));
    json_object_set_new(object, "valid_tp", output_json_valid(&verdict));
}

int failure_report(const vka_error *error, bool json, const failure_layout *layout)
{
    int exit_status = failure_exit_status(error->status);
    json_t *object;

    if (!json) {
        fprintf(stderr, "vkattn: %s\n", error->message);
        return exit_status;
    }
    object = json_object();
    json_object_set_new(object, "status", json_string(status_name(exit_status)));
    json_object_set_new(object, "code", json_string(vka_status_text(error->status)));
    json_object_set_new(object, "message", output_json_text(error->message));
    if (error->status == VKA_ERR_LAYOUT && layout)
        add_layout(object, layout);
    output_json(object);
    return exit_status;
}
