/*
 * The table that the processes of lives.c share, and the helpers of both its files.
 *
 * Every time is known only as a range: a process takes a time stamp before and after each action. The ranges do not
 * depend on how fast the machine is. The table stays open over exec as the descriptor TABLE_FD.
 */
#ifndef TRIBUTARY_TEST_WORKLOADS_LIVES_H
#define TRIBUTARY_TEST_WORKLOADS_LIVES_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The kinds after DAEMON run only if --kinds names them. */
#define KINDS(X)                                                                                \
  X(EXIT, "exit")               /* ends with an exit code */                                    \
  X(SIGNAL, "signal")           /* ends by a signal, without a core dump */                     \
  X(EXECS, "execs")             /* 1 to 5 execs */                                              \
  X(THREAD_EXEC, "thread_exec") /* a thread calls exec */                                       \
  X(THREADS, "threads")         /* 64 threads that end together */                              \
  X(LEADER, "leader")           /* the thread group leader ends first */                        \
  X(CHILD, "child")             /* has a child, and waits for it */                             \
  X(ZOMBIE, "zombie")           /* has a child, and waits for it long after the child's end */  \
  X(BURN, "burn")               /* 1 to 40 ms of CPU time in user mode or in the kernel */      \
  X(MEMORY, "memory")           /* 1 to 32 MiB */                                               \
  X(USER, "user")               /* changes its effective user */                                \
  X(NAME, "name")               /* names itself with control bytes, quotes, ill-formed UTF-8 */ \
  X(NAMESPACE, "namespace")     /* the first process of a pid namespace, with a child there */  \
  X(VFORK, "vfork")             /* vfork, then exec */                                          \
  X(DAEMON, "daemon")           /* its child goes on when it has ended */                       \
  X(REUSE, "reuse")             /* has the pid of an earlier process of this kind */            \
  X(LONG, "long")               /* 100 to 1,500 ms of CPU time */                               \
  X(AGAIN, "again")             /* calls exec --execs times */                                  \
  X(OOM, "oom")                 /* exceeds the memory limit of its cgroup */

#define KIND_NUMBER(NAME, name) KIND_##NAME,
enum kind { KINDS(KIND_NUMBER) KIND_COUNT };
extern const char* const kind_names[KIND_COUNT];

#define TABLE_FD 100
#define EXECS_MAX 5
#define PROGRAMS 5 /* copies of this program, with other names */
#define NAME_BYTES 16
#define DIRECTORY_BYTES (PATH_MAX - NAME_BYTES)

struct range {
  int64_t from, to;
};

struct life {
  struct range start, boot; /* of the fork: CLOCK_REALTIME, CLOCK_BOOTTIME */
  struct range exec[EXECS_MAX], end;
  int64_t user_ns, system_ns, peak_kb; /* from wait4 */
  int32_t pid, parent, status, kind, code;
  uint32_t uid, random, execs, again;
  bool has_children;
  char name[NAME_BYTES], started_as[NAME_BYTES];
};

extern struct life* table;
extern char directory[DIRECTORY_BYTES]; /* contains the copies lives_0 to lives_4 of this program */
extern char group[PATH_MAX];            /* the cgroup with a memory limit; "": none */

static inline int64_t read_clock(clockid_t clock) {
  struct timespec ts;

  clock_gettime(clock, &ts);
  return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static inline int64_t now(void) { return read_clock(CLOCK_REALTIME); }

static inline void sleep_ms(long ms) {
  struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

  while (nanosleep(&ts, &ts) && errno == EINTR);
}

struct rusage;

_Noreturn void die(const char* operation);
void about_to_fork(struct life* life);
void was_born(struct life* life);
/* `status` and `used` are those of wait4. */
void take_end(struct life* life, int status, const struct rusage* used);
bool write_file(const char* folder, const char* name, const char* text);

/* Starts a process of the life's kind. Returns its pid in the caller's pid namespace. */
pid_t spawn(struct life* life, long execs);
/* The process after exec number `exec`, which started `program`. */
int run_staged(const char* program, int slot, uint32_t exec);
/* Which copy of the program the process runs after its exec number `exec`. */
unsigned int program_of(const struct life* life, uint32_t exec);

#endif
