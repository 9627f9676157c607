#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"

namespace tributary {

enum class LogLevel { kTrace, kDebug, kInfo, kWarning, kError, kCritical };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool console = true;
  std::string file_path;  // "": no file. Rotated at 1 MiB; five older files are kept
};

// main must call it once, before it starts other threads. Lines have the form `time level message key=value …`. Until
// this call, lines of level info and above are written to stderr.
void InitLog(const LogOptions& options);

bool LogEnabled(LogLevel level);
// Writes EscapeForDisplay(line), so that a name in the line cannot forge a second line or move a terminal's cursor.
void LogLine(LogLevel level, std::string_view line);

template <typename... Args>
void Log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) LogLine(level, fmt::format(format, std::forward<Args>(args)...));
}
#define TRIBUTARY_DEFINE_LOG(Name, Level)                         \
  template <typename... Args>                                     \
  void Name(fmt::format_string<Args...> format, Args&&... args) { \
    Log(LogLevel::Level, format, std::forward<Args>(args)...);    \
  }
TRIBUTARY_DEFINE_LOG(LogDebug, kDebug)
TRIBUTARY_DEFINE_LOG(LogInfo, kInfo)
TRIBUTARY_DEFINE_LOG(LogWarning, kWarning)
TRIBUTARY_DEFINE_LOG(LogError, kError)
#undef TRIBUTARY_DEFINE_LOG

// Allows one log line per period. When it allows a line, it sets `*suppressed` to the number of lines that it has
// refused since the last allowed line. Use one object per call site. Not thread-safe.
//
//   if (uint64_t held; limit.Allow(clock.Monotonic(), &held)) LogWarning("… suppressed={}", held);
class LogLimit {
 public:
  explicit LogLimit(int64_t period_ns) : period_ns_(period_ns) {}
  bool Allow(MonotonicNs now, uint64_t* suppressed) {
    if (started_ && now.value - last_.value < period_ns_) {
      ++held_;
      return false;
    }
    *suppressed = held_;
    held_ = 0;
    last_ = now;
    started_ = true;
    return true;
  }

 private:
  int64_t period_ns_;
  MonotonicNs last_;
  uint64_t held_ = 0;
  bool started_ = false;
};

// Returns `text` with these bytes replaced by \xNN: invalid UTF-8, control characters, and invisible and
// direction-changing characters. The result is safe in a log line and in a terminal: it cannot hide or reorder the text
// around it. Quotes and backslashes are not escaped.
std::string EscapeForDisplay(std::string_view text);

}  // namespace tributary
