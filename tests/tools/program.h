/* Runs the built vkattn and takes what it printed. */
#ifndef VKA_TESTS_TOOLS_PROGRAM_H
#define VKA_TESTS_TOOLS_PROGRAM_H

#include <jansson.h>

typedef struct program_result {
    int exit_status; /* -1: ended by a signal */
    char out[65536];
    char err[8192];
} program_result;

/* `arguments` are words of a shell command line. Fails the test when the program cannot be run or prints too much. */
void program_run(program_result *result, const char *arguments);

/* The same, and the exit status must be this one. */
void program_expect(program_result *result, const char *arguments, int exit_status);

/* The same again, and all of stdout must be one JSON value, which the caller owns. */
json_t *program_json(program_result *result, const char *arguments, int exit_status);

/* Members of a JSON object; the test fails when there is none of that type. */
json_int_t program_integer(json_t *object, const char *key);
const char *program_string(json_t *object, const char *key);

void assert_contains(const char *text, const char *part);

#endif
