/* Option parsing. Nothing is abbreviated or guessed: what is not understood is named, with what was expected. */
#include "args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "command.h"
#include "failure.h"

static void usage_end(const command *of)
{
    fprintf(stderr, "Try 'vkattn %s --help'.\n", of->name);
}

/* Decimal digits only, up to `most`. */
static bool read_number(const char *text, uint64_t most, uint64_t *number)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');

        if (*text < '0' || *text > '9' || digit > most || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

static bool store_number(const args_option *option, const char *text, char *target)
{
    uint64_t most = option->kind == ARGS_U64 ? UINT64_MAX : option->most ? option->most : UINT32_MAX;
    uint64_t number;
    uint32_t narrow;

    if (!read_number(text, most, &number) || number < option->least) {
        fprintf(stderr, "vkattn: --%s is '%s'; expected a whole number from %" PRIu32 " to %" PRIu64 ".\n",
                option->name, text, option->least, most);
        return false;
    }
    narrow = (uint32_t)number;
    if (option->kind == ARGS_U64)
        memcpy(target, &number, sizeof(number));
    else
        memcpy(target, &narrow, sizeof(narrow));
    return true;
}

static bool store_choice(const args_option *option, const char *text, char *target)
{
    for (const args_choice *choice = option->choices; choice->name; choice++) {
        if (strcmp(choice->name, text) != 0)
            continue;
        memcpy(target, &choice->value, sizeof(choice->value));
        return true;
    }
    fprintf(stderr, "vkattn: --%s is '%s'; expected one of:", option->name, text);
    for (const args_choice *choice = option->choices; choice->name; choice++)
        fprintf(stderr, " %s", choice->name);
    fprintf(stderr, ".\n");
    return false;
}

/* `text` is NULL for a flag only. */
static bool store(const args_option *option, const char *text, char *target)
{
    bool set = true;

    switch (option->kind) {
    case ARGS_FLAG:
        memcpy(target, &set, sizeof(set));
        return true;
    case ARGS_U32:
    case ARGS_U64:
        return store_number(option, text, target);
    case ARGS_TEXT:
        memcpy(target, &text, sizeof(text));
        return true;
    case ARGS_CHOICE:
        return store_choice(option, text, target);
    }
    return false;
}

/* The option that `argument` ("--name" or "--name=value") names, or NULL, and where its structure begins. */
static const args_option *find(const command *of, const char *argument, size_t *base)
{
    size_t length = strcspn(argument + 2, "=");

    for (const args_group *group = of->groups; group->options; group++) {
        for (size_t i = 0; i < group->count; i++) {
            const char *name = group->options[i].name;

            *base = group->base;
            if (strlen(name) == length && memcmp(name, argument + 2, length) == 0)
                return &group->options[i];
        }
    }
    return NULL;
}

static void report_unknown(const command *of, const char *argument)
{
    const char *lead = " Did you mean";
    char name[64];

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    fprintf(stderr, "vkattn: %s has no option '%s'.", of->name, argument);
    for (const args_group *group = of->groups; group->options; group++) {
        for (size_t i = 0; i < group->count; i++) {
            if (!vka_near(name, group->options[i].name))
                continue;
            fprintf(stderr, "%s --%s?", lead, group->options[i].name);
            lead = " Or";
        }
    }
    fprintf(stderr, "\n");
}

/* Reads the option at argv[*index], and moves *index over a value that stands apart. */
static bool parse_one(const command *of, int argc, char **argv, int *index, void *options)
{
    const char *argument = argv[*index];
    const char *value = strchr(argument, '=');
    const args_option *option;
    size_t base;

    if (strncmp(argument, "--", 2) != 0) {
        fprintf(stderr, "vkattn: %s does not understand '%s'; options start with --.\n", of->name, argument);
        return false;
    }
    option = find(of, argument, &base);
    if (!option) {
        report_unknown(of, argument);
        return false;
    }
    if (option->kind == ARGS_FLAG && value) {
        fprintf(stderr, "vkattn: --%s takes no value, but '%s' gives one.\n", option->name, argument);
        return false;
    }
    if (option->kind != ARGS_FLAG && !value && *index + 1 == argc) {
        fprintf(stderr, "vkattn: --%s needs a value.\n", option->name);
        return false;
    }
    if (value)
        value++;
    else if (option->kind != ARGS_FLAG)
        value = argv[++*index];
    return store(option, value, (char *)options + base + option->offset);
}

int args_parse(const command *of, int argc, char **argv, void *options)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            args_help(of);
            return EXIT_STATUS_OK;
        }
        if (!parse_one(of, argc, argv, &i, options)) {
            usage_end(of);
            return EXIT_STATUS_USAGE;
        }
    }
    return -1;
}

/* Writes "--name VALUE" into `out`; returns whether it fits into the left column. */
static bool option_heading(const args_option *option, char *out, size_t capacity, int column)
{
    size_t length = (size_t)snprintf(out, capacity, "--%s%s%s", option->name, option->value ? " " : "",
                                     option->value ? option->value : "");

    if (option->kind == ARGS_CHOICE)
        for (const args_choice *choice = option->choices; choice->name && length < capacity; choice++)
            length += (size_t)snprintf(out + length, capacity - length, "%s%s", choice == option->choices ? " " : "|",
                                       choice->name);
    return length < (size_t)column;
}

static void print_option(const args_option *option)
{
    const int column = 30;
    const char *line = option->help;
    char heading[128];

    if (option_heading(option, heading, sizeof(heading), column))
        printf("  %-*s", column, heading);
    else
        printf("  %s\n  %-*s", heading, column, "");
    while (line) {
        size_t length = strcspn(line, "\n");

        printf("%.*s\n", (int)length, line);
        line = line[length] == '\n' ? line + length + 1 : NULL;
        if (line)
            printf("  %-*s", column, "");
    }
}

void args_help(const command *of)
{
    const args_option help = {.name = "help", .kind = ARGS_FLAG, .help = "Print this."};

    printf("Usage: vkattn %s [OPTIONS]\n\n%s\n\n", of->name, of->summary);
    for (const args_group *group = of->groups; group->options; group++)
        for (size_t i = 0; i < group->count; i++)
            print_option(&group->options[i]);
    print_option(&help);
    if (of->details)
        printf("\n%s\n", of->details);
}
