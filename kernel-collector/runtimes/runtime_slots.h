#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "bpf/include/runtimes.h"
#include "kernel-collector/probes/unwind_maps.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// Gives the BPF program the layouts of the runtimes in use. Each RuntimeBinary that a published process maps has a
// number, which is its element in the map trib_runtimes. Also tells the BPF program which runtimes to expect in
// processes of an executable that are not published yet (the map trib_interpreters). A number that no published process
// uses stays valid, because the program's next process may need it soon. It is reused only if all numbers are in use.
// Samples with the number may then be on their way, so the number is first withdrawn and then rests for kGraceNs. Loop
// thread only.
class RuntimeSlots {
 public:
  using Number = uint16_t;                                // 0: none
  static constexpr int64_t kGraceNs = 30 * kNsPerSecond;  // more than a sample waits in the collector
  static constexpr size_t kWithdrawnAtOnce = 16;

  RuntimeSlots(UnwindMaps& maps, const Clock& clock, Metrics& metrics);

  // Returns the runtime's number, for a process that is published with it. Returns 0, and counts the refusal, if no
  // number is free: one may be free later. The caller must call Release as many times as Use returned a number.
  Number Use(const RuntimeBinaryPtr& binary);
  // Call it when the BPF program uses the process's data no more.
  void Release(Number number);

  // Returns the runtime that a chain of a sample names; nullptr if the number has none.
  const RuntimeBinaryPtr* Find(uint64_t number);

  // From now on, expects the runtime in all processes of the executable that are not published. Costs a system call if
  // this is new. Of an executable with more than two runtimes, the last two are expected. If there are too many
  // executables, the one that was added first is forgotten.
  void Expect(const trib_executable_key& executable, const RuntimeBinaryPtr& binary);

  size_t size() const { return by_binary_.size(); }

 private:
  enum class State : uint8_t { kFree, kInUse, kWithdrawn };
  struct Slot {
    State state = State::kFree;
    uint32_t users = 0;
    MonotonicNs used_at;  // or when it was withdrawn
    RuntimeBinaryPtr binary;
  };
  using Key = std::pair<uint64_t, uint32_t>;  // inode, device

  Number TakeFree();
  void WithdrawOldest();
  void DropInterpreter(const Key& key);

  UnwindMaps& maps_;
  const Clock& clock_;
  std::vector<Slot> slots_;  // by number
  absl::flat_hash_map<const RuntimeBinary*, Number> by_binary_;
  absl::flat_hash_map<Key, uint32_t> interpreters_;
  std::deque<Key> order_;  // of interpreters_, the oldest first
  Gauge& runtimes_;
  Counter& refused_;
};

}  // namespace tributary
