#pragma once

#include <map>
#include <vector>

#include "reducer/metadata/labels.h"
#include "reducer/query/selector.h"
#include "reducer/store/store.h"

namespace tributary {

// The matchers of a selector that read only the store's row of a machine. So a scan can leave out the other machines.
// Used by one thread.
class MachineMatcher {
 public:
  // Returns true if the label is read from the row of a machine. If there is metadata, the labels of hosts are
  // attributes of resources instead.
  static bool IsFor(Label label, bool has_metadata) {
    return label == Label::kNodeId || (IsHostLabel(label) && !has_metadata);
  }

  // `matcher` must outlive the object.
  void Add(Label label, const Selector::Matcher& matcher) { matchers_.push_back({label, &matcher}); }

  bool empty() const { return matchers_.empty(); }
  bool Holds(const store::MachineRow& machine) const;
  // Returns true if the matchers hold for a machine without a row: its labels all count as "".
  bool HoldsUnknown() const { return Holds({}); }
  // Returns the filter of the machines for which the matchers hold. A filter cannot name machines without a row, so it
  // lets all machines pass if the matchers hold for those.
  store::ScanFilter FilterOf(const std::map<store::MachineNo, store::MachineRow>& machines) const;

 private:
  struct LabelMatcher {
    Label label;
    const Selector::Matcher* matcher;
  };

  std::vector<LabelMatcher> matchers_;
};

}  // namespace tributary
