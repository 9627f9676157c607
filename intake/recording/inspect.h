#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "intake/recording/recording_reader.h"

namespace tributary::intake {

// Prints a recording as JSON lines (docs/recording.md): one object a message, and a summary
// as the last line. `write` gets whole lines; an error of its own ends the work and is returned. The file may be
// hostile: what is whole is printed, the summary too, then the error says at which offset the rest begins.
//
// Text of others (names, paths, reasons) has its control bytes and ill-formed UTF-8 escaped as \xNN.
absl::Status Inspect(RecordingReader& reader, const std::function<absl::Status(std::string_view line)>& write);

}  // namespace tributary::intake
