#include "reducer/query/machine_matcher.h"

#include <algorithm>

namespace tributary {

bool MachineMatcher::Holds(const store::MachineRow& machine) const {
  store::ProcessRow row;
  row.node_id = machine.node_id;
  row.host_name = machine.host_name;
  return std::ranges::all_of(matchers_,
                             [&row](const LabelMatcher& of) { return of.matcher->Holds(LabelValue(of.label, row)); });
}

store::ScanFilter MachineMatcher::FilterOf(const std::map<store::MachineNo, store::MachineRow>& machines) const {
  store::ScanFilter filter;
  if (HoldsUnknown()) return filter;
  filter.machines.emplace();
  for (const auto& [no, row] : machines) {
    if (Holds(row)) filter.machines->push_back(no);
  }
  return filter;
}

}  // namespace tributary
