#pragma once

#include <span>

#include "absl/status/status.h"
#include "reducer/store/event_record.h"
#include "reducer/store/store.h"

namespace tributary {

// Sets `attributes` of each event whose process was sampled. Only sampled processes have attributes of their own. Reads
// the processes of the ten minutes around each event, so an event that arrives late costs no more than another one.
absl::Status AddProcessAttributes(store::StoreReader& reader, std::span<store::EventRecord> events);

}  // namespace tributary
