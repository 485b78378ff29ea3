/* JSON lines. Keys that have no value are null: a reader can tell "0" from "could not be measured". */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/system.h"
#include "bench/report.h"
#include "device_output.h"
#include "output.h"
#include "vkattn/version.h"

/* JSON has no infinity and no NaN; 0 and less are "not measured" here. */
static json_t *positive(double value)
{
    return isfinite(value) && value > 0 ? json_real(value) : json_null();
}

static json_t *text_or_null(const char *text)
{
    return text && text[0] != '\0' ? output_json_text(text) : json_null();
}

/* Settings that change what a driver does or what it may reuse. */
static json_t *json_variables(void)
{
    static const char *const names[] = {
        "MESA_SHADER_CACHE_DISABLE", "MESA_SHADER_CACHE_DIR", "LP_NUM_THREADS",          "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",          "VK_INSTANCE_LAYERS",    "VK_LOADER_LAYERS_ENABLE",
    };
    json_t *object = json_object();

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = vka_environment(names[i]);

        if (value)
            json_object_set_new(object, names[i], output_json_text(value));
    }
    return object;
}

static json_t *json_machine(void)
{
    vka_system system;

    vka_system_describe(&system);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "os", text_or_null(system.os), "cpu", text_or_null(system.cpu),
                     "cpus", system.cpus ? json_integer((json_int_t)system.cpus) : json_null(), "memory_bytes",
                     system.memory ? json_integer((json_int_t)system.memory) : json_null(), "load",
                     system.load >= 0 ? json_real(system.load) : json_null(), "time", text_or_null(system.time));
}

json_t *bench_json_environment(const bench_session *session, int argc, char **argv)
{
    json_t *arguments = json_array();
    json_t *devices = json_array();

    for (int i = 0; i < argc; i++)
        json_array_append_new(arguments, output_json_text(argv[i]));
    for (uint32_t d = 0; d < session->devices; d++)
        json_array_append_new(devices, output_json_device(&session->info[d]));
    return json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "record", "environment", "schema",
                     "vkattn-bench", "schema_version", BENCH_SCHEMA_VERSION, "version", vka_version(), "argv",
                     arguments, "machine", json_machine(), "variables", json_variables(), "devices", devices,
                     "variants", text_or_null(session->options.variants), "pretend",
                     text_or_null(session->options.pretend));
}

static json_t *json_stats(const double *samples, size_t count)
{
    bench_stats stats = bench_stats_of(samples, count);

    if (stats.count == 0)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "median", stats.median, "q1", stats.q1, "q3", stats.q3, "min",
                     stats.min, "max", stats.max);
}

static json_t *json_samples(const double *samples, size_t count)
{
    json_t *array = json_array();

    if (bench_stats_of(samples, count).count == 0) {
        json_decref(array);
        return json_null();
    }
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, json_real(samples[i]));
    return array;
}

static void set_device(json_t *object, const bench_session *session, const bench_result *result)
{
    bool one = result->device != BENCH_HOST;

    json_object_set_new(object, "device", one ? output_json_text(session->info[result->device].name) : json_null());
    json_object_set_new(object, "device_index",
                        one ? json_integer((json_int_t)session->info[result->device].index) : json_null());
}

static void set_times(json_t *object, const bench_samples *samples)
{
    json_object_set_new(object, "gpu_ms", positive(bench_stats_of(samples->gpu_ms, samples->count).median));
    json_object_set_new(object, "wall_ms", positive(bench_stats_of(samples->wall_ms, samples->count).median));
    json_object_set_new(object, "gpu", json_stats(samples->gpu_ms, samples->count));
    json_object_set_new(object, "wall", json_stats(samples->wall_ms, samples->count));
    json_object_set_new(object, "samples", json_integer((json_int_t)samples->count));
    json_object_set_new(object, "gpu_samples_ms", json_samples(samples->gpu_ms, samples->count));
    json_object_set_new(object, "wall_samples_ms", json_samples(samples->wall_ms, samples->count));
}

static void set_rates(json_t *object, const bench_result *result)
{
    bool compared = result->peak != BENCH_NO_PEAK;

    json_object_set_new(object, "flops", positive(result->flops));
    json_object_set_new(object, "bytes", positive(result->bytes));
    json_object_set_new(object, "gflops", positive(bench_result_gflops(result)));
    json_object_set_new(object, "gbytes_per_s", positive(bench_result_gbytes(result)));
    json_object_set_new(object, "peak",
                        compared ? json_string(vka_peak_name((vka_peak_kind)result->peak)) : json_null());
    json_object_set_new(object, "peak_rate", positive(result->peak_rate * 1e-9));
    json_object_set_new(object, "percent_of_peak", positive(bench_result_percent(result)));
}

json_t *bench_json_result(const bench_session *session, const bench_result *result)
{
    json_t *object = json_object();
    char command[1024];

    bench_command(session, result, command, sizeof(command));
    json_object_set_new(object, "record", json_string("case"));
    json_object_set_new(object, "name", json_string(result->of->name));
    set_device(object, session, result);
    json_object_set_new(object, "status", json_string(bench_status_name(result->status)));
    json_object_set_new(object, "reason", text_or_null(result->reason));
    if (result->status == BENCH_ERROR)
        json_object_set_new(object, "vk_result", json_integer(result->vk_result));
    json_object_set_new(object, "variant", text_or_null(result->variant));
    set_times(object, &result->samples);
    set_rates(object, result);
    for (size_t i = 0; i < result->extra_count; i++)
        json_object_set_new(object, result->extras[i].name, json_real(result->extras[i].value));
    json_object_set_new(object, "command", output_json_text(command));
    return object;
}

bool bench_json_write(FILE *file, json_t *line)
{
    bool written = line && json_dumpf(line, file, JSON_COMPACT) == 0 && fputc('\n', file) != EOF && fflush(file) == 0;

    json_decref(line);
    return written;
}
