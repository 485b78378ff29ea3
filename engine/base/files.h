/* Files: the only place that maps, writes and renames them, and the only getenv. */
#ifndef VKA_BASE_FILES_H
#define VKA_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "vkattn/status.h"

/* A read-only private mapping of a regular file; data is NULL for an empty file. */
typedef struct vka_mapping {
    const void *data;
    size_t size;
} vka_mapping;

vka_status vka_map_file(vka_mapping *out, const char *path, vka_error *error);
void vka_unmap_file(vka_mapping *mapping);

/* Writes the pieces one after the other to a temporary file beside `path`, then renames it over `path`. */
typedef struct vka_piece {
    const void *data;
    size_t size;
} vka_piece;
vka_status vka_write_file(const char *path, const vka_piece *pieces, size_t count, vka_error *error);

bool vka_is_directory(const char *path);
bool vka_is_file(const char *path); /* a regular file, or a link to one */
/* Creates `path` and its parents with mode 0700 where missing. */
vka_status vka_make_directories(const char *path, vka_error *error);

/* Removes a file; one that is not there is no failure. */
vka_status vka_remove_file(const char *path, vka_error *error);

/* An environment variable, or NULL when unset or empty. */
const char *vka_environment(const char *name);

/* Where files go that can be made again: `given`, or when that is NULL $XDG_CACHE_HOME/NAME, or $HOME/.cache/NAME.
 * False when there is no such place, or its path does not fit. */
bool vka_cache_folder(const char *given, const char *name, char *out, size_t size);

#endif
