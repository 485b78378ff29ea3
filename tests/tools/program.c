/* Through a shell, with stderr in a temporary file, so that both streams are seen apart. */
#include "tools/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
