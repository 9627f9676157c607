#include "k8s-collector/watch/exec_plugin.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/utf8.h"

namespace tributary {
namespace {

constexpr Backoff::Bounds kBackoffNs = {.min = kNsPerSecond, .max = 30 * kNsPerSecond};
// Credentials that expire sooner would often be refused, and the plug-in would run again and again.
constexpr int64_t kLifeMinNs = kNsPerSecond;
// Credentials that were accepted for this long have worked.
constexpr int64_t kWorkedNs = kNsPerMinute;
constexpr size_t kHintBytesMax = 500;

bool IsProgram(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Returns the text with one blank between its words.
std::string OnOneLine(std::string_view text) {
  std::string out;
  for (text = Trim(text, kAsciiBlanks); !text.empty(); text = Trim(text, kAsciiBlanks)) {
    const std::string_view word = text.substr(0, text.find_first_of(kAsciiBlanks));
    if (!out.empty()) out += ' ';
    out += word;
    text.remove_prefix(word.size());
  }
  return out;
}

Counter& AddRuns(Metrics& metrics, const char* result) {
  return metrics.AddCounter("tributary_k8s_exec_runs_total",
                            "Runs of the kubeconfig's exec plug-in that gave credentials (ok) or failed, and runs "
                            "whose credentials the API server refused.",
                            {{"result", result}});
}

std::string WhyOf(const ProgramRun::Outcome& outcome, const ProgramRun::Limits& limits) {
  switch (outcome.ending) {
    case ProgramRun::Ending::kExited:
      return fmt::format("it ended with exit code {}", outcome.code);
    case ProgramRun::Ending::kSignaled:
      return fmt::format("it was ended by signal {}", outcome.code);
    case ProgramRun::Ending::kTimedOut:
      return fmt::format("it did not end within {} s, and was killed", limits.run_ms_max / 1000);
    case ProgramRun::Ending::kWroteTooMuch:
      return fmt::format("it wrote more than {} bytes to its standard output, and was killed", limits.output_bytes_max);
    case ProgramRun::Ending::kOutputHeld:
      break;
  }
  return "it ended, but a process that it started keeps its standard output open";
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& command, std::string_view search_path) {
  if (command.find('/') != std::string::npos) {
    if (IsProgram(command)) return command;
    return Error(absl::StatusCode::kNotFound, fmt::format("{} is not an executable file", command));
  }
  while (!search_path.empty()) {
    const std::string_view directory = search_path.substr(0, search_path.find(':'));
    search_path.remove_prefix(std::min(directory.size() + 1, search_path.size()));
    if (!directory.starts_with('/')) continue;
    if (std::string path = fmt::format("{}/{}", directory, command); IsProgram(path)) return path;
  }
  return Error(absl::StatusCode::kNotFound, fmt::format("there is no program {} in the directories of PATH", command));
}

ExecPlugin::ExecPlugin(Loop& loop, ApiAccess access, std::map<std::string, std::string> environment, const Clock& clock,
                       Metrics& metrics, ProgramRun::Limits limits)
    : loop_(loop),
      access_(std::move(access)),
      environment_(std::move(environment)),
      clock_(clock),
      limits_(limits),
      runs_ok_(AddRuns(metrics, "ok")),
      runs_failed_(AddRuns(metrics, "failed")),
      runs_refused_(AddRuns(metrics, "refused")),
      random_(SeedOrRandom(0)),
      backoff_ns_(kBackoffNs),
      act_(loop, [this] { Act(); }) {
  TRIBUTARY_CHECK(access_.exec.has_value());
}

const ExecPlugin::Credential* ExecPlugin::current() const {
  if (!credential_ || (credential_->secrets.expires && clock_.Unix() >= *credential_->secrets.expires)) return nullptr;
  return &*credential_;
}

void ExecPlugin::Await(Waiter& waiter) {
  waiters_.push_back(&waiter);
  if (!is_running_) act_.StartOnce(0);
}

void ExecPlugin::Forget(Waiter& waiter) {
  waiters_.remove(&waiter);
  answered_.remove(&waiter);
}

void ExecPlugin::Act() {
  if (is_running_ || waiters_.empty()) return;
  const bool must_wait = !failure_.ok() && clock_.Monotonic() < next_run_;
  if (current() == nullptr && !must_wait) return Run();
  AnswerWaiters();
}

void ExecPlugin::Run() {
  if (run_ != nullptr && !run_->has_ended()) {
    runs_failed_.Add();
    Fail("its last run was killed, and has not ended yet");
    return AnswerWaiters();
  }
  absl::StatusOr<ProgramRun::Program> program = MakeProgram();
  absl::Status status = program.status();
  if (status.ok()) {
    auto run = ProgramRun::Start(loop_, *std::move(program), limits_,
                                 [this](ProgramRun::Outcome outcome) { OnRunEnd(std::move(outcome)); });
    status = run.status();
    if (run.ok()) {
      run_ = *std::move(run);
      is_running_ = true;
      return;
    }
  }
  runs_failed_.Add();
  Fail(Message(status));
  AnswerWaiters();
}

absl::StatusOr<ProgramRun::Program> ExecPlugin::MakeProgram() const {
  const ExecConfig& exec = *access_.exec;
  const auto path = environment_.find("PATH");
  ProgramRun::Program program{.path = {}, .arguments = {exec.command}, .environment = {}};
  absl::StatusOr<std::string> found = FindProgram(exec.command, path == environment_.end() ? "" : path->second);
  if (!found.ok() && !exec.install_hint.empty()) {
    return Error(found.status().code(),
                 fmt::format("{}: {}", Message(found.status()), CutUtf8(OnOneLine(exec.install_hint), kHintBytesMax)));
  }
  ASSIGN_OR_RETURN(program.path, std::move(found));
  program.arguments.insert(program.arguments.end(), exec.arguments.begin(), exec.arguments.end());
  std::map<std::string, std::string> variables = environment_;
  for (const auto& [name, value] : exec.environment) variables[name] = value;
  ASSIGN_OR_RETURN(variables["KUBERNETES_EXEC_INFO"], EncodeExecInfo(access_));
  for (const auto& [name, value] : variables) program.environment.push_back(name + "=" + value);
  return program;
}

void ExecPlugin::OnRunEnd(ProgramRun::Outcome outcome) {
  is_running_ = false;
  if (outcome.ending == ProgramRun::Ending::kExited && outcome.code == 0) {
    const absl::Status status = TakeAnswer(outcome.output);
    (status.ok() ? runs_ok_ : runs_failed_).Add();
    if (!status.ok()) Fail(Message(status));
  } else {
    runs_failed_.Add();
    Fail(WhyOf(outcome, limits_), outcome.last_error_line);
  }
  AnswerWaiters();
}

absl::Status ExecPlugin::TakeAnswer(std::string_view answer) {
  ASSIGN_OR_RETURN(ExecCredential secrets, DecodeExecCredential(answer, access_.exec->api_version));
  if (secrets.expires && clock_.Unix().value + kLifeMinNs >= secrets.expires->value) {
    const auto seconds = std::chrono::sys_seconds(std::chrono::seconds(secrets.expires->value / kNsPerSecond));
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("its credentials expire at once, at {:%FT%TZ}: check the clock of this machine, and "
                             "whether the plug-in needs a new login",
                             fmt::gmtime(seconds)));
  }
  credential_ = Credential{.secrets = std::move(secrets), .serial = ++serials_};
  is_accepted_ = false;  // but accepted_since_ stays: a token that has expired was not refused
  failure_ = absl::OkStatus();
  return absl::OkStatus();
}

void ExecPlugin::Fail(std::string_view why, std::string_view detail) {
  credential_.reset();
  accepted_since_.reset();
  const std::string text = detail.empty() ? std::string(why) : fmt::format("{}: {}", why, EscapeForDisplay(detail));
  failure_ = OfPlugin(text);
  next_run_.value = clock_.Monotonic().value + backoff_ns_.NextJittered(random_);
  if (text == logged_) return;
  // The detail is the plug-in's own text, which may differ in each run.
  uint64_t suppressed = 0;
  if (!changed_detail_.Allow(clock_.Monotonic(), &suppressed) && why == logged_why_) return;
  logged_why_ = why;
  logged_ = text;
  LogWarning("cannot get credentials for the API server from the kubeconfig's exec plug-in command={} cause=\"{}\"",
             access_.exec->command, text);
}

void ExecPlugin::AnswerWaiters() {
  answered_.splice(answered_.end(), waiters_);
  while (!answered_.empty()) {
    Waiter* waiter = answered_.front();
    answered_.pop_front();
    const Credential* credential = current();
    if (credential != nullptr) {
      waiter->OnCredential(credential);
    } else {
      waiter->OnCredential(failure_.ok() ? OfPlugin("its credentials expired while they were used") : failure_);
    }
  }
}

bool ExecPlugin::HasWorkedForLong() const {
  return accepted_since_ && clock_.Monotonic().value - accepted_since_->value >= kWorkedNs;
}

void ExecPlugin::OnAccepted(uint64_t serial) {
  if (!credential_ || credential_->serial != serial) return;
  is_accepted_ = true;
  if (!accepted_since_) accepted_since_ = clock_.Monotonic();
  if (HasWorkedForLong()) backoff_ns_.Reset();
  LogEndOfTrouble();
}

void ExecPlugin::LogEndOfTrouble() {
  if (logged_.empty()) return;
  // If the server accepts and refuses credentials in turn, the problem goes on.
  uint64_t suppressed = 0;
  if (!HasWorkedForLong() && !early_end_.Allow(clock_.Monotonic(), &suppressed)) return;
  logged_why_.clear();
  logged_.clear();
  LogInfo("the API server accepts the credentials of the exec plug-in again command={}", access_.exec->command);
}

void ExecPlugin::OnRefused(uint64_t serial) {
  if (!credential_ || credential_->serial != serial) return;
  if (HasWorkedForLong()) backoff_ns_.Reset();
  // Credentials that have worked may have been revoked: get new ones at once. But do so only once, because the server
  // may also refuse the next ones soon. New credentials that do not work are a failure.
  if (is_accepted_ && backoff_ns_.failures() == 0) {
    credential_.reset();
    accepted_since_.reset();
    backoff_ns_.Next();
  } else {
    runs_refused_.Add();
    Fail("the API server does not accept its credentials (HTTP status 401)");
  }
}

absl::Status ExecPlugin::Refused() const {
  return failure_.ok() ? OfPlugin("the API server does not accept its credentials (HTTP status 401)") : failure_;
}

absl::Status ExecPlugin::OfPlugin(std::string_view why) const {
  return Error(absl::StatusCode::kUnauthenticated,
               fmt::format("no credentials from the exec plug-in {}: {}", access_.exec->command, why));
}

}  // namespace tributary
