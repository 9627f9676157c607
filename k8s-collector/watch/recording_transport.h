#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "k8s-collector/watch/api_transport.h"

namespace tributary {

// Writes what another transport asks and is answered into a directory, one file a kind, as api_recording.h says. What
// identifies the asker is never in it. A file that cannot be written to, or one GiB in all, ends the recording, which
// is said once; requests go on.
class RecordingTransport : public ApiTransport {
 public:
  static constexpr uint64_t kBytesMax = 1u << 30;

  // Makes the directory when it is not there. AlreadyExists: it holds a recording. Others: as errno says.
  static absl::StatusOr<std::unique_ptr<RecordingTransport>> Open(const std::string& directory, ApiTransport& below,
                                                                  const Clock& clock);
  ~RecordingTransport() override;
  std::unique_ptr<Request> Get(std::string_view target, std::string_view accept, Callbacks callbacks) override;

 private:
  struct Files;
  class Recorded;
  RecordingTransport(std::shared_ptr<Files> files, ApiTransport& below) : files_(std::move(files)), below_(below) {}

  std::shared_ptr<Files> files_;
  ApiTransport& below_;
};

}  // namespace tributary
