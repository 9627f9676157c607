#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "kernel-collector/direct/sample_set.h"
#include "otlp/frame_locations.h"
#include "otlp/profiles_builder.h"
#include "profile/sample_counts.h"

namespace tributary {

// Turns the samples of several sets into OTLP requests, one at a time. Each request is small enough for a gRPC server,
// and has as many samples as fit, also of several sets. Looks up the names of functions while it makes a request, and
// calls `on_named` after each look-up. `sets` must outlive this object. Used by one thread.
class SetRequests {
 public:
  SetRequests(
      std::span<const SampleSet> sets, SymbolLookup symbols, otlp::ProfilesBuilder::Options options,
      std::function<void()> on_named = [] {})
      : sets_(sets), locations_(std::move(symbols)), options_(std::move(options)), on_named_(std::move(on_named)) {}

  struct Made {
    otlp::ProfilesRequestPtr request;
    SampleCounts samples;
    uint64_t dropped_strings = 0;
  };
  // Returns the next request. `request` is nullptr if no samples are left.
  Made Next();

 private:
  const SampleSet& set() const { return sets_.front(); }
  void AddSet(Made& made);
  void ForgetIndices();
  void Add(const Sample& sample);
  otlp::ResourceIndex Resource(ProcessRef process);
  otlp::AttributesIndex Thread(ThreadRef thread);
  otlp::StackIndex Stack(NodeRef leaf);
  otlp::LocationIndex Location(FrameRef frame);

  std::span<const SampleSet> sets_;  // the first is the current one
  otlp::FrameLocations locations_;
  const otlp::ProfilesBuilder::Options options_;
  const std::function<void()> on_named_;
  absl::flat_hash_map<FrameRef, otlp::FrameLocations::Resolved> resolved_;  // of the current set
  size_t next_ = 0;                                                         // the next sample of the current set

  otlp::ProfilesBuilder* builder_ = nullptr;  // of the request that is being built
  // Indices in this request, of definitions of the current set.
  absl::flat_hash_map<uint32_t, otlp::ResourceIndex> resource_cache_;  // by index in SampleSet::resources
  absl::flat_hash_map<ThreadRef, otlp::AttributesIndex> thread_cache_;
  absl::flat_hash_map<std::pair<otlp::AttributesIndex, StringRef>, otlp::Annotations> own_cache_;
  absl::flat_hash_map<NodeRef, otlp::StackIndex> stack_cache_;
  absl::flat_hash_map<FrameRef, otlp::LocationIndex> location_cache_;
};

}  // namespace tributary
