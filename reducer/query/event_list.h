#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/event_kinds.h"
#include "reducer/query/event_place.h"
#include "reducer/query/event_windows.h"
#include "reducer/store/event_record.h"

namespace tributary {

struct QueryContext;

struct EventListRequest {
  EventKinds kinds;
  size_t limit = 1000;
  EventOrder order = EventOrder::kNewestFirst;
  std::string cursor;  // EventList::next of the page before; "": the first page
};

// One page of process events, in the request's order.
struct EventList {
  struct Event {
    store::EventRecord record;
    EventPlace place;
  };
  std::vector<Event> events;
  // Cursor of the next page. "": there are no more events. With the order oldest first, it is "" only if the pages have
  // no event at all, because later events may follow the last event.
  std::string next;
  bool truncated = false;  // more events follow in the range
};

// The texts of the events of a page. A node may send texts of 4 KiB each, so that 10,000 events need 160 MB.
constexpr size_t kEventListTextBytesMax = 16u << 20;

// Returns at most `limit` events, and fewer if their texts exceed kEventListTextBytesMax. The pages of a list contain
// each event exactly once, if the event was stored before the first page was requested. Pages do not contain later
// events that come before their cursor. InvalidArgument: the cursor is wrong, or the selector has labels of threads.
absl::StatusOr<EventList> MakeEventList(const QueryContext& context, const EventListRequest& request);

}  // namespace tributary
