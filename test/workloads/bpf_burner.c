/*
 * A process with its own BPF program. The process loads the BPF program at the start and burns CPU time in it on
 * request. The BPF program is unloaded when the process ends.
 *
 *   bpf_burner NAME     prints the program's name in kallsyms; each line of its input is the number of seconds to burn
 *
 * The BPF program has six instructions. BPF_PROG_TEST_RUN runs it again and again. This needs root, but no library and
 * nothing to attach to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 4000 /* few enough that the verifier walks through them in a moment */
#define RUNS 1000   /* per system call */

static const struct bpf_insn kProgram[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = ROUNDS},
	{.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1},
	{.code = BPF_ALU64 | BPF_SUB | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
	{.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_1, .off = -3, .imm = 0},
	{.code = BPF_JMP | BPF_EXIT},
};

static int bpf(int command, union bpf_attr *attr)
{
	long result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	if (result < 0) {
		fprintf(stderr, "bpf(%d): %s\n", command, strerror(errno));
		exit(1);
	}
	return (int)result;
}

static int load(const char *name)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insn_cnt = sizeof(kProgram) / sizeof(kProgram[0]),
		.insns = (uint64_t)kProgram,
		.license = (uint64_t) "GPL",
	};

	strncpy(attr.prog_name, name, sizeof(attr.prog_name) - 1);
	return bpf(BPF_PROG_LOAD, &attr);
}

static void print_symbol(int program)
{
	struct bpf_prog_info info = {};
	union bpf_attr attr = {.info = {.bpf_fd = (uint32_t)program, .info_len = sizeof(info), .info = (uint64_t)&info}};

	bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
	printf("bpf_prog_");
	for (size_t i = 0; i < sizeof(info.tag); i++)
		printf("%02x", info.tag[i]);
	printf("_%s\n", info.name);
	fflush(stdout);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void burn(int program, double seconds)
{
	static const char packet[64];
	double until = now() + seconds;

	while (now() < until) {
		union bpf_attr attr = {.test = {.prog_fd = (uint32_t)program,
						.data_size_in = sizeof(packet),
						.data_in = (uint64_t)packet,
						.repeat = RUNS}};

		bpf(BPF_PROG_TEST_RUN, &attr);
	}
}

int main(int argc, char **argv)
{
	char line[32];
	/* Before Linux 5.11, BPF programs count as locked memory of root, in whichever process they are loaded. */
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	int program;

	if (argc != 2) {
		fprintf(stderr, "usage: bpf_burner NAME\n");
		return 2;
	}
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	program = load(argv[1]);
	print_symbol(program);
	while (fgets(line, sizeof(line), stdin)) {
		burn(program, atof(line));
		puts("burned");
		fflush(stdout);
	}
	return 0;
}
