#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "intake/recording/inspect.h"
#include "intake/recording/recording_reader.h"
#include "intake/testing/mend_checksums_testing.h"
#include "intake/testing/message_mutator_testing.h"
#include "intake/wire/frame.h"

// Tests `tributary inspect` on a file from any source. Checksums are corrected first, because otherwise no changed
// input would ever pass them.

namespace {

using namespace tributary;
using namespace tributary::intake;

// The output must be one line, and must not move a terminal's cursor.
absl::Status CheckLine(std::string_view line) {
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    if (static_cast<unsigned char>(line[i]) < 0x20 || line[i] == 0x7f) abort();
  }
  if (!line.ends_with("}\n")) abort();
#ifdef TRIBUTARY_PLANT_CRASH
  if (line.find("\"sequence\":7,") != std::string_view::npos && line.find("\"leaf_kind\"") != std::string_view::npos) {
    abort();
  }
#endif
  return absl::OkStatus();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  MendChecksums(bytes);
  Fd file(memfd_create("recording", MFD_CLOEXEC));
  if (pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return 0;
  RecordingReader reader("recording", std::move(file));
  (void)Inspect(reader, CheckLine);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max, unsigned seed) {
  const std::string changed = MessageMutator(seed).Frames({reinterpret_cast<const char*>(data), size}, size_max);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}
