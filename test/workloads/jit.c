/*
 * A program that generates code, and names it for profilers. It spends 60, 30 and 10% of its CPU time in three generated
 * functions. All three have the same callers: main → call_generated → the generated function "caller".
 *
 *   jit SECONDS MODE     MODE: map, dump, both, none (no file has the names),
 *                        fork (a child runs the parent's code), named (the memory has the name "jit-heap"),
 *                        memfd (the memory is a memfd "jit-code")
 *
 * It prints its pid, whether its memory has a name, and the CPU time that each function has used, as JSON.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

enum { HOT, WARM, COLD, KINDS };
static const double kShares[KINDS] = {0.6, 0.3, 0.1};
static const char *const kNames[KINDS] = {"hot function(int)", "LazyCompile:*warm /srv/app.js:12:3", "py::cold.<locals>.f:/srv/x.py"};
static const char kMemoryName[] = "jit-heap";

#if defined(__x86_64__)
/* push rbp; mov rbp,rsp; call rdx; pop rbp; ret */
static const unsigned char kCaller[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};
/* push rbp; mov rbp,rsp; 1: dec rdi; jnz 1b; pop rbp; ret */
static const unsigned char kLoop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
#elif defined(__aarch64__)
/* stp x29,x30,[sp,-16]!; mov x29,sp; blr x2; ldp x29,x30,[sp],16; ret */
static const uint32_t kCaller[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
/* stp x29,x30,[sp,-16]!; mov x29,sp; 1: subs x0,x0,1; b.ne 1b; ldp x29,x30,[sp],16; ret */
static const uint32_t kLoop[] = {0xa9bf7bfd, 0x910003fd, 0xf1000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
#endif

typedef void (*loop_fn)(uint64_t rounds);
typedef void (*caller_fn)(uint64_t rounds, uint64_t unused, loop_fn loop);

static char *code;
static int has_name; /* Linux before 5.17 has no names */
enum { kStep = 64, kBytes = 16384 };

static char *at(int i) { return code + i * kStep; }
static const char *name(int i) { return i < KINDS ? kNames[i] : "caller"; }
static size_t size(int i) { return i < KINDS ? sizeof kLoop : sizeof kCaller; }

static double now(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void generate(const char *mode)
{
	if (strcmp(mode, "memfd") == 0) {
		int fd = memfd_create("jit-code", 0);
		if (fd < 0 || ftruncate(fd, kBytes) != 0)
			exit(1);
		code = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	} else {
		code = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (code == MAP_FAILED)
		exit(1);
	for (int i = 0; i < KINDS; i++)
		memcpy(at(i), kLoop, sizeof kLoop);
	memcpy(at(KINDS), kCaller, sizeof kCaller);
	if (strcmp(mode, "named") == 0)
		has_name = prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, code, kBytes, kMemoryName) == 0;
	if (mprotect(code, kBytes, PROT_READ | PROT_EXEC) != 0)
		exit(1);
	__builtin___clear_cache(code, code + kBytes);
}

static void write_map(void)
{
	char path[64];
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	FILE *file = fopen(path, "w");
	if (file == NULL)
		exit(1);
	for (int i = 0; i <= KINDS; i++)
		fprintf(file, "%lx %zx %s\n", (unsigned long)at(i), size(i), name(i));
	fclose(file);
}

static void put(FILE *file, uint64_t value, size_t bytes) { fwrite(&value, 1, bytes, file); }

/* jitdump-specification.txt of Linux's perf */
static void write_dump(void)
{
	char path[64];
	snprintf(path, sizeof path, "./jit-%d.dump", (int)getpid());
	FILE *file = fopen(path, "w+");
	if (file == NULL || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file), 0) == MAP_FAILED)
		exit(1);
	put(file, 0x4A695444, 4), put(file, 1, 4), put(file, 40, 4), put(file, 62, 4), put(file, 0, 4);
	put(file, (uint64_t)getpid(), 4), put(file, now_ns(), 8), put(file, 0, 8);
	for (int i = 0; i <= KINDS; i++) {
		uint64_t address = (uint64_t)(uintptr_t)at(i);
		if (i == HOT) {
			put(file, 2, 4), put(file, 16 + 16 + 16 + 5, 4), put(file, now_ns(), 8), put(file, address, 8), put(file, 1, 8);
			put(file, address, 8), put(file, 34, 4), put(file, 0, 4), fwrite("/h.x", 1, 5, file);
		}
		size_t length = strlen(name(i)) + 1;
		put(file, 0, 4), put(file, 56 + length + size(i), 4), put(file, now_ns(), 8);
		put(file, (uint64_t)getpid(), 4), put(file, (uint64_t)getpid(), 4), put(file, address, 8), put(file, address, 8);
		put(file, size(i), 8), put(file, (uint64_t)i, 8);
		fwrite(name(i), 1, length, file), fwrite(at(i), 1, size(i), file);
	}
	fclose(file);
}

static __attribute__((noinline)) void call_generated(int kind, uint64_t rounds)
{
	((caller_fn)(uintptr_t)at(KINDS))(rounds, 0, (loop_fn)(uintptr_t)at(kind));
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	double seconds = atof(argv[1]), used[KINDS] = {0};
	const char *mode = argv[2];
	generate(mode);
	if (strcmp(mode, "map") == 0 || strcmp(mode, "both") == 0 || strcmp(mode, "fork") == 0)
		write_map();
	if (strcmp(mode, "dump") == 0 || strcmp(mode, "both") == 0)
		write_dump();
	if (strcmp(mode, "fork") == 0 && fork() != 0) {
		wait(NULL);
		return 0;
	}
	double start = now(CLOCK_THREAD_CPUTIME_ID), at_time = start;
	while (at_time - start < seconds) {
		int next = HOT;
		double worst = -1;
		for (int k = 0; k < KINDS; k++) {
			double behind = kShares[k] * (at_time - start + 1e-9) - used[k];
			if (behind > worst) {
				worst = behind;
				next = k;
			}
		}
		call_generated(next, 1000000);
		double after = now(CLOCK_THREAD_CPUTIME_ID);
		used[next] += after - at_time;
		at_time = after;
	}
	printf("{\"pid\": %d, \"has_name\": %d, \"seconds\": [%.3f, %.3f, %.3f]}\n", (int)getpid(), has_name, used[HOT],
	       used[WARM], used[COLD]);
	return 0;
}
