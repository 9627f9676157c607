#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "intake/recording/recording_reader.h"

namespace tributary::intake {

// Prints a recording as JSON lines (docs/recording.md): one object a message, and a summary as the last line. `write`
// gets whole lines; an error that it returns ends the work and is returned. The file may be hostile. Prints all whole
// messages, then the summary. If bytes are left that are not a whole message, returns an error with the offset at which
// they begin.
//
// Control bytes and ill-formed UTF-8 in text from outside (names, paths, reasons) are escaped as \xNN.
absl::Status Inspect(RecordingReader& reader, const std::function<absl::Status(std::string_view line)>& write);

}  // namespace tributary::intake
