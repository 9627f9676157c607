#include "k8s-collector/watch/recording_transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/whole_file.h"
#include "k8s-collector/watch/api_recording.h"

namespace tributary {

struct RecordingTransport::Files {
  const Clock& clock;
  std::array<Fd, kResourceKindCount> by_kind;
  uint64_t bytes = 0;
  bool ended = false;

  void Write(ResourceKind kind, RecordedStep step) {
    if (ended) return;
    step.at = clock.Unix();
    const std::string line = EncodeStep(step);
    bytes += line.size();
    absl::Status status = Error(absl::StatusCode::kResourceExhausted, "the recording has reached its limit of 1 GiB");
    if (bytes <= kBytesMax) {
      status = WriteToFile(by_kind[static_cast<size_t>(kind)].get(), line, RecordingFileName(kind));
    }
    if (status.ok()) return;
    ended = true;
    LogWarning("the recording of the API server's answers ends cause=\"{}\"", Message(status));
  }
};

class RecordingTransport::Recorded : public ApiTransport::Request {
 public:
  Recorded(std::shared_ptr<Files> files, ResourceKind kind) : files_(std::move(files)), kind_(kind) {}
  ~Recorded() override {
    if (!ended_) End("given up");
  }

  Callbacks Wrap(Callbacks inner) {
    return {.on_answer =
                [this, inner = inner.on_answer](int status, int64_t retry_after_s) {
                  files_->Write(
                      kind_, {.type = RecordedStep::Type::kAnswer, .status = status, .retry_after_s = retry_after_s});
                  inner(status, retry_after_s);
                },
            .on_bytes =
                [this, inner = inner.on_bytes](std::string_view bytes) {
                  files_->Write(kind_, {.type = RecordedStep::Type::kBytes, .text = std::string(bytes)});
                  return inner(bytes);
                },
            .on_end =
                [this, inner = inner.on_end](absl::Status status) {
                  End(Message(status));
                  inner(std::move(status));  // may destroy this
                }};
  }
  void Hold(std::unique_ptr<ApiTransport::Request> below) { below_ = std::move(below); }

 private:
  void End(std::string why) {
    ended_ = true;
    files_->Write(kind_, {.type = RecordedStep::Type::kEnd, .text = std::move(why)});
  }

  const std::shared_ptr<Files> files_;
  const ResourceKind kind_;
  bool ended_ = false;
  std::unique_ptr<ApiTransport::Request> below_;
};

absl::StatusOr<std::unique_ptr<RecordingTransport>> RecordingTransport::Open(const std::string& directory,
                                                                             ApiTransport& below, const Clock& clock) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus("make directory", directory, errno);
  auto files = std::make_shared<Files>(Files{.clock = clock});
  for (const ResourceInfo& info : AllResources()) {
    const std::string path = fmt::format("{}/{}", directory, RecordingFileName(info.kind));
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) return ErrnoStatus("make", path, errno);
    files->by_kind[static_cast<size_t>(info.kind)] = std::move(file);
  }
  return std::unique_ptr<RecordingTransport>(new RecordingTransport(std::move(files), below));
}

RecordingTransport::~RecordingTransport() = default;

std::unique_ptr<ApiTransport::Request> RecordingTransport::Get(std::string_view target, std::string_view accept,
                                                               Callbacks callbacks) {
  const std::optional<ResourceKind> kind = KindOfTarget(target);
  if (!kind) return below_.Get(target, accept, std::move(callbacks));
  files_->Write(*kind, {.type = RecordedStep::Type::kRequest, .text = std::string(target)});
  auto recorded = std::make_unique<Recorded>(files_, *kind);
  recorded->Hold(below_.Get(target, accept, recorded->Wrap(std::move(callbacks))));
  return recorded;
}

}  // namespace tributary
