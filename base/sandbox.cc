#include "base/sandbox.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <vector>

#include "base/capabilities.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr uint32_t kNobody = 65534;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "no seccomp architecture"
#endif

// System calls for reading, memory, the socket and exit, as malloc, pread and clock_gettime use them. Only newfstatat
// takes a file name.
constexpr int kAllowed[] = {
    SYS_read,        SYS_pread64,     SYS_readv,      SYS_write,        SYS_recvmsg,       SYS_recvfrom, SYS_sendto,
    SYS_sendmsg,     SYS_ppoll,       SYS_close,      SYS_lseek,        SYS_fstat,         SYS_mmap,     SYS_munmap,
    SYS_mremap,      SYS_mprotect,    SYS_madvise,    SYS_brk,          SYS_clock_gettime, SYS_futex,    SYS_getrandom,
    SYS_exit,        SYS_exit_group,  SYS_getpid,     SYS_rt_sigreturn, SYS_newfstatat,
#ifdef SYS_poll
    SYS_poll,
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    SYS_pipe2,  // sanitizers use it to find out whether memory is readable
    SYS_sched_yield, SYS_sigaltstack, SYS_readlinkat,
#ifdef SYS_readlink
    SYS_readlink,
#endif
#endif
};

std::vector<sock_filter> Filter() {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (int call : kAllowed) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  return filter;
}

absl::Status LimitResources(const SandboxLimits& limits) {
  const struct {
    int resource;
    rlim_t limit;
  } each[] = {{RLIMIT_AS, limits.memory_bytes_max},
              {RLIMIT_CORE, 0},
              {RLIMIT_FSIZE, limits.file_bytes_max},
              {RLIMIT_CPU, limits.cpu_seconds_max == 0 ? RLIM_INFINITY : limits.cpu_seconds_max},
              {RLIMIT_NOFILE, 64}};
  for (const auto& [resource, limit] : each) {
    rlimit value = {limit, limit};
    if (setrlimit(static_cast<__rlimit_resource_t>(resource), &value) != 0) {
      return ErrnoStatus("limit", "the parser process", errno);
    }
  }
  return absl::OkStatus();
}

// Root without CAP_SETUID keeps its user id, for example in a hardened container, and in programs that have dropped
// their capabilities. The filter still confines the process.
//
// The system calls are made directly: glibc's functions would also change the threads that a sanitizer started, and
// abort if the outcome differs between threads.
absl::Status BecomeNobody() {
  if (geteuid() != 0) return absl::OkStatus();
  if ((syscall(SYS_setgroups, 0, nullptr) != 0 || syscall(SYS_setresgid, kNobody, kNobody, kNobody) != 0 ||
       syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) &&
      errno != EPERM) {
    return ErrnoStatus("give up root in", "the parser process", errno);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status EnterSandbox(const SandboxLimits& limits) {
  SandboxLimits set = limits;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  set.memory_bytes_max = RLIM_INFINITY;  // sanitizers reserve terabytes of addresses at start
#endif
  if (prctl(PR_SET_NAME, set.name) != 0) return ErrnoStatus("name", "the parser process", errno);
  RETURN_IF_ERROR(LimitResources(set));
  RETURN_IF_ERROR(BecomeNobody());
  RETURN_IF_ERROR(DropAllCapabilities());
  std::vector<sock_filter> filter = Filter();
  sock_fprog program = {.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    return ErrnoStatus("set seccomp filter of", "the parser process", errno);
  }
  return absl::OkStatus();
}

}  // namespace tributary
