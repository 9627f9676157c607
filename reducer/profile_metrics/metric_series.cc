#include "reducer/profile_metrics/metric_series.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "base/saturate.h"

namespace tributary {

uint64_t MetricSeries::Add(const Sums& sums) {
  // Scrapes wait for the lock, so the sort comes first.
  std::vector<const Sums::value_type*> largest_first;
  largest_first.reserve(sums.size());
  for (const Sums::value_type& sum : sums) largest_first.push_back(&sum);
  std::ranges::sort(largest_first, std::greater<>(), [](const Sums::value_type* sum) { return sum->second.value; });
  const std::lock_guard lock(mutex_);
  uint64_t others = 0;
  for (const Sums::value_type* sum : largest_first) {
    const auto& [labels, weight] = *sum;
    // Programs choose their labels, so a program may have those of the series that counts the rest.
    const bool is_other = !labels.empty() && std::ranges::count(labels, kOther) == std::ssize(labels);
    auto found = series_.find(labels);
    if (found == series_.end()) {
      if (is_other || series_.size() == series_max_) {
        others += AddOther(labels, weight, /*is_candidate=*/!is_other);
        continue;
      }
      found = series_.try_emplace(labels, Counted{.start = clock_.Unix()}).first;
    }
    AddSaturating(weight.value, &found->second.value);
    AddSaturating(weight.value, &found->second.recent);
  }
  return others;
}

uint64_t MetricSeries::AddOther(const LabelValues& labels, const Weight& weight, bool is_candidate) {
  if (other_labels_.empty()) other_.start = clock_.Unix();
  other_labels_.assign(labels.size(), kOther);
  AddSaturating(weight.value, &other_.value);
  if (is_candidate) {
    AddSaturating(weight.value, &candidates_[labels]);
    if (candidates_.size() == 2 * series_max_ * kWatchedPerSeries) KeepLargestCandidates();
  }
  return weight.count;
}

// Keeps the larger half. So many small combinations do not hide a large one that comes after them.
void MetricSeries::KeepLargestCandidates() {
  std::vector<uint64_t> growths;
  growths.reserve(candidates_.size());
  for (const auto& [labels, growth] : candidates_) growths.push_back(growth);
  const size_t kept = growths.size() / 2;
  const auto border = growths.begin() + static_cast<ptrdiff_t>(kept);
  std::ranges::nth_element(growths, border, std::greater<>());
  const uint64_t smallest = *border;  // all before the border are at least as large
  size_t ties = kept - static_cast<size_t>(
                           std::count_if(growths.begin(), border, [&](uint64_t growth) { return growth > smallest; }));
  absl::erase_if(candidates_, [&](const auto& candidate) {
    if (candidate.second != smallest) return candidate.second < smallest;
    if (ties == 0) return true;
    --ties;
    return false;
  });
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
    series_.emplace(winner, Counted{.recent = growth, .start = clock_.Unix()});
  }
  for (auto& [labels, counted] : series_) counted.recent /= 2;
  candidates_.clear();
  return replaced;
}

std::vector<MetricSeries::Series> MetricSeries::List() const {
  const std::lock_guard lock(mutex_);
  std::vector<Series> list;
  list.reserve(series_.size() + 1);
  for (const auto& [labels, counted] : series_) list.push_back({labels, counted.value, counted.start});
  if (!other_labels_.empty()) list.push_back({other_labels_, other_.value, other_.start});
  return list;
}

size_t MetricSeries::size() const {
  const std::lock_guard lock(mutex_);
  return series_.size();
}

}  // namespace tributary
