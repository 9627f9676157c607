/*
 * Starts many processes that each live for a short time.
 *
 *   storm COUNT SECONDS [BUSY_MS]   starts COUNT processes, evenly over SECONDS. Each is this program again, busy for
 *                                   BUSY_MS (5) ms of CPU time. Prints one JSON line: the number of processes started,
 *                                   the number that ended with success, the seconds it took.
 *   storm --child BUSY_MS
 */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static __attribute__((noinline)) int busy(double seconds)
{
	volatile uint64_t x = 1;

	while (now(CLOCK_PROCESS_CPUTIME_ID) < seconds)
		for (int i = 0; i < 1000; ++i)
			x = x * 6364136223846793005u + 1;
	return 0;
}

static void sleep_until(double time)
{
	struct timespec t = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - (double)(time_t)time) * 1e9)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--child") == 0)
		return busy(atof(argv[2]) / 1000);
	if (argc < 3 || atoi(argv[1]) <= 0) {
		fprintf(stderr, "usage: storm COUNT SECONDS [BUSY_MS]\n");
		return 2;
	}
	int count = atoi(argv[1]), started = 0, ended = 0, status;
	char self[] = "/proc/self/exe", child[] = "--child", five[] = "5";
	char *args[] = {argv[0], child, argc > 3 ? argv[3] : five, NULL};
	double begin = now(CLOCK_MONOTONIC), step = atof(argv[2]) / count;

	for (int i = 0; i < count; ++i) {
		pid_t pid;

		sleep_until(begin + i * step);
		started += posix_spawn(&pid, self, NULL, NULL, args, environ) == 0;
		while (waitpid(-1, &status, WNOHANG) > 0)
			ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	while (waitpid(-1, &status, 0) > 0)
		ended += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	printf("{\"started\": %d, \"ended\": %d, \"seconds\": %.3f}\n", started, ended, now(CLOCK_MONOTONIC) - begin);
	return started == count && ended == count ? 0 : 1;
}
