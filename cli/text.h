#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace tributary::cli {

// Numbers as people read them.
std::string FormatNs(uint64_t ns);        // "12.3 s", "1 h 02 min", "45.0 ms"
std::string FormatCount(uint64_t count);  // "1,234,567"
std::string FormatBytes(uint64_t bytes);  // "1.2 MiB"
// A value in its unit, which may be any: "12.3 s", "1.2 MiB", "1,234 objects". Units and names of types come with the
// data: they are escaped, and cut after 32 letters.
std::string FormatValue(uint64_t value, std::string_view unit);
// So much each second: "1.84", in cores, of CPU time; else "1.2 MiB/s", "0.25 objects/s".
std::string FormatRate(double per_second, const Measure& measure);
// What values of a type are, for people: "CPU time"; of a type that is not ours its name.
std::string MeasureTitle(const Measure& measure);
std::string FormatPercent(uint64_t part, uint64_t whole);  // "12.34%"; "-" of nothing
std::string FormatTime(uint64_t unix_ms);                  // "2026-11-23 14:02:11", here

// At most `letters` code points, the last of them "…" when something was cut. `text` is UTF-8.
std::string CutToWidth(std::string_view text, size_t letters);

// Columns under their headings, two spaces apart, no trailing blanks. `right` says which columns are numbers.
std::string WriteTable(const std::vector<std::string>& headings, const std::vector<bool>& right,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace tributary::cli
