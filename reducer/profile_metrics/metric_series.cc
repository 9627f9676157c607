#include "reducer/profile_metrics/metric_series.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tributary {

uint64_t MetricSeries::Add(const Sums& sums) {
  const std::lock_guard lock(mutex_);
  std::vector<const Sums::value_type*> largest_first;
  for (const Sums::value_type& sum : sums) largest_first.push_back(&sum);
  std::ranges::sort(largest_first, std::greater<>(), [](const Sums::value_type* sum) { return sum->second.value; });
  uint64_t others = 0;
  for (const Sums::value_type* sum : largest_first) {
    const auto& [labels, weight] = *sum;
    auto found = series_.find(labels);
    if (found == series_.end()) {
      if (series_.size() == series_max_) {
        others += AddOther(labels, weight);
        continue;
      }
      found = series_.try_emplace(labels).first;
    }
    found->second.value += weight.value;
    found->second.recent += weight.value;
  }
  return others;
}

uint64_t MetricSeries::AddOther(const LabelValues& labels, const Weight& weight) {
  other_labels_.assign(labels.size(), kOther);
  other_.value += weight.value;
  const auto found = candidates_.find(labels);
  if (found != candidates_.end()) {
    found->second += weight.value;
  } else if (candidates_.size() < series_max_ * kWatchedPerSeries) {
    candidates_.emplace(labels, weight.value);
  }
  return weight.count;
}

size_t MetricSeries::Elect() {
  const std::lock_guard lock(mutex_);
  using Growth = std::pair<uint64_t, LabelValues>;
  std::vector<Growth> smallest, largest;
  if (!candidates_.empty()) {
    for (const auto& [labels, counted] : series_) smallest.emplace_back(counted.recent, labels);
    for (const auto& [labels, recent] : candidates_) largest.emplace_back(recent, labels);
  }
  std::ranges::sort(smallest);
  std::ranges::sort(largest, std::greater<>());
  size_t replaced = 0;
  for (; replaced < std::min(smallest.size(), largest.size()); ++replaced) {
    const auto& [growth, winner] = largest[replaced];
    if (growth <= smallest[replaced].first) break;
    series_.erase(smallest[replaced].second);
    series_.emplace(winner, Counted{.recent = growth});
  }
  for (auto& [labels, counted] : series_) counted.recent /= 2;
  candidates_.clear();
  return replaced;
}

std::vector<MetricSeries::Series> MetricSeries::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<Series> list;
  list.reserve(series_.size() + 1);
  for (const auto& [labels, counted] : series_) list.push_back({labels, counted.value});
  if (!other_labels_.empty()) list.push_back({other_labels_, other_.value});
  return list;
}

size_t MetricSeries::size() const {
  const std::lock_guard lock(mutex_);
  return series_.size();
}

}  // namespace tributary
