#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "k8s-collector/watch/api_transport.h"

namespace tributary {

// Writes the requests and answers of another transport into a directory, one file per kind, in the form of
// api_recording.h. Never writes data that identifies the client. The recording ends if a file cannot be written to, or
// after one GiB in total. The end is logged once, and requests continue.
class RecordingTransport : public ApiTransport {
 public:
  static constexpr uint64_t kBytesMax = 1u << 30;

  // Creates the directory if it does not exist. AlreadyExists if it contains a recording. Other errors come from errno.
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
