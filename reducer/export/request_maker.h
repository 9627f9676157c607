#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "otlp/built_request.h"
#include "otlp/frame_locations.h"
#include "otlp/profiles_builder.h"
#include "reducer/export/shard_scan.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/store/store.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {

// The resources of a scan's processes: the index is that of ShardScan::processes(). Null: not joined yet.
using JoinedProcesses = std::vector<std::shared_ptr<const ResourceStates>>;

// Turns a scan into export requests, one at a time. Each request is small enough for a gRPC server. Looks up the names
// of functions while it makes a request. `scan` must outlive the RequestMaker.
class RequestMaker {
 public:
  // `joiner` may be null. `joined`: what the joiner has already found, or empty.
  RequestMaker(const ShardScan& scan, SymbolLookup symbols, const ResourceJoiner* joiner, JoinedProcesses joined,
               otlp::ProfilesBuilder::Options options);

  struct Made {
    std::unique_ptr<otlp::BuiltRequest> request;
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
  static constexpr int32_t kNotAdded = -1;

  void BeginRequest();
  void BeginChunk(const ShardScan::Chunk& chunk);
  void AddRow(const ShardScan::Chunk& chunk, size_t row);
  otlp::ResourceIndex ResourceOf(uint32_t process, UnixNs time);
  void Join(uint32_t process);
  uint32_t Encode(std::shared_ptr<const Resource> resource);
  void ForgetResources();
  otlp::Annotations AddOwn(otlp::AttributesIndex others, store::StringId own);
  otlp::AttributesIndex Thread(uint32_t index);
  otlp::StackIndex Stack(store::NodeNo node);
  otlp::LocationIndex Location(uint32_t frame);

  const ShardScan& scan_;
  otlp::FrameLocations locations_;
  const otlp::ProfilesBuilder::Options options_;
  std::optional<ResourceCache> resource_cache_;
  const JoinedProcesses joined_before_;
  size_t chunk_ = 0, row_ = 0;  // the next sample

  // Resources that samples of the scan have had so far, encoded once for all requests.
  std::vector<otlp::EncodedResource> encoded_;
  size_t encoded_bytes_ = 0;
  absl::flat_hash_map<std::shared_ptr<const Resource>, uint32_t> encoded_indices_;
  struct State {
    UnixNs from;
    uint32_t encoded = 0;  // index in encoded_
  };
  struct Joined {
    uint32_t first_state = 0, state_count = 0;  // in states_; 0: not joined yet
  };
  std::vector<State> states_;
  std::vector<Joined> joined_;  // by process

  // State of the request that is being built.
  std::unique_ptr<otlp::ProfilesBuilder> builder_;
  std::vector<int32_t> resources_;  // otlp::ResourceIndex, or kNotAdded, by index in encoded_
  std::vector<int32_t> threads_;    // otlp::AttributesIndex, or kNotAdded, by index in the scan's threads
  absl::flat_hash_map<std::pair<otlp::AttributesIndex, store::StringId>, otlp::Annotations> own_cache_;
  struct Day {
    const store::Trie* trie = nullptr;
    std::vector<std::optional<otlp::FrameLocations::Resolved>> resolved;  // by frame, for all requests
    std::vector<int32_t> stacks;                                          // otlp::StackIndex, or kNotAdded, by node
    std::vector<int32_t> locations;                                       // otlp::LocationIndex, or kNotAdded, by frame
  };
  std::map<store::Day, Day> days_;
  std::vector<otlp::LocationIndex> stack_;  // of the current sample

  // Of the chunk that is being added.
  Day* day_ = nullptr;
  otlp::TypeIndex type_;
};

}  // namespace tributary
