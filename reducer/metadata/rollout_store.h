#pragma once

#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

// Stores rollouts, so that they survive a restart. Only one thread at a time may use it. Calls do not wait until data
// are on disk. After a power cut, clusters' watchers report their rollouts again. Error messages name the object that
// could not be read or written.
class RolloutStore {
 public:
  virtual ~RolloutStore() = default;

  struct Row {
    std::string cluster, id;
    UnixNs at;
    std::string attributes;  // for DecodeAttributes
    int64_t no = 0;          // order in which the reducer got the rollouts
  };
  virtual absl::Status Load(absl::FunctionRef<void(const Row&)> visit) = 0;
  // Returns the highest number of all rows that were ever added, also of removed ones. 0: there are none.
  virtual absl::StatusOr<int64_t> HighestNumber() = 0;
  // Removes the rows of `removed`, then adds those of `added`, in one transaction. A row that exists already stays as
  // it is. Of the rows in `removed`, uses only `cluster` and `id`.
  virtual absl::Status Save(std::span<const Row> added, std::span<const Row> removed) = 0;
};

}  // namespace tributary
