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

// Tells what a recorded API server answered as if it did so now, all kinds in the order of the recorded times, and by a
// clock that shows these. It does not wait.
class ApiReplay {
 public:
  // The files that are there; NotFound: none is. InvalidArgument names file and line. A file is read a line at a time.
  static absl::StatusOr<std::unique_ptr<ApiReplay>> Open(const std::string& directory);
  ~ApiReplay();

  // The time of the step at hand; before Run, of the first.
  const Clock& clock() const { return clock_; }

  // `after_step` is called whenever something has been told. FailedPrecondition: the recording is of one that asked
  // otherwise than this version does.
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
