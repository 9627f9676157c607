/*
 * A server in C with an embedded Python. It loads libpython at run time, so it needs no headers of it.
 *   embedded MODE SECONDS LIBRARY HOME [LIBRARY HOME]
 * Python's outer() calls this program's between(), which runs more Python, busy in inner():
 *   plain           in the same interpreter
 *   subinterpreter  in a new interpreter of the same library
 *   two             in the interpreter of the second library
 *   map             in the same interpreter, called by generated code that /tmp/perf-PID.map names
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct method { const char *name; void *function; int flags; const char *doc; };

struct python {
	void (*initialize)(int);
	int (*run)(const char *);
	void *(*add_module)(const char *);
	int (*set_attribute)(void *, const char *, void *);
	void *(*new_function)(struct method *, void *, void *);
	void *(*new_interpreter)(void);
	void (*end_interpreter)(void *);
	void *(*swap)(void *);
	long *none;
};

static struct python first, second;
static const char *mode, *seconds;

static void *find(void *library, const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	return symbol;
}

static void load(struct python *p, const char *path, const char *home)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(3);
	}
	p->initialize = find(library, "Py_InitializeEx");
	p->run = find(library, "PyRun_SimpleString");
	p->add_module = find(library, "PyImport_AddModule");
	p->set_attribute = find(library, "PyObject_SetAttrString");
	p->new_function = find(library, "PyCFunction_NewEx");
	p->new_interpreter = find(library, "Py_NewInterpreter");
	p->end_interpreter = find(library, "Py_EndInterpreter");
	p->swap = find(library, "PyThreadState_Swap");
	p->none = find(library, "_Py_NoneStruct");
	setenv("PYTHONHOME", home, 1);
	p->initialize(0);
}

static __attribute__((noipa)) int run_inner(void)
{
	struct python *p = strcmp(mode, "two") ? &first : &second;
	char text[400];

	snprintf(text, sizeof(text), "import time\n"
		 "def inner(end):\n"
		 "    while time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) < end:\n"
		 "        for _ in range(20000): pass\n"
		 "inner(time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) + %s)\n", seconds);
	return p->run(text);
}

static __attribute__((noipa)) int run_in_new_interpreter(void)
{
	void *own = first.swap(NULL), *new;
	int result;

	first.swap(own);
	new = first.new_interpreter();
	result = run_inner();
	first.end_interpreter(new);
	first.swap(own);
	return result;
}

/* Calls the function through generated code: push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret. */
static __attribute__((noipa)) int run_generated(int (*function)(void))
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	unsigned char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char name[64];
	FILE *map;

	memcpy(memory, code, sizeof(code));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	map = fopen(name, "w");
	fprintf(map, "%lx %zx generated_caller\n", (unsigned long)memory, sizeof(code));
	fclose(map);
	return ((int (*)(int (*)(void)))memory)(function);
}

static __attribute__((noipa)) void *between(void *self, void *arguments)
{
	int result;

	(void)self, (void)arguments;
	if (!strcmp(mode, "subinterpreter"))
		result = run_in_new_interpreter();
	else if (!strcmp(mode, "map"))
		result = run_generated(run_inner);
	else
		result = run_inner();
	if (result)
		exit(4);
	++*first.none;
	return first.none;
}

static __attribute__((noipa)) int handle_request(void)
{
	static struct method method = { "between", between, 4, NULL };

	first.set_attribute(first.add_module("__main__"), "between", first.new_function(&method, NULL, NULL));
	return first.run("def outer(function):\n"
			 "    function()\n"
			 "outer(between)\n");
}

int main(int argc, char **argv)
{
	if (argc != 5 && argc != 7)
		return 2;
	mode = argv[1];
	seconds = argv[2];
	if (argc == 7)
		load(&second, argv[5], argv[6]);
	load(&first, argv[3], argv[4]);
	int result = handle_request();
	printf("%d\n", getpid());
	return result;
}
