#include "reducer/query/restart_finder.h"

#include <algorithm>
#include <csignal>
#include <iterator>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace tributary {
namespace {

bool MayRestart(const store::ProcessEventRow& event) {
  if (event.executable_path.empty()) return false;
  if (event.kind == ProcessEventKind::kEndUnknown) return true;
  if (event.kind != ProcessEventKind::kExit) return false;
  const ProcessEnd& end = event.end;
  if (end.signal != 0 && end.signal != SIGPIPE) return true;
  const bool failed = end.exit_code != 0 && end.signal == 0;
  return end.run_ns >= static_cast<uint64_t>(failed ? RestartFinder::kFailedRunNs : RestartFinder::kRunNs);
}

bool IsEarlier(const RestartCandidate& a, const RestartCandidate& b) { return a.record.time < b.record.time; }

// `ends` are in order of time.
bool FollowsAnEnd(UnixNs begin, const std::vector<RestartCandidate>& ends) {
  const auto after = std::lower_bound(ends.begin(), ends.end(), begin,
                                      [](const RestartCandidate& end, UnixNs time) { return end.record.time < time; });
  return after != ends.begin() && begin.value - std::prev(after)->record.time.value <= RestartFinder::kGapNs;
}

size_t TextBytes(const RestartCandidate& candidate) {
  const EventPlace& place = candidate.place;
  return candidate.record.text_bytes() + place.container_id.size() + place.container.size() + place.pod.size() +
         place.name_space.size() + place.unit.size();
}

}  // namespace

void RestartFinder::AddCandidate(const store::ProcessEventRow& event, std::vector<RestartCandidate>* to) {
  to->push_back({store::EventRecord(event), selection_.PlaceOf(event)});
  text_bytes_ += TextBytes(to->back());
}

absl::Status RestartFinder::CollectEnds(store::StoreReader& reader, store::TimeRange range) {
  size_t count = 0;
  text_bytes_ = 0;
  return ScanEvents(reader, request_, range, {}, [&](const store::ProcessEventRow& event) {
    if (!MayRestart(event)) return absl::OkStatus();
    if (count >= kEndsMax || text_bytes_ >= kTextBytesMax) {
      is_cut_ = true;
      return absl::OkStatus();
    }
    ++count;
    AddCandidate(event, &programs_[Program(event.node_id, event.executable_path)].ends);
    return absl::OkStatus();
  });
}

// Keeps only the begins that follow an end of the same program within kGapNs. Most programs begin far more often.
absl::Status RestartFinder::CollectBegins(store::StoreReader& reader, store::TimeRange range) {
  size_t count = 0;
  text_bytes_ = 0;
  Program program;
  return ScanEvents(reader, request_, range, {}, [&](const store::ProcessEventRow& event) {
    if (event.kind != ProcessEventKind::kStart && event.kind != ProcessEventKind::kExec) return absl::OkStatus();
    program.first = event.node_id;
    program.second = event.executable_path;
    const auto of = programs_.find(program);
    if (of == programs_.end() || !FollowsAnEnd(event.time, of->second.ends)) return absl::OkStatus();
    if (count >= kBeginsMax || text_bytes_ >= kTextBytesMax) {
      is_cut_ = true;
      return absl::OkStatus();
    }
    ++count;
    AddCandidate(event, &of->second.begins);
    return absl::OkStatus();
  });
}

absl::Status RestartFinder::Match(Candidates& of, store::TimeRange window, std::vector<Restart>* found) {
  std::sort(of.begins.begin(), of.begins.end(), IsEarlier);
  const RestartIndex index(of.begins);
  absl::flat_hash_set<const RestartCandidate*> taken;
  // If several processes ended before one start, the start is one restart: of the process that ended last.
  for (auto it = of.ends.rbegin(); it != of.ends.rend(); ++it) {
    RETURN_IF_ERROR(CheckCancelled(request_));
    const RestartCandidate& end = *it;
    const RestartCandidate* begin = index.FirstAfter(end);
    if (begin == nullptr || begin->record.time.value - end.record.time.value > kGapNs) continue;
    const bool is_wanted = begin->record.time >= window.from && begin->record.time < window.to;
    if (!is_wanted || !selection_.Has(begin->record.Row()) || !taken.insert(begin).second) continue;
    const bool new_container = end.place.container_id != begin->place.container_id;
    found->push_back({begin->record, begin->place, end.record.end, new_container});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Restart>> RestartFinder::Find(store::StoreReader& reader, store::TimeRange window) {
  programs_.clear();
  const UnixNs from{std::max<int64_t>(window.from.value, INT64_MIN + kGapNs) - kGapNs};
  RETURN_IF_ERROR(CollectEnds(reader, {from, window.to}));
  std::vector<Restart> found;
  if (programs_.empty()) return found;
  for (auto& [program, of] : programs_) std::sort(of.ends.begin(), of.ends.end(), IsEarlier);
  RETURN_IF_ERROR(CollectBegins(reader, {from, window.to}));
  for (auto& [program, of] : programs_) RETURN_IF_ERROR(Match(of, window, &found));
  programs_.clear();
  std::sort(found.begin(), found.end(), [](const Restart& a, const Restart& b) { return a.begin.time < b.begin.time; });
  return found;
}

}  // namespace tributary
