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

// What every query is asked: which processes, when, of which kind of sample.
struct QueryRequest {
  Selector selector;
  store::TimeRange range;
  std::string type = "cpu";  // as FindSampleType reads it
  FrameNames frames = FrameNames::kFunction;
  // Called now and then on the querying thread; true ends the query with DeadlineExceeded. Empty: never.
  std::function<bool()> is_cancelled;
};

// What one query may hold at once. Beyond: ResourceExhausted, and the message says what to narrow.
struct QueryLimits {
  size_t processes_max = 2'000'000;        // rows of one shard
  size_t address_nodes_max = 32'000'000;   // 16 bytes each, over the days of one shard
  size_t function_nodes_max = 4'000'000;   // about 60 bytes each, of the answer before it is cut
  size_t own_name_bytes_max = 128u << 20;  // of the names that frames of one shard came with
};

// DeadlineExceeded once the request is cancelled.
absl::Status CheckCancelled(const QueryRequest& request);
// Also InvalidArgument for a range that holds no time.
absl::Status CheckRequest(const QueryRequest& request);

}  // namespace tributary
