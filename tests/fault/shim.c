/* Makes one system call of a chosen kind fail once, or do less than was asked. Loaded with LD_PRELOAD.
 * Nothing happens until fault_arm(); after the one fault everything goes to the real library again. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, READ, PREAD, WRITE, PWRITE, FSYNC, FDATASYNC, SYNCFS, RENAME, MKDIR, UNLINK, FTRUNCATE, MMAP, OPS };

#define SHORT (-1)

static int chosen = -1;
static int kind;
static long left;
static int fired;
static long counts[OPS];

void fault_arm(int op, long nth, int how) {
    fired = 0;
    kind = how;
    left = nth;
    for (int i = 0; i < OPS; i++) counts[i] = 0;
    chosen = op;
}

int fault_fired(void) { return fired; }

long fault_count(int op) { return counts[op]; }

/* What the call is to do: 0 go on, SHORT do half, else fail with this errno. */
static int verdict(int op) {
    if (chosen < 0) return 0;
    counts[op]++;
    if (op != chosen || fired || left-- > 0) return 0;
    fired = 1;
    return kind;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define FAIL_IF(op, bad) \
    int how = verdict(op); \
    if (how > 0) { errno = how; return bad; }

#define OPENER(symbol) \
    int symbol(const char *path, int flags, ...) { \
        REAL(int, #symbol, const char *, int, ...); \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
        FAIL_IF(OPEN, -1) \
        return real(path, flags, mode); \
    }
OPENER(open)
OPENER(open64)

#define OPENER_AT(symbol) \
    int symbol(int at, const char *path, int flags, ...) { \
        REAL(int, #symbol, int, const char *, int, ...); \
        va_list list; va_start(list, flags); mode_t mode = va_arg(list, mode_t); va_end(list); \
        FAIL_IF(OPEN, -1) \
        return real(at, path, flags, mode); \
    }
OPENER_AT(openat)
OPENER_AT(openat64)

static size_t less(int how, size_t size) { return how == SHORT && size > 1 ? size / 2 : size; }

ssize_t read(int fd, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    FAIL_IF(READ, -1)
    return real(fd, data, less(how, size));
}

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    FAIL_IF(WRITE, -1)
    return real(fd, data, less(how, size));
}

#define PREADER(symbol) \
    ssize_t symbol(int fd, void *data, size_t size, off64_t at) { \
        REAL(ssize_t, #symbol, int, void *, size_t, off64_t); \
        FAIL_IF(PREAD, -1) \
        return real(fd, data, less(how, size), at); \
    }
PREADER(pread)
PREADER(pread64)

#define PWRITER(symbol) \
    ssize_t symbol(int fd, const void *data, size_t size, off64_t at) { \
        REAL(ssize_t, #symbol, int, const void *, size_t, off64_t); \
        FAIL_IF(PWRITE, -1) \
        return real(fd, data, less(how, size), at); \
    }
PWRITER(pwrite)
PWRITER(pwrite64)

#define PWRITER_V(symbol) \
    ssize_t symbol(int fd, const struct iovec *parts, int count, off64_t at) { \
        REAL(ssize_t, #symbol, int, const struct iovec *, int, off64_t); \
        FAIL_IF(PWRITE, -1) \
        return real(fd, parts, how == SHORT && count > 1 ? count / 2 : count, at); \
    }
PWRITER_V(pwritev)
PWRITER_V(pwritev64)

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    FAIL_IF(WRITE, -1)
    return real(fd, parts, how == SHORT && count > 1 ? count / 2 : count);
}

#define ON_DESCRIPTOR(symbol, op) \
    int symbol(int fd) { \
        REAL(int, #symbol, int); \
        FAIL_IF(op, -1) \
        return real(fd); \
    }
ON_DESCRIPTOR(fsync, FSYNC)
ON_DESCRIPTOR(fdatasync, FDATASYNC)
ON_DESCRIPTOR(syncfs, SYNCFS)

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    FAIL_IF(RENAME, -1)
    return real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    FAIL_IF(MKDIR, -1)
    return real(path, mode);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    FAIL_IF(UNLINK, -1)
    return real(path);
}

#define TRUNCATER(symbol) \
    int symbol(int fd, off64_t size) { \
        REAL(int, #symbol, int, off64_t); \
        FAIL_IF(FTRUNCATE, -1) \
        return real(fd, size); \
    }
TRUNCATER(ftruncate)
TRUNCATER(ftruncate64)

#define MAPPER(symbol) \
    void *symbol(void *at, size_t size, int protection, int flags, int fd, off64_t offset) { \
        REAL(void *, #symbol, void *, size_t, int, int, int, off64_t); \
        if (fd >= 0) { FAIL_IF(MMAP, MAP_FAILED) } \
        return real(at, size, protection, flags, fd, offset); \
    }
MAPPER(mmap)
MAPPER(mmap64)
