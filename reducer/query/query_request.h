#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "profile/sample_types.h"
#include "reducer/query/selector.h"
#include "reducer/store/store.h"

namespace tributary {

enum class FrameNames { kFunction, kAddress };

// The parameters that all queries have: which processes, which time range, which sample type.
struct QueryRequest {
  Selector selector;
  store::TimeRange range;
  std::string type = "cpu";  // in a form that FindSampleType accepts
  FrameNames frames = FrameNames::kFunction;
  // Keeps the frames of interpreters, which kFunction folds into their callers if the stack has frames of the code that
  // the interpreter runs. kAddress always keeps them.
  bool all_frames = false;
  bool lines = false;      // one function at two lines is two functions
  uint32_t languages = 0;  // only stacks with a frame of one of these kinds: bits 1 << FrameKind; 0: all stacks
  // The query calls this function from time to time, on any of its threads, also at the same time. If the function
  // returns true, the query ends with DeadlineExceeded. May be empty.
  std::function<bool()> is_cancelled;
};

// Limits of the data that one query keeps in memory at the same time. If a query exceeds a limit, it ends with
// ResourceExhausted. The message says how to make the request smaller.
struct QueryLimits {
  size_t processes_max = 1'000'000;         // with a weight of their own, in one shard
  size_t selection_bytes_max = 128u << 20;  // of the selection, and in series of all that they keep, in one shard
  size_t address_nodes_max = 32'000'000;    // 16 bytes each, over the days of one shard
  size_t function_nodes_max = 4'000'000;    // about 60 bytes each, in the answer before it is cut
  size_t own_name_bytes_max = 128u << 20;   // of names that were sent with the frames of one shard

  // Returns the limits for that many shards at the same time. Frames are named for one shard after the other.
  QueryLimits DividedBy(size_t shards) const {
    return {processes_max / shards, selection_bytes_max / shards, address_nodes_max / shards, function_nodes_max,
            own_name_bytes_max};
  }
};

// A query may ask only for these times: 1970 to the end of 2199. So numbers of minutes, slots and days cannot overflow.
constexpr store::TimeRange kQueryTimes{UnixNs{0}, UnixNs{7'258'118'400 * kNsPerSecond}};

// Returns DeadlineExceeded if the request's is_cancelled returns true.
absl::Status CheckCancelled(const QueryRequest& request);
// For loops: like CheckCancelled, but asks only once per so many values of `step`. So a loop with a few nanoseconds of
// work per step does not read a clock each time, and a loop with a microsecond per step asks every few milliseconds.
constexpr size_t kStepsPerCheck = 4096;
inline absl::Status CheckCancelledAt(const QueryRequest& request, size_t step) {
  return step % kStepsPerCheck == 0 ? CheckCancelled(request) : absl::OkStatus();
}
// Returns the error of a cancelled query.
absl::Status CancelledError();
// Like CheckCancelled, but also returns InvalidArgument if the range is empty, reversed, or not within kQueryTimes.
absl::Status CheckRequest(const QueryRequest& request);

}  // namespace tributary
