#pragma once

#include "base/log.h"

namespace tributary {

// The format of a log line: text for people, logfmt (key=value pairs), or a JSON object per line. Times are local, in
// the format of RFC 3339.
//
//   text    2026-11-23T18:20:00.123+01:00 info sampling rate_hz=19
//   logfmt  time=2026-11-23T18:20:00.123+01:00 level=info msg="sampling rate_hz=19"
//   JSON    {"time":"2026-11-23T18:20:00.123+01:00","level":"info","msg":"sampling rate_hz=19"}
//
// The key=value pairs in a message do not become fields: the message may contain text from other programs, which could
// otherwise forge fields.
enum class LogFormat { kText, kLogfmt, kJson };

// The log settings that the operator can choose. They are not in log.h, because nearly every file includes log.h. The
// implementation is in log.cc.
struct LogSetup {
  LogOptions options;
  LogFormat format = LogFormat::kText;
};

// Does the same as InitLog of log.h, and also sets the format, which is kText otherwise.
void InitLog(const LogSetup& setup);

// Call it from any thread.
void SetLogLevel(LogLevel level);

}  // namespace tributary
