/*
 * A program with a known profile. It spends 60, 30 and 10% of its CPU time in three functions. All three have the same
 * five callers: main → serve → handle → dispatch → work → {hash_blocks, sort_rows, parse_text}.
 *
 *   truth SECONDS [THREADS]     CPU seconds per thread; prints one JSON line with the CPU time that it really used
 *
 * The program measures CPU time to keep the shares. Each turn gives a slice of about 1 ms to the function that is
 * furthest behind its share. The time is read from CLOCK_THREAD_CPUTIME_ID. The program is built twice, both times
 * without sibling calls. truth has frame pointers. truth_nofp (with TRUTH_OMIT_FRAMES) has none, so only .eh_frame
 * shows the callers.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

enum { HASH, SORT, PARSE, KINDS };
static const double kShares[KINDS] = {0.6, 0.3, 0.1};
static double seconds;

struct state {
	double used[KINDS];
	volatile uint64_t sink;
};

static NOINLINE double cpu_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* gcc makes no frame for a leaf function, whatever its options, unless the function uses the frame's address. */
#ifdef TRUTH_OMIT_FRAMES
#define KEEP_FRAME()
#else
#define KEEP_FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)))
#endif

/*
 * The three functions do arithmetic on registers only. They make no calls and no page faults, so every sample is in the
 * function itself.
 */
NOINLINE void hash_blocks(struct state *s, uint64_t rounds)
{
	KEEP_FRAME();
	uint64_t h = 0xcbf29ce484222325u;
	for (uint64_t i = 0; i < rounds; i++)
		h = (h ^ i) * 0x100000001b3u;
	s->sink += h;
}

NOINLINE void sort_rows(struct state *s, uint64_t rounds)
{
	KEEP_FRAME();
	uint64_t a = 88172645463325252u;
	for (uint64_t i = 0; i < rounds; i++) {
		a ^= a << 13;
		a ^= a >> 7;
		a ^= a << 17;
	}
	s->sink += a;
}

NOINLINE void parse_text(struct state *s, uint64_t rounds)
{
	KEEP_FRAME();
	uint64_t x = 1;
	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	s->sink += x;
}

NOINLINE void work(struct state *s, int kind, uint64_t rounds)
{
	switch (kind) {
	case HASH:
		hash_blocks(s, rounds);
		break;
	case SORT:
		sort_rows(s, rounds);
		break;
	default:
		parse_text(s, rounds);
		break;
	}
	__asm__ volatile("" ::: "memory");
}

NOINLINE void dispatch(struct state *s, int kind, uint64_t rounds)
{
	work(s, kind, rounds);
	__asm__ volatile("" ::: "memory");
}

NOINLINE void handle(struct state *s, int kind, uint64_t rounds)
{
	dispatch(s, kind, rounds);
	__asm__ volatile("" ::: "memory");
}

NOINLINE void serve(struct state *s)
{
	double start = cpu_now(), now = start;
	while (now - start < seconds) {
		int next = HASH;
		double worst = -1;
		for (int k = 0; k < KINDS; k++) {
			double behind = kShares[k] * (now - start + 1e-9) - s->used[k];
			if (behind > worst) {
				worst = behind;
				next = k;
			}
		}
		handle(s, next, 1000000);
		double after = cpu_now();
		s->used[next] += after - now;
		now = after;
	}
}

static void *thread_main(void *arg)
{
	serve(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	seconds = argc > 1 ? atof(argv[1]) : 5;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	if (!(seconds > 0) || threads < 1 || threads > 64) {
		fprintf(stderr, "usage: truth SECONDS [THREADS, 1 to 64]\n");
		return 2;
	}
	static struct state states[64];
	pthread_t ids[64];
	for (int i = 1; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, &states[i]) != 0)
			return 1;
	serve(&states[0]);
	for (int i = 1; i < threads; i++)
		pthread_join(ids[i], NULL);

	double used[KINDS] = {0};
	for (int i = 0; i < threads; i++)
		for (int k = 0; k < KINDS; k++)
			used[k] += states[i].used[k];
	/*
	 * The kernel's own numbers: the CPU time of the process, and the CPU time of the main thread. The first number of
	 * schedstat is a thread's CPU time in ns.
	 */
	struct timespec cpu;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	unsigned long long schedstat_ns = 0;
	FILE *f = fopen("/proc/self/schedstat", "r");
	if (f != NULL) {
		if (fscanf(f, "%llu", &schedstat_ns) != 1)
			schedstat_ns = 0;
		fclose(f);
	}
	printf("{\"pid\": %d, \"hash_blocks_s\": %.6f, \"sort_rows_s\": %.6f, \"parse_text_s\": %.6f, \"process_cpu_ns\": %llu, "
	       "\"main_thread_schedstat_ns\": %llu}\n",
	       getpid(), used[HASH], used[SORT], used[PARSE],
	       (unsigned long long)cpu.tv_sec * 1000000000ull + (unsigned long long)cpu.tv_nsec, schedstat_ns);
	return 0;
}
