/* Options of a command: one table drives parsing, checks and --help. */
#ifndef VKA_TOOLS_ARGS_H
#define VKA_TOOLS_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum args_kind {
    ARGS_FLAG,   /* bool: takes no value */
    ARGS_U32,    /* uint32_t: decimal, least .. most */
    ARGS_U64,    /* uint64_t: decimal, any */
    ARGS_TEXT,   /* const char *: taken as it is; points into argv */
    ARGS_CHOICE, /* int: one of `choices` */
} args_kind;

typedef struct args_choice {
    const char *name; /* NULL ends the list */
    int value;
} args_choice;

typedef struct args_option {
    const char *name; /* without the two dashes */
    args_kind kind;
    size_t offset;     /* of the variable of that kind in the group's structure */
    const char *value; /* what --help calls the value, e.g. "N"; NULL for flags and choices */
    const char *help;  /* one or more lines */
    uint32_t least;    /* of an ARGS_U32 */
    uint32_t most;     /* of an ARGS_U32; 0: UINT32_MAX */
    const args_choice *choices;
} args_option;

/* Options that share a structure, which stands at `base` in the command's own. */
typedef struct args_group {
    const args_option *options;
    size_t count;
    size_t base;
} args_group;

struct command;

/* Reads `--name value` and `--name=value` into *options, which holds the defaults; the last of several wins. Returns -1
 * to go on, or the exit status to end with: after --help (on stdout), or after a usage error (on stderr). */
int args_parse(const struct command *of, int argc, char **argv, void *options);

/* Prints what --help prints. */
void args_help(const struct command *of);

#endif
