/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_KERNEL_TYPES_H
#define TRIBUTARY_BPF_KERNEL_TYPES_H

/*
 * The kernel's types, with only the fields that our programs read. When the object is loaded, CO-RE finds each field by
 * its name in the running kernel's BTF. So only the names and types of fields matter here, not their order or offsets.
 */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	__u64 id;	/* the inode number of the cgroup's folder */
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];	/* the real array has the kernel's CGROUP_SUBSYS_COUNT elements */
	struct cgroup *dfl_cgrp;
};

struct super_block {
	__u32 s_dev;	/* dev_t */
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
};

struct file {
	struct inode *f_inode;
};

struct mm_struct {
	unsigned long start_stack;
	struct file *exe_file;
};

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
};
struct thread_struct {
	unsigned long fsbase;
};
#else
struct pt_regs {
	int syscallno;
};
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#endif

typedef struct {
	int counter;
} atomic_t;
typedef struct {
	unsigned int val;
} kuid_t;
struct cred {
	kuid_t euid;
};
struct sched_entity {
	__u64 sum_exec_runtime;
};

struct signal_struct {
	atomic_t live;	/* threads that have not begun to end */
	int group_exit_code;
	unsigned int flags;
	__u64 utime, stime;	/* of released threads */
	unsigned long long sum_sched_runtime;
	unsigned long maxrss;
	struct mm_struct *oom_mm;	/* set when the OOM killer chose the process */
};

struct task_struct {
	unsigned int flags;
	int exit_code;
	int pid, tgid;
	void *stack;
	struct mm_struct *mm;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct signal_struct *signal;
	const struct cred *cred;
	struct sched_entity se;
	__u64 utime, stime;
	char comm[16];
	__u64 start_boottime;
	__u64 self_exec_id;	/* u64 since 5.7 */
	struct css_set *cgroups;
	struct thread_struct thread;
};

struct seq_file;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* When the object is loaded, CO-RE replaces these values by the kernel's values, which it finds by name. */
enum cgroup_subsys_id {
	cpuset_cgrp_id = 1,
	cpu_cgrp_id,
	cpuacct_cgrp_id,
	memory_cgrp_id,
	pids_cgrp_id,
};

/* include/linux/sched/signal.h */
#define SIGNAL_GROUP_EXIT 0x00000004	/* all threads end with group_exit_code */

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000	/* unchanged since 2.6.32 */
#define PF_IO_WORKER 0x00000010	/* a thread of io_uring; it runs only kernel code, even in a user process */

/*
 * struct bpf_perf_event_data begins with the user-visible registers of the architecture. This layout is user ABI, so
 * CO-RE does not relocate it. It is written here, so that a build for another architecture does not need the headers of
 * that architecture.
 */
#if defined(__TARGET_ARCH_x86)
struct trib_perf_event_context {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	__u64 ip, cs, flags, sp, ss;
};
/* The low two bits are the privilege level. With FRED, the bits from 16 on contain other data. */
#define TRIB_IN_USER(context) (((context)->cs & 3) == 3)
#elif defined(__TARGET_ARCH_arm64)
struct trib_perf_event_context {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
/* The low four bits are the exception level and the selected stack pointer: 0 is EL0. */
#define TRIB_IN_USER(context) (((context)->pstate & 0xf) == 0)
#else
#error "no register layout for this architecture"
#endif

#endif
