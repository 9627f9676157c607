#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "k8s-collector/watch/api_recording.h"
#include "k8s-collector/watch/resource_watch.h"

namespace tributary {

// Replays a recording of an API server's answers (api_recording.h). Processes the steps of all kinds in the order of
// their recorded times, and passes the resulting objects to WatchEvents. Sets clock() to these times, and does not wait
// between steps.
class ApiReplay {
 public:
  // Opens the files of the recording in `directory`. Returns NotFound if there are none. Returns InvalidArgument, with
  // the file and line in the message, if the first line of a file is malformed. Later lines are read during Run.
  static absl::StatusOr<std::unique_ptr<ApiReplay>> Open(const std::string& directory);
  ~ApiReplay();

  // A clock with the time of the current step. Before Run, it has the time of the first step.
  const Clock& clock() const { return clock_; }

  // Replays the whole recording. Calls `complete` once, when every recorded kind has been listed or was refused. Calls
  // `after_step` after each step. Returns InvalidArgument if a line is malformed, and FailedPrecondition if the
  // recording contains a request that this version of k8s-collector does not make.
  absl::Status Run(WatchEvents& events, Metrics& metrics, const std::function<void()>& complete,
                   const std::function<void()>& after_step);

 private:
  struct Source;
  ApiReplay();
  absl::Status Replay(Source& source);
  Source* Earliest();
  bool IsComplete() const;

  std::vector<std::unique_ptr<Source>> sources_;
  FakeClock clock_;
};

}  // namespace tributary
