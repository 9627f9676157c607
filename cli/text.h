#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace tributary::cli {

// Numbers in a readable form.
std::string FormatNs(uint64_t ns);        // "12.3 s", "1 h 02 min", "45.0 ms"
std::string FormatCount(uint64_t count);  // "1,234,567"
std::string FormatBytes(uint64_t bytes);  // "1.2 MiB"
// Formats a value in its unit, which may be any unit: "12.3 s", "1.2 MiB", "1,234 objects". Units and names of types
// come from the data: they are escaped, and cut after 32 letters.
std::string FormatValue(uint64_t value, std::string_view unit);
// Formats a rate per second: CPU time in cores, "1.84"; other measures as "1.2 MiB/s", "0.25 objects/s". A gauge is
// formatted as a plain value.
std::string FormatRate(double per_second, const Measure& measure);
// Returns a readable title of the type: "CPU time", for example. A type without a title of its own gets its name.
std::string MeasureTitle(const Measure& measure);
std::string FormatPercent(uint64_t part, uint64_t whole);  // "12.34%"; "-" if `whole` is 0
std::string FormatTime(uint64_t unix_ms);                  // "2026-11-23 14:02:11", local time

// Returns at most `letters` code points; the last one is "…" if the text was cut. `text` is UTF-8.
std::string CutToWidth(std::string_view text, size_t letters);

// Writes columns under their headings, two spaces apart, without trailing blanks. `right` marks the columns with
// numbers.
std::string WriteTable(const std::vector<std::string>& headings, const std::vector<bool>& right,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace tributary::cli
