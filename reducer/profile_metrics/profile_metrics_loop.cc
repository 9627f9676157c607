#include "reducer/profile_metrics/profile_metrics_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/saturate.h"
#include "base/status.h"
#include "reducer/profile_metrics/process_labels.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

std::string HelpOf(const MetricSpec& spec) {
  std::string by;
  for (const MetricLabel& label : spec.by) by += fmt::format("{}{}", by.empty() ? ", by " : ", ", label.name);
  return fmt::format("Sum of the stored {} samples in {}{} (option --metric)", spec.type.name,
                     spec.is_time() ? "seconds" : spec.type.unit, by);
}

std::vector<Metrics::Row> RowsOf(const MetricSpec& spec, const MetricSeries& series) {
  std::vector<Metrics::Row> rows;
  const double unit = spec.is_time() ? static_cast<double>(kNsPerSecond) : 1;
  for (MetricSeries::Series& one : series.List()) {
    Metrics::Row& row = rows.emplace_back();
    for (size_t i = 0; i < spec.by.size(); ++i) row.labels.emplace_back(spec.by[i].name, std::move(one.labels[i]));
    row.value = static_cast<double>(one.value) / unit;
    row.start = one.start;
  }
  return rows;
}

// `frames` may be null if no metric has labels of frames.
MetricSeries::Sums SumsOf(const MetricSpec& spec, const CommittedSums& committed, ProcessLabels& processes,
                          const FrameLabels* frames) {
  MetricSeries::Sums out;
  const CommittedSums::Sum* last = nullptr;
  std::optional<MetricSeries::LabelValues> values;
  for (const CommittedSums::Sum& sum : committed.sums) {
    if (*sum.type != spec.type) continue;
    if (last == nullptr || last->process != sum.process || last->minute != sum.minute) {
      values = processes.Of(spec, sum.process, MiddleOf(sum.minute));
    }
    last = &sum;
    if (!values) continue;
    for (size_t i = 0; frames != nullptr && i < spec.by.size(); ++i) {
      if (spec.by[i].is_of_frame()) (*values)[i] = frames->Of(sum.day, sum.stack).Of(spec.by[i].of);
    }
    MetricSeries::Weight& weight = out[*values];
    AddSaturating(sum.value, &weight.value);
    weight.count += sum.count;
  }
  return out;
}

}  // namespace

ProfileMetricsLoop::ProfileMetricsLoop(Options options, store::Store& store, SymbolLookup symbols, const Clock& clock,
                                       Metrics& metrics)
    : options_(std::move(options)),
      store_(store),
      is_cancelled_([this] { return cancelled_.load(); }),
      // A table can take seconds to read and to decode.
      symbols_(
          [this, symbols = std::move(symbols)](const ExecutableId& id) { return cancelled_ ? nullptr : symbols(id); }),
      clock_(clock),
      elect_at_{clock.Monotonic().value + kElectNs},
      failures_(metrics.AddCounter("tributary_profile_metrics_failures_total",
                                   "Times that the samples for the metrics of --metric could not be read; they are "
                                   "read again.")),
      expired_(metrics.AddCounter("tributary_profile_metrics_expired_samples_total",
                                  "Samples that the metrics of --metric do not contain, because they expired before "
                                  "they were read, or were already too old when they arrived.")),
      early_(metrics.AddCounter("tributary_profile_metrics_early_samples_total",
                                "Samples that the metrics of --metric counted before --metadata-wait had passed, "
                                "because too many different stacks of their shard were waiting.")),
      caught_up_(metrics.AddGauge("tributary_profile_metrics_caught_up_timestamp_seconds",
                                  "Unix time at which the metrics of --metric had last read all samples of the "
                                  "store, in seconds; 0: not yet.")) {
  const size_t share = options_.total_series_max / std::max<size_t>(options_.specs.size(), 1);
  for (const MetricSpec& spec : options_.specs) {
    AddMetric(spec, std::max<size_t>(std::min(options_.series_max, share), 1), metrics);
  }
  AddFeeds();
  for (Feed& feed : feeds_) (void)Begin(feed);  // after an error, RunOnce tries again
}

void ProfileMetricsLoop::AddMetric(MetricSpec spec, size_t series_max, Metrics& metrics) {
  types_[spec.type] |= spec.uses_frames();
  wanted_.language |= spec.uses(MetricLabel::Of::kLanguage);
  wanted_.function |= spec.uses(MetricLabel::Of::kFunction);
  wanted_.library |= spec.uses(MetricLabel::Of::kLibrary);
  auto series = std::make_shared<MetricSeries>(series_max, clock_);
  metrics.AddTable(spec.name, HelpOf(spec), /*is_counter=*/true, [spec, series] { return RowsOf(spec, *series); });
  const Metrics::Labels labels = {{"metric", spec.name}};
  metrics.AddCallback("tributary_profile_metrics_series", "Series of a metric of --metric, without the series (other).",
                      /*is_counter=*/false, labels, [series] { return static_cast<double>(series->size()); });
  metrics_.push_back(
      {.spec = std::move(spec),
       .series = std::move(series),
       .samples = metrics.AddCounter("tributary_profile_metrics_samples_total",
                                     "Samples that a metric of --metric has counted.", labels),
       .others = metrics.AddCounter("tributary_profile_metrics_other_samples_total",
                                    "Samples that a metric of --metric has counted in its series (other), because it "
                                    "has as many series as it may have.",
                                    labels),
       .replaced = metrics.AddCounter("tributary_profile_metrics_replaced_series_total",
                                      "Series of a metric of --metric that ended, because another one has grown much "
                                      "more and took their place.",
                                      labels)});
}

void ProfileMetricsLoop::AddFeeds() {
  for (auto shard = static_cast<uint32_t>(feeds_.size()); shard < store_.shard_count(); ++shard) {
    feeds_.emplace_back().shard = shard;
  }
}

int64_t ProfileMetricsLoop::RunOnce() {
  AddFeeds();
  bool more = false, failed = false;
  for (Feed& feed : feeds_) {
    const absl::StatusOr<bool> full = Advance(feed);
    if (cancelled_) return kPollNs;
    if (full.ok()) {
      more |= *full;
      continue;
    }
    failed = true;
    failures_.Add();
    uint64_t held = 0;
    if (failure_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("cannot read samples for --metric, tries again shard={} error=\"{}\" suppressed={}", feed.shard,
                 full.status().ToString(), held);
    }
  }
  if (!more && !failed) caught_up_.Set(clock_.Unix().value / kNsPerSecond);
  if (clock_.Monotonic() >= elect_at_) Elect();
  return more ? 0 : kPollNs;
}

// Returns true if more samples wait in the store. Reads no more while sums cannot be counted.
absl::StatusOr<bool> ProfileMetricsLoop::Advance(Feed& feed) {
  if (!feed.read_to) RETURN_IF_ERROR(Begin(feed));
  RETURN_IF_ERROR(CountDue(feed));
  ASSIGN_OR_RETURN(const bool full, Read(feed));
  RETURN_IF_ERROR(CountDue(feed));
  return full;
}

absl::StatusOr<std::unique_ptr<store::StoreReader>> ProfileMetricsLoop::Open(const Feed& feed) {
  ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(feed.shard));
  reader->CancelIf(is_cancelled_);
  return reader;
}

// Sets the position behind all samples that the shard has now.
absl::Status ProfileMetricsLoop::Begin(Feed& feed) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, Open(feed));
  const auto none = [](const store::SampleColumns&, const store::Cursor&) { return absl::OkStatus(); };
  ASSIGN_OR_RETURN(const store::CommittedScan scan, reader->ScanCommitted({}, 0, none));
  feed.read_to = store::Cursor{.chunk = scan.newest, .samples = std::nullopt};
  return absl::OkStatus();
}

absl::StatusOr<bool> ProfileMetricsLoop::Read(Feed& feed) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, Open(feed));
  ASSIGN_OR_RETURN(CommittedSums committed, CommittedSums::Read(*reader, *feed.read_to, kScanRowsMax, types_));
  feed.read_to = committed.scan.next;
  expired_.Add(committed.scan.expired_samples);
  const bool full = committed.samples >= kScanRowsMax;
  if (!committed.sums.empty()) {
    feed.waiting_sums += committed.sums.size();
    feed.waiting.push_back({std::move(committed), clock_.Monotonic()});
  }
  return full;
}

absl::Status ProfileMetricsLoop::CountDue(Feed& feed) {
  while (!feed.waiting.empty()) {
    const Waiting& oldest = feed.waiting.front();
    const bool is_held = clock_.Monotonic().value - oldest.read_at.value < options_.hold_ns;
    if (is_held && feed.waiting_sums <= kHeldSumsMax) break;
    RETURN_IF_ERROR(Count(feed, oldest.committed));
    if (is_held) early_.Add(oldest.committed.samples);
    feed.waiting_sums -= oldest.committed.sums.size();
    feed.waiting.pop_front();
  }
  return absl::OkStatus();
}

// All reads come first, so that an error counts nothing, and the next attempt counts each sample once.
absl::Status ProfileMetricsLoop::Count(const Feed& feed, const CommittedSums& committed) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::StoreReader> reader, Open(feed));
  ASSIGN_OR_RETURN(ProcessLabels processes, ProcessLabels::Read(*reader, committed.Runs(), options_.joiner));
  std::optional<FrameLabels> frames;
  if (wanted_.language || wanted_.function || wanted_.library) {
    ASSIGN_OR_RETURN(frames,
                     FrameLabels::Read(*reader, committed.Leaves(), wanted_, {symbols_, names_, is_cancelled_}));
  }
  for (const Metric& metric : metrics_) {
    // The first metrics may have counted the samples already. But after Cancel, nothing is tried again.
    if (cancelled_) return absl::CancelledError("the reducer stops");
    const MetricSeries::Sums sums = SumsOf(metric.spec, committed, processes, frames ? &*frames : nullptr);
    for (const auto& [labels, weight] : sums) metric.samples.Add(weight.count);
    metric.others.Add(metric.series->Add(sums));
  }
  return absl::OkStatus();
}

void ProfileMetricsLoop::Elect() {
  elect_at_ = MonotonicNs{clock_.Monotonic().value + kElectNs};
  for (const Metric& metric : metrics_) metric.replaced.Add(metric.series->Elect());
  if (!std::exchange(has_warned_, true)) WarnOfUnknownNames();
}

// Runs once, a minute after the start: the attributes of processes are only known once their samples have been counted.
void ProfileMetricsLoop::WarnOfUnknownNames() {
  std::vector<std::string> sentences;
  if (options_.joiner != nullptr) sentences = FindUnknownAttributes(options_.specs, options_.joiner->names());
  std::set<SampleTypeInfo> known_types;
  for (const Feed& feed : feeds_) {
    const auto reader = Open(feed);
    const auto types = reader.ok() ? (*reader)->SampleTypes() : reader.status();
    if (!types.ok()) continue;
    for (const auto& [no, type] : *types) known_types.insert(type);
  }
  for (std::string& sentence : FindUnknownTypes(options_.specs, known_types)) sentences.push_back(std::move(sentence));
  for (const std::string& sentence : sentences) LogWarning("--metric: {}", sentence);
}

}  // namespace tributary
