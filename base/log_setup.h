#pragma once

#include "base/log.h"

namespace tributary {

// The format of a line: for people, or for programs that read key=value pairs or one JSON object per line. Times are
// local, in the format of RFC 3339.
//
//   text    2026-11-23T18:20:00.123+01:00 info sampling rate_hz=19
//   logfmt  time=2026-11-23T18:20:00.123+01:00 level=info msg="sampling rate_hz=19"
//   JSON    {"time":"2026-11-23T18:20:00.123+01:00","level":"info","msg":"sampling rate_hz=19"}
//
// A message stays one value: it may contain names that other programs chose, and these must not become fields.
enum class LogFormat { kText, kLogfmt, kJson };

// The operator's settings of the log. Not in log.h, because nearly every file includes log.h. The implementation is in
// log.cc.
struct LogSetup {
  LogOptions options;
  LogFormat format = LogFormat::kText;
};

// Like InitLog of log.h, which writes text.
void InitLog(const LogSetup& setup);

// Call it from any thread.
void SetLogLevel(LogLevel level);

}  // namespace tributary
