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

// Which generated code (BPF programs, trampolines) was where in the kernel, and when: addresses are used again. Follows
// events, in order of time; what was there before the first one, or went by unheard, comes from kallsyms. Each is a
// CodeFile of its own whose identity is its name: a BPF program's holds a hash of its instructions, and so it is one
// executable on all nodes of a fleet. Loop thread only.
class GeneratedCodeTable {
 public:
  static constexpr size_t kLiveMax = 16'384;  // about 600 bytes each; code over it is not followed, but counted
  static constexpr size_t kPastMax = 1'024;
  static constexpr size_t kNameBytesMax = 512;           // the kernel's own limit
  static constexpr int64_t kGraceNs = 5 * kNsPerSecond;  // samples of code that is gone may still be in hand

  explicit GeneratedCodeTable(Metrics& metrics);

  struct Code {
    uint64_t begin = 0, end = 0;
    std::string_view owner, name;  // as of GeneratedCode
  };
  void Add(const Code& code, MonotonicNs time);
  // It may run for a moment more: until other code takes its place, or kGraceNs are over, the addresses are its own.
  void Remove(const Code& code, MonotonicNs time);
  // Events were lost: what is here may be gone, until Merge has put it right.
  void NoteLoss() { unsure_ = true; }
  // All that kallsyms listed, read at `read_at` or later. Events up to now must have been fed.
  void Merge(std::span<const GeneratedCode> listed, MonotonicNs read_at);
  void DropOld(MonotonicNs now);

  struct Found {
    CodeFilePtr file;
    uint64_t offset = 0;
    bool unsure = false;  // events were lost: a Merge has yet to say whether it is still this
  };
  // What was at `address` at that time.
  std::optional<Found> Find(uint64_t address, MonotonicNs time) const;

  size_t size() const { return live_.size(); }

 private:
  struct Entry {
    uint64_t begin = 0, end = 0;
    bool end_known = false;  // from an event; kallsyms only knows where the next begins
    MonotonicNs from, gone;  // gone 0: still there
    CodeFilePtr file;
    uint64_t merged = 0;  // the last Merge that listed it
    bool Covers(uint64_t address, MonotonicNs time) const {
      return begin <= address && address < end && !(time < from);
    }
  };
  using Live = std::map<uint64_t, Entry>;

  // Since `time`, as far as is known: what is in the way is past from then on.
  void Insert(Entry entry, MonotonicNs time);
  void Retire(Live::iterator it, MonotonicNs time);
  // The first entry that ends behind `begin`.
  Live::iterator FirstBehind(uint64_t begin);

  Live live_;               // by begin, never overlapping
  std::deque<Entry> past_;  // other code has taken their place, at `gone`; the newest last
  bool unsure_ = false;
  uint64_t merges_ = 0;
  MonotonicNs merged_at_;  // when what the last Merge took was read
  Counter& refused_;
};

}  // namespace tributary
