/* A subcommand of vkattn: its entry in the help, its options, and the function behind it. */
#ifndef VKA_TOOLS_COMMAND_H
#define VKA_TOOLS_COMMAND_H

#include "args.h"

typedef struct command {
    const char *name;
    const char *summary;  /* one line */
    args_group groups[4]; /* ended by one without options */
    const char *details;  /* printed below the options by --help, or NULL; lines of up to 100 characters */
    /* Gets what stands behind the command's name; returns the exit status. */
    int (*run)(int argc, char **argv);
} command;

extern const command command_bench;
extern const command command_devices;
extern const command command_plan;
extern const command command_run;
extern const command command_tune;

#endif
