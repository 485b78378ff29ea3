/* vkattn: attention on Vulkan from the command line. Chooses a command from the table; everything else is the command's
 * own. */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "command.h"
#include "crash.h"
#include "failure.h"
#include "vkattn/version.h"

static const command *const commands[] = {
    &command_run,
    &command_plan,
    &command_devices,
    &command_tune,
    &command_bench,
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *stream)
{
    fprintf(stream, "Usage: vkattn COMMAND [OPTIONS]\n\nTensor-parallel attention on Vulkan devices.\n\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(stream, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(stream, "  %-10s Print this, or the options of a command: vkattn help COMMAND\n", "help");
    fprintf(stream, "  %-10s Print the version\n\n", "--version");
    fprintf(stream, "Exit status: %d ok, %d failed, %d usage, %d layout refused, %d crash or lost device.\n",
            EXIT_STATUS_OK, EXIT_STATUS_FAILED, EXIT_STATUS_USAGE, EXIT_STATUS_REFUSED, EXIT_STATUS_LOST);
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int report_unknown(const char *name)
{
    fprintf(stderr, "vkattn: there is no command '%s'.", name);
    for (size_t i = 0; i < COMMANDS; i++)
        if (vka_near(name, commands[i]->name))
            fprintf(stderr, " Did you mean %s?", commands[i]->name);
    fprintf(stderr, "\nTry 'vkattn help'.\n");
    return EXIT_STATUS_USAGE;
}

static int help(const char *name)
{
    const command *about = name ? find(name) : NULL;

    if (name && !about)
        return report_unknown(name);
    if (about)
        args_help(about);
    else
        print_help(stdout);
    return EXIT_STATUS_OK;
}

/* Output that did not arrive, say on a full disk, must not look like success. */
static int finish(int exit_status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_status;
    fprintf(stderr, "vkattn: standard output could not be written\n");
    return exit_status == EXIT_STATUS_OK ? EXIT_STATUS_FAILED : exit_status;
}

int main(int argc, char **argv)
{
    const command *chosen;

    crash_watch();
    if (argc < 2) {
        print_help(stderr);
        return EXIT_STATUS_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("vkattn %s\n", vka_version());
        return finish(EXIT_STATUS_OK);
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
        return finish(help(argc > 2 ? argv[2] : NULL));
    chosen = find(argv[1]);
    if (!chosen)
        return report_unknown(argv[1]);
    return finish(chosen->run(argc - 2, argv + 2));
}
