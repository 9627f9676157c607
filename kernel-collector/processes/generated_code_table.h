#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/processes/code_file.h"
#include "symbols/kernel_layout.h"

namespace tributary {

// Records which generated code (BPF programs, trampolines) was at a kernel address at which time, because addresses are
// reused. The caller must apply events in order of time. If code was loaded before the first event, or if its event was
// lost, the code comes from kallsyms (Merge). Each program or trampoline has its own CodeFile, which is identified by
// the code's name. A BPF program's name contains a hash of its instructions, so the same program is the same executable
// on all nodes. Loop thread only.
class GeneratedCodeTable {
 public:
  static constexpr size_t kLiveMax = 16'384;  // about 600 bytes each; code above the limit is not followed, but counted
  static constexpr size_t kPastMax = 1'024;
  static constexpr size_t kNameBytesMax = 512;           // the kernel's own limit
  static constexpr int64_t kGraceNs = 5 * kNsPerSecond;  // samples of removed code may still be in processing

  explicit GeneratedCodeTable(Metrics& metrics);

  struct Code {
    uint64_t begin = 0, end = 0;
    std::string_view owner, name;  // as in GeneratedCode
  };
  void Add(const Code& code, MonotonicNs time);
  // Marks the code as removed at `time`. Removed code may still run for a short time. Find returns it until other code
  // is at its addresses, or until kGraceNs have passed.
  void Remove(const Code& code, MonotonicNs time);
  // Call it after events were lost: code in the table may have been removed. The next Merge corrects the table.
  void NoteLoss() { unsure_ = true; }
  // Corrects the table by `listed`: all generated code in kallsyms, read at `read_at` or later. The caller must first
  // apply all events that have arrived.
  void Merge(std::span<const GeneratedCode> listed, MonotonicNs read_at);
  void DropOld(MonotonicNs now);

  struct Found {
    CodeFilePtr file;
    uint64_t offset = 0;
    bool unsure = false;  // events were lost: the next Merge will confirm or correct the entry
  };
  // Returns the code that was at `address` at `time`.
  std::optional<Found> Find(uint64_t address, MonotonicNs time) const;

  size_t size() const { return live_.size(); }

 private:
  struct Entry {
    uint64_t begin = 0, end = 0;
    bool end_known = false;  // false: `end` may be too high, because kallsyms only shows where the next code begins
    MonotonicNs from, gone;  // gone 0: still loaded
    CodeFilePtr file;
    uint64_t merged = 0;  // number of the last Merge that listed the code
    bool Covers(uint64_t address, MonotonicNs time) const {
      return begin <= address && address < end && !(time < from);
    }
  };
  using Live = std::map<uint64_t, Entry>;

  // Adds `entry`. Other code at the same addresses is moved to `past_`, with `time` as the time of its removal.
  void Insert(Entry entry, MonotonicNs time);
  void Retire(Live::iterator it, MonotonicNs time);
  // Returns the first entry that ends after `begin`.
  Live::iterator FirstBehind(uint64_t begin);

  Live live_;               // by begin, never overlapping
  std::deque<Entry> past_;  // replaced by other code at time `gone`; the newest last
  bool unsure_ = false;
  uint64_t merges_ = 0;
  MonotonicNs merged_at_;  // when the last Merge's list was read
  Counter& refused_;
};

}  // namespace tributary
