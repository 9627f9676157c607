#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/query/selector.h"

namespace tributary {

class AttributeNames;

// A label of a metric: one name in `by=`.
struct MetricLabel {
  // The last three describe the innermost frame of a stack: the code that was running when the sample was taken.
  enum class Of { kAttribute, kLanguage, kFunction, kLibrary };
  Of of = Of::kAttribute;
  std::string name;       // of the label in Prometheus: "service", "k8s_pod_name"
  std::string attribute;  // of kAttribute: the name of the attribute, normalized as NormalizeLabel does

  bool is_of_frame() const { return of != Of::kAttribute; }
};

// One value of --metric: which samples are summed up, and by which labels. The text is a list of KEY=VALUE, separated
// by commas:
//
//   name=NAME              of the metric; required; it must end with _total
//   selector={a="b",…}     which processes count; without it, all
//   by=LABEL[,LABEL…]      service, executable, language, function, library, or the name of an attribute
//   type=NAME[:UNIT]       of the samples; without it, cpu
//
// A part without `=` is one more label of the `by` before it.
struct MetricSpec {
  static constexpr size_t kMetricsMax = 32;        // values of --metric
  static constexpr size_t kLabelsMax = 8;          // of one metric
  static constexpr size_t kNameBytesMax = 128;     // of a metric and of an attribute
  static constexpr size_t kTextBytesMax = 10'000;  // of one value of --metric

  std::string name;
  Selector selector;
  SampleTypeInfo type;  // a sum, not a gauge
  std::vector<MetricLabel> by;

  bool uses_frames() const;
  bool uses(MetricLabel::Of of) const;
  // Returns true if the values are times. Prometheus requires seconds, and samples have nanoseconds.
  bool is_time() const { return type.unit == "nanoseconds"; }

  // InvalidArgument: the text is not valid. The message names the mistake, its position in the text, and what is
  // allowed there.
  static absl::StatusOr<MetricSpec> Parse(std::string_view text);
};

// Parses all values of --metric. Also returns InvalidArgument if two metrics have the same name, or if there are more
// than kMetricsMax.
absl::StatusOr<std::vector<MetricSpec>> ParseMetricSpecs(const std::vector<std::string>& texts);

// Returns a sentence for each attribute that the metrics use and that `names` does not have. It may be misspelt, or no
// process has had it yet.
std::vector<std::string> FindUnknownAttributes(const std::vector<MetricSpec>& specs, const AttributeNames& names);

// Returns a sentence for each metric whose type is not in `types` and not built in. It may be misspelt, or no program
// has sent it yet, or it is a gauge.
std::vector<std::string> FindUnknownTypes(const std::vector<MetricSpec>& specs, const std::set<SampleTypeInfo>& types);

}  // namespace tributary
