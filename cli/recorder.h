#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/api.h"
#include "cli/http_client.h"
#include "cli/program.h"
#include "cli/signal_inbox.h"

namespace tributary::cli {

// Runs a private reducer and kernel-collector for `tributary record`, on loopback ports that the kernel chooses. The
// destructor kills both programs and removes their data directory. If a program fails, the error message ends with the
// last line of its log. Cancelled: a signal arrived during the call.
class Recorder {
 public:
  explicit Recorder(SignalInbox& signals) : signals_(signals) {}
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Starts both programs, and waits until the collector has taken samples. NotFound: the binary of one of them was not
  // found.
  absl::Status Start(uint32_t rate_hz);
  // Waits until no symbol table has arrived for 2 s, but at most 10 s. For a command that ran only briefly, symbol
  // tables arrive after its end.
  absl::Status WaitForSymbols();
  // Sends SIGTERM to the collector, and waits up to 10 s until the collector has sent its remaining data and ended.
  absl::Status StopCollector();

  const HttpClient& client() const { return *client_; }
  absl::StatusOr<StatusAnswer> Status() const;

 private:
  absl::Status StartReducer(const std::string& program);
  absl::Status StartCollector(const std::string& program, uint32_t rate_hz);
  // Waits `ms` milliseconds, or until a signal arrives. Cancelled if a signal other than SIGCHLD arrived.
  absl::Status Pause(int ms);
  absl::Status Ended(const std::string& message, const std::string& log_path) const;

  SignalInbox& signals_;
  std::string directory_;
  Program reducer_, collector_;
  uint16_t intake_port_ = 0;
  std::optional<HttpClient> client_;
};

}  // namespace tributary::cli
