/*
 * Processes that start, end and change while they are profiled. Each burns a known CPU time in known functions. Built
 * twice, as life_a and life_b. Both are equal byte for byte, except for the name of the function that burns. If the
 * profiler mistakes one for the other, the profile shows the mistake.
 *
 *   life_X burn MS                           burns MS milliseconds of CPU time in work_X
 *   life_X exec N MS OTHER                   burns, then becomes OTHER exec N−1 MS life_X, until N is 0
 *   life_X fork N MS                         N children one after the other, without exec
 *   life_X threads N MS                      N threads at once
 *   life_X short N MS OTHER                  N children, each OTHER burn MS
 *   life_X vfork N MS OTHER                  N times: a vfork child burns MS in its parent's memory, then becomes OTHER
 *                                            burn MS
 *   life_X reuse N MS OTHER                  N children with the same pid, alternately life_X and OTHER
 *   life_X namespace 1 MS OTHER              OTHER burn MS, as the first process of a pid namespace
 *   life_X dlopen N MS LIB_A LIB_B           N times: loads A, burns 3 × MS there, unloads it, the same with B for MS
 *   life_X remap N MS LIB                    N times: moves LIB's code elsewhere and burns there
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifndef WORK
#error "WORK is the name of the function that burns"
#endif

static const char *self, *other;
static char ms_text[32], count_text[32];

static NOINLINE int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

NOINLINE uint64_t WORK(uint64_t rounds)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint64_t i = 0; i < rounds; i++)
		h = (h ^ i) * 0x100000001b3u;
	return h;
}

typedef uint64_t work_function(uint64_t rounds);

static NOINLINE void burn_in(work_function *work, long ms)
{
	int64_t end = cpu_ns() + ms * 1000000;
	volatile uint64_t sink = 0;

	while (cpu_ns() < end)
		sink += work(20000);
}

static NOINLINE void burn(long ms)
{
	burn_in(WORK, ms);
}

static void die(const char *operation)
{
	perror(operation);
	exit(1);
}

static void become(const char *program)
{
	execl(program, program, "burn", ms_text, (char *)NULL);
	die(program);
}

static void wait_for(pid_t child)
{
	int status;

	if (child < 0)
		die("fork");
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		die("child");
}

static void *burn_thread(void *ms)
{
	burn((long)ms);
	return NULL;
}

static void threads(long count, long ms)
{
	pthread_t ids[64];

	for (long i = 0; i < count; i++)
		if (pthread_create(&ids[i], NULL, burn_thread, (void *)ms))
			die("pthread_create");
	for (long i = 0; i < count; i++)
		pthread_join(ids[i], NULL);
}

static void reuse(long count)
{
	/* A free pid, below pid_max, and not near the pids that the kernel assigns next. */
	pid_t wanted = getpid() > 10000 ? getpid() - 5000 : getpid() + 5000;

	while (!kill(wanted, 0) || errno != ESRCH)
		wanted++;
	for (long i = 0; i < count; i++) {
		struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1};
		pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

		if (child == 0)
			become(i % 2 ? other : self);
		if (child != wanted)
			die("clone3 with a chosen pid");
		wait_for(child);
	}
}

/* Not inlined, so that the parent's own frame does not change while the child runs on the parent's stack. */
static NOINLINE void vfork_once(long ms)
{
	pid_t child = vfork();

	if (child == 0) {
		burn(ms);
		execl(other, other, "burn", ms_text, (char *)NULL);
		_exit(1);
	}
	wait_for(child);
}

static void burn_in_library(const char *path, const char *function, long ms)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	work_function *work = library ? (work_function *)dlsym(library, function) : NULL;

	if (!work)
		die(path);
	burn_in(work, ms);
	dlclose(library);
}

static void remap(const char *path, long count, long ms)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	char *work = library ? (char *)dlsym(library, "library_work_a") : NULL;
	long page = sysconf(_SC_PAGESIZE);

	if (!work)
		die(path);
	/* The library's code is one page, which contains the whole function. */
	char *from = (char *)((uintptr_t)work & ~(uintptr_t)(page - 1));
	for (long i = 0; i < count; i++) {
		char *place = mmap(NULL, (size_t)page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (place == MAP_FAILED ||
		    mremap(from, (size_t)page, (size_t)page, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place)
			die("mremap");
		work = place + (work - from);
		from = place;
		burn_in((work_function *)work, ms);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count, ms;

	self = argv[0];
	if (argc == 3 && !strcmp(mode, "burn")) {
		burn(atol(argv[2]));
		return 0;
	}
	if (argc < 4)
		return 2;
	count = atol(argv[2]);
	ms = atol(argv[3]);
	snprintf(ms_text, sizeof(ms_text), "%ld", ms);
	other = argc > 4 ? argv[4] : self;

	if (!strcmp(mode, "exec")) {
		burn(ms);
		if (count == 0)
			return 0;
		snprintf(count_text, sizeof(count_text), "%ld", count - 1);
		execl(other, other, "exec", count_text, ms_text, self, (char *)NULL);
		die(other);
	} else if (!strcmp(mode, "threads")) {
		threads(count, ms);
	} else if (!strcmp(mode, "reuse")) {
		reuse(count);
	} else if (!strcmp(mode, "remap")) {
		remap(other, count, ms);
		_exit(0);	/* runs no exit code of the library, because its code was moved */
	} else if (!strcmp(mode, "namespace") && unshare(CLONE_NEWPID | CLONE_NEWNS)) {
		die("unshare");
	} else {
		for (long i = 0; i < count; i++) {
			if (!strcmp(mode, "vfork")) {
				vfork_once(ms);
				continue;
			}
			if (!strcmp(mode, "dlopen")) {
				burn_in_library(argv[4], "library_work_a", 3 * ms);
				burn_in_library(argv[5], "library_work_b", ms);
				continue;
			}
			pid_t child = fork();

			if (child == 0 && !strcmp(mode, "fork")) {
				burn(ms);
				_exit(0);
			}
			if (child == 0)
				become(other);
			wait_for(child);
		}
	}
	return 0;
}
