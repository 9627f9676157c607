#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "k8s-collector/watch/api_transport.h"

namespace tributary {

// Passes requests to another transport, and records the requests and answers in a directory (api_recording.h). Does not
// record the client's credentials. Stops recording if a file cannot be written, or when the recording has reached 1
// GiB. This is logged once, and requests continue.
class RecordingTransport : public ApiTransport {
 public:
  static constexpr uint64_t kBytesMax = 1u << 30;

  // Creates the directory if it does not exist. Returns AlreadyExists if the directory already contains a recording, or
  // another error of ErrnoStatus if a file cannot be created.
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
