#include "intake/recording/recording_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace tributary::intake {
namespace {

constexpr size_t kChunkBytes = 64u << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<RecordingReader>> RecordingReader::Open(const std::string& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open", path, errno);
  return std::make_unique<RecordingReader>(path, std::move(file));
}

absl::StatusOr<bool> RecordingReader::ReadMore() {
  chunk_.resize(kChunkBytes);
  while (true) {
    const ssize_t n = read(file_.get(), chunk_.data(), chunk_.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", path_, errno);
    decoder_.Append(std::string_view(chunk_).substr(0, static_cast<size_t>(n)));
    return n > 0;
  }
}

std::string RecordingReader::At(std::string_view what) const {
  return fmt::format("{}: offset {}: {}", path_, offset_, what);
}

absl::Status RecordingReader::IsOfANewerRelease() const {
  return Error(
      absl::StatusCode::kFailedPrecondition,
      fmt::format("{} was written by a newer release: read it with the tributary command of that release", path_));
}

absl::Status RecordingReader::Refusal(const absl::Status& why) const {
  if (offset_ == 0 && decoder_.fault() == FrameFault::kBadVersion) return IsOfANewerRelease();
  if (offset_ == 0) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{} is not a recording, or its first message is damaged ({}): give another file", path_,
                             Message(why)));
  }
  return Error(absl::StatusCode::kInvalidArgument,
               At(fmt::format("the recording is damaged ({}): cut the file with truncate -s {}, to use the part "
                              "before the damage",
                              Message(why), offset_)));
}

absl::StatusOr<bool> RecordingReader::Next(RecordedFrame* frame) {
  while (true) {
    const size_t before = decoder_.buffered_bytes();
    absl::StatusOr<bool> got = decoder_.Next(&frame->frame);
    if (!got.ok()) return Refusal(got.status());
    if (*got) {
      if (offset_ == 0 && frame->frame.type == MessageType::kHello) {
        const absl::StatusOr<Hello> hello = DecodeHello(frame->frame.payload);
        if (hello.ok() && hello->version_min > Hello().version_max) return IsOfANewerRelease();
      }
      const size_t bytes = before - decoder_.buffered_bytes();
      frame->offset = offset_;
      frame->stored_bytes = static_cast<uint32_t>(bytes - kHeaderBytes);
      offset_ += bytes;
      return true;
    }
    ASSIGN_OR_RETURN(const bool more, ReadMore());
    if (more) continue;
    if (decoder_.buffered_bytes() == 0) return false;
    return Error(absl::StatusCode::kDataLoss,
                 At(fmt::format("the file ends in the middle of a message, {} bytes after the start of the message",
                                decoder_.buffered_bytes())));
  }
}

RecordedSession::RecordedSession() : dictionary_(std::make_shared<Dictionary>()) {}

absl::StatusOr<IncomingBatch> RecordedSession::Take(const Frame& frame) {
  ASSIGN_OR_RETURN(const GenerationInfo info, GenerationOf(frame.type, frame.payload));
  if (!decoder_ || (info.generation > decoder_->generation() && info.derived_from != decoder_->generation())) {
    decoder_.emplace(info.generation);
    dictionary_ = std::make_shared<Dictionary>();
  }
  ASSIGN_OR_RETURN(IncomingBatch batch, decoder_->Decode(frame.type, frame.sequence, frame.payload));
  if (batch.derived) {
    std::shared_ptr<Dictionary> kept = EvictedFrom(dictionary_, batch.derived->eviction);
    if (kept == nullptr)
      return Error(absl::StatusCode::kInvalidArgument, "an eviction removes definitions that are still in use");
    dictionary_ = std::move(kept);
  }
  if (!dictionary_->Append(batch.definitions)) {
    return Error(absl::StatusCode::kOutOfRange, "there are more definitions than a dictionary can contain");
  }
  return batch;
}

}  // namespace tributary::intake
