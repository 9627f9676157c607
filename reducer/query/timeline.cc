#include "reducer/query/timeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"
#include "reducer/store/store_times.h"

namespace tributary {
namespace {

constexpr size_t kBucketsMax = 100'000;

// Values per step of time. A value that is known only to the minute is spread over the steps that the minute covers.
// Rounding loses nothing: the sum of all steps is the sum of all added values.
class Buckets {
 public:
  Buckets(store::TimeRange range, size_t buckets) : range_(range) {
    const int64_t length = range.to.value - range.from.value;
    const auto wanted = static_cast<int64_t>(std::clamp<size_t>(buckets, 1, kBucketsMax));
    const int64_t length_ms = (length - 1) / kNsPerMs + 1;  // the range may not be a whole number of ms
    timeline_.step_ns = ((length_ms - 1) / wanted + 1) * kNsPerMs;
    auto count = static_cast<size_t>((length - 1) / timeline_.step_ns + 1);
    timeline_.values.resize(count);
    timeline_.counts.resize(count);
  }

  int64_t step_ns() const { return timeline_.step_ns; }

  void Add(UnixNs time, uint64_t value, uint64_t count) {
    if (time < range_.from || time >= range_.to) return;
    size_t i = IndexOf(time.value);
    timeline_.values[i] += value;
    timeline_.counts[i] += count;
  }

  // Spreads the values over [from, from + length), cut to the range.
  void AddSpread(UnixNs from, int64_t length, uint64_t value, uint64_t count) {
    int64_t begin = std::max(from.value, range_.from.value);
    int64_t end = std::min(from.value + length, range_.to.value);
    if (begin >= end) return;
    uint64_t value_given = 0, count_given = 0;
    for (size_t i = IndexOf(begin);; ++i) {
      int64_t bucket_end = range_.from.value + static_cast<int64_t>(i + 1) * timeline_.step_ns;
      double share =
          bucket_end >= end ? 1.0 : static_cast<double>(bucket_end - begin) / static_cast<double>(end - begin);
      uint64_t value_until =
          share >= 1.0 ? value : std::min(value, static_cast<uint64_t>(static_cast<double>(value) * share));
      uint64_t count_until =
          share >= 1.0 ? count : std::min(count, static_cast<uint64_t>(static_cast<double>(count) * share));
      timeline_.values[i] += value_until - value_given;
      timeline_.counts[i] += count_until - count_given;
      value_given = value_until;
      count_given = count_until;
      if (bucket_end >= end) return;
    }
  }

  void Add(const Buckets& other) {  // of the same range and number of buckets
    for (size_t i = 0; i < timeline_.values.size(); ++i) {
      timeline_.values[i] += other.timeline_.values[i];
      timeline_.counts[i] += other.timeline_.counts[i];
    }
  }

  Timeline Take() && { return std::move(timeline_); }

  // Divides the value of each step by the number of those `minutes` that begin in the step.
  Timeline TakeMeans(const absl::flat_hash_set<int64_t>& minutes) && {
    std::vector<uint64_t> minutes_of(timeline_.values.size(), 0);
    for (int64_t minute : minutes) ++minutes_of[IndexOf(minute)];
    for (size_t i = 0; i < minutes_of.size(); ++i) {
      if (minutes_of[i] == 0) continue;
      timeline_.values[i] = (timeline_.values[i] + minutes_of[i] / 2) / minutes_of[i];
      timeline_.counts[i] = (timeline_.counts[i] + minutes_of[i] / 2) / minutes_of[i];
    }
    return std::move(timeline_);
  }

 private:
  size_t IndexOf(int64_t time) const { return static_cast<size_t>((time - range_.from.value) / timeline_.step_ns); }

  store::TimeRange range_;
  Timeline timeline_;
};

// A range may have millions of minutes, but only the minutes with samples are kept.
using Minutes = absl::flat_hash_set<int64_t>;

// Adds the raw samples that are still stored. Adds each minute with raw samples that the selection's filter has to
// `minutes_seen`. The other minutes have no sums of selected processes, or no raw samples any more.
absl::Status AddSamples(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                        Minutes* minutes_seen, Buckets* buckets) {
  return reader.ScanSamples(request.range, selection.filter(),
                            [&](const store::SampleColumns& columns) -> absl::Status {
                              RETURN_IF_ERROR(CheckCancelled(request));
                              int64_t last_minute = -1;  // samples of one minute follow each other
                              for (size_t i = 0; i < columns.times.size(); ++i) {
                                const int64_t minute = store::MinuteOf(columns.times[i]);
                                if (std::exchange(last_minute, minute) != minute) minutes_seen->insert(minute);
                                if (!selection.Has(columns.type) ||
                                    !selection.Has(columns.processes[i], columns.threads[i], columns.times[i]))
                                  continue;
                                buckets->Add(columns.times[i], columns.values[i], columns.counts[i]);
                              }
                              return absl::OkStatus();
                            });
}

absl::Status AddSums(store::StoreReader& reader, const QueryRequest& request, store::TimeRange range,
                     const Selection& selection, const Minutes& minutes_seen, Buckets* buckets) {
  return reader.ScanSums(range, selection.filter(), [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (!selection.Has(columns.type) || minutes_seen.contains(store::MinuteOf(columns.minute))) {
      return absl::OkStatus();
    }
    uint64_t value = 0, count = 0;
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
      value += columns.values[i];
      count += columns.counts[i];
    }
    buckets->AddSpread(columns.minute, kNsPerMinute, value, count);
    return absl::OkStatus();
  });
}

// For steps shorter than a minute, and for selectors with labels of threads. Uses raw samples. If no threads are
// selected, uses sums for the minutes without raw samples.
absl::Status AddFine(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                     Buckets* buckets) {
  Minutes seen;
  RETURN_IF_ERROR(AddSamples(reader, request, selection, &seen, buckets));
  if (selection.uses_threads()) return absl::OkStatus();
  // The minutes from the first to the last one without samples. Both loops end after the minutes in `seen`.
  store::TimeRange range = request.range;
  const int64_t first_minute = store::MinuteOf(range.from), last_minute = store::MinuteOf(UnixNs{range.to.value - 1});
  int64_t first = first_minute, last = last_minute;
  while (first <= last && seen.contains(first)) ++first;
  if (first > last) return absl::OkStatus();
  while (seen.contains(last)) --last;
  range.from = std::max(range.from, UnixNs{first * kNsPerMinute});
  range.to = std::min(range.to, UnixNs{(last + 1) * kNsPerMinute});
  return AddSums(reader, request, range, selection, seen, buckets);
}

// Returns the largest number of steps for which each step of the range is at least a minute long, but at least 1.
size_t MinutesIn(store::TimeRange range) {
  return static_cast<size_t>(std::max<int64_t>((range.to.value - range.from.value) / kNsPerMinute, 1));
}

absl::StatusOr<Timeline> MakeGaugeTimeline(const QueryContext& context, size_t buckets_max) {
  const store::TimeRange range = context.request.range;
  Buckets buckets(range, std::min(buckets_max, MinutesIn(range)));
  absl::flat_hash_set<int64_t> minutes;
  const absl::Status visited = ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, context));
    return reader.ScanSums(range, selection.filter(), [&](const store::SumColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context.request));
      if (!selection.Has(columns.type)) return absl::OkStatus();
      const UnixNs at = std::max(columns.minute, range.from);  // the range may contain only the end of a minute
      for (size_t i = 0; i < columns.nodes.size(); ++i) {
        if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
        minutes.insert(at.value);
        buckets.Add(at, columns.values[i], columns.counts[i]);
      }
      return absl::OkStatus();
    });
  });
  RETURN_IF_ERROR(visited);
  return std::move(buckets).TakeMeans(minutes);
}

}  // namespace

absl::StatusOr<Timeline> MakeTimeline(const QueryContext& context, size_t buckets_max) {
  if (context.type.is_gauge()) return MakeGaugeTimeline(context, buckets_max);
  const QueryRequest& request = context.request;
  const auto read = [&](store::StoreReader& reader, const QueryContext& of_thread) -> absl::StatusOr<Buckets> {
    Buckets buckets(request.range, buckets_max);
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, of_thread));
    if (selection.uses_threads() || buckets.step_ns() < kNsPerMinute) {
      RETURN_IF_ERROR(AddFine(reader, request, selection, &buckets));
    } else {
      RETURN_IF_ERROR(AddSums(reader, request, request.range, selection, {}, &buckets));
    }
    return buckets;
  };
  Buckets buckets(request.range, buckets_max);
  const auto merge = [&](store::StoreReader&, Buckets of_shard) {  // NOLINT: Part is passed by value
    buckets.Add(of_shard);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ForEachShardPart<Buckets>(context, read, merge));
  return std::move(buckets).Take();
}

}  // namespace tributary
