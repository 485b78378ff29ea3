/* See calls.h. */
#include "layer/calls.h"

#include <string.h>

#include "vk/api.h"

vka_context_params calls_params(void)
{
    vka_context_params params = harness_params();

    shim_reset();
    shim_poison_memory(true);
    params.devices = harness_grammar();
    params.get_instance_proc = shim_get_proc;
    return params;
}

vka_context *calls_context(const vka_context_params *params)
{
    vka_context *context = NULL;
    vka_error error;

    require(vka_context_create(&context, params, &error) == VKA_OK, "%s", error.message);
    return context;
}

void calls_close(vka_context **context)
{
    vka_context_destroy(context);
    assert_int_equal(shim_live(), 0);
}

/* ---- commands as text ---- */

static const struct {
    const char *name;
    char letter;
    VkPipelineStageFlags stage;
    VkAccessFlags writes;
} commands[] = {
    {"vkCmdDispatch", 'D', VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT},
    {"vkCmdCopyBuffer", 'C', VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
    {"vkCmdFillBuffer", 'F', VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
    {"vkCmdPipelineBarrier", 'B', 0, 0},
    {"vkQueueSubmit", 'S', 0, 0},
};

/* What commands since the last barrier used; at the beginning of a submission, what an earlier one may have used. */
typedef struct pending {
    uint64_t stages, writes;
    bool begins;
} pending;

static const pending earlier = {
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
    VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    true,
};

static void check_barrier(const shim_record *barrier, const pending *used)
{
    const VkPipelineStageFlags all_stages =
        VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_HOST_BIT;
    const VkAccessFlags all_reads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_HOST_READ_BIT;

    assert_int_equal(barrier->value[0], used->stages);
    assert_int_equal(barrier->value[2], used->writes);
    assert_int_equal(barrier->value[1], all_stages);
    assert_int_equal(barrier->value[3] & all_reads, all_reads);
}

/* The letter of a command that stands in row `row` of the table. */
static char note_command(const shim_record *event, size_t row, pending *used)
{
    char letter = commands[row].letter;

    if (letter == 'S') {
        *used = earlier;
    } else if (letter == 'B') {
        check_barrier(event, used);
        letter = used->begins ? 'A' : 'B';
        *used = (pending){0};
    } else {
        used->stages = commands[row].stage | (used->begins ? 0 : used->stages);
        used->writes = commands[row].writes | (used->begins ? 0 : used->writes);
        used->begins = false;
    }
    return letter;
}

void calls_text(int device, uint32_t from, char *out, size_t size)
{
    pending used = earlier;
    size_t length = 0;

    for (uint32_t i = from; i < shim_event_count(); i++) {
        const shim_record *event = shim_event(i);
        for (size_t row = 0; row < sizeof(commands) / sizeof(commands[0]) && event->device == device; row++) {
            if (strcmp(event->name, commands[row].name) != 0)
                continue;
            require(length + 1 < size, "too many commands");
            out[length++] = note_command(event, row, &used);
        }
    }
    out[length] = '\0';
}
