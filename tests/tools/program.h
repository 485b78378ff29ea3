/* Runs the built vkattn and takes what it printed. */
#ifndef VKA_TESTS_TOOLS_PROGRAM_H
#define VKA_TESTS_TOOLS_PROGRAM_H

typedef struct program_result {
    int exit_status; /* -1: ended by a signal */
    char out[65536];
    char err[8192];
} program_result;

/* `arguments` are words of a shell command line. Fails the test when the program cannot be run or prints too much. */
void program_run(program_result *result, const char *arguments);

#endif
