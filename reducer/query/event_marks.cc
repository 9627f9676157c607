#include "reducer/query/event_marks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/event_cursor.h"
#include "reducer/query/event_kinds.h"
#include "reducer/query/event_selection.h"
#include "reducer/query/event_windows.h"
#include "reducer/query/query_context.h"
#include "reducer/query/restart_finder.h"

namespace tributary {
namespace {

// For restarts, the events of the minute before a window are read again. So windows are an hour and not ten minutes.
constexpr int32_t kWindowSlots = 6;
// Maximum number of restarted containers whose processes are recognised as one restart.
constexpr size_t kContainersMax = 10'000;

class MarkKeeper {
 public:
  explicit MarkKeeper(size_t limit) : limit_(limit) {}

  void Add(EventMarks::Mark mark) {
    const Key key = KeyOf(mark);
    if (best_left_out_ && key <= *best_left_out_) return;
    const auto is_better = [](const Kept& a, const Kept& b) { return a.first > b.first; };
    text_bytes_ += mark.record.text_bytes();
    kept_.emplace_back(key, std::move(mark));
    std::push_heap(kept_.begin(), kept_.end(), is_better);
    while (kept_.size() > limit_ || (text_bytes_ > kMarkTextBytesMax && kept_.size() > 1)) {
      std::pop_heap(kept_.begin(), kept_.end(), is_better);
      best_left_out_ = kept_.back().first;
      text_bytes_ -= kept_.back().second.record.text_bytes();
      kept_.pop_back();
    }
  }

  EventMarks Take() && {
    EventMarks marks{.truncated = best_left_out_.has_value()};
    for (Kept& kept : kept_) marks.marks.push_back(std::move(kept.second));
    std::sort(marks.marks.begin(), marks.marks.end(), [](const EventMarks::Mark& a, const EventMarks::Mark& b) {
      return EventKey::Of(a.record.Row()) > EventKey::Of(b.record.Row());
    });
    return marks;
  }

 private:
  using Key = std::tuple<bool, EventKey>;
  using Kept = std::pair<Key, EventMarks::Mark>;

  static Key KeyOf(const EventMarks::Mark& mark) {
    return {mark.kind != EventMarks::Kind::kRestart, EventKey::Of(mark.record.Row())};
  }

  const size_t limit_;
  std::vector<Kept> kept_;  // a heap, the least important mark on top
  size_t text_bytes_ = 0;   // of kept_
  std::optional<Key> best_left_out_;
};

class MarksOfShard {
 public:
  MarksOfShard(const QueryContext& context, EventSelection& selection, MarkKeeper& keeper)
      : context_(context), selection_(selection), keeper_(keeper), restarts_(context.request, selection) {}

  absl::Status Add(store::StoreReader& reader) {
    EventWindows windows(context_.request.range, EventOrder::kOldestFirst, kWindowSlots);
    while (const auto window = windows.Next()) {
      bool is_empty = true;
      const auto visit = [&](const store::ProcessEventRow& event) {
        is_empty = false;
        AddEnd(event);
        return absl::OkStatus();
      };
      RETURN_IF_ERROR(ScanEvents(reader, context_.request, *window, {}, visit));
      windows.Finish(is_empty);
      if (is_empty) continue;
      ASSIGN_OR_RETURN(std::vector<Restart> found, restarts_.Find(reader, *window));
      for (Restart& restart : found) AddRestart(std::move(restart));
    }
    return absl::OkStatus();
  }
  bool is_cut() const { return restarts_.is_cut(); }

 private:
  void AddEnd(const store::ProcessEventRow& event) {
    if (!event.end.oom_killed && !IsCrash(event)) return;
    if (!selection_.Has(event)) return;
    keeper_.Add({.kind = event.end.oom_killed ? EventMarks::Kind::kOom : EventMarks::Kind::kCrash,
                 .record = store::EventRecord(event),
                 .place = selection_.PlaceOf(event),
                 .end = event.end,
                 .count = event.processes});
  }

  void AddRestart(Restart restart) {
    if (restart.new_container) {
      if (containers_.size() >= kContainersMax) containers_.clear();
      if (!containers_.insert(restart.begin.node_id + '\0' + restart.place.container_id).second) return;
    }
    keeper_.Add({.kind = EventMarks::Kind::kRestart,
                 .record = std::move(restart.begin),
                 .place = std::move(restart.place),
                 .end = restart.ended});
  }

  const QueryContext& context_;
  EventSelection& selection_;
  MarkKeeper& keeper_;
  RestartFinder restarts_;
  absl::flat_hash_set<std::string> containers_;  // new containers with a mark
};

}  // namespace

absl::StatusOr<EventMarks> MakeEventMarks(const QueryContext& context, size_t limit) {
  ASSIGN_OR_RETURN(EventSelection selection, EventSelection::Make(context));
  MarkKeeper keeper(limit);
  bool is_cut = false;
  const auto add_shard = [&](store::StoreReader& reader) -> absl::Status {
    MarksOfShard of_shard(context, selection, keeper);
    RETURN_IF_ERROR(of_shard.Add(reader));
    is_cut |= of_shard.is_cut();
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachShard(context, add_shard));
  EventMarks marks = std::move(keeper).Take();
  marks.truncated |= is_cut;
  return marks;
}

}  // namespace tributary
