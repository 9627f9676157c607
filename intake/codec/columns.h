#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/varint.h"
#include "intake/codec/held_nodes.h"
#include "intake/codec/packed_columns.h"

// Code that the batch encoder and the batch decoder share (docs/intake-protocol.md, "Columns").

namespace tributary::intake {

constexpr int64_t kWireTimeUnitNs = 100'000;
// The largest time, in units of kWireTimeUnitNs, that fits into an int64 when it is converted to nanoseconds.
constexpr int64_t kWireTimeMax = INT64_MAX / kWireTimeUnitNs;

// The numbers are part of the wire format: only append new columns.
enum class DefinitionColumn : uint8_t {
  kBefore = 1,
  kEvicted = 2,
  kStringLengths = 3,
  kStringBytes = 4,
  kExecutables = 5,
  kFrameKinds = 6,
  kFrameExecutables = 7,
  kFrameAddresses = 8,
  kChainAttach = 9,
  kChainLengths = 10,
  kNodeFrames = 11,
  kProcesses = 12,
  kThreads = 13,
  kNodeFrameIds = 14,
  kProcessAttributes = 15,
  kFramePositions = 16,
  kFrameNames = 17,
};
constexpr std::array<std::string_view, 18> kDefinitionColumnNames = {
    "",           "before",           "evicted",        "stringLengths",     "stringBytes",    "executables",
    "frameKinds", "frameExecutables", "frameAddresses", "chainAttach",       "chainLengths",   "nodeFrames",
    "processes",  "threads",          "nodeFrameIds",   "processAttributes", "framePositions", "frameNames"};

// The packing of a column must never change. If another packing is needed, add a new column.
constexpr std::array<ColumnPacking, kDefinitionColumnNames.size()> kDefinitionPackings = {{
    {},
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},       // before
    {ColumnPacking::Layout::kRecords, NumberKind::kWide, 2},    // evicted
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},      // stringLengths
    {},                                                         // stringBytes
    {},                                                         // executables
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},        // frameKinds
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},      // frameExecutables
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},       // frameAddresses
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},       // chainAttach
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},      // chainLengths
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},        // nodeFrames
    {ColumnPacking::Layout::kRecords, NumberKind::kSmall, 10},  // processes
    {ColumnPacking::Layout::kRecords, NumberKind::kSmall, 3},   // threads
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},       // nodeFrameIds
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},      // processAttributes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},       // framePositions
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},      // frameNames
}};

enum class SampleColumn : uint8_t {
  kTimes = 1,
  kThreads = 2,
  kNodes = 3,
  kCpus = 4,
  kTypes = 5,
  kEndings = 6,
  kValues = 7,
  kCounts = 8,
  kAttributes = 9,
};
constexpr std::array<std::string_view, 10> kSampleColumnNames = {"",      "times",   "threads", "nodes",  "cpus",
                                                                 "types", "endings", "values",  "counts", "attributes"};
constexpr std::array<ColumnPacking, kSampleColumnNames.size()> kSamplePackings = {{
    {},
    {ColumnPacking::Layout::kNumbers, NumberKind::kExact},  // times
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},  // threads
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},   // nodes
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},    // cpus
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},    // types
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},    // endings
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},   // values
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},   // counts
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},  // attributes
}};

enum class EventColumn : uint8_t {
  kTimes = 1,
  kKinds = 2,
  kProcesses = 3,
  kPids = 4,
  kParents = 5,
  kStarts = 6,
  kUids = 7,
  kNames = 8,
  kPaths = 9,
  kContainers = 10,
  kCgroups = 11,
  kExitCodes = 12,
  kSignals = 13,
  kEndFlags = 14,
  kRunTimes = 15,
  kUserTimes = 16,
  kSystemTimes = 17,
  kPeakBytes = 18,
  kEvents = 19,
  kEnded = 20,
};
constexpr std::array<std::string_view, 21> kEventColumnNames = {
    "",         "times",    "kinds",     "processes",   "pids",      "parents",   "starts",
    "uids",     "names",    "paths",     "containers",  "cgroups",   "exitCodes", "signals",
    "endFlags", "runTimes", "userTimes", "systemTimes", "peakBytes", "events",    "ended"};
constexpr std::array<ColumnPacking, kEventColumnNames.size()> kEventPackings = {{
    {},
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // times
    {ColumnPacking::Layout::kAfter, NumberKind::kSmall},      // kinds
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // processes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // pids
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // parents
    {ColumnPacking::Layout::kRecords, NumberKind::kWide, 2},  // starts
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // uids
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // names
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // paths
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // containers
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // cgroups
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // exitCodes
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // signals
    {ColumnPacking::Layout::kNumbers, NumberKind::kSmall},    // endFlags
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // runTimes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // userTimes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // systemTimes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // peakBytes
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // events
    {ColumnPacking::Layout::kNumbers, NumberKind::kWide},     // ended
}};

// A packed message always has the columns with numbers below these limits, because the first release with packed
// messages knew these columns. Other columns are omitted if they and all columns after them are empty, because older
// readers count every column that they do not know, even an empty column.
constexpr size_t kDefinitionColumnsAlways = 16, kSampleColumnsAlways = 9, kEventColumnsAlways = 21;

// Returns the limit for the size of `packed` bytes after unpacking. Without this limit, a few hostile bytes could make
// a reader unpack millions of bytes, at up to 0.12 µs per byte. Only very uniform columns exceed the limit. The sender
// sends them unpacked.
constexpr size_t UnpackedBytesMax(size_t packed) { return (16u << 10) + 64 * packed; }

// Writes the columns of a message: number, length and bytes of each column that is not empty. The caller must put the
// columns in ascending order of their numbers.
class ColumnWriter {
 public:
  template <typename Column>
  void Put(Column column, std::string bytes) {
    if (bytes.empty()) return;
    const auto number = static_cast<size_t>(column);
    AppendVarint(out_, number);
    AppendVarint(out_, bytes.size());
    out_.append(bytes);
    if (number >= columns_.size()) columns_.resize(number + 1);
    columns_[number] = std::move(bytes);
  }
  const std::string& bytes() const { return out_; }
  // Returns the columns in packed form. Columns with numbers from `always` on are written only up to the last column
  // that is not empty.
  std::string Packed(std::span<const ColumnPacking> packings, size_t always) {
    columns_.resize(std::clamp(columns_.size(), always, packings.size()));
    return PackColumns(packings.first(columns_.size()), columns_);
  }

 private:
  std::string out_;
  std::vector<std::string> columns_;
};

// Reads the columns of a message, which may be hostile. Columns with unknown numbers are skipped and counted.
template <size_t kNames>
class ColumnSet {
 public:
  // Returns false if the column numbers do not ascend, or if a column extends beyond the end of `blob`.
  bool Parse(std::string_view blob, uint32_t* unknown) {
    VarintReader reader(blob);
    for (uint64_t last = 0; !reader.AtEnd();) {
      uint64_t number = 0, length = 0;
      std::string_view bytes;
      if (!reader.Read(&number) || number <= last || !reader.Read(&length) || !reader.ReadBytes(length, &bytes)) {
        return false;
      }
      last = number;
      if (number < kNames) {
        columns_[number] = bytes;
      } else {
        ++*unknown;
      }
    }
    return true;
  }
  // Returns false if the unpacked columns exceed `bytes_max` or UnpackedBytesMax, or if `packed` has bytes after its
  // last column.
  bool Unpack(std::span<const ColumnPacking, kNames> packings, std::string_view packed, size_t bytes_max,
              uint32_t* unknown) {
    if (!UnpackColumns(packings, packed, std::min(bytes_max, UnpackedBytesMax(packed.size())), &unpacked_))
      return false;
    *unknown += unpacked_.unknown;
    std::copy(unpacked_.columns.begin(), unpacked_.columns.end(), columns_.begin());
    return true;
  }
  template <typename Column>
  std::string_view operator[](Column column) const {
    return columns_[static_cast<size_t>(column)];
  }
  // Returns the size of all unpacked columns, also after an Unpack that failed; 0 if Unpack was not called.
  size_t unpacked_bytes() const {
    size_t bytes = 0;
    for (const std::string& column : unpacked_.columns) bytes += column.size();
    return bytes;
  }
  // Returns how many packed bytes the column needed, with an error of at most two bytes. Call it after Unpack.
  size_t packed_bytes(size_t number) const { return unpacked_.packed_bytes[number]; }

 private:
  std::array<std::string_view, kNames> columns_;
  UnpackedColumns unpacked_;
};
using DefinitionColumnSet = ColumnSet<kDefinitionColumnNames.size()>;
using SampleColumnSet = ColumnSet<kSampleColumnNames.size()>;
using EventColumnSet = ColumnSet<kEventColumnNames.size()>;

// The coding of a column of values. The column is empty if all values are the default. Otherwise its first byte is the
// coding. kEach: the values follow one by one. kRuns: runs of equal values follow, each as a value and a length ≥ 1.
// The last run has no length and extends to the end.
enum class ValueCoding : uint8_t { kEach = 0, kRuns = 1 };

class ValueWriter {
 public:
  explicit ValueWriter(uint64_t default_value) : default_value_(default_value) {}

  void Add(uint64_t value) {
    if (length_ > 0 && value != value_) FlushRun();
    value_ = value;
    ++length_;
    AppendVarint(each_, value);
  }
  size_t bytes() const { return runs_.empty() && (length_ == 0 || value_ == default_value_) ? 0 : 1 + each_.size(); }
  std::string Take() && {
    if (length_ == 0 || (runs_.empty() && value_ == default_value_)) return {};
    AppendVarint(runs_, value_);
    const bool as_runs = runs_.size() < each_.size() / 8;
    std::string& out = as_runs ? runs_ : each_;
    out.insert(out.begin(), static_cast<char>(as_runs ? ValueCoding::kRuns : ValueCoding::kEach));
    return std::move(out);
  }

 private:
  void FlushRun() {
    AppendVarint(runs_, value_);
    AppendVarint(runs_, length_);
    length_ = 0;
  }

  const uint64_t default_value_;
  std::string each_, runs_;
  uint64_t value_ = 0, length_ = 0;
};

class ValueReader {
 public:
  ValueReader(std::string_view bytes, uint64_t default_value)
      : reader_(bytes), value_(default_value), constant_(bytes.empty()) {
    uint64_t coding = 0;
    if (constant_) return;
    ok_ = reader_.Read(&coding) && coding <= static_cast<uint64_t>(ValueCoding::kRuns);
    runs_ = coding == static_cast<uint64_t>(ValueCoding::kRuns);
  }
  bool Read(uint64_t* value) {
    if (!constant_ && left_ == 0 && !Next()) return false;
    if (left_ > 0) --left_;
    *value = value_;
    return true;
  }
  bool AtEnd() const { return ok_ && left_ == 0 && reader_.AtEnd(); }

 private:
  bool Next() {
    if (!ok_ || !reader_.Read(&value_)) return false;
    left_ = 1;
    if (!runs_) return true;
    if (reader_.AtEnd()) {
      left_ = 0;
      constant_ = true;
      return true;
    }
    return reader_.Read(&left_) && left_ != 0;
  }

  VarintReader reader_;
  uint64_t value_, left_ = 0;
  bool ok_ = true, runs_ = false;
  bool constant_;  // the value repeats to the end
};

// Values of the column nodeFrames, which says which frame a new node has.
constexpr uint64_t kFrameNew = 0;       // the next frame that this message defines
constexpr uint64_t kFrameFollower = 1;  // this value plus a rank: the follower of the parent's frame with this rank
constexpr uint64_t kFrameById = kFrameFollower + Followers::kMax;  // the frame in the column nodeFrameIds

// The data from which a new frame is predicted. It describes the first node that has the frame. `parent`: the
// FramePlace of the frame of the node's parent. `guessed`: the FramePlace of the newest follower of the parent's frame,
// empty if there is none. `is_leaf`: the node is the last node of its chain.
struct FrameContext {
  FramePlace guessed, parent;
  bool is_leaf = true;

  const FramePlace& base() const { return guessed.executable != 0 ? guessed : parent; }
};

// The last address of each executable in one message.
class LastAddresses {
 public:
  // Returns the address from which the difference to a new frame's address is encoded.
  uint64_t BaseOf(const FrameContext& context, uint32_t executable) const {
    if (executable != 0 && context.guessed.executable == executable) return context.guessed.address;
    const auto it = last_.find(executable);
    return it != last_.end() ? it->second : 0;
  }
  void Set(uint32_t executable, uint64_t address) { last_[executable] = address; }

 private:
  absl::flat_hash_map<uint32_t, uint64_t> last_;
};

// Predicts the node of the next sample that has a new stack. A chain is a run of new nodes, in which each node is the
// parent of the next. The prediction is the last node of the message's next chain. It is mostly right, because samples
// come nearly in the order in which their stacks were defined. If a sample has the last node of the next chain or of a
// later chain, the cursor moves past that chain.
class LeafCursor {
 public:
  // `leaves`: the ids of the last nodes of the chains, in ascending order.
  explicit LeafCursor(std::vector<uint32_t> leaves) : leaves_(std::move(leaves)) {}

  // Returns the last node of the next chain, or 0 if there is no further chain.
  uint32_t next() const { return next_ < leaves_.size() ? leaves_[next_] : 0; }
  void Name(uint32_t node) {
    if (next_ == leaves_.size() || node < leaves_[next_]) return;
    auto it = std::lower_bound(leaves_.begin() + static_cast<ptrdiff_t>(next_), leaves_.end(), node);
    if (it != leaves_.end() && *it == node) next_ = static_cast<size_t>(it - leaves_.begin()) + 1;
  }

 private:
  std::vector<uint32_t> leaves_;
  size_t next_ = 0;
};

// The time from which the difference to a sample's time is encoded. It is the time of the previous sample on the same
// CPU. For the first sample of a CPU it is the time of the previous sample on any CPU, and for the first sample of the
// message the batch's clock. Create one TimeBase per message.
class TimeBase {
 public:
  explicit TimeBase(int64_t clock) : last_(clock) {}
  int64_t On(uint16_t cpu) const { return cpu < by_cpu_.size() && by_cpu_[cpu] ? *by_cpu_[cpu] : last_; }
  void Saw(uint16_t cpu, int64_t time) {
    if (cpu >= by_cpu_.size()) by_cpu_.resize(size_t{cpu} + 1);
    by_cpu_[cpu] = last_ = time;
  }

 private:
  int64_t last_;
  std::vector<std::optional<int64_t>> by_cpu_;
};

// Guesses that a sample has the same thread as the previous sample on the same CPU. Create one ThreadGuess per message.
class ThreadGuess {
 public:
  // Returns 0 (no thread) before the CPU's first sample.
  uint32_t On(uint16_t cpu) const { return cpu < last_.size() ? last_[cpu] : 0; }
  void Saw(uint16_t cpu, uint32_t thread) {
    if (cpu >= last_.size()) last_.resize(size_t{cpu} + 1);
    last_[cpu] = thread;
  }

 private:
  std::vector<uint32_t> last_;  // by CPU; there are 65,536 CPUs at most
};

}  // namespace tributary::intake
