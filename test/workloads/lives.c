/*
 * Processes with known lives, for tests of process events. Prints one JSON line for each process: its identity, when it
 * started, when it called exec, when and how it ended, and what wait4 reported.
 *
 *   lives SEED COUNT [--kinds K,K,…] [--rate N] [--parallel N] [--execs N]
 *
 * SEED chooses the kinds and their parameters. --kinds: only these kinds, see lives.h. --rate: starts per second; 0: as
 * fast as possible. --parallel: how many run at once. --execs: how often a process of the kind `again` calls exec.
 */
#define _GNU_SOURCE
#include "test/workloads/lives.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KIND_NAME(NAME, name) name,
const char *const kind_names[KIND_COUNT] = {KINDS(KIND_NAME)};

struct life *table;
char directory[DIRECTORY_BYTES], group[PATH_MAX];
static char self[PATH_MAX];
static uint64_t seed;

_Noreturn void die(const char *operation)
{
	perror(operation);
	_exit(250);
}

bool write_file(const char *folder, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return written;
}

/* Makes a cgroup with a limit of 16 MiB, in the hierarchy that has the memory controller. */
static void make_group(void)
{
	static const struct {
		const char *root, *limit;
	} hierarchies[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}};

	for (int i = 0; i < 2; i++) {
		write_file(hierarchies[i].root, "cgroup.subtree_control", "+memory");
		snprintf(group, sizeof(group), "%s/tributary_lives_%d", hierarchies[i].root, (int)getpid());
		if (!mkdir(group, 0755) && write_file(group, hierarchies[i].limit, "16777216"))
			return;
		rmdir(group);
	}
	fprintf(stderr, "lives: this machine has no memory controller for cgroups\n");
	exit(1);
}

static void copy_program(int number)
{
	char path[PATH_MAX], bytes[65536];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/lives_%d", directory, number);
	int from = open(self, O_RDONLY | O_CLOEXEC), to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);

	if (from < 0 || to < 0)
		die(path);
	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			die(path);
	close(from);
	close(to);
}

static void make_programs(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	const char *tmp = getenv("TMPDIR");

	snprintf(directory, sizeof(directory), "%s/lives.XXXXXX", tmp ? tmp : "/tmp");
	if (n < 0 || !mkdtemp(directory) || chmod(directory, 0755))
		die(directory);
	for (int i = 0; i < PROGRAMS; i++)
		copy_program(i);
}

static void remove_programs(void)
{
	char path[PATH_MAX];

	for (int i = 0; i < PROGRAMS; i++) {
		snprintf(path, sizeof(path), "%s/lives_%d", directory, i);
		unlink(path);
	}
	rmdir(directory);
	for (int i = 0; group[0] && rmdir(group) && errno == EBUSY && i < 500; i++)
		sleep_ms(10);
}

static void print_hex(const char *name, const char *bytes)
{
	printf("\"%s\": \"", name);
	for (int i = 0; i < NAME_BYTES && bytes[i]; i++)
		printf("%02x", (unsigned char)bytes[i]);
	printf("\", ");
}

static void print_range(const char *name, struct range range)
{
	printf("\"%s\": [%lld, %lld], ", name, (long long)range.from, (long long)range.to);
}

static void print_life(const struct life *life)
{
	printf("{\"kind\": \"%s\", \"pid\": %d, ", kind_names[life->kind], life->pid);
	printf("\"parent\": %d, \"uid\": %u, ", life->parent, life->uid);
	print_hex("started_as", life->started_as);
	print_hex("name", life->name);
	print_range("boot", life->boot);
	print_range("start", life->start);
	print_range("end", life->end);
	printf("\"execs\": [");
	for (uint32_t i = 0; i < life->execs; i++)
		printf("%s[\"lives_%u\", %lld, %lld]", i ? ", " : "", program_of(life, i), (long long)life->exec[i].from,
		       (long long)life->exec[i].to);
	printf("], \"again\": %u, \"program\": ", life->again);
	if (life->again || life->execs)
		printf("\"lives_%u", program_of(life, life->again ? 0 : life->execs - 1));
	else
		printf("\"%s", strrchr(self, '/') + 1);
	printf("\", \"exit_code\": %d, \"signal\": %d, \"oom\": %s, ", WIFEXITED(life->status) ? WEXITSTATUS(life->status) : 0,
	       WIFSIGNALED(life->status) ? WTERMSIG(life->status) : 0, life->kind == KIND_OOM ? "true" : "false");
	printf("\"user_ns\": %lld, \"system_ns\": %lld, ", (long long)life->user_ns, (long long)life->system_ns);
	printf("\"peak_bytes\": %lld, ", (long long)life->peak_kb * 1024);
	printf("\"has_children\": %s}\n", life->has_children ? "true" : "false");
}

static bool has_second(const struct life *life)
{
	return life->kind == KIND_CHILD || life->kind == KIND_ZOMBIE || life->kind == KIND_NAMESPACE ||
	       life->kind == KIND_DAEMON;
}

/* The running children of this process; every slot has at most one, and one more if it is a daemon's. */
static int *running, running_count;

static bool reap(int options)
{
	struct rusage used;
	int status;
	pid_t pid = wait4(-1, &status, options, &used);

	if (pid <= 0)
		return false;
	for (int i = 0; i < running_count; i++) {
		struct life *life = table + running[i];

		if (life->pid != pid)
			continue;
		take_end(life, status, &used);
		running[i] = running[--running_count];
		return true;
	}
	fprintf(stderr, "lives: waited for an unknown process %d\n", pid);
	exit(1);
}

static uint64_t next_random(void)
{
	static uint64_t state;

	state = (state ? state : seed * 2654435761u + 1) * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}
/* Returns how many kinds there are in `kinds`. */
static int choose_kinds(const char *names, int *kinds)
{
	int count = 0;

	for (int i = 0; i < KIND_COUNT; i++) {
		const char *at = names ? strstr(names, kind_names[i]) : NULL;
		size_t n = strlen(kind_names[i]);

		while (at && ((at != names && at[-1] != ',') || (at[n] && at[n] != ',')))
			at = strstr(at + 1, kind_names[i]);
		if (names ? at != NULL : i <= KIND_DAEMON)
			kinds[count++] = i;
	}
	return count;
}

static void make_table(size_t lives)
{
	int fd = memfd_create("lives", 0);

	if (fd < 0 || ftruncate(fd, (off_t)(lives * sizeof(struct life))) || dup2(fd, TABLE_FD) < 0)
		die("the table");
	close(fd);
	table = mmap(NULL, lives * sizeof(struct life), PROT_READ | PROT_WRITE, MAP_SHARED, TABLE_FD, 0);
	running = calloc(lives, sizeof(int));
	if (table == MAP_FAILED || !running)
		die("the table");
}

static void run_all(int count, const int *kinds, int kinds_count, long rate, long parallel, long execs)
{
	int64_t begin = read_clock(CLOCK_MONOTONIC);

	for (int i = 0; i < count; i++) {
		struct life *life = table + 2 * i;

		life->kind = kinds[next_random() % (unsigned int)kinds_count];
		life->random = (uint32_t)next_random();
		life->code = (int)(next_random() % 8 ? next_random() % 5 : next_random() % 250);
		life[1].random = (uint32_t)next_random();
		life[1].code = (int)(next_random() % 5);
		if (rate) {
			int64_t at = begin + i * (1000000000ll / rate);
			struct timespec ts = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};

			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
				;
		}
		while (running_count >= parallel && reap(0))
			;
		running[running_count++] = 2 * i;
		if (life->kind == KIND_DAEMON)
			running[running_count++] = 2 * i + 1;
		spawn(life, execs);
		while (reap(WNOHANG))
			;
	}
	while (reap(0))
		;
}

int main(int argc, char **argv)
{
	const char *names = NULL;
	long rate = 0, parallel = 8, execs = 1000;
	int kinds[KIND_COUNT];

	if (argc == 4 && !strcmp(argv[1], "--stage"))
		return run_staged(argv[0], atoi(argv[2]), (uint32_t)atoi(argv[3]));
	for (int i = 3; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--kinds"))
			names = argv[i + 1];
		else if (!strcmp(argv[i], "--rate"))
			rate = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--parallel"))
			parallel = atol(argv[i + 1]);
		else if (!strcmp(argv[i], "--execs"))
			execs = atol(argv[i + 1]);
		else
			argc = 0;
	}
	int count = argc > 2 ? atoi(argv[2]) : 0, kinds_count = choose_kinds(names, kinds);

	if (count <= 0 || kinds_count == 0 || parallel <= 0 || argc % 2 == 0) {
		fprintf(stderr, "usage: lives SEED COUNT [--kinds K,K] [--rate N] [--parallel N] [--execs N]\n");
		return 2;
	}
	seed = strtoull(argv[1], NULL, 10);
	make_table(2 * (size_t)count);
	make_programs();
	for (int i = 0; i < kinds_count; i++)
		if (kinds[i] == KIND_OOM)
			make_group();
	prctl(PR_SET_CHILD_SUBREAPER, 1);	/* so that this process waits for the daemons too */
	run_all(count, kinds, kinds_count, rate, parallel, execs);
	for (int i = 0; i < 2 * count; i++)
		if (i % 2 == 0 || has_second(table + i - 1))
			print_life(table + i);
	remove_programs();
	prctl(PR_SET_NAME, "lives_launcher");	/* its end must not look like one of its children's */
	return 0;
}
