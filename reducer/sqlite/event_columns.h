#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "profile/process_event.h"

// Encodes and decodes the process events of a chunk, which the store keeps as columns (docs/store.md). The events of
// one process have the same pid, parent and start time, and many short processes run the same program. So a chunk has
// two lists, of distinct processes and of distinct programs, and two small numbers per event. The functions are pure.
// The decoder checks everything: a corrupt file gives DataLoss, never an out-of-bounds read.

namespace tributary::store {

// An event as it is stored. Its texts are ids of strings of the store.
struct StoredEvent {
  int64_t time_ns = 0;  // unix
  ProcessEventKind kind = ProcessEventKind::kStart;
  int32_t pid = 0, parent = 0;
  int64_t start_time_ns = 0;
  uint32_t uid = 0;
  uint32_t name = 0, executable_path = 0, container_id = 0, cgroup_path = 0;
  uint32_t events = 1, processes = 1;
  ProcessEnd end;  // of an exit or a sum

  bool has_end() const { return kind == ProcessEventKind::kExit || kind == ProcessEventKind::kSum; }
  friend bool operator==(const StoredEvent&, const StoredEvent&) = default;
};

// The maximum number of events of a chunk. The decoded events of a chunk take at most 8 MiB.
constexpr size_t kEventsPerChunkMax = 65'536;

// `events` must be sorted by time, and have at most kEventsPerChunkMax elements. `end` of an event without an end is
// not encoded.
std::string EncodeEvents(std::span<const StoredEvent> events);
// A kind of a later release stays a number that this release has no name for.
absl::Status DecodeEvents(std::string_view bytes, std::vector<StoredEvent>* out);

}  // namespace tributary::store
