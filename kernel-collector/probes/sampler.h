#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "bpf/include/config.h"
#include "kernel-collector/probes/chain_counters.h"
#include "kernel-collector/probes/kernel_counters.h"
#include "kernel-collector/probes/kernel_unwind_maps.h"
#include "kernel-collector/probes/pinned_session.h"
#include "kernel-collector/probes/process_programs.h"
#include "kernel-collector/probes/ring_consumer.h"
#include "kernel-collector/probes/sample_record.h"

struct bpf_object;

namespace tributary {

// The BPF program that takes samples, its rings, its counters, and the maps for its stack walk. The caller owns the
// perf events that run the program. Use it on one thread; UnwindMaps documents the exceptions.
class Sampler {
 public:
  struct Options {
    trib_config config = {};
    uint64_t period_ns = 0;
    uint32_t ring_bytes = 128 << 10;    // ring_bytes and copies_bytes: a power of two, whole pages
    uint32_t copies_bytes = 256 << 10;  // at least one trib_copy of the largest tier
    uint32_t events_bytes = 0;          // size of the ring of process events; 0: no process events
    uint32_t events_leave_out = 0;      // ProcessPrograms::Attach's `leave_out`
    uint32_t contexts = 1;              // ProbeOptions::contexts
    std::string pin_folder;             // PinnedSession's folder, in a bpffs; "" pins nothing
    std::string_view object;            // ELF; borrowed during Load
  };

  // Loads the BPF program. Internal, PermissionDenied, Unimplemented: the message is one sentence. If the verifier
  // refused the program, it contains the end of the verifier's log.
  static absl::StatusOr<std::unique_ptr<Sampler>> Load(const Options& options);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  int program_fd() const;
  // Passes to `visit` every record that was in the rings when the call began: first samples without a copy of the
  // stack, then samples with a copy. From each ring, reads at most as many bytes as the ring can contain. Returns the
  // number of well-formed records.
  size_t Drain(const std::function<void(const SampleRecord&)>& visit);

  // The programs that report process events; nullptr without process events.
  ProcessPrograms* process_programs() { return process_programs_.get(); }
  // Sets the sampling period that the BPF program writes into samples from now on.
  void SetPeriod(uint64_t period_ns);
  // Return descriptors that wake an epoll. The ring of stack copies does so when more than a quarter of it is full.
  // Both rings do so for a chain of a process that has just started (has_young_chain in bpf/chains.bpf.h).
  int copies_fd() const { return copies_fd_; }
  int samples_fd() const { return samples_fd_; }
  UnwindMaps& unwind_maps() { return *unwind_maps_; }

  PinnedSession& pinned_session() { return *pinned_session_; }

  // The results of counters, chain_counters and bad_record_counter may outlive the sampler: metrics are read at any
  // time, from any thread.
  std::shared_ptr<const KernelCounters> counters() const { return counters_; }
  std::shared_ptr<const ChainCounters> chain_counters() const { return chain_counters_; }
  // The number of captured samples with a malformed record, by the type in the record's header.
  const SampleCounts& bad_records() const { return bad_records_; }
  std::shared_ptr<const Counter> bad_record_counter() const { return bad_record_counter_; }

 private:
  Sampler() = default;
  absl::Status Configure(const Options& options);
  absl::Status OpenMaps();
  absl::StatusOr<int> OpenRing(const char* name, std::optional<MappedRing>* ring);
  void CountBad(std::span<const uint8_t> bytes);

  bpf_object* object_ = nullptr;  // owned; closed in the destructor
  std::optional<MappedRing> samples_, copies_;
  int samples_fd_ = -1, copies_fd_ = -1, counters_fd_ = -1;  // borrowed from object_
  std::unique_ptr<UnwindMaps> unwind_maps_;
  std::optional<SharedArray> control_;  // trib_control
  std::shared_ptr<const KernelCounters> counters_;
  std::shared_ptr<const ChainCounters> chain_counters_;
  SampleCounts bad_records_;
  std::shared_ptr<Counter> bad_record_counter_ = std::make_shared<Counter>();
  std::unique_ptr<PinnedSession> pinned_session_;
  std::unique_ptr<ProcessPrograms> process_programs_;
};

}  // namespace tributary
