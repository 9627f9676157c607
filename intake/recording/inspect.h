#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "intake/recording/recording_reader.h"

namespace tributary::intake {

// Prints a recording as JSON lines (docs/recording.md): one JSON object per message, and a summary as the last line.
// Calls `write` for each line. If `write` returns an error, stops and returns this error. The file may be hostile. If a
// message is incomplete or damaged, prints all messages before it, then the summary, and returns an error with the
// offset of this message in the file.
//
// Control bytes and malformed UTF-8 in the file's texts (names, paths, reasons) are escaped as \xNN.
absl::Status Inspect(RecordingReader& reader, const std::function<absl::Status(std::string_view line)>& write);

}  // namespace tributary::intake
