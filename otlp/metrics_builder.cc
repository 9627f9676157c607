#include "otlp/metrics_builder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::metrics::v1;

// Upper bounds of the bytes around a message: a tag, and a length of up to 2^28.
constexpr size_t kAroundMessage = 5;
// Around and in a metric: the metric, its sum or gauge, and the two other fields of a sum.
constexpr size_t kAroundMetric = 2 * kAroundMessage + 4;

uint64_t UnsignedNs(UnixNs time) { return static_cast<uint64_t>(std::max<int64_t>(time.value, 0)); }

// Sets the value. Returns false if it is unknown.
bool SetValue(const std::variant<uint64_t, int64_t, double>& value, proto::NumberDataPoint* out) {
  if (const auto* number = std::get_if<double>(&value)) {
    out->set_as_double(*number);
    return !std::isnan(*number);
  }
  if (const auto* count = std::get_if<uint64_t>(&value)) {
    // OTLP's integers are signed.
    if (*count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      out->set_as_double(static_cast<double>(*count));
    } else {
      out->set_as_int(static_cast<int64_t>(*count));
    }
    return true;
  }
  out->set_as_int(std::get<int64_t>(value));
  return true;
}

class Writer {
 public:
  Writer(UnixNs start, UnixNs now, const MetricsOptions& options) : start_(start), now_(now), options_(options) {}

  void Add(const Metrics::FamilyView& family) {
    Begin(family);
    for (const Metrics::Point& point : family.points) {
      proto::NumberDataPoint out;
      if (Fill(family, point, &out)) Append(std::move(out));
    }
  }
  MetricsRequests Take() && { return std::move(out_); }

 private:
  // The next data points belong to this metric. It is added to a request with its first data point.
  void Begin(const Metrics::FamilyView& family) {
    metric_.Clear();
    metric_.set_name(std::string(family.name));
    metric_.set_description(std::string(family.help));
    metric_.set_unit(std::string(MetricUnit(family.name)));
    if (family.is_counter) {
      metric_.mutable_sum()->set_aggregation_temporality(proto::AGGREGATION_TEMPORALITY_CUMULATIVE);
      metric_.mutable_sum()->set_is_monotonic(true);
    } else {
      metric_.mutable_gauge();
    }
    metric_bytes_ = kAroundMetric + metric_.ByteSizeLong();
    current_ = nullptr;
  }

  bool Fill(const Metrics::FamilyView& family, const Metrics::Point& point, proto::NumberDataPoint* out) const {
    if (!SetValue(point.value, out)) return false;
    out->set_time_unix_nano(UnsignedNs(now_));
    if (family.is_counter) out->set_start_time_unix_nano(UnsignedNs(std::min(point.start.value_or(start_), now_)));
    for (const auto& [name, value] : point.labels) {
      auto* attribute = out->add_attributes();
      attribute->set_key(name);
      attribute->mutable_value()->set_string_value(value);
    }
    return true;
  }

  void Append(proto::NumberDataPoint point) {
    const size_t bytes = kAroundMessage + point.ByteSizeLong();
    if (!out_.requests.empty() && bytes_ + bytes + (current_ == nullptr ? metric_bytes_ : 0) > options_.bytes_max) {
      scope_ = nullptr;
    }
    if (scope_ == nullptr) {
      if (EmptyBytes() + metric_bytes_ + bytes > options_.bytes_max) {
        ++out_.too_large;
        return;
      }
      Open();
    }
    if (current_ == nullptr) {
      current_ = scope_->add_metrics();
      *current_ = metric_;
      bytes_ += metric_bytes_;
    }
    bytes_ += bytes;
    auto* points = current_->has_sum() ? current_->mutable_sum()->mutable_data_points()
                                       : current_->mutable_gauge()->mutable_data_points();
    *points->Add() = std::move(point);
    ++out_.requests.back().data_points;
  }

  // Returns the size of a request without metrics.
  size_t EmptyBytes() {
    if (!empty_bytes_) {
      MetricsRequest empty;
      AddScope(&empty);
      empty_bytes_ = empty.ByteSizeLong() + 2 * kAroundMessage;  // its two lengths grow with the metrics
    }
    return *empty_bytes_;
  }

  void Open() {
    bytes_ = EmptyBytes();
    scope_ = AddScope(&out_.requests.emplace_back().request);
    current_ = nullptr;
  }

  proto::ScopeMetrics* AddScope(MetricsRequest* request) const {
    auto* resource = request->add_resource_metrics();
    for (const Attribute& attribute : options_.resource) {
      auto* out = resource->mutable_resource()->add_attributes();
      out->set_key(attribute.key);
      out->mutable_value()->set_string_value(attribute.value);
    }
    auto* scope = resource->add_scope_metrics();
    scope->mutable_scope()->set_name(options_.scope_name);
    scope->mutable_scope()->set_version(options_.scope_version);
    return scope;
  }

  const UnixNs start_, now_;
  const MetricsOptions& options_;
  MetricsRequests out_;
  proto::Metric metric_;                  // without data points
  size_t metric_bytes_ = 0;               // upper bound for metric_
  proto::Metric* current_ = nullptr;      // the metric in the last request; null: it is not there yet
  proto::ScopeMetrics* scope_ = nullptr;  // of the last request; null: the next data point needs a new request
  size_t bytes_ = 0;                      // upper bound for the last request
  std::optional<size_t> empty_bytes_;
};

}  // namespace

std::string_view MetricUnit(std::string_view name) {
  constexpr std::string_view kTotal = "_total";
  if (name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  if (name.ends_with("_seconds")) return "s";
  if (name.ends_with("_bytes")) return "By";
  return "";
}

MetricsRequests BuildMetrics(const Metrics& metrics, UnixNs now, const MetricsOptions& options) {
  Writer writer(metrics.start(), now, options);
  metrics.Visit([&writer](const Metrics::FamilyView& family) { writer.Add(family); });
  return std::move(writer).Take();
}

}  // namespace tributary::otlp
