#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace tributary {

// A number that only grows. Thread-safe. Add costs one relaxed atomic addition.
class Counter {
 public:
  void Add(uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(int64_t v) { value_.store(v, std::memory_order_relaxed); }
  void Add(int64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// All metrics of a process. Most names are `tributary_<component>_<noun>_<unit>[_total]`. The values of labels are
// constants of this program, never text from input (but see AddTable). main creates one Metrics object, which outlives
// all objects that register metrics with it. Register metrics at start, because registration locks a mutex. Returned
// references are valid as long as the Metrics object. Registering the same counter or gauge (name and labels) twice
// returns the same metric. A callback may be registered only once.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Reads `clock` once, for start().
  explicit Metrics(const Clock& clock = Clock::Real()) : start_(clock.Unix()) {}

  Counter& AddCounter(std::string_view name, std::string_view help, Labels labels = {});
  // Adds a counter of nanoseconds that is shown in seconds, the unit that Prometheus requires for times.
  Counter& AddDurationCounter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge& AddGauge(std::string_view name, std::string_view help, Labels labels = {});
  // Adds a metric with the value that `read` returns. Each call of Visit and PrometheusText calls `read`, on the
  // caller's thread. So `read` must be thread-safe, and must be callable as long as these functions may be called.
  void AddCallback(std::string_view name, std::string_view help, bool is_counter, Labels labels,
                   std::function<double()> read);

  // Adds a metric whose series are known only when it is read, for example one for each node. `read` is called as for
  // AddCallback. It must limit the number of rows. Without rows, the metric is left out. Values of labels may be text
  // from input if they are valid UTF-8.
  struct Row {
    Labels labels;
    double value = 0;
    // For a counter: the time at which it was 0, if this is later than start(). A row that was removed and comes back
    // begins again.
    std::optional<UnixNs> start = std::nullopt;
  };
  void AddTable(std::string_view name, std::string_view help, bool is_counter, std::function<std::vector<Row>()> read);

  // A series at the moment of a visit.
  struct Point {
    const Labels& labels;
    std::variant<uint64_t, int64_t, double> value;  // a counter, a gauge, or everything else
    std::optional<UnixNs> start;                    // as in Row
  };
  // A metric with at least one series. It borrows from the Metrics object, and is valid only during the visit.
  struct FamilyView {
    std::string_view name, help;
    bool is_counter = false;
    std::vector<Point> points;
  };
  // Calls `visit` for each metric, in the order in which the names were first registered. The metrics are read one
  // after the other, so they are not of the same instant. `visit` must not register metrics.
  void Visit(const std::function<void(const FamilyView&)>& visit) const;

  // Returns all metrics in the Prometheus text format 0.0.4, in the order of Visit.
  std::string PrometheusText() const;

  // Returns the time at which this object was made. All counters were 0 then, unless their Row says otherwise.
  UnixNs start() const { return start_; }

 private:
  struct Series {
    Labels labels;
    Counter* counter = nullptr;
    bool is_duration = false;  // `counter` has nanoseconds
    Gauge* gauge = nullptr;
    std::function<double()> read;
  };
  struct Family {
    std::string name, help;
    bool is_counter = false;
    std::vector<Series> series;
    std::function<std::vector<Row>()> read_rows;  // further series; may be empty
  };
  Family& FindOrAdd(std::string_view name, std::string_view help, bool is_counter);
  Counter& FindOrAddCounter(std::string_view name, std::string_view help, Labels labels, bool is_duration);
  static Series* Find(Family& family, const Labels& labels);

  static Point Read(const Series& series);

  const UnixNs start_;
  mutable std::mutex mutex_;
  std::deque<Family> families_;
  std::deque<Counter> counters_;
  std::deque<Gauge> gauges_;
};

}  // namespace tributary
