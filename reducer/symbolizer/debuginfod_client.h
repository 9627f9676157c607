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

// Gets debug files and source files from debuginfod servers, one server after the other (GET URL/buildid/HEX/debuginfo,
// …/source/PATH; elfutils' debuginfod(8)). The servers learn the build-ids of the running programs. A server that fails
// is not asked for a minute. Use it on one thread; it waits for the network.
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
  // `is_cancelled` is called several times a second during a fetch.
  DebuginfodClient(Options options, std::function<bool()> is_cancelled, const Clock& clock, Metrics& metrics);

  bool enabled() const { return !servers_.empty(); }
  // NotFound: no server has the file. Unavailable, with the reason: a server could not be asked, or the transfer was
  // cut off, and the other servers do not have the file. ResourceExhausted: the file is over the size limit.
  absl::StatusOr<Fd> FetchDebugFile(const ExecutableId& build_id);
  // `path`: absolute, as in debug information. Returns the text. Errors are as above.
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
