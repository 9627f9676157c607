#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace opentelemetry::proto::profiles::v1development {
class ProfilesDictionary;
}

namespace tributary::otlp {

// Estimates the size of the log records that MakeLogs makes of the samples of a profiles request. An estimate is an
// upper bound. ProfilesBuilder calls the Add functions for each entry that it adds to the tables of the request.
class LogSize {
 public:
  // `tables` must outlive the LogSize.
  explicit LogSize(const ::opentelemetry::proto::profiles::v1development::ProfilesDictionary& tables)
      : tables_(tables) {}

  void AddLocation();  // the newest entry of the table of locations
  void AddStack();     // the newest entry of the table of stacks
  // A sample's set of attributes, as indices of the table of attributes. Sets are numbered from 0.
  void AddSet(std::span<const int32_t> set);

  size_t RecordBytes(int32_t stack, int32_t set) const { return stacks_[Index(stack)] + sets_[Index(set)]; }

 private:
  static size_t Index(int32_t index) { return static_cast<size_t>(index); }

  const ::opentelemetry::proto::profiles::v1development::ProfilesDictionary& tables_;
  // By index in the table. Element 0 is the zero element.
  std::vector<size_t> locations_{0}, stacks_{0}, sets_;
};

}  // namespace tributary::otlp
