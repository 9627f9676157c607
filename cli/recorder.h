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

// A private reducer and kernel-collector on loopback ports of the system's choice. The destructor kills them and
// removes their data directory. Errors are one line, with the last line that the failing program wrote. Cancelled: a
// signal arrived meanwhile.
class Recorder {
 public:
  explicit Recorder(SignalInbox& signals) : signals_(signals) {}
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Starts both programs, and waits until the collector samples. NotFound: a binary is missing.
  absl::Status Start(uint32_t rate_hz);
  // Waits until no symbol table has arrived for 2 s, but at most 10 s. The names of a short command arrive after its
  // end.
  absl::Status WaitForSymbols();
  // Lets the collector send its remaining data and end.
  absl::Status StopCollector();

  const HttpClient& client() const { return *client_; }
  absl::StatusOr<StatusAnswer> Status() const;

 private:
  absl::Status StartReducer(const std::string& program);
  absl::Status StartCollector(const std::string& program, uint32_t rate_hz);
  // Waits `ms`. Cancelled if a signal other than SIGCHLD arrived in that time.
  absl::Status Pause(int ms);
  absl::Status Ended(const std::string& message, const std::string& log_path) const;

  SignalInbox& signals_;
  std::string directory_;
  Program reducer_, collector_;
  uint16_t intake_port_ = 0;
  std::optional<HttpClient> client_;
};

}  // namespace tributary::cli
