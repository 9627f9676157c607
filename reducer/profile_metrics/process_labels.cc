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

absl::StatusOr<ProcessLabels> ProcessLabels::Read(store::StoreReader& reader,
                                                  const std::vector<CommittedSums::Run>& runs,
                                                  const ResourceJoiner* joiner) {
  ProcessLabels labels;
  for (const CommittedSums::Run& wanted : runs) {
    Run& run = labels.runs_.emplace_back();
    run.to = wanted.range.to;
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(wanted.range, &wanted.processes));
    for (store::ProcessRow& row : rows) run.rows.emplace(row.no, std::move(row));
    if (joiner != nullptr) run.resources.emplace(*joiner, wanted.range);
  }
  return labels;
}

std::optional<MetricSeries::LabelValues> ProcessLabels::Of(const MetricSpec& spec, store::ProcessNo process,
                                                           UnixNs time) {
  const auto run = std::ranges::upper_bound(runs_, time, {}, &Run::to);
  const store::ProcessRow* row = nullptr;
  if (run != runs_.end()) {
    if (const auto found = run->rows.find(process); found != run->rows.end()) row = &found->second;
  }
  const auto value = [&](std::string_view label) { return row == nullptr ? "" : ValueOf(*run, label, *row, time); };
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
std::string ProcessLabels::ValueOf(Run& run, std::string_view label, const store::ProcessRow& row, UnixNs time) {
  const std::optional<Label> known = FindLabel(label);
  if (known && !(run.resources && IsHostLabel(*known))) return LabelValue(*known, row);
  if (!run.resources) return "";
  const std::shared_ptr<const ResourceStates> states = run.resources->Of(row);
  const Attributes& attributes = ResourceAt(*states, time)->attributes;
  const auto found = std::ranges::find_if(
      attributes, [&](const Attribute& attribute) { return IsNormalizedAs(attribute.key, label); });
  return found == attributes.end() ? std::string() : found->value;
}

}  // namespace tributary
