#include "intake/recording/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/metadata/metadata_message.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

absl::StatusOr<std::unique_ptr<RecordingSink>> RecordingSink::Open(RecordingOptions options, const SessionInfo& session,
                                                                   BatchSink& next, const Clock& clock,
                                                                   Metrics& metrics) {
  // Does not follow links: a collector runs as root, and all users may have access to the folder.
  Fd file(open(options.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file.valid()) return ErrnoStatus("open", options.path, errno);
  struct stat about = {};
  if (fstat(file.get(), &about) != 0) return ErrnoStatus("fstat", options.path, errno);
  if (!S_ISREG(about.st_mode)) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("{} is not a regular file", options.path));
  }
  std::unique_ptr<RecordingSink> sink(new RecordingSink(std::move(options), std::move(file), next, metrics));
  Hello hello;
  hello.session = session;
  hello.clock = clock.Pair();
  RETURN_IF_ERROR(sink->Write(EncodeFrame(MessageType::kHello, kChannelSamples, 0, EncodeHello(hello))));
  return sink;
}

RecordingSink::RecordingSink(RecordingOptions options, Fd file, BatchSink& next, Metrics& metrics)
    : options_(std::move(options)),
      file_(std::move(file)),
      next_(next),
      recorded_bytes_(
          metrics.AddCounter("tributary_intake_recorded_bytes_total", "Bytes written to the recording file")),
      recorded_(metrics.AddCounter("tributary_intake_recorded_samples_total", "Samples written to the recording file")),
      unrecorded_(metrics.AddCounter(
          "tributary_intake_unrecorded_samples_total",
          "Samples that were not written to the recording file, because the file was full or could not be written")),
      recorded_events_(metrics.AddCounter("tributary_intake_recorded_process_events_total",
                                          "Process events written to the recording file")),
      unrecorded_events_(metrics.AddCounter("tributary_intake_unrecorded_process_events_total",
                                            "Process events that were not written to the recording file, because the "
                                            "file was full or could not be written")) {}

absl::Status RecordingSink::Take(Batch batch) {
  if (recording()) RecordMetadata();
  if (recording()) {
    Record(batch);
  } else {
    CountUnrecorded(CountRecords(batch));
  }
  return next_.Take(std::move(batch));
}

void RecordingSink::CountUnrecorded(const SampleCounts& records) {
  unrecorded_.Add(records.total());
  unrecorded_events_.Add(records.events());
}

void RecordingSink::Record(Batch& batch) {
  const SampleCounts records = CountRecords(batch);
  if (batch.dictionary == nullptr || !BatchEncoder::Fits(batch)) return CountUnrecorded(records);
  if (batch.dictionary != dictionary_) {
    const BatchEncoder* previous = dictionary_ != nullptr ? &encoder_ : nullptr;
    encoder_ = BatchEncoder::Following(encoder_.generation() + 1, previous, *batch.dictionary);
    dictionary_ = batch.dictionary;
  }
  // The component that sends the batches numbers them itself.
  const uint64_t sequence = std::exchange(batch.sequence, next_sequence_);
  std::string bytes;
  for (const std::string& frame : encoder_.Encode(batch)) bytes += frame;
  batch.sequence = sequence;
  if (!Append(bytes)) return CountUnrecorded(records);
  ++next_sequence_;
  recorded_.Add(records.total());
  recorded_events_.Add(records.events());
}

void RecordingSink::RecordMetadata() {
  if (options_.metadata == nullptr) return;
  while (recording()) {
    const std::optional<MetadataUpdate> update = options_.metadata->Next(recorded_metadata_);
    if (!update) return;
    Append(EncodeFrame(MessageType::kMetadata, kChannelSamples, 0, EncodeMetadata(*update)));
  }
}

bool RecordingSink::Append(std::string_view bytes) {
  absl::Status status;
  if (written_ + bytes.size() > options_.bytes_max) {
    status = Error(absl::StatusCode::kOutOfRange,
                   fmt::format("the recording has reached its limit of {} bytes", options_.bytes_max));
  } else {
    status = Write(bytes);
  }
  if (!status.ok()) End(status);
  return status.ok();
}

absl::Status RecordingSink::Write(std::string_view bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const absl::Status status = ErrnoStatus("write", options_.path, n < 0 ? errno : EIO);
      // Best effort: a frame that is not whole ends a reader's work with an error.
      if (ftruncate(file_.get(), static_cast<off_t>(written_)) != 0) return status;
      return status;
    }
    done += static_cast<size_t>(n);
  }
  written_ += bytes.size();
  recorded_bytes_.Add(bytes.size());
  return absl::OkStatus();
}

void RecordingSink::End(const absl::Status& why) {
  file_.Reset();
  dictionary_.reset();
  LogWarning("recording ended path={} bytes={} batches={} cause=\"{}\": samples are still sent to the reducer",
             options_.path, written_, next_sequence_ - 1, Message(why));
}

}  // namespace tributary::intake
