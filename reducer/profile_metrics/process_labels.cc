#include "reducer/profile_metrics/process_labels.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/utf8.h"
#include "reducer/metadata/labels.h"

namespace tributary {

std::string MetricLabelValue(std::string_view text) {
  std::string valid = ToUtf8(text.substr(0, kMetricLabelBytesMax));
  return std::string(CutUtf8(valid, kMetricLabelBytesMax));
}

absl::StatusOr<ProcessLabels> ProcessLabels::Read(store::StoreReader& reader, store::TimeRange range,
                                                  const store::ProcessSet& wanted, const ResourceJoiner* joiner) {
  ProcessLabels labels;
  ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(range, &wanted));
  for (store::ProcessRow& row : rows) labels.rows_.emplace(row.no, std::move(row));
  if (joiner != nullptr) labels.resources_.emplace(*joiner, range);
  return labels;
}

std::optional<MetricSeries::LabelValues> ProcessLabels::Of(const MetricSpec& spec, store::ProcessNo process,
                                                           UnixNs time) {
  const auto found = rows_.find(process);
  const store::ProcessRow* row = found == rows_.end() ? nullptr : &found->second;
  const auto value = [&](std::string_view label) { return row == nullptr ? "" : ValueOf(label, *row, time); };
  const bool selected = std::ranges::all_of(
      spec.selector.matchers(), [&](const Selector::Matcher& matcher) { return matcher.Holds(value(matcher.label)); });
  if (!selected) return std::nullopt;
  MetricSeries::LabelValues values;
  for (const MetricLabel& label : spec.by) {
    values.push_back(label.is_of_frame() ? std::string() : MetricLabelValue(value(label.attribute)));
  }
  return values;
}

// A host's metadata may have another name and id than the session of its node.
std::string ProcessLabels::ValueOf(std::string_view label, const store::ProcessRow& row, UnixNs time) {
  const std::optional<Label> known = FindLabel(label);
  if (known && !(resources_ && IsHostLabel(*known))) return LabelValue(*known, row);
  if (!resources_) return "";
  const std::shared_ptr<const ResourceStates> states = resources_->Of(row);
  const Attributes& attributes = ResourceAt(*states, time)->attributes;
  const auto found = std::ranges::find_if(
      attributes, [&](const Attribute& attribute) { return IsNormalizedAs(attribute.key, label); });
  return found == attributes.end() ? std::string() : found->value;
}

}  // namespace tributary
