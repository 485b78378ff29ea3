/* Selection: the row that the user forces, else the one that tuning chose, else the one of highest priority, always of
 * those whose needs are met; and for every other row the reason why not. */
#include "kernels/kernels.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

static const char *const cap_names[] = {
#define VKA_CAP_TEXT(name, number, text) [number] = text,
    VKA_CAP_LIST(VKA_CAP_TEXT)
#undef VKA_CAP_TEXT
};

static bool within(vka_text *reason, const char *what, uint64_t needed, uint64_t available)
{
    if (needed <= available)
        return true;
    vka_append(reason, "needs %s %llu, the device has %llu", what, (unsigned long long)needed,
               (unsigned long long)available);
    return false;
}

/* Writes nothing when the row can run. */
static bool can_run(const vka_variant *row, const vka_caps *caps, vka_text *reason)
{
    if (row->absent) {
        vka_append(reason, "%s", row->absent);
        return false;
    }
    for (uint32_t bit = 0; bit < VKA_CAP_COUNT; bit++) {
        if (row->needs & ~caps->bits & VKA_CAP_BIT(bit)) {
            vka_append(reason, "needs capability %s, which the device lacks", cap_names[bit]);
            return false;
        }
    }
    return within(reason, "workgroup invocations", row->local_size, caps->max_invocations) &&
           within(reason, "workgroup size x", row->local_size, caps->max_local_size[0]) &&
           within(reason, "shared memory bytes", row->shared_bytes, caps->shared_bytes) &&
           within(reason, "storage buffers", row->storage_bindings, caps->storage_buffers) &&
           within(reason, "push constant bytes", row->push_bytes, caps->push_bytes) &&
           (row->texel_bindings == 0 || within(reason, "texel views of any tensor, elements",
                                               vka_caps_max_tensor(caps) / VKA_TEXEL_BYTES, caps->texel_elements));
}

bool vka_variant_serves(const vka_variant *row, vka_kernel kernel, vka_dtype dtype)
{
    return row->kernel == kernel && (row->dtype == VKA_DTYPE_DEFAULT || row->dtype == dtype);
}

/* The next name of a comma-separated list; returns its length, 0 at the end. */
static size_t next_name(const char **list, const char **name)
{
    *name = *list + strspn(*list, ", ");
    size_t length = strcspn(*name, ", ");
    *list = *name + length;
    return length;
}

static const vka_variant *find_name(const char *name, size_t length)
{
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (strlen(row->name) == length && memcmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static vka_status fail_unknown(const char *name, size_t length, vka_error *error)
{
    char buffer[2048];
    vka_text valid = {buffer, sizeof buffer, 0};
    for (uint32_t i = 0; i < vka_variant_rows(); i++)
        vka_append(&valid, "%s%s", i ? ", " : "", vka_variant_row(i)->name);
    return vka_fail(error, VKA_ERR_ARGUMENT, "variants: there is no kernel variant \"%.*s\"; there are: %s.",
                    (int)length, name, buffer);
}

/* The forced row for (kernel, dtype), or NULL. All names are checked, also those of other kernels. */
static vka_status find_forced(vka_kernel kernel, vka_dtype dtype, const char *forced, const vka_variant **out,
                              vka_error *error)
{
    const vka_variant *found = NULL;
    const char *name;
    for (size_t length; forced && (length = next_name(&forced, &name)) > 0;) {
        const vka_variant *row = find_name(name, length);
        if (!row)
            return fail_unknown(name, length, error);
        if (!vka_variant_serves(row, kernel, dtype))
            continue;
        if (found && found != row)
            return vka_fail(error, VKA_ERR_ARGUMENT,
                            "variants: both %s and %s are forced for kernel %s with type %s; name one of them.",
                            found->name, row->name, vka_kernel_name(kernel), vka_dtype_name(dtype));
        found = row;
    }
    *out = found;
    return VKA_OK;
}

static vka_status fail_none(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps, vka_error *error)
{
    char buffer[2048] = "";
    vka_text reasons = {buffer, sizeof buffer, 0};
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (!vka_variant_serves(row, kernel, dtype))
            continue;
        vka_append(&reasons, " %s ", row->name);
        can_run(row, caps, &reasons);
        vka_append(&reasons, ".");
    }
    return vka_fail(error, VKA_ERR_UNSUPPORTED, "No variant of kernel %s runs type %s on this device.%s",
                    vka_kernel_name(kernel), vka_dtype_name(dtype), buffer);
}

bool vka_variant_runs(const vka_variant *row, vka_kernel kernel, vka_dtype dtype, const vka_caps *caps)
{
    vka_text ignored = {NULL, 0, 0};
    return vka_variant_serves(row, kernel, dtype) && can_run(row, caps, &ignored);
}

/* A workgroup that does not fill a subgroup leaves lanes idle: made for devices with narrow vectors. */
static bool is_narrow(const vka_variant *row, const vka_caps *caps)
{
    return row->local_size < caps->subgroup_size;
}

static bool is_better(const vka_variant *row, const vka_variant *best, const vka_caps *caps)
{
    if (!best || is_narrow(row, caps) != is_narrow(best, caps))
        return !best || is_narrow(best, caps);
    return row->priority > best->priority;
}

static const vka_variant *find_best(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps)
{
    const vka_variant *best = NULL;
    for (uint32_t i = 0; i < vka_variant_rows(); i++) {
        const vka_variant *row = vka_variant_row(i);
        if (is_better(row, best, caps) && vka_variant_runs(row, kernel, dtype, caps))
            best = row;
    }
    return best;
}

vka_status vka_variant_select_tuned(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps, const char *forced,
                                    const vka_variant *tuned, const vka_variant **out, vka_error *error)
{
    const vka_variant *row = NULL;
    vka_status status = find_forced(kernel, dtype, forced, &row, error);
    if (status != VKA_OK)
        return status;

    char buffer[160] = "";
    vka_text reason = {buffer, sizeof buffer, 0};
    if (row && !can_run(row, caps, &reason))
        return vka_fail(error, VKA_ERR_ARGUMENT, "variants: %s is forced, but it %s.", row->name, buffer);
    if (!row && tuned && vka_variant_runs(tuned, kernel, dtype, caps))
        row = tuned;
    if (!row)
        row = find_best(kernel, dtype, caps);
    if (!row)
        return fail_none(kernel, dtype, caps, error);
    *out = row;
    return VKA_OK;
}

vka_status vka_variant_select(vka_kernel kernel, vka_dtype dtype, const vka_caps *caps, const char *forced,
                              const vka_variant **out, vka_error *error)
{
    return vka_variant_select_tuned(kernel, dtype, caps, forced, NULL, out, error);
}

bool vka_variant_reason(uint32_t index, const vka_caps *caps, const char *forced, char *reason, size_t size)
{
    vka_text out = {reason, size, 0};
    if (size > 0)
        reason[0] = '\0';
    const vka_variant *row = vka_variant_row(index);
    if (!row) {
        vka_append(&out, "there is no row %u", index);
        return false;
    }
    if (!can_run(row, caps, &out))
        return false;
    const vka_variant *chosen;
    if (vka_variant_select(row->kernel, row->dtype, caps, forced, &chosen, NULL) != VKA_OK) {
        vka_append(&out, "the list of forced variants cannot be met");
        return false;
    }
    if (chosen == row)
        return true;
    if (chosen != find_best(row->kernel, row->dtype, caps))
        vka_append(&out, "%s is forced", chosen->name);
    else if (is_narrow(row, caps) && !is_narrow(chosen, caps))
        vka_append(&out, "its workgroups of %u do not fill a subgroup of %u", row->local_size, caps->subgroup_size);
    else
        vka_append(&out, "%s has a higher priority", chosen->name);
    return false;
}
