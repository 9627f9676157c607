#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/types.h"
#include "kernel-collector/processes/function_pool.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// Data that all tables share: the functions, and the number of entries and failures of all tables. Loop thread only.
struct CodeObjectStore {
  explicit CodeObjectStore(Metrics& metrics)
      : functions(metrics),
        entries_gauge(metrics.AddGauge("tributary_collector_code_objects",
                                       "Code objects of language runtimes in the collector's tables, of all "
                                       "processes, with those that could not be read; the limit is 262,144")) {}
  void CountEntries(int64_t entries_more) {
    entries += static_cast<size_t>(entries_more);
    entries_gauge.Add(entries_more);
  }

  FunctionPool functions;
  size_t entries = 0;
  Gauge& entries_gauge;
  absl::flat_hash_set<class CodeObjectTable*> tables;  // each table adds and removes itself
};

// Contains the code objects of one run of a program: (address, check) → function. A check is part of the key, because
// another object may later be at the same address. A forked process has the memory of its parent at that moment. So it
// gets the parent's entries as base layers, which both tables share and which never change; each table adds its own
// entries to a layer of its own. An entry takes about 24 bytes, and so does a failure. Loop thread only.
class CodeObjectTable {
 public:
  static constexpr size_t kEntriesMax = 32'768;  // of one table; see Trim
  static constexpr size_t kBytesMax = 4u << 20;  // of its functions: 20,000 functions of 200 bytes
  static constexpr size_t kFailedSweepAt = 64;   // from here on, failures that have expired are dropped
  static constexpr size_t kFailedMax = 96;       // failures above this limit replace the others
  static constexpr int64_t kRetryNs = kNsPerSecond;

  explicit CodeObjectTable(std::shared_ptr<CodeObjectStore> store);
  ~CodeObjectTable();
  CodeObjectTable(const CodeObjectTable&) = delete;
  CodeObjectTable& operator=(const CodeObjectTable&) = delete;

  // Returns the table of a child that the process has just forked. Costs about 200 ns, and sometimes a merge of layers:
  // layers grow by a factor of two from each to the next, so there are at most about 16.
  std::shared_ptr<CodeObjectTable> Fork();

  // Returns the function of the object, or nullptr. The result is valid until the table changes.
  const PooledFunction* Find(const CodeObject& object);
  // Takes over one reference to the function.
  void Insert(const CodeObject& object, FunctionPool::Number number);

  // The object could not be read at `now`.
  void Fail(const CodeObject& object, MonotonicNs now);
  // Returns true for kRetryNs after Fail: the object should not be tried again yet.
  bool HasFailed(const CodeObject& object, MonotonicNs now) const;
  // Objects that are being read. StartReading returns false if the object is being read already.
  bool StartReading(const CodeObject& object) { return reading_.insert(KeyOf(object)).second; }
  void EndReading(const CodeObject& object) { reading_.erase(KeyOf(object)); }

  // Call it now and then. If the table is too large, drops entries that have not been used for long. Afterwards, the
  // table has at most 1.5 × kEntriesMax entries and 1.5 × kBytesMax bytes.
  void Trim();
  // Drops all entries.
  void Clear();
  size_t size() const;   // number of entries, with those of shared layers
  size_t bytes() const;  // of the functions of these entries
  size_t layers() const { return bases_.size(); }
  // Returns how much the table uses of the limits of all tables, in bytes. A layer that n tables share counts 1/n.
  size_t Weight() const;

  // Set by the user of the table: when a sample last had a frame of a runtime, and a number for the process's
  // container.
  MonotonicNs used_at;
  uint64_t group = 0;
  // Where the process maps its runtimes, as the user of the table last found it.
  struct RuntimePlace {
    RuntimeBinaryPtr binary;
    uint64_t mapping_changes = 0;  // ProcessRun::mapping_changes at that time
    MonotonicNs found_at;
    std::optional<uint64_t> bias;  // nullopt: it is not mapped
  };
  std::array<RuntimePlace, TRIB_PROCESS_RUNTIMES_MAX> places;  // the newest first

 private:
  struct Entry {
    uint64_t address = 0;
    uint32_t check = 0;
    FunctionPool::Number function = 0;
    friend bool operator==(const Entry& a, const Entry& b) { return a.address == b.address && a.check == b.check; }
    template <typename H>
    friend H AbslHashValue(H h, const Entry& e) {
      return H::combine(std::move(h), e.address, e.check);
    }
  };
  static Entry KeyOf(const CodeObject& object) { return {object.address, object.check, 0}; }
  class Layer;

  // Makes the own layer the newest base.
  void Freeze();
  void DropFailed();
  // Returns whether the size is above halves/2 of a limit.
  static bool IsAbove(size_t halves, size_t entries, size_t bytes) {
    return entries > kEntriesMax / 2 * halves || bytes > kBytesMax / 2 * halves;
  }

  std::shared_ptr<CodeObjectStore> store_;
  std::unique_ptr<Layer> own_;
  std::vector<std::shared_ptr<const Layer>> bases_;  // the newest last
  bool promotes_ = false;                            // entries of bases that are used move to the own layer
  absl::flat_hash_map<Entry, MonotonicNs> failed_;
  absl::flat_hash_set<Entry> reading_;
};

}  // namespace tributary
