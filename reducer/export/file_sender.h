#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "base/metrics.h"
#include "otlp/folded_stacks.h"
#include "otlp/sender.h"
#include "reducer/export/file_options.h"
#include "reducer/export/rotated_files.h"

namespace tributary {

// Writes samples to files: each service or container has its own files, with folded stacks or with OTLP in JSON.
//
// A request becomes a list of parts, one for each file. Send appends the parts one after the other. If a write fails,
// for example because the disk is full, Send returns an error with may_retry = true. If the next call has the same
// request, it continues with the first part that is not in its file. So a retry writes nothing twice. If it has another
// request, it first removes the written parts, because the first request will be written again as a whole. If the
// process is killed before the request's cursor is saved, the next run writes the samples of this request again.
//
// The number of series is limited (FileOptions::series_max). Samples of other names, and of names that are too long
// for a file name, are written to the files of the name kOtherName.
class FileSender : public otlp::ProfilesSender {
 public:
  // The name kOtherName may have this many series more, because each sample type needs its own.
  static constexpr size_t kOtherSeriesMax = 128;
  static constexpr size_t kWriteBytes = 256 << 10;  // of folded stacks, written in one step
  static constexpr int64_t kFinishNs = kNsPerSecond;

  // Returns the errors of RotatedFiles::Open. `clock` and `metrics` must outlive the sender.
  static absl::StatusOr<std::unique_ptr<FileSender>> Open(FileOptions options, const Clock& clock, Metrics& metrics);
  // Gives all files their final names, in kFinishNs at most. First removes the written parts of a request that was not
  // written completely, because the next run writes the whole request again.
  ~FileSender() override;

  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override;
  void Cancel() override { cancelled_ = true; }

 private:
  // What a request contributes to one series.
  struct Part {
    std::string name;            // as in file names
    std::string type;            // "TYPE.UNIT"; "" for OTLP
    std::vector<int> resources;  // of the request
    otlp::FoldedStacks stacks;   // for folded stacks
    uint64_t samples = 0;
  };
  // The request that is being written.
  struct Plan {
    otlp::RequestIdentity identity;
    std::vector<Part> parts;
    size_t part = 0;   // the next part…
    size_t entry = 0;  // …and its next entry
    std::string stem;  // of the next part; "": not chosen yet
    uint64_t left_out_samples = 0;
  };

  FileSender(FileOptions options, std::unique_ptr<RotatedFiles> files, const Clock& clock, Metrics& metrics);
  Plan MakePlan(const otlp::ProfilesRequest& request) const;
  bool ChooseStem();
  absl::Status WriteNext(const otlp::ProfilesRequest& request, otlp::FoldedLines& lines);
  absl::Status WriteFolded(const Part& part, otlp::FoldedLines& lines);
  absl::Status WriteJson(const Part& part, const otlp::ProfilesRequest& request);

  const FileOptions options_;
  const std::unique_ptr<RotatedFiles> files_;
  const Clock& clock_;
  std::optional<Plan> plan_;
  std::atomic<bool> cancelled_{false};
  LogLimit redirect_log_{60 * kNsPerSecond};
  Counter& redirected_samples_;
  Counter& cut_stacks_;
};

}  // namespace tributary
