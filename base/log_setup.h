#pragma once

#include "base/log.h"

namespace tributary {

// How a line is written: for people, or for programs that read key=value pairs or one JSON object a line. Times are
// local, as in RFC 3339.
//
//   text    2026-11-23T18:20:00.123+01:00 info sampling rate_hz=19
//   logfmt  time=2026-11-23T18:20:00.123+01:00 level=info msg="sampling rate_hz=19"
//   JSON    {"time":"2026-11-23T18:20:00.123+01:00","level":"info","msg":"sampling rate_hz=19"}
//
// A message stays one value: it may contain names that other programs chose, and these must not become fields.
enum class LogFormat { kText, kLogfmt, kJson };

// What an operator chooses of the log. Apart from log.h, which nearly every file includes; all of it is in log.cc.
struct LogSetup {
  LogOptions options;
  LogFormat format = LogFormat::kText;
};

// As InitLog of log.h, which writes text.
void InitLog(const LogSetup& setup);

// From any thread.
void SetLogLevel(LogLevel level);

}  // namespace tributary
