#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_access.h"
#include "k8s-collector/watch/exec_credential.h"
#include "k8s-collector/watch/program_run.h"

namespace tributary {

// Gets credentials from the exec plug-in of a kubeconfig's user, and keeps them. Runs the plug-in when credentials are
// needed for the first time, when they have expired, and after the API server has refused them. After a failure, waits
// 1 to 30 s before the next run, and meanwhile answers with the same error. It also waits if the API server refuses
// credentials that it had accepted, except for the first time. It waits longer each time until no credentials were
// refused for a minute. Logs each problem once. Use it on the loop's thread.
class ExecPlugin {
 public:
  struct Credential {
    ExecCredential secrets;
    uint64_t serial = 0;  // 1 for the first ones
  };
  // An object that waits for credentials.
  class Waiter {
   public:
    // Called once, never inside Await. Unauthenticated: the plug-in has failed. The message names the plug-in. The
    // credential is valid during the call. May call Await.
    virtual void OnCredential(const absl::StatusOr<const Credential*>& credential) = 0;

   protected:
    ~Waiter() = default;
  };

  // `access` must have an `exec`. `environment` is that of this process: the plug-in gets it, too. `loop` and `clock`
  // must outlive the plug-in.
  ExecPlugin(Loop& loop, ApiAccess access, std::map<std::string, std::string> environment, const Clock& clock,
             Metrics& metrics, ProgramRun::Limits limits = {});

  // Returns the current credentials, or nullptr if there are none: then use Await.
  const Credential* current() const;
  void Await(Waiter& waiter);
  void Forget(Waiter& waiter);  // also if it does not wait

  // Report the API server's answers to requests with the credentials that have this serial number.
  void OnAccepted(uint64_t serial);
  void OnRefused(uint64_t serial);
  absl::Status Refused() const;  // the error of requests whose credentials were refused twice

  // Returns true while the last run has failed, or its credentials were refused.
  bool has_failed() const { return !failure_.ok(); }

 private:
  void Act();
  void Run();
  void OnRunEnd(ProgramRun::Outcome outcome);
  absl::Status TakeAnswer(std::string_view answer);
  void Fail(std::string_view why, std::string_view detail = "");
  void AnswerWaiters();
  bool HasWorkedForLong() const;
  void LogEndOfTrouble();
  absl::StatusOr<ProgramRun::Program> MakeProgram() const;
  absl::Status OfPlugin(std::string_view why) const;

  Loop& loop_;
  const ApiAccess access_;
  const std::map<std::string, std::string> environment_;  // of this process
  const Clock& clock_;
  const ProgramRun::Limits limits_;
  Counter &runs_ok_, &runs_failed_, &runs_refused_;
  std::mt19937_64 random_;
  Backoff backoff_ns_;  // of runs. Reset when HasWorkedForLong
  MonotonicNs next_run_;
  std::optional<Credential> credential_;
  bool is_accepted_ = false;                   // `credential_`, by the API server
  std::optional<MonotonicNs> accepted_since_;  // no credentials were refused, and no run has failed, since then
  uint64_t serials_ = 0;
  absl::Status failure_;
  std::string logged_why_, logged_;  // the problem that was logged: its kind, and its whole text
  LogLimit changed_detail_{10 * kNsPerMinute}, early_end_{10 * kNsPerMinute};
  std::list<Waiter*> waiters_, answered_;
  std::unique_ptr<ProgramRun> run_;  // the last one
  bool is_running_ = false;
  Timer act_;
};

// Returns the path of the program `command`. If `command` has no "/", looks it up in the absolute directories of
// `search_path`. Returns NotFound if there is no such executable file.
absl::StatusOr<std::string> FindProgram(const std::string& command, std::string_view search_path);

}  // namespace tributary
