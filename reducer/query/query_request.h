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

// The part of a request that every query has: which processes, when, which kind of sample.
struct QueryRequest {
  Selector selector;
  store::TimeRange range;
  std::string type = "cpu";  // as FindSampleType reads it
  FrameNames frames = FrameNames::kFunction;
  // Called now and then on the querying thread. If it returns true, the query ends with DeadlineExceeded. Empty: never
  // called.
  std::function<bool()> is_cancelled;
};

// Limits of the data that one query holds at once. Beyond a limit: ResourceExhausted, and the message says which part
// of the request to narrow.
struct QueryLimits {
  size_t processes_max = 2'000'000;        // rows of one shard
  size_t address_nodes_max = 32'000'000;   // 16 bytes each, over the days of one shard
  size_t function_nodes_max = 4'000'000;   // about 60 bytes each, in the answer before it is cut
  size_t own_name_bytes_max = 128u << 20;  // of names that frames of one shard came with
};

// Returns DeadlineExceeded once the request is cancelled.
absl::Status CheckCancelled(const QueryRequest& request);
// Like CheckCancelled; also returns InvalidArgument for a range that contains no time.
absl::Status CheckRequest(const QueryRequest& request);

}  // namespace tributary
