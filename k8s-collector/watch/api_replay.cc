#include "k8s-collector/watch/api_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/status.h"

namespace tributary {

// The file of one kind, and the watch that receives its steps.
struct ApiReplay::Source {
  const ResourceInfo* info = nullptr;
  std::string path;
  std::ifstream file;
  uint64_t line_number = 0;
  bool has_step = false;
  RecordedStep step;  // next, when has_step
  std::unique_ptr<ResourceWatch> watch;
  bool under_way = false;

  absl::Status ReadNext() {
    std::string line;
    has_step = static_cast<bool>(std::getline(file, line));
    if (!has_step) return absl::OkStatus();
    ++line_number;
    absl::StatusOr<RecordedStep> next = DecodeStep(line);
    if (!next.ok()) return WithContext(next.status(), fmt::format("{}:{}", path, line_number));
    step = *std::move(next);
    return absl::OkStatus();
  }
};

ApiReplay::ApiReplay() = default;
ApiReplay::~ApiReplay() = default;

absl::StatusOr<std::unique_ptr<ApiReplay>> ApiReplay::Open(const std::string& directory) {
  std::unique_ptr<ApiReplay> replay(new ApiReplay());
  for (const ResourceInfo& info : AllResources()) {
    auto source = std::make_unique<Source>();
    source->info = &info;
    source->path = fmt::format("{}/{}", directory, RecordingFileName(info.kind));
    source->file.open(source->path);
    if (!source->file) continue;
    RETURN_IF_ERROR(source->ReadNext());
    replay->sources_.push_back(std::move(source));
  }
  const Source* first = replay->Earliest();
  if (first == nullptr) {
    return Error(absl::StatusCode::kNotFound,
                 fmt::format("{}: there is no recording of an API server's answers", directory));
  }
  replay->clock_ = FakeClock(MonotonicNs{kNsPerSecond}, first->step.at);
  return replay;
}

ApiReplay::Source* ApiReplay::Earliest() {
  Source* earliest = nullptr;
  for (const auto& source : sources_) {
    if (source->has_step && (earliest == nullptr || source->step.at < earliest->step.at)) earliest = source.get();
  }
  return earliest;
}

bool ApiReplay::IsComplete() const {
  return std::all_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->watch->listed() || source->watch->refused(); });
}

absl::Status ApiReplay::Run(WatchEvents& events, Metrics& metrics, const std::function<void()>& complete,
                            const std::function<void()>& after_step) {
  WatchMetrics watch_metrics(metrics);
  for (const auto& source : sources_) {
    source->watch =
        std::make_unique<ResourceWatch>(*source->info, ResourceWatch::Options{.seed = 1}, events, watch_metrics);
  }
  bool reported_complete = false;
  while (Source* source = Earliest()) {
    clock_.Advance(std::max<int64_t>(0, source->step.at.value - clock_.Unix().value));
    if (absl::Status status = Replay(*source); !status.ok()) {
      return WithContext(status, fmt::format("{}:{}", source->path, source->line_number));
    }
    if (!reported_complete && IsComplete()) {
      reported_complete = true;
      complete();
    }
    after_step();
    RETURN_IF_ERROR(source->ReadNext());
  }
  return absl::OkStatus();
}

absl::Status ApiReplay::Replay(Source& source) {
  const MonotonicNs now = clock_.Monotonic();
  const RecordedStep& step = source.step;
  if ((step.type == RecordedStep::Type::kRequest) == source.under_way) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "the recording has a request before the end of the previous request, or an answer without a request");
  }
  switch (step.type) {
    case RecordedStep::Type::kRequest: {
      const ResourceWatch::Request request = source.watch->Begin(now);
      constexpr std::string_view kWatch = "watch=true";
      const bool is_watch = step.text.find(kWatch) != std::string::npos;
      if (is_watch != (request.target.find(kWatch) != std::string::npos)) {
        return Error(absl::StatusCode::kFailedPrecondition,
                     fmt::format("the recording contains the request {}, but this version of k8s-collector requests {}",
                                 step.text, request.target));
      }
      source.under_way = true;
      break;
    }
    case RecordedStep::Type::kAnswer:
      source.watch->OnAnswer(step.status, step.retry_after_s, now);
      break;
    case RecordedStep::Type::kBytes:
      source.watch->OnBytes(step.text, now);
      break;
    case RecordedStep::Type::kEnd:
      source.watch->OnEnd(step.text.empty() ? absl::OkStatus() : Error(absl::StatusCode::kUnavailable, step.text), now);
      source.under_way = false;
      break;
  }
  return absl::OkStatus();
}

}  // namespace tributary
