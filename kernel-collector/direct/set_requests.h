#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "kernel-collector/direct/sample_set.h"
#include "otlp/frame_locations.h"
#include "otlp/profiles_builder.h"
#include "profile/sample_counts.h"

namespace tributary {

// Turns a SampleSet into OTLP requests, one at a time. Each request is small enough for a gRPC server. Looks up the
// names of functions while it makes a request. `set` must outlive this object. Used by one thread.
class SetRequests {
 public:
  SetRequests(const SampleSet& set, SymbolLookup symbols, otlp::ProfilesBuilder::Options options)
      : set_(set), locations_(std::move(symbols)), options_(std::move(options)) {}

  struct Made {
    otlp::ProfilesRequestPtr request;
    SampleCounts samples;
    uint64_t dropped_strings = 0;
  };
  // Returns the next request. `request` is nullptr if no samples are left.
  Made Next();

 private:
  void Add(const Sample& sample);
  otlp::ResourceIndex Resource(ProcessRef process);
  otlp::AttributesIndex Thread(ThreadRef thread);
  otlp::StackIndex Stack(NodeRef leaf);
  otlp::LocationIndex Location(FrameRef frame);

  const SampleSet& set_;
  otlp::FrameLocations locations_;
  const otlp::ProfilesBuilder::Options options_;
  absl::flat_hash_map<FrameRef, otlp::FrameLocations::Resolved> resolved_;
  size_t next_ = 0;  // the next sample

  // State of the request that is being built.
  otlp::ProfilesBuilder* builder_ = nullptr;
  absl::flat_hash_map<uint32_t, otlp::ResourceIndex> resource_cache_;  // by index in set_.resources
  absl::flat_hash_map<ThreadRef, otlp::AttributesIndex> thread_cache_;
  absl::flat_hash_map<std::pair<otlp::AttributesIndex, StringRef>, otlp::Annotations> own_cache_;
  absl::flat_hash_map<NodeRef, otlp::StackIndex> stack_cache_;
  absl::flat_hash_map<FrameRef, otlp::LocationIndex> location_cache_;
};

}  // namespace tributary
