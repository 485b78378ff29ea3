/* Edit distance by rows, over names short enough for the stack; swapping two neighbours is one edit (optimal string
 * alignment: Damerau 1964 restricted). */
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

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST + 1]; /* of the last two letters of `a` and of this one, in turn */

    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        const size_t *before = rows[(i + 1) % 3];
        const size_t *above = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = lower(a[i - 1]), y = lower(b[j - 1]);

            row[j] = least_of(above[j - 1] + (x != y), least_of(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                row[j] = least_of(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
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
