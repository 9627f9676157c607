#include "reducer/query/event_list.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "reducer/query/event_cursor.h"
#include "reducer/query/event_selection.h"
#include "reducer/query/query_context.h"
#include "reducer/query/restart_finder.h"

namespace tributary {
namespace {

// The first `limit` events after a cursor, as far as their texts fit.
class EventPage {
 public:
  EventPage(EventOrder order, size_t limit, const std::optional<EventCursor>& cursor)
      : order_(order), limit_(limit), cursor_(cursor), same_left_(cursor ? cursor->same : 0) {}

  // Returns true if no event of the window, or after it, can be on the page.
  bool IsFullBefore(store::TimeRange window) const {
    if (!first_left_out_) return false;
    const UnixNs end = first_left_out_->time;
    return order_ == EventOrder::kNewestFirst ? end >= window.to : end < window.from;
  }

  // A digest and a selector cost more than this comparison, and most events of a long range are far behind the page.
  bool IsFarBehind(UnixNs time) const {
    if (!first_left_out_) return false;
    const UnixNs end = first_left_out_->time;
    return order_ == EventOrder::kNewestFirst ? time < end : time > end;
  }

  // Call it once for each event in the range.
  void Offer(const store::ProcessEventRow& event) {
    if (IsFarBehind(event.time)) return;
    const EventKey key = EventKey::Of(event);
    if (cursor_ && !IsBefore(order_, cursor_->key, key)) {
      if (key != cursor_->key) return;
      if (same_left_ > 0) {
        --same_left_;
        return;
      }
    }
    if (first_left_out_ && !IsBefore(order_, key, *first_left_out_)) return;
    const auto is_before = [this](const Kept& a, const Kept& b) { return IsBefore(order_, a.key, b.key); };
    kept_.push_back({key, std::make_unique<store::EventRecord>(event)});
    text_bytes_ += kept_.back().record->text_bytes();
    std::push_heap(kept_.begin(), kept_.end(), is_before);
    while (kept_.size() > limit_ || (text_bytes_ > kEventListTextBytesMax && kept_.size() > 1)) {
      std::pop_heap(kept_.begin(), kept_.end(), is_before);
      first_left_out_ = kept_.back().key;
      text_bytes_ -= kept_.back().record->text_bytes();
      kept_.pop_back();
    }
  }

  EventList Take() && {
    std::sort(kept_.begin(), kept_.end(),
              [this](const Kept& a, const Kept& b) { return IsBefore(order_, a.key, b.key); });
    EventList list{.truncated = first_left_out_.has_value()};
    if (list.truncated || order_ == EventOrder::kOldestFirst) list.next = Next();
    for (Kept& kept : kept_) list.events.push_back({std::move(*kept.record), {}});
    return list;
  }

 private:
  struct Kept {
    EventKey key;
    std::unique_ptr<store::EventRecord> record;  // a heap moves its elements often
  };

  std::string Next() const {
    if (kept_.empty()) return cursor_ ? cursor_->ToString() : "";
    EventCursor next{.order = order_, .key = kept_.back().key, .same = 0};
    for (auto it = kept_.rbegin(); it != kept_.rend() && it->key == next.key; ++it) ++next.same;
    if (cursor_ && cursor_->key == next.key) next.same += cursor_->same;
    return next.ToString();
  }

  const EventOrder order_;
  const size_t limit_;
  const std::optional<EventCursor> cursor_;
  uint64_t same_left_;                      // events with the cursor's key that an earlier page has returned
  std::vector<Kept> kept_;                  // a heap, the last event in the list's order on top
  size_t text_bytes_ = 0;                   // of kept_
  std::optional<EventKey> first_left_out_;  // this event and all events after it are not on the page
};

store::TimeRange RangeAfter(store::TimeRange range, const std::optional<EventCursor>& cursor) {
  if (!cursor) return range;
  const UnixNs at = cursor->key.time;
  if (cursor->order == EventOrder::kOldestFirst) {
    range.from = std::max(range.from, at);
  } else if (at < range.to) {
    range.to = UnixNs{at.value + 1};
  }
  return range;
}

}  // namespace

absl::StatusOr<EventList> MakeEventList(const QueryContext& context, const EventListRequest& request) {
  std::optional<EventCursor> cursor;
  if (!request.cursor.empty()) {
    ASSIGN_OR_RETURN(cursor, EventCursor::Parse(request.cursor, request.order));
  }
  ASSIGN_OR_RETURN(EventSelection selection, EventSelection::Make(context));
  const store::TimeRange range = RangeAfter(context.request.range, cursor);
  EventPage page(request.order, request.limit, cursor);
  const auto add_shard = [&](store::StoreReader& reader) -> absl::Status {
    RestartFinder restarts(context.request, selection);
    EventWindows windows(range, request.order);
    for (auto window = windows.Next(); window && !page.IsFullBefore(*window); window = windows.Next()) {
      bool is_empty = true;
      const auto visit = [&](const store::ProcessEventRow& event) {
        is_empty = false;
        if (request.kinds.Has(event) && !page.IsFarBehind(event.time) && selection.Has(event)) page.Offer(event);
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(ScanEvents(reader, context.request, *window, {}, visit));
      windows.Finish(is_empty);
      if (is_empty || !request.kinds.has_restarts()) continue;
      ASSIGN_OR_RETURN(const std::vector<Restart> found, restarts.Find(reader, *window));
      for (const Restart& restart : found) {
        const store::ProcessEventRow event = restart.begin.Row();
        if (!request.kinds.Has(event)) page.Offer(event);
      }
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachShard(context, add_shard));
  EventList list = std::move(page).Take();
  size_t placed = 0;
  for (EventList::Event& event : list.events) {
    RETURN_IF_ERROR(CheckCancelledAt(context.request, ++placed));
    event.place = selection.PlaceOf(event.record.Row());
  }
  return list;
}

}  // namespace tributary
