#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "reducer/store/event_record.h"
#include "reducer/store/store.h"

namespace tributary {

// The events of one call are looked up in at most this many ten-minute slots (store_times.h): a day, and more if the
// slots are next to each other.
constexpr size_t kAttributeSlotsMax = 144;
// The attributes of the events of one call have at most this many bytes.
constexpr size_t kAttributeBytesMax = 32u << 20;

// Sets `attributes` of each event whose process was sampled. Only sampled processes have attributes of their own. Reads
// the processes of the events' machines in the slot of each event, and in the slots before and after it. Above a limit,
// events get no attributes: those in the slots with the fewest events, and those behind the last byte. Returns the
// number of these events. Returns the errors of StoreReader::ScanProcessIds, and then sets no attributes.
absl::StatusOr<uint64_t> AddProcessAttributes(store::StoreReader& reader, std::span<store::EventRecord> events);

}  // namespace tributary
