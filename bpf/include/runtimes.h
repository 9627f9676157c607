/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_RUNTIMES_H
#define TRIBUTARY_BPF_RUNTIMES_H

/*
 * Frames of language runtimes whose interpreter keeps its own list of frames, beside the machine's stack. The BPF
 * program reads this list when it takes a sample, and adds it to the record as a chain. The collector puts the frames
 * of the chain between the native frames: the interpreter's loop runs one segment of the chain in each of its native
 * frames. A BPF source must define the types __u8 to __u64 before it includes this header.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

enum trib_runtime_kind {
	TRIB_RUNTIME_NONE = 0,
	TRIB_RUNTIME_PYTHON,	/* CPython */
	TRIB_RUNTIME_KIND_COUNT,
};

#define TRIB_RUNTIMES_MAX 256	/* elements of the map trib_runtimes; number 0 is not used */
#define TRIB_PROCESS_RUNTIMES_MAX 2	/* runtimes of one process that the BPF program follows */

/*
 * A chain in a record: one word as header, then two words for each frame, the innermost frame first.
 *   header   bits 0..15 number in trib_runtimes, 16..31 number of frames, 32..39 enum trib_chain_end
 *   word 1   address of the code object, below 2^56; TRIB_CHAIN_ENTRY: the outermost frame of its segment
 *   word 2   low half: position in the code, in bytes from its first instruction, signed (-2: before the first
 *            instruction); high half: check
 * A code object at address 0 with TRIB_CHAIN_ENTRY stands for a segment without frames: the interpreter's loop has
 * just ended its last frame.
 * The check is a hash over fields of the code object that differ between code objects: see trib_python.check_first. The
 * collector computes it again after it has read the object. If the hashes differ, the object is another one.
 */
#define TRIB_CHAIN_FRAMES_MAX 512
#define TRIB_CHAIN_ENTRY (1ull << 63)
#define TRIB_CHAIN_HEADER(runtime, frames, end) ((__u64)(runtime) | (__u64)(frames) << 16 | (__u64)(end) << 32)

enum trib_chain_end {
	TRIB_CHAIN_COMPLETE = 0,	/* the last frame has no caller */
	TRIB_CHAIN_DEPTH,	/* the record has no room for more frames, or TRIB_CHAIN_FRAMES_MAX frames were read */
	TRIB_CHAIN_UNREADABLE,	/* a frame or a code object was paged out, or a link is invalid */
	TRIB_CHAIN_END_COUNT,
};

/*
 * The counters of chains: a per-CPU array with one slot for each context, runtime kind and counter. The first counters
 * are the chains by their enum trib_chain_end. The counters TRIB_CHAIN_BAD_… say why chains ended with
 * TRIB_CHAIN_UNREADABLE: their sum is the number of these chains.
 */
enum trib_chain_counter {
	TRIB_CHAIN_NO_STATE = TRIB_CHAIN_END_COUNT,	/* samples without a chain: no pthread key has a thread state */
	TRIB_CHAIN_NO_KEYS,	/* samples without a chain: the thread's pthread keys were not found */
	TRIB_CHAIN_BAD_STATE,	/* the thread state was paged out */
	TRIB_CHAIN_BAD_FRAME,	/* a frame was paged out, or its address is invalid */
	TRIB_CHAIN_BAD_CODE,	/* the same for a code object */
	TRIB_CHAIN_BAD_NAME,	/* the same for the name of a code object */
	TRIB_CHAIN_COUNTER_COUNT,
};
#define TRIB_CHAIN_COUNTER_SLOT(context, kind, counter) \
	(((context) * TRIB_RUNTIME_KIND_COUNT + (kind)) * TRIB_CHAIN_COUNTER_COUNT + (counter))
#define TRIB_CHAIN_COUNTER_SLOTS(contexts) TRIB_CHAIN_COUNTER_SLOT(contexts, 0, 0)

/* In which frames a segment of the chain ends, which is where the interpreter's loop was entered. */
enum trib_python_entry {
	TRIB_PYTHON_ENTRY_EACH = 0,	/* <= 3.10: every frame has its own native frame */
	TRIB_PYTHON_ENTRY_FLAG,	/* 3.11: the byte at frame_owner is not 0 */
	TRIB_PYTHON_ENTRY_OWNER,	/* >= 3.12: a frame whose byte at frame_owner is >= 3 is no Python frame: it separates segments */
};

/*
 * Layout of CPython's structures in one build of the interpreter. Offsets and sizes are in bytes.
 *
 * The thread state is found without symbols: a pthread key holds it (autoTSSkey). So one of the thread's words of
 * thread-specific data points to a structure whose field thread_id equals the thread's pthread_self().
 */
struct trib_python {
	/* PyThreadState */
	__u16 thread_id;	/* offset of the pthread_self() value */
	__u16 frame;	/* offset of the pointer to the innermost frame, or to the _PyCFrame */
	__u16 cframe_frame;	/* 3.11, 3.12: offset of the innermost frame in _PyCFrame */
	__u8 has_cframe;
	__u8 entry;	/* enum trib_python_entry */
	/* PyFrameObject or _PyInterpreterFrame */
	__u16 frame_bytes;	/* how much of a frame to read; at most 128, and all offsets lie within it */
	__u16 frame_back, frame_code, frame_instruction, frame_owner;
	__u8 instruction_is_pointer;	/* 1: a pointer into the code object; 0: an int */
	__u8 instruction_shift;	/* if it is an int: log2 of the bytes of its unit (3.10: 1) */
	__u8 code_tag_mask;	/* low bits of the pointer to the code object that are tags (3.14: _PyStackRef) */
	__u8 musl;	/* 1: thread-specific data as in musl; 0: as in glibc */
	/* PyCodeObject */
	__u16 check_first, check_bytes;	/* the fields of the check; bytes: a multiple of 8, at most 96 */
	__u16 code_name;	/* offset of co_name, within the fields of the check */
	__u16 name_hash;	/* offset of the hash in a str object; the check includes this word of co_name */
	__u16 code_instructions;	/* offset of the first instruction (co_code_adaptive) */
	/*
	 * Free-threaded 3.14: threads run copies of the code. code_copies is the offset of the pointer to the array of
	 * copies {s64 count, pointers} (co_tlbc), 0: there are no copies. frame_copy is the offset of the frame's index
	 * in this array, an s32 (tlbc_index). The position is then counted from the copy's begin.
	 */
	__u16 code_copies, frame_copy;
	/*
	 * 3.9 to 3.11, if runtime_current is not 0: the offset of the pointer to _PyRuntime in PyInterpreterState, and
	 * the offset of the state that has the lock (gilstate.tstate_current) in _PyRuntime. If the current thread has
	 * the lock, its state there is used like the one of tls_state.
	 */
	__u16 interpreter_runtime, runtime_current;
	/*
	 * If not 0: offset from the thread pointer to the variable _Py_tss_tstate (3.12+), when the variable has a fixed
	 * offset. Its thread state, if it is not null and not the one of the pthread key, is walked first: it is the
	 * state of the subinterpreter that runs.
	 */
	__s64 tls_state;
};

struct trib_runtime {
	__u32 kind;	/* enum trib_runtime_kind; 0: the element is not used */
	__u32 padding;
	struct trib_python python;
};

/*
 * The executable of a process, as the BPF program sees it (task_struct.mm.exe_file). The map trib_interpreters has the
 * runtimes of processes with this executable, so that the first samples of a process have chains too, before the
 * collector has published the process. The value is as trib_process.runtimes.
 */
struct trib_executable_key {
	__u64 inode;
	__u32 device;	/* the kernel's dev_t: major << 20 | minor */
	__u32 padding;
};
#define TRIB_INTERPRETERS_MAX 1024

/* trib_process.runtimes: two numbers in trib_runtimes; 0: none. */
#define TRIB_PROCESS_RUNTIMES(first, second) ((__u32)(first) | (__u32)(second) << 16)

/*
 * The hash of a chain's check: start with 0, add each word of the fields in order and then the hash of the name, and
 * use the upper half of the result.
 */
#define TRIB_CHECK_ADD(hash, word) (((hash) ^ (word)) * 0x9e3779b97f4a7c15ull + ((hash) >> 29))

#ifdef __cplusplus
static_assert(sizeof(struct trib_python) == 48 && sizeof(struct trib_runtime) == 56);
#else
_Static_assert(sizeof(struct trib_python) == 48 && sizeof(struct trib_runtime) == 56, "runtimes.h");
#endif

#endif
