#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/export/file_name.h"

namespace tributary {

// Appends lines to the files of a directory, and finishes files that are large or old. A series is the sequence of
// files with one stem (file_name.h). At most one file of a series is unfinished; its name ends in ".part". A finished
// file does not change any more, and it has whole lines only: a file is written to disk before it gets its final name.
// If this fails, its name ends in ".damaged".
//
// A file that cannot be used, for example because another program has changed its kind or its rights, is left alone and
// counted, and the series gets another one. Only errors of the disk (it is full, read-only, or fails), and of this
// process (it has no memory or file descriptors left), end a call.
//
// Nothing stays open except the directory and its lock. So the number of series needs no file descriptors. All files
// are opened relative to the directory, never through a symbolic link, and have the mode 0640. Used by one thread.
class RotatedFiles {
 public:
  // A call of Sweep finishes at most this many files, because each of them must reach the disk.
  static constexpr size_t kFinishesMax = 64;

  struct Options {
    std::string directory;
    std::string extension;
    int64_t rotate_bytes = 0;     // a file is finished before it would have more bytes
    int64_t rotate_after_ns = 0;  // a file is finished when it is older
    int64_t keep = 1;             // finished files of each series
    int (*sync)(int fd) = fdatasync;
  };

  // Creates the directory if it does not exist, and locks it. Finishes the files that an earlier run left unfinished,
  // after it has removed an incomplete last line. FailedPrecondition: another process or exporter has locked the
  // directory. PermissionDenied: all users may write into the directory. ResourceExhausted: the directory has too many
  // files of the extension. Also returns errors of ErrnoStatus. `clock` and `metrics` must outlive the object.
  static absl::StatusOr<std::unique_ptr<RotatedFiles>> Open(Options options, const Clock& clock, Metrics& metrics);

  // Returns true if the series may get a file: it has files, or fewer than `series_max` series have files. If there are
  // `series_max`, removes the files of the series that ended first, if its newest file is older than `keep` ×
  // `rotate_after_ns`.
  bool Admit(std::string_view stem, size_t series_max);

  // Appends whole lines to the series' file. First finishes the file if it would become too large. After an error, no
  // byte of `lines` is in the file.
  absl::Status Append(const std::string& stem, std::string_view lines);

  // Begins a unit of several calls of Append. Undo removes the lines that were appended since then, except for those in
  // files that were finished meanwhile.
  void Begin() { undo_.clear(); }
  void Undo();

  // Finishes old files, and removes finished files: of each series, all but the newest `keep` ones. Stops early, after
  // any file, if `is_over` returns true. The next call continues.
  absl::Status Sweep(const std::function<bool()>& is_over);

  // Finishes all files, but stops after `within_ns`. The next Open finishes the rest. For the end of the program.
  void FinishAll(int64_t within_ns);

 private:
  struct Part {
    int64_t stamp_ms = 0;
    int64_t bytes = 0;  // of whole lines
    MonotonicNs created;
    bool is_damaged = false;  // it could not be synced. Another attempt may succeed although lines are lost
  };
  struct Series {
    std::deque<int64_t> finished;  // their stamps, ascending; also of damaged files
    std::optional<Part> part;
  };

  RotatedFiles(Options options, const Clock& clock, Metrics& metrics);
  absl::Status OpenDirectory();
  absl::Status Lock();
  absl::Status Scan();
  absl::Status TakeOver(FileName name, Series* series);
  absl::Status Create(const std::string& stem, Series* series);
  absl::StatusOr<Fd> OpenPart(const std::string& name) const;
  absl::StatusOr<Fd> OpenTrimmed(const std::string& stem, Part* part) const;
  absl::Status Finish(const std::string& stem, Series* series);
  absl::Status FinishPart(const std::string& stem, Series* series);
  void LeaveAlone(const absl::Status& why);
  void Forget(const std::string& stem, Series* series);
  absl::Status Rename(const FileName& part, Series* series);
  absl::Status RemoveFinished(const std::string& stem, int64_t keep, Series* series);
  absl::Status Remove(const std::string& name) const;
  std::string PathOf(std::string_view name) const;
  std::string NameOf(const std::string& stem, int64_t stamp_ms, bool is_part) const {
    return FormatFileName({.stem = stem, .stamp_ms = stamp_ms, .is_part = is_part, .is_damaged = false},
                          options_.extension);
  }

  const Options options_;
  const Clock& clock_;
  Counter& unusable_files_;
  LogLimit unusable_log_{60 * kNsPerSecond};
  Fd directory_, lock_;
  std::map<std::string, Series, std::less<>> series_;  // by stem; each has files
  std::map<std::string, Part> undo_;  // by stem: the unfinished file before its first Append after Begin
};

}  // namespace tributary
