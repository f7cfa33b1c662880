/* Writes down, in their order, all calls by which a process changes the files of one folder, and those by which it makes
 * the changes durable. Loaded with LD_PRELOAD; POWER_FOLDER names the folder, POWER_LOG the file to write to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -2;

struct entry { char what; uint32_t path; int64_t offset; uint64_t size; } __attribute__((packed));

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int watched(const char *path) {
    const char *folder = getenv("POWER_FOLDER");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

static int path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return watched(path);
}

static void note(char what, const char *path, int64_t offset, const void *data, uint64_t size) {
    struct entry entry = {what, (uint32_t)strlen(path), offset, size};
    if (log_file == -2) log_file = REAL(open)(getenv("POWER_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ssize_t (*put)(int, const void *, size_t) = REAL(write);
    if (put(log_file, &entry, sizeof entry) < 0 || put(log_file, path, entry.path) < 0) abort();
    if (data && size && put(log_file, data, size) < 0) abort();
}

ssize_t write(int file, const void *data, size_t size) {
    char path[PATH_MAX];
    if (!path_of(file, path)) return REAL(write)(file, data, size);
    pthread_mutex_lock(&in_order);
    off_t offset = (fcntl(file, F_GETFL) & O_APPEND) ? lseek(file, 0, SEEK_END) : lseek(file, 0, SEEK_CUR);
    ssize_t result = REAL(write)(file, data, size);
    if (result > 0) note('w', path, offset, data, result);
    pthread_mutex_unlock(&in_order);
    return result;
}

#define PWRITE(name, offset_type) \
ssize_t name(int file, const void *data, size_t size, offset_type offset) { \
    char path[PATH_MAX]; \
    if (!path_of(file, path)) return REAL(name)(file, data, size, offset); \
    pthread_mutex_lock(&in_order); \
    ssize_t result = REAL(name)(file, data, size, offset); \
    if (result > 0) note('w', path, offset, data, result); \
    pthread_mutex_unlock(&in_order); \
    return result; \
}
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define CHANGING(name, letter, parameters, arguments, offset) \
int name parameters { \
    char path[PATH_MAX]; \
    if (!path_of(file, path)) return REAL(name) arguments; \
    pthread_mutex_lock(&in_order); \
    int result = REAL(name) arguments; \
    if (result == 0) note(letter, path, offset, NULL, 0); \
    pthread_mutex_unlock(&in_order); \
    return result; \
}
CHANGING(fsync, 's', (int file), (file), 0)
CHANGING(fdatasync, 's', (int file), (file), 0)
CHANGING(ftruncate, 't', (int file, off_t size), (file, size), size)
CHANGING(ftruncate64, 't', (int file, off64_t size), (file, size), size)

int unlink(const char *path) {
    if (!watched(path)) return REAL(unlink)(path);
    pthread_mutex_lock(&in_order);
    int result = REAL(unlink)(path);
    if (result == 0) note('u', path, 0, NULL, 0);
    pthread_mutex_unlock(&in_order);
    return result;
}

#define OPEN(name) \
int name(const char *path, int flags, ...) { \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    if (!(flags & O_CREAT) || !watched(path)) return REAL(name)(path, flags, mode); \
    pthread_mutex_lock(&in_order); \
    int is_new = access(path, F_OK) != 0; \
    int result = REAL(name)(path, flags, mode); \
    if (result >= 0 && is_new) note('c', path, 0, NULL, 0); \
    pthread_mutex_unlock(&in_order); \
    return result; \
}
OPEN(open)
OPEN(open64)
