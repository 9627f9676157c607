#pragma once

#include <span>
#include <string>

#include "reducer/metadata/rollout_log.h"
#include "reducer/store/event_record.h"
#include "reducer/store/loss_record.h"

namespace tributary {

// Format records as text, one line for each record. A line names the kind of the record, its time, and then the facts
// that are known, like the attributes of samples: "process.pid: 42". Control bytes and ill-formed UTF-8 are escaped as
// \xNN, so that no name can forge a line. Thread-safe.
std::string FormatEvents(std::span<const store::EventRecord> events);
std::string FormatLosses(std::span<const store::LossRecord> losses);
std::string FormatRollouts(std::span<const Rollout> rollouts);

}  // namespace tributary
