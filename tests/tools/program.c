/* Through a shell, with stderr in a temporary file, so that both streams are seen apart. */
#include "tools/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void read_all(FILE *stream, char *out, size_t capacity)
{
    size_t length = fread(out, 1, capacity, stream);

    assert_true(length < capacity);
    out[length] = '\0';
}

void program_run(program_result *result, const char *arguments)
{
    char errors[] = "/tmp/vka_program_XXXXXX";
    char command[2048];
    FILE *stream;
    int status;
    int file = mkstemp(errors);

    assert_true(file >= 0);
    assert_in_range(snprintf(command, sizeof(command), "'%s' %s 2>'%s'", VKATTN_PROGRAM, arguments, errors), 1,
                    sizeof(command) - 1);
    stream = popen(command, "r");
    assert_non_null(stream);
    read_all(stream, result->out, sizeof(result->out));
    status = pclose(stream);
    result->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    stream = fdopen(file, "r");
    assert_non_null(stream);
    read_all(stream, result->err, sizeof(result->err));
    fclose(stream);
    unlink(errors);
}

void program_expect(program_result *result, const char *arguments, int exit_status)
{
    program_run(result, arguments);
    if (result->exit_status != exit_status)
        fail_msg("vkattn %s: exit status %d, expected %d\n%s%s", arguments, result->exit_status, exit_status,
                 result->out, result->err);
}

json_t *program_json(program_result *result, const char *arguments, int exit_status)
{
    json_error_t error;
    json_t *value;

    program_expect(result, arguments, exit_status);
    value = json_loads(result->out, 0, &error);
    if (!value)
        fail_msg("vkattn %s: %s\n%s", arguments, error.text, result->out);
    return value;
}

json_int_t program_integer(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_integer(value))
        fail_msg("no integer '%s'", key);
    return json_integer_value(value);
}

const char *program_string(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);

    if (!json_is_string(value))
        fail_msg("no string '%s'", key);
    return json_string_value(value);
}

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
}
