#pragma once

#include <span>
#include <string>

#include "reducer/store/event_record.h"

namespace tributary {

// Formats process events as text, one line for each event. A line names the kind of the event, its time, and then the
// facts that are known, like the attributes of samples: "process.pid: 42". Control bytes and ill-formed UTF-8 are
// escaped as \xNN, so that no name can forge a line. Thread-safe.
std::string FormatEvents(std::span<const store::EventRecord> events);

}  // namespace tributary
