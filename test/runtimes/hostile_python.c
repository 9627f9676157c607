/*
 * Forges the structures of CPython 3.11, so that a profiler takes this program for an interpreter. Build it with
 * -rdynamic, and run it: hostile_python MODE SECONDS. The program is busy in busy_native, below the forged loop.
 * PYTHON_VERSION: the version that the file pretends to have. HOSTILE_OFFSETS: adds debug offsets as of 3.13, with
 * absurd values.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef PYTHON_VERSION
#define PYTHON_VERSION 0x030b02f0
#endif

#define EXPORT __attribute__((visibility("default"), used))

EXPORT const unsigned long Py_Version = PYTHON_VERSION;
EXPORT char PyCode_Type[408];
EXPORT char PyUnicode_Type[408];
EXPORT char PyBytes_Type[408];
#ifdef HOSTILE_OFFSETS
#define TIMES_10(x) x, x, x, x, x, x, x, x, x, x
EXPORT __attribute__((section(".PyRuntime"))) uint64_t _PyRuntime[4096] = {
	0x7970677562656478ull, PYTHON_VERSION, 0,
	TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS),
	TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS), TIMES_10(HOSTILE_OFFSETS),
};
#else
EXPORT __attribute__((section(".PyRuntime"))) uint64_t _PyRuntime[4096] = { 1 };
#endif

/* Offsets of 3.11. */
struct text { uint64_t references; void *type; uint64_t length, hash; uint32_t state, pad; uint64_t wide; char data[64]; };
struct bytes { uint64_t references; void *type; uint64_t size, hash; unsigned char data[128]; };
struct code {
	uint64_t references;
	void *type;
	uint64_t size;
	uint64_t lists[2];	/* 24, 32 */
	uint32_t numbers[16];	/* 40: first line at 72 */
	void *filler;	/* 104 */
	void *filename, *name, *qualname, *linetable;	/* 112 to 143 */
	void *rest[5];	/* to 183 */
	unsigned char instructions[200];	/* 184 */
};
struct frame { void *filler[4]; struct code *code; void *object; struct frame *previous; void *instruction; uint32_t top; uint8_t is_entry, owner; uint8_t pad[50]; };
struct cframe { uint64_t filler; struct frame *current; };
struct thread { uint64_t filler[7]; struct cframe *cframe; uint64_t more[11]; uint64_t id, native; uint64_t rest[32]; };

_Static_assert(__builtin_offsetof(struct text, data) == 48 && __builtin_offsetof(struct bytes, data) == 32, "objects");
_Static_assert(__builtin_offsetof(struct code, filename) == 112 && __builtin_offsetof(struct code, linetable) == 136, "code");
_Static_assert(__builtin_offsetof(struct code, instructions) == 184, "code");
_Static_assert(__builtin_offsetof(struct frame, code) == 32 && __builtin_offsetof(struct frame, previous) == 48, "frame");
_Static_assert(__builtin_offsetof(struct frame, is_entry) == 68, "frame");
_Static_assert(__builtin_offsetof(struct thread, cframe) == 56 && __builtin_offsetof(struct thread, id) == 152, "thread");

#define FRAMES 20000
static struct frame frames[FRAMES];
static struct code *codes;	/* FRAMES of them */
static struct cframe cframe = { 0, &frames[0] };
static struct thread state = { .cframe = &cframe };
static uint64_t interpreter[64], current[128];	/* PyInterpreterState.runtime is at 40, gilstate.tstate_current at 576 */
static struct text file_name, names[64];
static struct bytes lines;
static volatile int stop;

static void set_text(struct text *t, const char *value)
{
	memset(t, 0, sizeof(*t));
	*t = (struct text){ .references = 1, .type = PyUnicode_Type, .length = strlen(value), .hash = 77, .state = 0xe4 };
	memcpy(t->data, value, strlen(value));
}

/* A list of `count` frames of well-formed code. */
static void make_frames(int count)
{
	codes = mmap(NULL, sizeof(struct code) * FRAMES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	set_text(&file_name, "/hostile/forged.py");
	for (int i = 0; i < 64; i++) {
		char name[32];
		snprintf(name, sizeof(name), "forged_%d", i);
		set_text(&names[i], name);
	}
	lines = (struct bytes){ .references = 1, .type = PyBytes_Type, .size = 100 };
	memset(lines.data, 0x80 | 10 << 3, sizeof(lines.data));
	for (int i = 0; i < FRAMES; i++) {
		struct code *c = &codes[i];
		*c = (struct code){ .references = 1, .type = PyCode_Type, .size = 50, .filename = &file_name, .name = &names[i % 64],
				    .qualname = &names[i % 64], .linetable = &lines };
		c->numbers[8] = 1 + i;
		frames[i] = (struct frame){ .code = c, .previous = i + 1 < count ? &frames[i + 1] : NULL, .instruction = c->instructions + 2 * (i % 60),
					    .is_entry = i == count - 1 };
	}
}

static uint64_t random_state = 88172645463325252ull;
static uint64_t draw(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* Changes pointers and lengths all the time, to valid and to invalid values. */
static void *change(void *unused)
{
	void *values[] = { &names[0], &names[1], &file_name, &lines, (void *)0xffffffff81000000ull, (void *)0x8000000000000000ull, (void *)8, codes, NULL };

	(void)unused;
	while (!stop) {
		struct code *c = &codes[draw() % 40];
		((void *volatile *)&c->filename)[draw() % 4] = values[draw() % 9];
		c->numbers[draw() % 16] = draw();
		*(volatile uint64_t *)&names[draw() % 64].length = draw() >> (draw() % 64);
		*(volatile uint32_t *)&names[draw() % 64].state = draw();
		*(volatile uint64_t *)&lines.size = draw() >> (draw() % 64);
		lines.data[draw() % 128] = draw();
		frames[draw() % 40].instruction = (char *)codes + draw() % 100000;
	}
	return NULL;
}

/* Shows other code objects all the time. */
static void *flood(void *unused)
{
	(void)unused;
	for (int i = 0; !stop; i = (i + 20) % (FRAMES - 100))
		*(struct frame *volatile *)&cframe.current = &frames[i];
	return NULL;
}

/* Returns memory that blocks everyone who reads it, for ever. */
static void *blocking_memory(void)
{
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	void *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register area = { .range = { (uintptr_t)memory, 1 << 20 }, .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area)) {
		perror("userfaultfd");
		exit(3);
	}
	return memory;
}

static const char *long_text(void)
{
	static struct text *big;
	size_t size = 1ull << 31;
	char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	big = (struct text *)memory;
	set_text(big, "");
	big->length = size;
	return memory;
}

static void forge(const char *mode)
{
	pthread_t thread;

	make_frames(20);
	if (!strcmp(mode, "plain"))
		return;
	if (!strcmp(mode, "cycle"))
		frames[19].previous = &frames[3];
	else if (!strcmp(mode, "self"))
		frames[0].previous = &frames[0];
	else if (!strcmp(mode, "deep"))
		make_frames(FRAMES);
	else if (!strcmp(mode, "long-names"))
		for (int i = 0; i < 20; i++)
			codes[i].qualname = codes[i].filename = (void *)long_text();
	else if (!strcmp(mode, "kernel-pointers"))
		for (int i = 0; i < 20; i++)
			codes[i].qualname = codes[i].linetable = codes[i].filename = (void *)(0xffff888000000000ull + 4096 * i);
	else if (!strcmp(mode, "kernel-frames"))
		frames[5].previous = (void *)0xffffffff81000000ull;
	else if (!strcmp(mode, "kernel-code"))
		for (int i = 0; i < 20; i++)
			frames[i].code = (void *)(0xffffffff81000000ull + 8 * i);
	else if (!strcmp(mode, "blocks"))
		for (int i = 0; i < 20; i++)
			codes[i].qualname = codes[i].linetable = codes[i].filename = (char *)blocking_memory() + 4096 * i;
	else if (!strcmp(mode, "odd-names"))
		for (int i = 0; i < 64; i++)
			set_text(&names[i], i % 2 ? "a;b 7\n\033[31mforged 99" : " \r\t\\\"<script>\x7f");
	else if (!strcmp(mode, "changes"))
		pthread_create(&thread, NULL, change, NULL);
	else if (!strcmp(mode, "flood"))
		make_frames(FRAMES), pthread_create(&thread, NULL, flood, NULL);
	else
		exit(2);
}

EXPORT __attribute__((noipa)) uint64_t busy_native(uint64_t rounds)
{
	uint64_t x = 1;

	while (rounds-- > 0)
		x = x * 6364136223846793005ull + 1;
	return x;
}

static struct timespec end;

EXPORT __attribute__((noipa)) uint64_t _PyEval_EvalFrameDefault(void *unused, void *frame, int depth)
{
	struct timespec now;
	uint64_t sum = 0;

	if (depth > 0)
		return 1 + _PyEval_EvalFrameDefault(unused, frame, depth - 1);
	do {
		sum += busy_native(1000000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	return sum;
}

int main(int argc, char **argv)
{
	pthread_key_t key;

	if (argc != 3)
		return 2;
	forge(argv[1]);
	state.id = (uint64_t)pthread_self();
	state.native = syscall(SYS_gettid);
	state.filler[2] = (uint64_t)interpreter;
	interpreter[5] = (uint64_t)current;
	current[72] = (uint64_t)&state;
	pthread_key_create(&key, NULL);
	pthread_setspecific(key, &state);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += atoi(argv[2]);
	printf("%d\n", getpid());
	fflush(stdout);
	uint64_t result = _PyEval_EvalFrameDefault(&state, &frames[0], 3);
	stop = 1;
	return result == 42;
}
