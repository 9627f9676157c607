#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/event_place.h"
#include "reducer/store/event_record.h"

namespace tributary {

struct QueryContext;

// The process events that a timeline shows.
struct EventMarks {
  enum class Kind { kCrash, kOom, kRestart };
  struct Mark {
    Kind kind = Kind::kCrash;
    store::EventRecord record;  // the end of the process; of a restart: the begin of the new process
    EventPlace place;
    ProcessEnd end;      // how the process ended; of a restart: how the old process ended
    uint32_t count = 1;  // processes
  };
  std::vector<Mark> marks;  // newest first
  bool truncated = false;   // some marks are missing
};

// The texts of the events of all marks. A node may send texts of 4 KiB each.
constexpr size_t kMarkTextBytesMax = 8u << 20;

// Returns at most `limit` marks, and fewer if their texts exceed kMarkTextBytesMax. If there are more, crashes and OOM
// kills come before restarts, and newer marks before older ones. A process that the OOM killer ended is not also a
// crash. If a whole container was restarted, only its first process is a restart. InvalidArgument: the selector has
// labels of threads.
absl::StatusOr<EventMarks> MakeEventMarks(const QueryContext& context, size_t limit);

}  // namespace tributary
