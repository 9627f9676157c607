#include "test/otlp/metrics_validator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "test/otlp/validation.h"

namespace tributary::otlp {
namespace {

namespace metrics = ::opentelemetry::proto::metrics::v1;
using KeyValues = google::protobuf::RepeatedPtrField<common::KeyValue>;

constexpr size_t kNameBytesMax = 255;  // metrics API, "Instrument name syntax"
constexpr size_t kUnitBytesMax = 63;   // metrics API, "Instrument unit"
constexpr uint32_t kNoRecordedValue = 1;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && IsLetter(name[0]) && std::ranges::all_of(name, [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == '/';
  });
}

// A unit of UCUM is ASCII without blanks.
bool IsUnit(std::string_view unit) {
  return unit.size() <= kUnitBytesMax && std::ranges::all_of(unit, [](char c) { return c > ' ' && c < '\x7f'; });
}

// Returns the unit that a Prometheus name promises, or "".
std::string_view PromisedUnit(std::string_view name) {
  if (name.ends_with("_total")) name.remove_suffix(6);
  return name.ends_with("_seconds") ? "s" : name.ends_with("_bytes") ? "By" : "";
}

// Checks a list of attributes. Indices of strings are allowed only in profiles.
void CheckKeyValues(const KeyValues& attributes, const std::string& rule, const std::string& where, Findings& out) {
  std::set<std::string> keys;
  for (const common::KeyValue& attribute : attributes) {
    if (attribute.key_strindex() != 0 || attribute.value().has_string_value_strindex()) {
      out.Add("attribute.strindex", where, "an index of a string, but there is no dictionary");
    } else if (attribute.key().empty()) {
      out.Add("attribute.no_key", where, "an attribute without a key");
    }
    if (!keys.insert(attribute.key()).second) {
      out.Add(rule + ".attribute_repeated", where, fmt::format("key \"{}\" twice", attribute.key()));
    }
  }
}

// Returns the same text for the same set of attributes.
std::string Identity(const KeyValues& attributes) {
  std::vector<std::string> parts;
  for (const common::KeyValue& attribute : attributes) parts.push_back(attribute.SerializeAsString());
  std::ranges::sort(parts);
  std::string out;
  for (const std::string& part : parts) out += fmt::format("{}:{}", part.size(), part);
  return out;
}

double ValueOf(const metrics::NumberDataPoint& point) {
  return point.has_as_int() ? static_cast<double>(point.as_int()) : point.as_double();
}

void CheckValueOf(const metrics::NumberDataPoint& point, const std::string& where, Findings& out) {
  const bool has_value = point.value_case() != metrics::NumberDataPoint::VALUE_NOT_SET;
  const bool says_none = (point.flags() & kNoRecordedValue) != 0;
  if (!has_value && !says_none) out.Add("point.no_value", where, "neither a value nor the flag for none");
  if (has_value && says_none) out.Add("point.value_with_flag", where, "a value, and the flag for none");
  if ((point.flags() & ~kNoRecordedValue) != 0) out.Add("point.flags", where, fmt::format("flags {}", point.flags()));
  if (std::isnan(ValueOf(point))) out.Add("point.nan", where, "the value is NaN");
}

}  // namespace

// One check of a request.
class MetricsValidator::Pass {
 public:
  explicit Pass(MetricsValidator& validator) : last_(validator.last_) {}

  std::vector<Finding> Run(const Request& request) && {
    if (const size_t bytes = request.ByteSizeLong(); bytes >= kRequestBytesMax) {
      out_.Add("request.too_large", "", fmt::format("{} bytes", bytes));
    }
    CheckMessage(request, "", out_);
    if (request.resource_metrics().empty()) out_.Add("request.no_resources", "", "nothing in it");
    std::set<std::string> resources;
    for (int r = 0; r < request.resource_metrics_size(); ++r) {
      const std::string where = fmt::format("resource {}", r);
      const std::string identity = Identity(request.resource_metrics(r).resource().attributes());
      if (!resources.insert(identity).second) out_.Add("resource.repeated", where, "same resource as an earlier one");
      CheckResource(request.resource_metrics(r), identity, where);
    }
    return std::move(out_).Take();
  }

 private:
  void CheckResource(const metrics::ResourceMetrics& resource, const std::string& identity, const std::string& where) {
    const KeyValues& attributes = resource.resource().attributes();
    CheckKeyValues(attributes, "resource", where, out_);
    const bool is_named = std::ranges::any_of(attributes, [](const common::KeyValue& attribute) {
      return attribute.key() == "service.name" && !attribute.value().string_value().empty();
    });
    if (!is_named) out_.Add("resource.no_service_name", where, "no service.name");
    if (resource.scope_metrics().empty()) out_.Add("resource.no_scopes", where, "no scope");
    for (int s = 0; s < resource.scope_metrics_size(); ++s) {
      const metrics::ScopeMetrics& scope = resource.scope_metrics(s);
      const std::string in_scope = fmt::format("{} scope {}", where, s);
      CheckKeyValues(scope.scope().attributes(), "scope", in_scope, out_);
      if (scope.metrics().empty()) out_.Add("scope.no_metrics", in_scope, "no metric");
      std::set<std::string> names;
      for (int m = 0; m < scope.metrics_size(); ++m) {
        const metrics::Metric& metric = scope.metrics(m);
        const std::string at = fmt::format("{} metric {} {}", in_scope, m, metric.name());
        if (!names.insert(metric.name()).second) out_.Add("metric.repeated", at, "same name as an earlier metric");
        CheckMetric(metric, fmt::format("{}\n{}\n{}\n", identity, scope.scope().name(), metric.name()), at);
      }
    }
  }

  void CheckMetric(const metrics::Metric& metric, const std::string& identity, const std::string& where) {
    if (!IsName(metric.name())) out_.Add("metric.name", where, "no name of an instrument");
    if (!IsUnit(metric.unit())) out_.Add("metric.unit", where, fmt::format("unit \"{}\"", metric.unit()));
    if (const std::string_view promised = PromisedUnit(metric.name()); metric.unit() != promised) {
      out_.Add("metric.unit_differs_from_name", where, fmt::format("\"{}\", not \"{}\"", metric.unit(), promised));
    }
    CheckKeyValues(metric.metadata(), "metric", where, out_);
    if (metric.data_case() == metrics::Metric::DATA_NOT_SET) {
      out_.Add("metric.no_data", where, "neither a sum nor a gauge");
      return;
    }
    const bool is_sum = metric.has_sum();
    if (is_sum && metric.sum().aggregation_temporality() != metrics::AGGREGATION_TEMPORALITY_CUMULATIVE) {
      out_.Add("sum.not_cumulative", where, "Prometheus takes cumulative sums only");
    }
    const auto& points = is_sum ? metric.sum().data_points() : metric.gauge().data_points();
    if (points.empty()) out_.Add("metric.no_points", where, "no data point");
    std::set<std::string> seen;
    for (int p = 0; p < points.size(); ++p) {
      const std::string at = fmt::format("{} point {}", where, p);
      const std::string attributes = Identity(points[p].attributes());
      if (!seen.insert(attributes).second) {
        out_.Add("point.repeated", at, "same attributes as an earlier point");
        continue;
      }
      CheckPoint(points[p], at);
      if (is_sum) CheckSum(points[p], metric.sum().is_monotonic(), at);
      CheckSeries(points[p], is_sum && metric.sum().is_monotonic(), identity + attributes, at);
    }
  }

  void CheckPoint(const metrics::NumberDataPoint& point, const std::string& where) {
    CheckKeyValues(point.attributes(), "point", where, out_);
    CheckValueOf(point, where, out_);
    if (point.time_unix_nano() == 0) out_.Add("point.no_time", where, "no time");
    if (point.start_time_unix_nano() > point.time_unix_nano()) {
      out_.Add("point.start_after_time", where,
               fmt::format("{} after {}", point.start_time_unix_nano(), point.time_unix_nano()));
    }
  }

  void CheckSum(const metrics::NumberDataPoint& point, bool is_monotonic, const std::string& where) {
    if (point.start_time_unix_nano() == 0) out_.Add("sum.no_start", where, "a sum without its start");
    if (is_monotonic && ValueOf(point) < 0) out_.Add("sum.negative", where, fmt::format("{}", ValueOf(point)));
  }

  // Compares the point with the last one of its series.
  void CheckSeries(const metrics::NumberDataPoint& point, bool is_monotonic, const std::string& identity,
                   const std::string& where) {
    const Last now{point.start_time_unix_nano(), point.time_unix_nano(), ValueOf(point)};
    const auto [it, is_new] = last_.try_emplace(identity, now);
    if (is_new) return;
    const Last before = std::exchange(it->second, now);
    if (now.time <= before.time) {
      out_.Add("series.time_not_later", where, fmt::format("{} after {}", now.time, before.time));
    }
    if (now.start < before.start) {
      out_.Add("series.start_earlier", where, fmt::format("{} after {}", now.start, before.start));
    }
    if (is_monotonic && now.start == before.start && now.value < before.value) {
      out_.Add("series.fell", where, fmt::format("{} after {}, with the same start", now.value, before.value));
    }
  }

  Findings out_;
  std::map<std::string, Last>& last_;
};

std::vector<Finding> MetricsValidator::Check(const Request& request) { return Pass(*this).Run(request); }

std::vector<Finding> MetricsValidator::CheckBytes(std::string_view bytes) {
  Request request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {Finding{"message.not_protobuf", "", fmt::format("{} bytes", bytes.size())}};
  }
  return Check(request);
}

}  // namespace tributary::otlp
