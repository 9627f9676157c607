#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tributary {

// One line of /tmp/perf-PID.map: "7f0012 40 name of the function". Start and size are hexadecimal, and may begin with
// "0x". Source: tools/perf/Documentation/jit-interface.txt.
struct PerfMapLine {
  uint64_t start = 0, end = 0;
  std::string_view text;  // not empty
};
// `line` has no newline. Returns nullopt if a field is missing, or if the size is 0.
std::optional<PerfMapLine> ParsePerfMapLine(std::string_view line);

// Parses a perf map in parts of any size, as the process writes it. Keeps the begin of a line that is not complete yet.
class PerfMapParser {
 public:
  static constexpr size_t kLineBytesMax = 8192;  // the rest of a longer line is ignored

  using Visit = std::function<void(const PerfMapLine&)>;

  void Add(std::string_view bytes, const Visit& visit);
  // Parses the last line if it has no newline. Call it when the process seems to have stopped writing. If it goes on
  // with this line, the complete line is visited too.
  void End(const Visit& visit);
  void Reset() { *this = PerfMapParser(); }

  uint64_t malformed() const { return malformed_; }  // lines

 private:
  void ParseLine(std::string_view line, const Visit& visit);

  std::string begun_;   // at most kLineBytesMax
  size_t ended_ = 0;    // so many bytes of `begun_` were visited by End
  bool skips_ = false;  // the rest of the line
  uint64_t malformed_ = 0;
};

}  // namespace tributary
