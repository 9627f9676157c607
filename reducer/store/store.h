#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "profile/model.h"
#include "profile/row_batch.h"

// What a shard keeps, and how it is read. Two sides: a ShardWriter, owned by the shard's store-writer thread, and a
// StoreReader, which queries and exporters open as many times as they have threads. A reader never needs the writer's
// memory, and nothing here says where data are: in files, in memory, or on another machine. reducer/stores.h opens the
// store that a URL names.

namespace tributary::store {

// Ids of one shard's store. Not the session's ids, not another shard's.
using StringId = Strong<struct StoreStringTag, uint32_t>;
using ExecutableNo = Strong<struct StoreExecutableTag, uint32_t>;
using ProcessNo = Strong<struct StoreProcessTag, uint32_t>;
using ThreadNo = Strong<struct StoreThreadTag, uint32_t>;
using NodeNo = Strong<struct StoreNodeTag, uint32_t>;  // of one day's trie; 0 = root
using TypeNo = Strong<struct StoreTypeTag, uint32_t>;  // of samples; 0 = one that has no name
using Day = Strong<struct StoreDayTag, int32_t>;       // days since 1970-01-01 UTC

class ShardWriter {
 public:
  virtual ~ShardWriter() = default;

  struct Outcome {
    uint64_t sequence = 0;         // durable up to here, of that source
    bool need_dictionary = false;  // it does not continue what the store holds: nothing of the batch was kept
  };
  // One transaction: samples, definitions, accounting and each source's high-water mark. Batches at or below the mark
  // change nothing; those without a number leave it as it is. One outcome a batch, in order. An error (disk full:
  // ResourceExhausted) keeps nothing of the group; the caller tries again.
  virtual absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) = 0;

  struct SessionState {
    uint64_t durable_sequence = 0;
  };
  // NotFound: never seen.
  virtual absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> session_id) = 0;

  // Closes minutes into sums and applies retention by age and size. Called every few seconds between commits; does a
  // bounded piece of work a call.
  virtual absl::Status Maintain(UnixNs now) = 0;
};

struct TimeRange {
  UnixNs from, to;  // [from, to)
};

// A machine that sends, and its sessions' totals.
struct NodeStatus {
  std::string node_id, host_name, agent_version, kernel_release, architecture;
  uint32_t cpu_count = 0, sample_rate_hz = 0;
  UnixNs last_seen;
  UnixNs booted;  // of the session that was seen last; 0 = not known
  // Σ over its sessions, as the collectors told; and samples committed. kSampleTypesMax types have their names.
  NamedAccounting accounting;
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;              // received
  uint64_t endings[kEndingCount] = {};  // stored samples by ending

  void Add(const NamedAccounting& of_session, const NamedSampleCounts& stored_of_session);
};

struct ProcessRow {
  ProcessNo no;
  std::string node_id, host_name;
  Pid pid, parent;
  int64_t start_time_ns = 0;
  uint32_t exec_sequence = 0;
  std::string comm, executable_path, container_id, cgroup_path;
  std::string attributes;  // what it says of itself, for DecodeAttributes
  ExecutableNo executable;
  UnixNs as_of;  // of several descriptions of one process the latest is right
};
using ProcessSet = absl::flat_hash_set<ProcessNo>;
struct ThreadRow {
  ThreadNo no;
  ProcessNo process;
  Tid tid;
  std::string name;
};
struct ExecutableRow {
  ExecutableId id;
  std::string path;
};
struct FrameRow {
  FrameKind kind = FrameKind::kUnknown;
  bool is_caller = false;
  ExecutableNo executable;
  uint64_t address = 0;   // or a runtime's code object
  uint32_t position = 0;  // as in Frame
  StringId name;          // for StoreReader::Text; 0: it came without one

  friend bool operator==(const FrameRow&, const FrameRow&) = default;
};

// One day's trie, parents before children. A snapshot that later reads may share and extend.
struct Trie {
  std::vector<NodeNo> parents;       // index: NodeNo; [0] = the root, its own parent
  std::vector<uint32_t> frames;      // index: NodeNo → index of frame_rows
  std::vector<FrameRow> frame_rows;  // [0] = none
};

// Some nodes of a day's trie and all their ancestors, numbered anew.
struct TriePart {
  Trie trie;                  // parents before children, as in a whole one
  std::vector<NodeNo> nodes;  // index: as the leaves given; numbers in `trie`, 0 for a leaf that the day does not have
};

// A sample as it is stored. Columns of one chunk, all of the same length, sorted by time.
struct SampleColumns {
  std::string_view node_id;
  TypeNo type;
  Day day;
  std::vector<UnixNs> times;
  std::vector<ProcessNo> processes;
  std::vector<ThreadNo> threads;
  std::vector<NodeNo> nodes;
  std::vector<uint64_t> values;
  std::vector<uint32_t> counts;
  std::vector<Ending> endings;
  std::vector<uint16_t> cpus;
  std::vector<StringId>
      attributes;  // of single samples, for StoreReader::Text and DecodeAttributes; empty: none has any
};

// One process's sum over one minute at one trie node.
struct SumColumns {
  std::string_view node_id;
  TypeNo type;
  Day day;
  UnixNs minute;
  std::vector<ProcessNo> processes;
  std::vector<NodeNo> nodes;
  std::vector<uint64_t> values;
  std::vector<uint64_t> counts;
};

using SampleVisitor = std::function<absl::Status(const SampleColumns&)>;
using ProcessVisitor = std::function<absl::Status(const ProcessRow&)>;
using SumVisitor = std::function<absl::Status(const SumColumns&)>;

// A consistent view of one shard, of the moment it was opened. One thread.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  virtual absl::StatusOr<std::vector<NodeStatus>> Nodes() = 0;
  // Types that samples have, or had, by their numbers.
  virtual absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() = 0;
  // Processes that samples in the range refer to, and some that samples shortly before and after it do. `only`: of
  // these alone; nullptr: all.
  virtual absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) = 0;
  // All of them one by one, in no order, for whoever must not hold them all: of short-lived ones there are millions. A
  // row is valid during its call; an error of the call stops the scan and is returned.
  virtual absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) = 0;
  // The same of the threads of these processes.
  virtual absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange range, const ProcessSet& of) = 0;
  virtual absl::StatusOr<std::vector<ExecutableRow>> Executables() = 0;  // index: ExecutableNo; [0] = unknown
  // A day may have millions of nodes. LoadTrie is for callers that need most of them; they share the result.
  // LoadTriePart is for callers that need the stacks of some samples: it returns these leaves and their ancestors.
  virtual absl::StatusOr<std::shared_ptr<const Trie>> LoadTrie(Day day) = 0;
  virtual absl::StatusOr<TriePart> LoadTriePart(Day day, std::span<const NodeNo> leaves) = 0;
  virtual absl::StatusOr<std::string_view> Text(StringId id) = 0;  // valid as long as the reader; "" for id 0

  // Every sample with time in the range, chunk by chunk, already cut to the range. Where raw columns have expired:
  // nothing (sums tell). A callback's error stops the scan and is returned.
  virtual absl::Status ScanSamples(TimeRange range, const SampleVisitor& visit) = 0;
  // The same from minute sums where a whole minute lies in the range and is closed, from raw columns (summed)
  // elsewhere: every sample once. Resolution: a minute where raw columns have expired. Of a gauge: each process's last
  // snapshot of each minute. One that comes once its minute is closed may count only where its process had none.
  virtual absl::Status ScanSums(TimeRange range, const SumVisitor& visit) = 0;

  // Chunks committed after `cursor`, in commit order, whatever their time: for exporters. Returns the new cursor.
  virtual absl::StatusOr<int64_t> ScanCommitted(int64_t cursor, size_t samples_max, const SampleVisitor& visit) = 0;
};

// An exporter's place, kept with the data: at least once, and exactly once unless the process dies between send and
// save.
class CursorStore {
 public:
  virtual ~CursorStore() = default;
  virtual absl::StatusOr<int64_t> LoadCursor(std::string_view exporter, uint32_t shard) = 0;
  virtual absl::Status SaveCursor(std::string_view exporter, uint32_t shard, int64_t cursor) = 0;
};

// Which of `shards` shards a node's data go to.
uint32_t ShardOf(std::string_view node_id, uint32_t shards);

// Sample types that are not built in. Samples of one type too many have no name. Once the data of a day are removed,
// there is room again. A fleet's programs bring some dozens: they share the names.
constexpr size_t kSampleTypesOfShardMax = 1024;
constexpr size_t kSampleTypesOfMachineMax = 64;  // that one machine was the first to bring
constexpr uint32_t kBuiltInTypesMax = 255;       // numbers up to here are for built-in types, those to come too

// What every store is opened with.
struct StoreOptions {
  uint32_t shards = 1;                 // that are written; data of more, from before, stay readable
  int64_t raw_age_ns = kNsPerDay;      // samples with every time stamp
  int64_t sum_age_ns = 7 * kNsPerDay;  // minute sums, and everything else
  uint64_t bytes_max = 10ull << 30;    // of all shards' data: the oldest go first
  size_t sessions_max = 16'384;        // whose dictionaries are in memory, per shard
  size_t dictionary_bytes_max = 1u << 30;
  uint32_t nodes_per_day_max = 8u << 20;
};
constexpr uint32_t kShardsMax = 1024;

// All shards.
class Store {
 public:
  virtual ~Store() = default;
  virtual uint32_t shard_count() const = 0;  // shards that hold data or are written now
  virtual absl::StatusOr<std::unique_ptr<ShardWriter>> OpenWriter(uint32_t shard) = 0;  // once per shard
  virtual absl::StatusOr<std::unique_ptr<StoreReader>> OpenReader(uint32_t shard) = 0;  // any thread
  virtual CursorStore& cursors() = 0;
  virtual uint64_t disk_bytes() const = 0;  // that the data take where they are kept
};

}  // namespace tributary::store
