/* Edit distance (Levenshtein 1966) by rows, over names short enough for the stack. */
#include "base/near.h"

#include <stddef.h>
#include <string.h>

enum { LONGEST = 64 };

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static bool begins_with(const char *name, const char *start)
{
    size_t i = 0;

    while (start[i] != '\0' && lower(start[i]) == lower(name[i]))
        i++;
    return start[i] == '\0';
}

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t row[LONGEST + 1];

    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            size_t least = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = replaced < least ? replaced : least;
        }
    }
    return row[b_length];
}

bool vka_near(const char *given, const char *name)
{
    size_t given_length = strlen(given), name_length = strlen(name);
    size_t shorter = given_length < name_length ? given_length : name_length;

    if (given_length == 0 || given_length > LONGEST || name_length > LONGEST)
        return false;
    if (given_length >= 3 && begins_with(name, given))
        return true;
    return edit_distance(given, given_length, name, name_length) <= 1 + shorter / 6;
}
