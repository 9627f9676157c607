#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "reducer/query/series.h"

namespace tributary {

struct QueryContext;

// Maximum number of events that AddProcessEnds reads in one shard: about 0.2 s of work. Each view of the page asks for
// the processes, and must not wait long for their ends.
constexpr size_t kEventsForEndsMax = 500'000;

// Sets `ended` of those processes of the list that have an event of their end in the range. If a shard has more than
// `events_max` events, looks only at the newest ones.
absl::Status AddProcessEnds(const QueryContext& context, SeriesList* series, size_t events_max = kEventsForEndsMax);

}  // namespace tributary
