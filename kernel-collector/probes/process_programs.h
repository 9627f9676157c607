#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "bpf/include/process_events.h"

struct bpf_link;
struct bpf_object;
struct ring_buffer;

namespace tributary {

// The BPF programs that report process events (bpf/process_events.bpf.h), and their ring. The programs run from Attach
// to Stop. Use it on one thread.
class ProcessPrograms {
 public:
  // Call it before the object is loaded. Sets the size of the ring, a power of two and whole pages. If `ring_bytes` is
  // 0, the programs are not loaded.
  static absl::Status Configure(bpf_object* object, uint32_t ring_bytes);
  // Attaches the programs of a loaded object, which is borrowed. Needs CAP_PERFMON.
  static absl::StatusOr<std::unique_ptr<ProcessPrograms>> Attach(bpf_object* object);
  ~ProcessPrograms();
  ProcessPrograms(const ProcessPrograms&) = delete;
  ProcessPrograms& operator=(const ProcessPrograms&) = delete;

  // Detaches the programs. The records in the ring stay readable.
  void Stop();
  // Passes every record that was in the ring when the call began to `visit`. Records of one CPU are nearly in order of
  // time: an interrupt can put its record before the record of the program that it interrupted.
  void Drain(const std::function<void(const trib_process_event&)>& visit);
  // Passes one record of kind TRIB_EVENT_RUNNING for every process that runs now, except kernel threads. Call it
  // once. It needs no capability.
  absl::Status ListRunning(const std::function<void(const trib_process_event&)>& visit);
  // The number of malformed records. A malformed record counts as an event.
  uint64_t bad_records() const { return bad_records_; }
  // How often the kernel did not run one of the programs, because the program already ran on that CPU. Each time, an
  // event may be missing: at the exit of a thread that is not the last of its process, there was none. Costs a system
  // call for each program.
  uint64_t ReadMissed() const;
  // Returns a descriptor that becomes readable when more than a quarter of the ring is filled.
  int wakeup_fd() const;

 private:
  ProcessPrograms() = default;
  static int OnRecord(void* context, void* data, size_t size);

  ring_buffer* ring_ = nullptr;   // owned
  std::vector<bpf_link*> links_;  // owned
  std::vector<int> reporters_;    // the programs that report events; borrowed from the object
  Fd list_;                       // the list of processes
  size_t ring_bytes_ = 0;
  const std::function<void(const trib_process_event&)>* visit_ = nullptr;  // borrowed during Drain
  size_t drained_bytes_ = 0;
  uint64_t bad_records_ = 0;
};

}  // namespace tributary
