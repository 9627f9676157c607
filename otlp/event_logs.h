#pragma once

#include <cstdint>
#include <string_view>

#include "base/types.h"
#include "otlp/record_logs.h"
#include "profile/attributes.h"
#include "profile/process_event.h"

namespace tributary::otlp {

// One process event, as profile/process_event.h describes it.
struct EventInfo {
  UnixNs time;
  ProcessEventKind kind = ProcessEventKind::kStart;
  Pid pid, parent;
  int64_t start_time_ns = 0;  // as in ProcessKey
  uint32_t uid = 0;
  std::string_view name, executable_path;
  uint32_t events = 1, processes = 1;
  ProcessEnd end;  // of an exit or a sum
};

// Adds a record of the event.
void AddEvent(const Attributes& resource, const EventInfo& event, RecordLogs* logs);

}  // namespace tributary::otlp
