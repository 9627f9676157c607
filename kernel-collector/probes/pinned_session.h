#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/fd.h"
#include "bpf/include/session.h"
#include "kernel-collector/probes/kernel_counters.h"
#include "kernel-collector/probes/predecessor.h"

namespace tributary {

// This collector's pins in a bpffs: its counters, and beside them what its sessions have had acknowledged, so that the
// next collector knows what a killed one lost. Both are read at the start, before they are replaced; the pins of a
// collector that still runs are replaced without a word about it, and it then leaves ours alone.
//
// A kill at any instruction leaves one of the two states: what is being set is one system call, and new pins take
// effect one after the other by renaming, with the earlier collectors' sums in the first of them. One thread; default
// constructed, or where there is no bpffs to write to, it pins nothing, and says so once.
class PinnedSession {
 public:
  struct Options {
    std::string folder;  // made when missing, in a bpffs; "" pins nothing
    std::string proc_root = "/proc";
    // The owner as /proc names it; 0 = this process. For tests.
    Pid pid;
  };
  static constexpr size_t kSlots = TRIB_SESSION_SHARES_MAX;

  PinnedSession() = default;
  // `counters_fd` is the map that `counters` reads; borrowed during the call.
  PinnedSession(Options options, int counters_fd, std::shared_ptr<const KernelCounters> counters);
  ~PinnedSession();  // Finish, with `undelivered` when anything was captured
  PinnedSession(const PinnedSession&) = delete;
  PinnedSession& operator=(const PinnedSession&) = delete;

  bool pinned() const { return map_.valid(); }

  // Earlier collectors whose end no reducer has been told yet, until ForgetPredecessor.
  const std::optional<Predecessor>& predecessor() const { return predecessor_; }
  // What there was to tell of it is durable at a reducer. `handed_on`: samples and losses that it captured and this
  // collector's sessions have told: should this one be killed, they are part of what its sessions answer for.
  void ForgetPredecessor(const SampleCounts& handed_on);

  // A session in one of kSlots slots, how many samples and losses its acknowledged batches have told so far, and
  // whether anything was sent in it (before it is: it may have been stored). Called with every acknowledgement: one
  // system call, about 1 µs.
  void Set(size_t slot, const Predecessor::Share& share, bool asked);

  // Sampling has ended. Everything captured was delivered or is in the spool: the pins go. Else, or while a predecessor
  // was not told, they stay for the next collector. Later calls of any method do nothing.
  void Finish(bool undelivered);

 private:
  absl::Status Pin(const Options& options, int counters_fd);
  void ReadEarlier(const Options& options);
  void Write();
  std::string CountersPath() const { return folder_ + "/counters"; }
  std::string SessionPath() const { return folder_ + "/session"; }

  std::string folder_;
  std::shared_ptr<const KernelCounters> counters_;
  Fd map_;  // trib_session; not valid: nothing is pinned, or Finish was called
  trib_session record_ = {};
  std::optional<Predecessor> predecessor_;
};

}  // namespace tributary
