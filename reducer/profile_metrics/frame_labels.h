#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/profile_metrics/metric_spec.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/store/store.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {

// Finds the labels of the innermost frames of stacks. Looks at no other frame, looks at each frame once, and looks up
// names only if a metric has the label `function`. Used on one thread, for the samples of one scan.
class FrameLabels {
 public:
  // The labels that metrics use. Others are not found.
  struct Wanted {
    bool language = false, function = false, library = false;
  };
  // Where names come from. The objects must outlive the call.
  struct Sources {
    const SymbolLookup& symbols;
    DemangleCache& names;
    const std::function<bool()>& is_cancelled;
  };
  using Leaves = std::map<store::Day, std::vector<store::NodeNo>>;

  // Reads the innermost frames of the stacks in `leaves`. If a day's stacks were already deleted, because they were too
  // old, their frames are unknown. Cancelled: `is_cancelled` returned true, which is asked before each frame.
  static absl::StatusOr<FrameLabels> Read(store::StoreReader& reader, const Leaves& leaves, Wanted wanted,
                                          const Sources& sources);

  struct Labels {
    std::string
        language;  // the kind of the code, as in the OTLP attribute profile.frame.type: "native", "go", "kernel"
    std::string function;  // the innermost one, if functions are inlined; "[unknown]" without a name
    std::string library;   // the base name of the file, "[kernel]", or "[unknown]"

    const std::string& Of(MetricLabel::Of label) const;
  };
  const Labels& Of(store::Day day, store::NodeNo leaf) const;

 private:
  FrameLabels() = default;

  // Of all frames, each once. [0]: an unknown frame.
  std::vector<Labels> labels_;
  absl::flat_hash_map<std::pair<store::Day, store::NodeNo>, uint32_t> by_leaf_;  // index of labels_
};

}  // namespace tributary
