/* Files, through POSIX. Writing never leaves a half-written file under its final name: a temporary file in the same
 * folder (so that rename cannot cross file systems) is flushed, then renamed. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

enum { TEMPORARY_NAMES = 100, WRITE_CHUNK = 1 << 30 };

static vka_status fail_errno(vka_error *error, const char *where, const char *what, const char *path, int number)
{
    char reason[128];

    if (strerror_r(number, reason, sizeof(reason)) != 0)
        snprintf(reason, sizeof(reason), "error %d", number);
    return vka_fail_at(error, VKA_ERR_IO, where, "cannot %s '%s': %s", what, path, reason);
}

vka_status vka_map_file(vka_mapping *out, const char *path, vka_error *error)
{
    struct stat info;
    void *data = NULL;
    vka_status status = VKA_OK;
    /* O_NONBLOCK: a FIFO is refused below instead of waiting for a writer */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (file < 0)
        return fail_errno(error, __func__, "open", path, errno);
    if (fstat(file, &info) != 0) {
        status = fail_errno(error, __func__, "examine", path, errno);
    } else if (!S_ISREG(info.st_mode)) {
        status = vka_fail(error, VKA_ERR_IO, "cannot read '%s': it is not a regular file", path);
    } else if ((uintmax_t)info.st_size > SIZE_MAX) {
        status = vka_fail(error, VKA_ERR_IO, "cannot map '%s': %jd bytes exceed the address space", path,
                          (intmax_t)info.st_size);
    } else if (info.st_size > 0) {
        data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            status = fail_errno(error, __func__, "map", path, errno);
    }
    close(file);
    if (status == VKA_OK)
        *out = (vka_mapping){.data = data, .size = (size_t)info.st_size};
    return status;
}

void vka_unmap_file(vka_mapping *mapping)
{
    if (!mapping)
        return;
    if (mapping->data)
        munmap((void *)(uintptr_t)mapping->data, mapping->size);
    *mapping = (vka_mapping){0};
}

/* Creates "PATH.PID.N.tmp" in `name`, which has room for `capacity` bytes. Returns a descriptor, or -1 with errno. */
static int create_temporary(char *name, size_t capacity, const char *path)
{
    int file = -1;

    for (int i = 0; i < TEMPORARY_NAMES; i++) {
        snprintf(name, capacity, "%s.%ld.%d.tmp", path, (long)getpid(), i);
        file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            break;
    }
    return file;
}

static bool write_all(int file, const void *data, size_t size)
{
    const char *next = data;

    while (size > 0) {
        ssize_t written = write(file, next, size < WRITE_CHUNK ? size : WRITE_CHUNK);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        next += written;
        size -= (size_t)written;
    }
    return true;
}

static bool write_pieces(int file, const vka_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!write_all(file, pieces[i].data, pieces[i].size))
            return false;
    return fsync(file) == 0;
}

vka_status vka_write_file(const char *path, const vka_piece *pieces, size_t count, vka_error *error)
{
    size_t capacity = strlen(path) + 64;
    char *name = vka_alloc(NULL, capacity, 1);
    vka_status status = VKA_OK;
    int failure = 0;
    int file;

    if (!name)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for the name of a temporary file");
    file = create_temporary(name, capacity, path);
    if (file < 0) {
        status = fail_errno(error, __func__, "create", name, errno);
        goto done;
    }
    if (!write_pieces(file, pieces, count))
        failure = errno;
    if (close(file) != 0 && failure == 0)
        failure = errno;
    if (failure == 0 && rename(name, path) != 0)
        failure = errno;
    if (failure != 0) {
        unlink(name);
        status = fail_errno(error, __func__, "write", path, failure);
    }
done:
    vka_free(NULL, name);
    return status;
}

bool vka_is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool vka_is_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

vka_status vka_make_directories(const char *path, vka_error *error)
{
    size_t length = strlen(path);
    char *partial = vka_alloc(NULL, length + 1, 1);
    vka_status status = VKA_OK;

    if (!partial)
        return vka_fail(error, VKA_ERR_HOST_MEMORY, "no memory for a path of %zu bytes", length);
    for (size_t i = 0; i < length && status == VKA_OK; i++) {
        int failure;

        partial[i] = path[i];
        if (path[i + 1] != '/' && path[i + 1] != '\0')
            continue;
        failure = mkdir(partial, 0700) == 0 ? 0 : errno;
        if (failure != 0 && !vka_is_directory(partial))
            status = fail_errno(error, __func__, "create folder", partial, failure);
    }
    vka_free(NULL, partial);
    return status;
}

const char *vka_environment(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] != '\0' ? value : NULL;
}

vka_status vka_remove_file(const char *path, vka_error *error)
{
    if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
        return VKA_OK;
    return fail_errno(error, __func__, "remove", path, errno);
}

bool vka_cache_folder(const char *given, const char *name, char *out, size_t size)
{
    const char *folder = vka_environment("XDG_CACHE_HOME");
    const char *home = vka_environment("HOME");
    int length = -1;

    if (given)
        length = snprintf(out, size, "%s", given);
    else if (folder)
        length = snprintf(out, size, "%s/%s", folder, name);
    else if (home)
        length = snprintf(out, size, "%s/.cache/%s", home, name);
    return length > 0 && (size_t)length < size;
}
