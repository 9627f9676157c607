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

// The interface of a store: what a shard keeps, and how to read it. The interface has two sides. The shard's
// store-writer thread owns a ShardWriter. Queries and exporters open one StoreReader per thread. A reader never needs
// the writer's memory. The interface does not say where the data are: in files, in memory, or on another machine.
// reducer/stores.h opens the store that a URL names.

namespace tributary::store {

// Ids in the store of one shard. They are not the ids of a session, and not the ids of another shard.
using StringId = Strong<struct StoreStringTag, uint32_t>;
using ExecutableNo = Strong<struct StoreExecutableTag, uint32_t>;
using ProcessNo = Strong<struct StoreProcessTag, uint32_t>;
using ThreadNo = Strong<struct StoreThreadTag, uint32_t>;
using NodeNo = Strong<struct StoreNodeTag, uint32_t>;  // of one day's trie; 0 = root
using TypeNo = Strong<struct StoreTypeTag, uint32_t>;  // of samples; 0: a type without a name
using Day = Strong<struct StoreDayTag, int32_t>;       // days since 1970-01-01 UTC

class ShardWriter {
 public:
  virtual ~ShardWriter() = default;

  struct Outcome {
    uint64_t sequence = 0;         // the source's batches up to this one are durable
    bool need_dictionary = false;  // the batch does not continue the stored state; nothing of the batch was stored
  };
  // Commits samples, definitions, accounting and each source's high-water mark in one transaction. Batches at or below
  // the mark change nothing. Batches without a number do not change the mark. Returns one outcome per batch, in order.
  // After an error (ResourceExhausted if the disk is full) nothing of the group is kept; the caller must try again.
  virtual absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) = 0;

  struct SessionState {
    uint64_t durable_sequence = 0;
  };
  // Returns NotFound if the session was never seen.
  virtual absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> session_id) = 0;

  // Turns closed minutes into sums, and applies retention by age and size. The owner calls it every few seconds between
  // commits. Each call does a bounded amount of work.
  virtual absl::Status Maintain(UnixNs now) = 0;
};

struct TimeRange {
  UnixNs from, to;  // [from, to)
};

// A machine that sends samples, and the totals of its sessions.
struct NodeStatus {
  std::string node_id, host_name, agent_version, kernel_release, architecture;
  uint32_t cpu_count = 0, sample_rate_hz = 0;
  UnixNs last_seen;
  UnixNs booted;  // of the session that was seen last; 0: unknown
  // Sums over its sessions: `accounting` as the collectors reported it, `stored` as committed. kSampleTypesMax types
  // keep their names.
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
  std::string attributes;  // its own resource attributes, for DecodeAttributes
  ExecutableNo executable;
  UnixNs as_of;  // if a process has several descriptions, the latest is right
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
  StringId name;          // for StoreReader::Text; 0: sent without a name

  friend bool operator==(const FrameRow&, const FrameRow&) = default;
};

// One day's trie, parents before children. A snapshot that later reads may share and extend.
struct Trie {
  std::vector<NodeNo> parents;       // index: NodeNo; [0] = the root, its own parent
  std::vector<uint32_t> frames;      // index: NodeNo → index of frame_rows
  std::vector<FrameRow> frame_rows;  // [0]: no frame
};

// Some nodes of a day's trie and all their ancestors, with new numbers.
struct TriePart {
  Trie trie;                  // parents before children, as in a whole one
  std::vector<NodeNo> nodes;  // index: as the given leaves; numbers in `trie`, 0 for a leaf that the day does not have
};

// Stored samples: the columns of one chunk. All columns have the same length, and the samples are sorted by time.
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
      attributes;  // the samples' own attributes, for StoreReader::Text and DecodeAttributes; empty: no sample has any
};

// Sums over one minute: each row is the sum of one process at one trie node.
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

// A consistent view of one shard at the moment when the reader was opened. Use a reader on one thread.
class StoreReader {
 public:
  virtual ~StoreReader() = default;

  virtual absl::StatusOr<std::vector<NodeStatus>> Nodes() = 0;
  // Returns the types that samples have, or had, by their numbers.
  virtual absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SampleTypes() = 0;
  // Returns the processes that samples in the range refer to, and some processes of samples shortly before and after
  // the range. `only`: returns these processes alone; nullptr: all.
  virtual absl::StatusOr<std::vector<ProcessRow>> Processes(TimeRange range, const ProcessSet* only) = 0;
  // Visits all these processes one by one, in no order, for callers that must not hold them all: a shard may have
  // millions of short-lived processes. A row is valid during its call. An error of the call stops the scan and is
  // returned.
  virtual absl::Status ScanProcesses(TimeRange range, const ProcessVisitor& visit) = 0;
  // Returns the threads of these processes, by the same rule.
  virtual absl::StatusOr<std::vector<ThreadRow>> Threads(TimeRange range, const ProcessSet& of) = 0;
  virtual absl::StatusOr<std::vector<ExecutableRow>> Executables() = 0;  // index: ExecutableNo; [0] = unknown
  // A day may have millions of nodes. LoadTrie is for callers that need most of them; these callers share the result.
  // LoadTriePart is for callers that need the stacks of some samples: it returns these leaves and their ancestors.
  virtual absl::StatusOr<std::shared_ptr<const Trie>> LoadTrie(Day day) = 0;
  virtual absl::StatusOr<TriePart> LoadTriePart(Day day, std::span<const NodeNo> leaves) = 0;
  virtual absl::StatusOr<std::string_view> Text(StringId id) = 0;  // valid as long as the reader; "" for id 0

  // Visits every sample with a time in the range, chunk by chunk, already cut to the range. Visits nothing where raw
  // columns have expired (ScanSums still has the sums). An error of the callback stops the scan and is returned.
  virtual absl::Status ScanSamples(TimeRange range, const SampleVisitor& visit) = 0;
  // Visits sums that contain every sample in the range once. Uses minute sums where a whole minute lies in the range
  // and is closed, and sums up raw columns elsewhere. The resolution is a minute where raw columns have expired. For a
  // gauge, a minute has each process's last snapshot of that minute. A snapshot that arrives after its minute was
  // closed may count only if its process had no other snapshot in that minute.
  virtual absl::Status ScanSums(TimeRange range, const SumVisitor& visit) = 0;

  // Visits chunks committed after `cursor`, in commit order, whatever their time. For exporters. Returns the new
  // cursor.
  virtual absl::StatusOr<int64_t> ScanCommitted(int64_t cursor, size_t samples_max, const SampleVisitor& visit) = 0;
};

// The position of an exporter, kept with the data. An exporter sends each chunk at least once. It sends a chunk again
// if the process ends between send and save, or if the answer to a request was lost.
class CursorStore {
 public:
  virtual ~CursorStore() = default;
  virtual absl::StatusOr<int64_t> LoadCursor(std::string_view exporter, uint32_t shard) = 0;
  virtual absl::Status SaveCursor(std::string_view exporter, uint32_t shard, int64_t cursor) = 0;
};

// Returns which of `shards` shards a node's data go to.
uint32_t ShardOf(std::string_view node_id, uint32_t shards);

// Limits for sample types that are not built in. Samples of a type beyond a limit have no type name. Removing the data
// of a day makes new types possible again. A fleet's programs have some dozens of types, because they share the names.
constexpr size_t kSampleTypesOfShardMax = 1024;
constexpr size_t kSampleTypesOfMachineMax = 64;  // types that one machine was the first to send
constexpr uint32_t kBuiltInTypesMax = 255;       // numbers up to here are for built-in types, including future ones

// The options that every store is opened with.
struct StoreOptions {
  uint32_t shards = 1;                 // shards to write; data that earlier runs wrote to more shards stay readable
  int64_t raw_age_ns = kNsPerDay;      // samples with every time stamp
  int64_t sum_age_ns = 7 * kNsPerDay;  // minute sums, and everything else
  uint64_t bytes_max = 10ull << 30;    // limit of all shards' data: the oldest data are removed first
  size_t sessions_max = 16'384;        // sessions with a dictionary in memory, per shard
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
  virtual uint64_t disk_bytes() const = 0;  // bytes that the data take where they are kept
};

}  // namespace tributary::store
