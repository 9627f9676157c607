#include "base/metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "base/types.h"

namespace tributary {
namespace {

std::string EscapeLabel(std::string_view value) {
  std::string out;
  for (char c : value) {
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string SeriesName(std::string_view family, const Metrics::Labels& labels) {
  std::string out(family);
  if (labels.empty()) return out;
  out += '{';
  for (size_t i = 0; i < labels.size(); ++i) {
    out += fmt::format("{}{}=\"{}\"", i ? "," : "", labels[i].first, EscapeLabel(labels[i].second));
  }
  return out += '}';
}

// Returns the number in the text format, which has its own words for NaN and infinities.
template <typename Number>
std::string NumberText(Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  }
  return fmt::format("{}", value);
}

}  // namespace

Metrics::Family& Metrics::FindOrAdd(std::string_view name, std::string_view help, bool is_counter) {
  for (Family& family : families_) {
    if (family.name == name) return family;
  }
  return families_.emplace_back(Family{std::string(name), std::string(help), is_counter, {}});
}

Metrics::Series* Metrics::Find(Family& family, const Labels& labels) {
  for (Series& series : family.series) {
    if (series.labels == labels) return &series;
  }
  return nullptr;
}

Counter& Metrics::AddCounter(std::string_view name, std::string_view help, Labels labels) {
  return FindOrAddCounter(name, help, std::move(labels), /*is_duration=*/false);
}

Counter& Metrics::AddDurationCounter(std::string_view name, std::string_view help, Labels labels) {
  return FindOrAddCounter(name, help, std::move(labels), /*is_duration=*/true);
}

Counter& Metrics::FindOrAddCounter(std::string_view name, std::string_view help, Labels labels, bool is_duration) {
  std::lock_guard lock(mutex_);
  Family& family = FindOrAdd(name, help, true);
  if (Series* found = Find(family, labels); found != nullptr && found->counter != nullptr) return *found->counter;
  Counter& counter = counters_.emplace_back();
  family.series.push_back(Series{.labels = std::move(labels), .counter = &counter, .is_duration = is_duration});
  return counter;
}

Gauge& Metrics::AddGauge(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(mutex_);
  Family& family = FindOrAdd(name, help, false);
  if (Series* found = Find(family, labels); found != nullptr && found->gauge != nullptr) return *found->gauge;
  Gauge& gauge = gauges_.emplace_back();
  family.series.push_back(Series{.labels = std::move(labels), .gauge = &gauge});
  return gauge;
}

void Metrics::AddCallback(std::string_view name, std::string_view help, bool is_counter, Labels labels,
                          std::function<double()> read) {
  std::lock_guard lock(mutex_);
  FindOrAdd(name, help, is_counter).series.push_back(Series{.labels = std::move(labels), .read = std::move(read)});
}

void Metrics::AddTable(std::string_view name, std::string_view help, bool is_counter,
                       std::function<std::vector<Row>()> read) {
  std::lock_guard lock(mutex_);
  FindOrAdd(name, help, is_counter).read_rows = std::move(read);
}

Metrics::Point Metrics::Read(const Series& series) {
  Point point{series.labels, 0.0, std::nullopt};
  if (series.is_duration) {
    point.value = static_cast<double>(series.counter->value()) / kNsPerSecond;
  } else if (series.counter != nullptr) {
    point.value = series.counter->value();
  } else if (series.gauge != nullptr) {
    point.value = series.gauge->value();
  } else {
    point.value = series.read();
  }
  return point;
}

void Metrics::Visit(const std::function<void(const FamilyView&)>& visit) const {
  std::lock_guard lock(mutex_);
  for (const Family& family : families_) {
    const std::vector<Row> rows = family.read_rows ? family.read_rows() : std::vector<Row>();
    FamilyView view{family.name, family.help, family.is_counter, {}};
    view.points.reserve(family.series.size() + rows.size());
    for (const Series& series : family.series) view.points.push_back(Read(series));
    for (const Row& row : rows) view.points.push_back(Point{row.labels, row.value, row.start});
    if (!view.points.empty()) visit(view);  // readers expect at least one series
  }
}

std::string Metrics::PrometheusText() const {
  std::string out;
  Visit([&out](const FamilyView& family) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family.name, family.help, family.name,
                       family.is_counter ? "counter" : "gauge");
    for (const Point& point : family.points) {
      out += fmt::format("{} {}\n", SeriesName(family.name, point.labels),
                         std::visit([](auto value) { return NumberText(value); }, point.value));
    }
  });
  return out;
}

}  // namespace tributary
