#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "otlp/frame_locations.h"
#include "otlp/profiles_builder.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/store/store.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {

// A copy of the samples that one shard committed after a cursor, with all data from the store that is needed to send
// them. Because it is a copy, the store is not blocked while the exporter waits for symbols and sends requests. A scan
// uses about 50 bytes of memory per sample. Used by one thread.
class ShardScan {
 public:
  ShardScan() = default;
  ShardScan(const ShardScan&) = delete;
  ShardScan& operator=(const ShardScan&) = delete;

  // Reads the samples after `cursor`, about `samples_max` at most. Reads fewer if the samples' own attributes
  // (attributes of single samples) are large. If the trie with the stacks of a sample's day was already deleted,
  // because it was too old, the sample has an empty stack.
  static absl::StatusOr<std::unique_ptr<ShardScan>> Read(store::StoreReader& reader, const store::Cursor& cursor,
                                                         size_t samples_max);

  const absl::flat_hash_map<store::ProcessNo, store::ProcessRow>& processes() const { return processes_; }
  store::TimeRange range() const { return range_; }  // of the samples
  const store::CommittedScan& committed() const { return committed_; }
  store::Cursor begin() const { return CursorAt(0, 0); }  // of the first row, or behind the scan if it has no rows
  size_t row_count() const { return row_count_; }
  bool is_cut() const { return is_cut_; }  // fewer samples were read, because their own attributes are large
  // The executables that occur in the samples' stacks, each once.
  const std::vector<ExecutableId>& executables() const { return executables_; }

 private:
  friend class RequestMaker;
  struct Chunk {
    std::string node_id;
    store::SampleColumns columns;
    store::Cursor begin;  // of the first row
  };

  absl::Status Collect(store::StoreReader& reader, const store::Cursor& cursor, size_t samples_max);
  store::Cursor CursorAt(size_t chunk, size_t row) const;
  absl::Status LoadTries(store::StoreReader& reader);
  absl::Status LoadDefinitions(store::StoreReader& reader);
  absl::Status LoadOwn(store::StoreReader& reader);
  absl::Status FindExecutables(store::StoreReader& reader);

  std::vector<Chunk> chunks_;
  store::TimeRange range_;
  size_t row_count_ = 0;
  bool is_cut_ = false;
  store::CommittedScan committed_;
  absl::flat_hash_map<store::ProcessNo, store::ProcessRow> processes_;
  absl::flat_hash_map<store::ThreadNo, store::ThreadRow> threads_;
  absl::flat_hash_map<store::StringId, std::string> own_;  // own attributes of samples, as they arrived
  size_t own_bytes_ = 0;
  absl::flat_hash_map<store::StringId, std::string> frame_names_;  // names that were sent with frames
  std::vector<store::ExecutableRow> executable_rows_;
  std::map<store::TypeNo, SampleTypeInfo> types_;
  std::map<store::Day, store::Trie> tries_;  // the samples' part of each day's trie
  std::vector<ExecutableId> executables_;
};

// Turns a scan into export requests, one at a time. Each request is small enough for a gRPC server. Looks up the names
// of functions while it makes a request. `scan` must outlive the RequestMaker.
class RequestMaker {
 public:
  // `joiner` may be null.
  RequestMaker(const ShardScan& scan, SymbolLookup symbols, const ResourceJoiner* joiner,
               otlp::ProfilesBuilder::Options options);

  struct Made {
    otlp::ProfilesRequestPtr request;
    uint64_t samples = 0;
    uint64_t dropped_strings = 0;
    uint64_t rows = 0;
    store::Cursor begin;  // of the first sample of the request
    store::Cursor next;   // behind the samples of the request
  };
  // Returns the next request. `request` is nullptr if no samples are left. With `end`, the request contains all samples
  // before this position, even if it becomes larger than the options' bytes_soft, but not than bytes_hard.
  Made Next(const std::optional<store::Cursor>& end = std::nullopt);

 private:
  void AddRow(const ShardScan::Chunk& chunk, size_t row);
  struct Joined {
    std::shared_ptr<const ResourceStates> states;  // null: there is one resource, in `indices`
    std::vector<otlp::ResourceIndex> indices;      // of each state; value −1: not added to the request yet
  };
  otlp::TypeIndex Type(store::TypeNo no);
  otlp::ResourceIndex ResourceOf(const ShardScan::Chunk& chunk, store::ProcessNo no, UnixNs time);
  Joined Join(const store::ProcessRow& process);
  otlp::Annotations AddOwn(otlp::AttributesIndex others, store::StringId own);
  otlp::AttributesIndex Thread(store::ProcessNo process, store::ThreadNo no);
  otlp::StackIndex Stack(store::Day day, store::NodeNo node);
  otlp::LocationIndex Location(const store::Trie& trie, uint32_t frame);

  const ShardScan& scan_;
  otlp::FrameLocations locations_;
  const otlp::ProfilesBuilder::Options options_;
  std::optional<ResourceCache> resources_;
  size_t chunk_ = 0, row_ = 0;  // the next sample

  // State of the request that is being built.
  std::unique_ptr<otlp::ProfilesBuilder> builder_;
  absl::flat_hash_map<store::ProcessNo, Joined> resource_cache_;
  absl::flat_hash_map<const Resource*, otlp::ResourceIndex> resource_indices_;  // resource_cache_ keeps them alive
  absl::flat_hash_map<std::pair<store::ProcessNo, store::ThreadNo>, otlp::AttributesIndex> thread_cache_;
  absl::flat_hash_map<std::pair<otlp::AttributesIndex, store::StringId>, otlp::Annotations> own_cache_;
  absl::flat_hash_map<std::pair<store::Day, store::NodeNo>, otlp::StackIndex> stack_cache_;
  absl::flat_hash_map<std::pair<const store::Trie*, uint32_t>, otlp::LocationIndex> location_cache_;
};

}  // namespace tributary
