#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/metrics.h"
#include "profile/executable_id.h"

namespace tributary {

// Fetches debug files and source files from debuginfod servers (see debuginfod(8) of elfutils). It tries one server
// after the other, with GET URL/buildid/HEX/debuginfo or GET URL/buildid/HEX/source/PATH. So the servers learn the
// build-ids of the sampled programs. If a server does not answer, or answers with an error other than "not found", it
// gets no requests for `server_retry_ns`. Calls block until a server has answered. Use it on one thread at a time.
class DebuginfodClient {
 public:
  struct Options {
    std::vector<std::string> urls;  // without a "/" at the end
    uint64_t file_bytes_max = 8ull << 30;
    std::string temporary_directory;  // for fetched files, which have no name
    int64_t connect_timeout_ms = 10'000;
    int64_t stall_timeout_s = 30;  // maximum time below 1 KiB/s
    int64_t total_timeout_s = 1'800;
    int64_t server_retry_ns = 60 * kNsPerSecond;
  };
  // During a fetch, `is_cancelled` is called several times a second. If it returns true, the fetch ends with
  // Unavailable.
  DebuginfodClient(Options options, std::function<bool()> is_cancelled, const Clock& clock, Metrics& metrics);

  bool enabled() const { return !servers_.empty(); }
  // NotFound: no server has the file. Unavailable: no server sent the file, and at least one of them did not answer, or
  // answered with an error, or broke off; the message gives the reason. ResourceExhausted: the file is larger than
  // `file_bytes_max`, or the disk is full.
  absl::StatusOr<Fd> FetchDebugFile(const ExecutableId& build_id);
  // Returns the text of a source file. `path` must be absolute, as in debug information. Returns the same errors as
  // FetchDebugFile.
  absl::StatusOr<std::string> FetchSource(const ExecutableId& build_id, std::string_view path);

 private:
  struct Server {
    std::string url;
    MonotonicNs not_before;
    std::string failure;
  };
  // `url_path`: the part of the URL after the server's URL.
  absl::StatusOr<Fd> Fetch(const std::string& url_path);
  absl::StatusOr<Fd> FetchFrom(const Server& server, const std::string& url_path);

  const Options options_;
  const std::function<bool()> is_cancelled_;
  const Clock& clock_;
  std::vector<Server> servers_;
  Counter &fetched_, &missing_, &failed_, &bytes_;
};

}  // namespace tributary
