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

// Gets debug files and source files from debuginfod servers, in turn (GET URL/buildid/HEX/debuginfo, …/source/PATH;
// elfutils' debuginfod(8)). They are told the build-ids of what runs. A server that fails is left alone for a minute.
// One thread; waits for the network.
class DebuginfodClient {
 public:
  struct Options {
    std::vector<std::string> urls;  // without a "/" at the end
    uint64_t file_bytes_max = 8ull << 30;
    std::string temporary_directory;  // takes what is fetched, without a name
    int64_t connect_timeout_ms = 10'000;
    int64_t stall_timeout_s = 30;  // below 1 KiB/s for so long
    int64_t total_timeout_s = 1'800;
    int64_t server_retry_ns = 60 * kNsPerSecond;
  };
  // `is_cancelled` is asked several times a second while something is fetched.
  DebuginfodClient(Options options, std::function<bool()> is_cancelled, const Clock& clock, Metrics& metrics);

  bool enabled() const { return !servers_.empty(); }
  // NotFound: every server says that it has none. Unavailable: one could not be asked, or was cut off, and why; the
  // rest has none. ResourceExhausted: over the size.
  absl::StatusOr<Fd> FetchDebugFile(const ExecutableId& build_id);
  // `path`: absolute, as debug information has it. Its text; errors as above.
  absl::StatusOr<std::string> FetchSource(const ExecutableId& build_id, std::string_view path);

 private:
  struct Server {
    std::string url;
    MonotonicNs not_before;
    std::string failure;
  };
  // `what`: behind the server's URL.
  absl::StatusOr<Fd> Fetch(const std::string& what);
  absl::StatusOr<Fd> FetchFrom(const Server& server, const std::string& what);

  const Options options_;
  const std::function<bool()> is_cancelled_;
  const Clock& clock_;
  std::vector<Server> servers_;
  Counter &fetched_, &missing_, &failed_, &bytes_;
};

}  // namespace tributary
