#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace tributary::cli {

// These functions format numbers for people.
std::string FormatNs(uint64_t ns);        // "12.30 s", "1 h 02 min", "45.0 ms"
std::string FormatCount(uint64_t count);  // "1,234,567"
std::string FormatBytes(uint64_t bytes);  // "1.2 MiB"
// Formats a value with its unit, which may be any text: "12.30 s", "1.2 MiB", "1,234 objects". Units and type names
// come from received data, so these functions escape them and cut them to 32 letters.
std::string FormatValue(uint64_t value, std::string_view unit);
// Formats a rate. CPU time per second is a number of cores: "1.84". Other measures are given per second: "1.2 MiB/s",
// "0.25 objects/s". A gauge has no rate: for a gauge, `per_second` is formatted as by FormatValue.
std::string FormatRate(double per_second, const Measure& measure);
// Returns a title for the type, for example "CPU time". For a type without a built-in title, returns the type's name; a
// gauge's name is followed by " on average".
std::string MeasureTitle(const Measure& measure);
// Returns a line that says which samples the answer lacks because they have expired, or "" if it lacks none.
std::string CoverageNote(const Measure& measure);
std::string FormatPercent(uint64_t part, uint64_t whole);  // "12.34%"; "-" if `whole` is 0
std::string FormatTime(uint64_t unix_ms);                  // "2026-11-23 14:02:11", local time

// Cuts `text` (UTF-8) to at most `letters` code points. If text was cut off, the last code point is "…".
std::string CutToWidth(std::string_view text, size_t letters);

// A table that is written in parts. Each column is as wide as its longest cell so far, so a later part may be wider.
// Columns are two spaces apart, and lines have no trailing blanks. `right[i]` is true if column i is aligned to the
// right, as for numbers.
class Table {
 public:
  Table(std::vector<std::string> headings, std::vector<bool> right);
  // Returns the rows as lines. The first part begins with the headings.
  std::string Write(const std::vector<std::vector<std::string>>& rows);

 private:
  std::string Line(const std::vector<std::string>& row) const;
  void Widen(const std::vector<std::string>& row);

  std::vector<std::string> headings_;  // empty after the first part
  const std::vector<bool> right_;
  std::vector<size_t> widths_;
};

// Returns a table of one part.
std::string WriteTable(const std::vector<std::string>& headings, const std::vector<bool>& right,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace tributary::cli
