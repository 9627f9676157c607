/* What each process of lives.c does, from its fork to its end. */
#define _GNU_SOURCE
#include "test/workloads/lives.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS_COUNT 64
#define OTHER_USER 12345

/* The pid in the pid namespace of /proc, also if the process is in another one. */
static pid_t own_pid(void)
{
	char text[32] = "";

	return readlink("/proc/self", text, sizeof(text) - 1) > 0 ? atoi(text) : getpid();
}

void about_to_fork(struct life *life)
{
	life->parent = own_pid();
	life->uid = geteuid();
	prctl(PR_GET_NAME, life->started_as);
	memcpy(life->name, life->started_as, NAME_BYTES);
	life->boot.from = read_clock(CLOCK_BOOTTIME);
	life->start.from = now();
}

void was_born(struct life *life)
{
	life->start.to = now();
	life->boot.to = read_clock(CLOCK_BOOTTIME);
	life->pid = own_pid();
}

static _Noreturn void finish(struct life *life)
{
	life->uid = geteuid();
	prctl(PR_GET_NAME, life->name);
	life->end.from = now();
	_exit(life->code);
}

void take_end(struct life *life, int status, const struct rusage *used)
{
	life->end.to = now();
	life->status = status;
	life->user_ns = used->ru_utime.tv_sec * 1000000000ll + used->ru_utime.tv_usec * 1000;
	life->system_ns = used->ru_stime.tv_sec * 1000000000ll + used->ru_stime.tv_usec * 1000;
	life->peak_kb = used->ru_maxrss;
}

static void reap_child(struct life *life, pid_t pid)
{
	struct rusage used;
	int status;

	if (wait4(pid, &status, 0, &used) != pid)
		die("wait4");
	take_end(life, status, &used);
}

static void burn(int64_t ns, bool in_kernel)
{
	static char bytes[65536];
	int64_t end = read_clock(CLOCK_PROCESS_CPUTIME_ID) + ns;
	int zero = in_kernel ? open("/dev/zero", O_RDONLY | O_CLOEXEC) : -1;
	volatile uint64_t sink = 0;

	while (read_clock(CLOCK_PROCESS_CPUTIME_ID) < end)
		if (zero < 0)
			for (int i = 0; i < 10000; i++)
				sink = sink * 6364136223846793005u + 1;
		else if (read(zero, bytes, sizeof(bytes)) < 0)
			die("/dev/zero");
}

static void touch(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	for (size_t i = 0; i < bytes; i += 4096)
		memory[i] = 1;
}

unsigned int program_of(const struct life *life, uint32_t exec)
{
	return life->again ? 0 : (life->random + exec) % PROGRAMS;
}

/* `path` needs PATH_MAX bytes. Calls only functions that are allowed after vfork. */
static void run_stage(const struct life *life, uint32_t exec, char *path, char *const argv[])
{
	path[strlen(path) - 1] = (char)('0' + program_of(life, exec));
	execv(path, argv);
}

static _Noreturn void exec_next(struct life *life, uint32_t exec)
{
	char path[PATH_MAX], slot[16], number[16];
	char *argv[] = {path, "--stage", slot, number, NULL};

	snprintf(path, sizeof(path), "%s/lives_0", directory);
	snprintf(slot, sizeof(slot), "%d", (int)(life - table));
	snprintf(number, sizeof(number), "%u", exec);
	if (exec < EXECS_MAX)
		life->exec[exec].from = now();
	run_stage(life, exec, path, argv);
	die("exec");
}

static void *exec_thread(void *life)
{
	exec_next(life, 0);
}

static atomic_int ready;
static int gate[2];	/* a pipe: its end opens the gate */

static void *many_thread(void *unused)
{
	char byte;

	(void)unused;
	ready++;
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
	syscall(SYS_exit, 0);	/* not pthread_exit, which would end the process with 0 in its last thread */
	return NULL;
}

static void *last_thread(void *argument)
{
	struct life *life = argument;

	sleep_ms(5);
	burn(2000000, false);
	if (life->random & 1)
		finish(life);
	life->end.from = now();
	syscall(SYS_exit, 0);
	return NULL;
}

static void start_thread(void *(*run)(void *), void *argument)
{
	pthread_attr_t small;
	pthread_t id;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	if (pthread_create(&id, &small, run, argument))
		die("pthread_create");
}

static void end_many_threads(struct life *life)
{
	if (pipe(gate))
		die("pipe");
	for (int i = 0; i < THREADS_COUNT - 1; i++)
		start_thread(many_thread, NULL);
	while (ready < THREADS_COUNT - 1)
		sleep_ms(1);
	if (life->random & 1)
		finish(life);	/* ends the other threads */
	life->uid = geteuid();
	life->end.from = now();
	close(gate[1]);
	syscall(SYS_exit, life->code);
}

static void run_signal(struct life *life)
{
	static const int signals[] = {SIGSEGV, SIGKILL, SIGTERM, SIGABRT};
	const struct rlimit none = {0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);	/* also for a core_pattern that is a pipe */
	life->end.from = now();
	kill(getpid(), signals[life->random % 4]);
	die("kill");
}

static void set_bad_name(struct life *life)
{
	static const char *const names[] = {"\x01\x1b[31m\n\r\t", "\"quoted\\\"", "two\nlines", "\xff\xfe\x80",
					    "", "{}';--<b>", "cut \xc3", "\xe2\x80\xae" "rtl"};

	prctl(PR_SET_NAME, names[life->random % (sizeof(names) / sizeof(names[0]))]);
	finish(life);
}

/* Forks the second process of a kind that has two. */
static pid_t fork_second(struct life *life)
{
	about_to_fork(life);
	life->kind = life[-1].kind;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	was_born(life);
	if (life->kind == KIND_DAEMON) {
		setsid();
		while (getppid() == life->parent)
			sleep_ms(1);
	}
	burn(life->random % 5 * 1000000, false);
	finish(life);
}

static void run_parent(struct life *life)
{
	struct life *second = life + 1;
	pid_t pid = fork_second(second);
	siginfo_t ended;

	if (life->kind == KIND_DAEMON)
		finish(life);
	life->has_children = true;
	if (life->kind == KIND_ZOMBIE) {
		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT))
			die("waitid");
		second->end.to = now();
		sleep_ms(life->random % 64 ? life->random % 60 : 2500);
	}
	int64_t zombie_since = second->end.to;

	reap_child(second, pid);
	if (zombie_since)
		second->end.to = zombie_since;
	finish(life);
}

static void exceed_limit(struct life *life)
{
	if (!write_file(group, "cgroup.procs", "0"))
		die("cgroup.procs");
	life->end.from = now();
	touch(256u << 20);
	die("no OOM kill");
}

static _Noreturn void live(struct life *life)
{
	switch ((enum kind)life->kind) {
	case KIND_SIGNAL:
		run_signal(life);
		break;
	case KIND_EXECS:
	case KIND_AGAIN:
		exec_next(life, 0);
	case KIND_THREAD_EXEC:
		start_thread(exec_thread, life);
		while (true)
			pause();
	case KIND_THREADS:
		end_many_threads(life);
		break;
	case KIND_LEADER:
		life->uid = geteuid();
		start_thread(last_thread, life);
		syscall(SYS_exit, life->code);
		break;
	case KIND_CHILD:
	case KIND_ZOMBIE:
	case KIND_NAMESPACE:
	case KIND_DAEMON:
		run_parent(life);
		break;
	case KIND_BURN:
		burn((1 + life->random % 40) * 1000000, life->random & 64);
		break;
	case KIND_LONG: {
		double x = life->random % 1000 / 1000.0;
		double cube = x * x * x;	/* more short ones than long ones */

		burn((int64_t)(1e8 + cube * cube * 1.4e9), life->random & 1024);
		break;
	}
	case KIND_MEMORY:
		touch((size_t)(1 + life->random % 32) << 20);
		break;
	case KIND_USER:
		if (setresuid((uid_t)-1, OTHER_USER, (uid_t)-1))
			die("setresuid");
		break;
	case KIND_NAME:
		set_bad_name(life);
		break;
	case KIND_OOM:
		exceed_limit(life);
		break;
	case KIND_EXIT:
	case KIND_VFORK:
	case KIND_REUSE:
	case KIND_COUNT:
		break;
	}
	finish(life);
}

/* Returns the child's pid in the parent, and 0 in the child. */
static pid_t fork_of_kind(const struct life *life)
{
	static pid_t wanted;

	if (life->kind == KIND_NAMESPACE)
		return (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (life->kind == KIND_REUSE) {
		/* A free pid that is not near the pids that the kernel assigns next. */
		if (!wanted)
			wanted = getpid() > 10000 ? getpid() - 5000 : getpid() + 5000;
		for (int tries = 0; tries < 1000; tries++, wanted++) {
			struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&wanted, .set_tid_size = 1};
			pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

			if (pid >= 0 || errno != EEXIST)
				return pid;
		}
	}
	return fork();
}

static pid_t vfork_exec(struct life *life)
{
	char path[PATH_MAX], slot[16];
	char *argv[] = {path, "--stage", slot, "0", NULL};

	snprintf(path, sizeof(path), "%s/lives_0", directory);
	snprintf(slot, sizeof(slot), "%d", (int)(life - table));
	life->exec[0].from = life->start.from;
	pid_t pid = vfork();

	if (pid == 0) {
		run_stage(life, 0, path, argv);
		_exit(251);
	}
	return pid;
}

pid_t spawn(struct life *life, long execs)
{
	if (life->kind == KIND_EXECS)
		life->execs = 1 + life->random / 7 % EXECS_MAX;
	else if (life->kind == KIND_THREAD_EXEC || life->kind == KIND_VFORK)
		life->execs = 1;
	else if (life->kind == KIND_AGAIN)
		life->again = (uint32_t)execs;
	about_to_fork(life);
	pid_t pid = life->kind == KIND_VFORK ? vfork_exec(life) : fork_of_kind(life);

	if (pid < 0)
		die("fork");
	if (pid == 0) {
		was_born(life);
		live(life);
	}
	life->pid = pid;
	return pid;
}

int run_staged(const char *program, int slot, uint32_t exec)
{
	struct stat size;

	if (fstat(TABLE_FD, &size))
		die("the table");
	table = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, TABLE_FD, 0);
	if (table == MAP_FAILED)
		die("mmap");
	struct life *life = table + slot;

	if (!life->start.to)
		was_born(life);	/* after vfork */
	if (exec < EXECS_MAX)
		life->exec[exec].to = now();
	snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(program, '/') - program), program);
	if (exec + 1 < (life->again ? life->again : life->execs))
		exec_next(life, exec + 1);
	finish(life);
}

