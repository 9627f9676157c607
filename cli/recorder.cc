#include "cli/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

constexpr int kPollMs = 50;
constexpr int kStartTimeoutMs = 20'000;
constexpr int kStopTimeoutMs = 10'000;
// The collector sends once per second, and the reducer then requests missing symbols.
constexpr int kSymbolsQuietMs = 2'000, kSymbolsTimeoutMs = 10'000;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string LastLine(const std::string& path) {
  const std::string all = ReadFile(path);
  const std::string_view text = TrimEnd(all, " \n");
  return EscapeForDisplay(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Recorder::~Recorder() {
  collector_.Kill();
  reducer_.Kill();
  std::error_code error;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, error);
}

absl::Status Recorder::Pause(int ms) {
  auto signal = signals_.Wait(ms);
  if (signal && signal->number != SIGCHLD) return Error(absl::StatusCode::kCancelled, "interrupted");
  return absl::OkStatus();
}

absl::Status Recorder::Ended(const std::string& message, const std::string& log_path) const {
  std::string line = LastLine(log_path);
  return Error(absl::StatusCode::kInternal, fmt::format("{}: {}", message, line.empty() ? "the log is empty" : line));
}

absl::Status Recorder::Start(uint32_t rate_hz) {
  ASSIGN_OR_RETURN(std::string reducer, FindProgram("reducer"));
  ASSIGN_OR_RETURN(std::string collector, FindProgram("kernel-collector"));
  const char* parent = getenv("TMPDIR");
  std::string path = fmt::format("{}/tributary-record-XXXXXX", parent != nullptr && *parent != 0 ? parent : "/tmp");
  if (mkdtemp(path.data()) == nullptr) return ErrnoStatus("create", path, errno);
  directory_ = path;
  RETURN_IF_ERROR(StartReducer(reducer));
  return StartCollector(collector, rate_hz);
}

absl::Status Recorder::StartReducer(const std::string& program) {
  std::string log = directory_ + "/reducer.log", ports_path = directory_ + "/ports.json";
  ASSIGN_OR_RETURN(reducer_, Program::Start({.arguments = {program, "--data-dir", directory_ + "/data",
                                                           "--intake-listen", "127.0.0.1:0", "--http-listen",
                                                           "127.0.0.1:0", "--ports-file", ports_path},
                                             .output_path = log,
                                             .helper = true,
                                             .signal_mask = signals_.old_mask()}));
  for (int waited_ms = 0; waited_ms < kStartTimeoutMs; waited_ms += kPollMs) {
    if (!reducer_.running()) return Ended("the reducer did not start", log);
    if (std::string text = ReadFile(ports_path); !text.empty()) {
      ASSIGN_OR_RETURN(Ports ports, ParsePorts(text));
      intake_port_ = ports.intake;
      client_.emplace(HttpClient::Options{.server = fmt::format("http://127.0.0.1:{}", ports.http)});
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Pause(kPollMs));
  }
  return Ended(fmt::format("the reducer was not ready after {} s", kStartTimeoutMs / 1000), log);
}

absl::Status Recorder::StartCollector(const std::string& program, uint32_t rate_hz) {
  std::string log = directory_ + "/kernel-collector.log";
  ASSIGN_OR_RETURN(collector_, Program::Start({.arguments = {program, "--intake-host", "127.0.0.1", "--intake-port",
                                                             std::to_string(intake_port_), "--sample-rate",
                                                             std::to_string(rate_hz), "--cpu-budget", "off",
                                                             "--batch-interval", "1s", "--metrics-listen", "off"},
                                               .output_path = log,
                                               .helper = true,
                                               .signal_mask = signals_.old_mask()}));
  for (int waited_ms = 0; waited_ms < kStartTimeoutMs; waited_ms += kPollMs) {
    if (!collector_.running()) return Ended("kernel-collector did not start", log);
    ASSIGN_OR_RETURN(StatusAnswer status, Status());
    for (const StatusAnswer::Node& node : status.nodes) {
      if (node.connected && node.totals.captured + node.totals.idle > 0) return absl::OkStatus();
    }
    RETURN_IF_ERROR(Pause(kPollMs));
  }
  return Ended(fmt::format("the reducer got no sample of kernel-collector within {} s", kStartTimeoutMs / 1000), log);
}

absl::Status Recorder::WaitForSymbols() {
  uint64_t tables = 0;
  int quiet_ms = 0;
  for (int waited_ms = 0; waited_ms < kSymbolsTimeoutMs && quiet_ms < kSymbolsQuietMs; waited_ms += kPollMs) {
    ASSIGN_OR_RETURN(StatusAnswer status, Status());
    quiet_ms = status.symbol_tables == tables ? quiet_ms + kPollMs : 0;
    tables = status.symbol_tables;
    RETURN_IF_ERROR(Pause(kPollMs));
  }
  return absl::OkStatus();
}

absl::Status Recorder::StopCollector() {
  std::string log = directory_ + "/kernel-collector.log";
  if (!collector_.running()) return Ended("kernel-collector ended before tributary stopped it", log);
  collector_.Signal(SIGTERM);
  for (int waited_ms = 0; waited_ms < kStopTimeoutMs; waited_ms += kPollMs) {
    if (!collector_.running()) {
      if (collector_.exit_code() != 0) return Ended("kernel-collector failed", log);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(Pause(kPollMs));
  }
  return Ended(fmt::format("kernel-collector did not end within {} s after SIGTERM", kStopTimeoutMs / 1000), log);
}

absl::StatusOr<StatusAnswer> Recorder::Status() const {
  ASSIGN_OR_RETURN(std::string json, client_->Get("/api/v1/status"));
  return ParseStatus(json);
}

}  // namespace tributary::cli
