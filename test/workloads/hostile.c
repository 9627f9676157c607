/*
 * A program with wrong unwind information or changing mappings. Each mode burns CPU time in functions. The name of the
 * function and the name of its caller show where the time was burned. Either the file is wrong, or the program changes
 * its mappings or mapped files. test/e2e/unwind_hostile_test.py patches copies of this program. The program has no
 * frame pointers, so only .eh_frame shows the callers.
 *
 *   hostile burn MS                       burns MS milliseconds of CPU time in burn_here
 *   hostile far MS                        burns MS in burn_here, then MS in code at the last page of its last PT_LOAD
 *   hostile cut MS LIB SIZE [BEFORE]      loads LIB (with library_work_a), burns BEFORE ms in it, truncates its file to
 *                                         SIZE bytes, burns MS in it
 *   hostile garble MS LIB FROM [BEFORE]   the same, but overwrites the file from FROM on
 *   hostile many MS LIB COUNT             maps LIB's code COUNT times, side by side, burns in the last mapping but two
 *   hostile switch MS LIB_A LIB_B         maps LIB_A's and LIB_B's code at one address in turn: 3 rounds in A, 1 in B
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define PAGE 4096u

typedef uint64_t work_function(uint64_t rounds);

static volatile uint64_t sink;
static work_function *volatile in_a, *volatile in_b;

static NOINLINE int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* In its own section and without references, so a copy of its bytes runs at any address. */
__attribute__((section(".text.burn"), aligned(64))) NOINLINE uint64_t burn_here(uint64_t rounds)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint64_t i = 0; i < rounds; i++)
		h = (h ^ i) * 0x100000001b3u;
	return h;
}

static void die(const char *operation)
{
	perror(operation);
	_exit(1);
}

/* The work function has three callers, so that every stack is some frames deep and shows the current action. */
static NOINLINE void call_inner(work_function *work, long ms)
{
	int64_t end = cpu_ns() + ms * 1000000;

	while (cpu_ns() < end)
		sink += work(20000);
}

static NOINLINE void call_outer(work_function *work, long ms)
{
	call_inner(work, ms);
	sink++;
}

static NOINLINE void during_a(uint64_t rounds)
{
	sink += in_a(rounds);
}

static NOINLINE void during_b(uint64_t rounds)
{
	sink += in_b(rounds);
}

struct code {
	int fd;
	off_t page;	/* offset in the file of the page that contains the function */
	uintptr_t within;
	work_function *work;
};

static int find_offset(struct dl_phdr_info *info, size_t size, void *data)
{
	struct code *code = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = (uintptr_t)code->work - info->dlpi_addr - p->p_vaddr;

		if (p->p_type != PT_LOAD || at >= p->p_memsz)
			continue;
		code->page = (off_t)((at + p->p_offset) & ~(uintptr_t)(PAGE - 1));
		code->within = (at + p->p_offset) % PAGE;
		return 1;
	}
	return 0;
}

static struct code load(const char *path, const char *function, int flags)
{
	struct code code = {.fd = open(path, flags | O_CLOEXEC)};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (code.fd < 0 || !library || !(code.work = (work_function *)dlsym(library, function)))
		die(path);
	if (!dl_iterate_phdr(find_offset, &code))
		die("program headers");
	return code;
}

static void change_file(const struct code *code, int cut, long at)
{
	static unsigned char garbage[256 * 1024];

	if (cut) {
		if (ftruncate(code->fd, at))
			die("ftruncate");
		return;
	}
	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (unsigned char)(i * 2654435761u >> 11);
	if (pwrite(code->fd, garbage, sizeof(garbage), at) != (ssize_t)sizeof(garbage))
		die("pwrite");
}

static void map_page(char *place, const struct code *code)
{
	if (mmap(place, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, code->fd, code->page) != place)
		die("mmap");
}

static char *reserve(size_t pages)
{
	char *place = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED)
		die("mmap");
	return place;
}

static void many(const char *path, long ms, size_t count)
{
	struct code code = load(path, "library_work_a", O_RDONLY);
	char *place = reserve(count);

	for (size_t i = 0; i < count; i++)
		map_page(place + i * PAGE, &code);
	call_outer((work_function *)(place + (count - 3) * PAGE + code.within), ms);
}

static void switch_libraries(const char *path_a, const char *path_b, long ms)
{
	struct code a = load(path_a, "library_work_a", O_RDONLY), b = load(path_b, "library_work_b", O_RDONLY);
	char *place = reserve(1);
	int64_t end = cpu_ns() + ms * 1000000;

	in_a = (work_function *)(place + a.within);
	in_b = (work_function *)(place + b.within);
	while (cpu_ns() < end) {
		map_page(place, &a);
		during_a(300000);
		map_page(place, &b);
		during_b(100000);
	}
}

static int find_last(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			*(uintptr_t *)data = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_filesz - PAGE;
	return 1;	/* stops: the first object is the program itself */
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	long ms = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "burn")) {
		call_outer(burn_here, ms);
	} else if (!strcmp(mode, "far")) {
		uintptr_t last = 0;

		dl_iterate_phdr(find_last, &last);
		call_outer(burn_here, ms);
		call_outer((work_function *)last, ms);
	} else if (argc >= 5 && (!strcmp(mode, "cut") || !strcmp(mode, "garble"))) {
		struct code code = load(argv[3], "library_work_a", O_RDWR);

		if (argc > 5)
			call_outer(code.work, atol(argv[5]));
		change_file(&code, !strcmp(mode, "cut"), atol(argv[4]));
		call_outer(code.work, ms);
	} else if (argc == 5 && !strcmp(mode, "many")) {
		many(argv[3], ms, strtoul(argv[4], NULL, 10));
	} else if (argc == 5 && !strcmp(mode, "switch")) {
		switch_libraries(argv[3], argv[4], ms);
	} else {
		return 2;
	}
	_exit(0);	/* runs no exit code of libraries, because their files may be damaged */
}
