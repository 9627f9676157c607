// A made-up node: it sends the samples that a test chooses to a real reducer over the intake protocol, with the
// kernel-collector's client. Tests use it for samples that no kernel took: any number of containers, at any time.
//
//   made_up_node --intake-port 8000 [--intake-host HOST] [--node-id NAME]     NAME is host.id and host.name
//
// Standard input, a pipe, is JSON lines:
//
//   {"pid": 7, "executable": "/usr/bin/web", "cgroup": "/kubepods/burstable/podUID/ID", "times": [UNIX NS, …]}
//     One CPU sample of that process (and its only thread) at each of the times, which must be within a day of now. The
//     same process may have more samples later. The container's id is read from the cgroup's path, as in a
//     kernel-collector. Optional fields:
//     "attributes": the process's own attributes ("service.name=a,b=c", OTEL_RESOURCE_ATTRIBUTES);
//     "type": the name of one of our sample types instead of CPU, or, with "unit", the name of any type;
//     "value": the value in that unit, instead of 10 ms;
//     "frame": {"kind": the name of a frame kind, "name": the frame's name}, instead of a frame without a file.
//   {"send": true}
//     When all samples so far are durable at the reducer, it prints the line {"durable": N}: the samples so far.
//
// At the end of the input it sends the remaining samples and exits with 0. It exits with 1 if a line has another
// format, or if the reducer did not accept all samples within 20 s. A stack is one frame without a file, so that no
// component waits for its name.

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/options.h"
#include "base/status.h"
#include "base/tcp.h"
#include "intake/client/delivery.h"
#include "profile/cgroup_path.h"

namespace tributary {
namespace {

constexpr size_t kBatchSamplesMax = 10'000;
constexpr uint64_t kPeriodNs = 10'000'000;
constexpr uint8_t kOwnTypesFirst = 200;  // far above the built-in types
constexpr int64_t kFlushMs = 20'000;
constexpr uint64_t kPollMs = 2;
constexpr size_t kCommBytesMax = 15;  // TASK_COMM_LEN − 1

struct Arguments {
  std::string intake_host, node_id;
  int64_t intake_port = 0;
};

absl::StatusOr<SessionInfo> SessionOf(const std::string& node_id) {
  SessionInfo session{
      {.node_id = node_id, .boot_id = "made-up", .host_name = node_id, .agent_version = "made-up", .cpu_count = 1}};
  if (getrandom(session.session_id.data(), session.session_id.size(), 0) !=
      static_cast<ssize_t>(session.session_id.size())) {
    return ErrnoStatus("getrandom", "session id", errno);
  }
  return session;
}

class MadeUpNode {
 public:
  MadeUpNode(const Arguments& arguments, SessionInfo session)
      : tcp_(loop_),
        delivery_(loop_, tcp_, OptionsOf(arguments, std::move(session)), Clock::Real(), metrics_,
                  {.need_symbols = [](const ExecutableId&) {},
                   .need_digest = {},
                   .lost = [this](LossReason, const SampleCounts& samples) { lost_ += samples.total(); },
                   .durable = {},
                   .earlier_reported = {}}),
        input_(loop_, STDIN_FILENO, [this] { Read(); }),
        poll_(loop_, [this] { AnswerWhenDurable(); }) {}

  absl::Status Run() {
    delivery_.Start();
    input_.Start();
    loop_.Run();
    return end_;
  }

 private:
  static intake::DeliveryOptions OptionsOf(const Arguments& arguments, SessionInfo session) {
    intake::DeliveryOptions options;
    options.reducers = {{arguments.intake_host, static_cast<uint16_t>(arguments.intake_port)}};
    options.client.session = std::move(session);
    return options;
  }

  void Read() {
    std::array<char, 1 << 16> bytes;
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) {
      lines_.append(bytes.data(), static_cast<size_t>(got));
    } else {
      at_end_ = true;
    }
    HandleLines();
  }

  // Handles lines up to the first one that has to wait.
  void HandleLines() {
    for (size_t end; !poll_is_on_ && (end = lines_.find('\n')) != std::string::npos;) {
      const std::string line = lines_.substr(0, end);
      lines_.erase(0, end + 1);
      if (absl::Status status = Handle(line); !status.ok()) return Stop(WithContext(status, line.substr(0, 200)));
    }
    if (poll_is_on_) return input_.Stop();
    if (!at_end_) return input_.Start();
    input_.Stop();
    SendBatch();
    delivery_.Flush(kFlushMs, [this](uint64_t undelivered) {
      Stop(undelivered + lost_ == 0
               ? absl::OkStatus()
               : Error(absl::StatusCode::kUnavailable, fmt::format("not delivered: {} samples", undelivered + lost_)));
    });
  }

  absl::Status Handle(const std::string& line) {
    simdjson::dom::object request;
    if (parser_.parse(line).get(request) != simdjson::SUCCESS) return Bad("no JSON object");
    if (request["send"].error() == simdjson::SUCCESS) {
      SendBatch();
      poll_is_on_ = true;
      poll_.StartEvery(kPollMs);
      return absl::OkStatus();
    }
    int64_t pid = 0;
    std::string_view executable, cgroup, attributes;
    simdjson::dom::array times;
    if (request["pid"].get(pid) != simdjson::SUCCESS || request["executable"].get(executable) != simdjson::SUCCESS ||
        request["cgroup"].get(cgroup) != simdjson::SUCCESS || request["times"].get(times) != simdjson::SUCCESS) {
      return Bad("pid, executable, cgroup and times are needed");
    }
    if (request["attributes"].get(attributes) != simdjson::SUCCESS) attributes = "";
    Sample sample{.ending = Ending::kComplete, .value = kPeriodNs};
    sample.thread = Intern(Pid{static_cast<int32_t>(pid)}, executable, cgroup, attributes);
    if (uint64_t value = 0; request["value"].get(value) == simdjson::SUCCESS) sample.value = value;
    if (std::string_view type; request["type"].get(type) == simdjson::SUCCESS) {
      std::string_view unit;
      if (request["unit"].get(unit) != simdjson::SUCCESS) unit = "";
      ASSIGN_OR_RETURN(sample.type, TypeOf({std::string(type), std::string(unit)}));
    }
    Frame frame{.address = 0x1000};
    if (simdjson::dom::object object; request["frame"].get(object) == simdjson::SUCCESS) {
      ASSIGN_OR_RETURN(frame, ReadFrame(object));
    }
    sample.node = dictionary_->InternNode({NodeRef{}, dictionary_->InternFrame(frame)});
    for (const simdjson::dom::element each : times) {
      int64_t unix_ns = 0;
      if (each.get(unix_ns) != simdjson::SUCCESS) return Bad("times are whole ns");
      sample.time = MonotonicNs{clock_.monotonic.value + (unix_ns - clock_.unix.value)};
      Take(sample);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SampleType> TypeOf(SampleTypeInfo type) {
    const auto* row = std::find_if(kSampleTypes.begin(), kSampleTypes.end(), [&](const SampleTypeRow& of) {
      return of.name == type.name && (type.unit.empty() || of.unit == type.unit);
    });
    if (row != kSampleTypes.end()) return row->type;
    if (type.unit.empty()) return Bad("a type that is not ours needs a unit");
    const auto known = std::find_if(own_types_.begin(), own_types_.end(),
                                    [&](const SampleTypeDefinition& of) { return of.info == type; });
    if (known != own_types_.end()) return known->type;
    if (own_types_.size() == UINT8_MAX - kOwnTypesFirst) return Bad("too many types");
    const auto number = static_cast<SampleType>(kOwnTypesFirst + own_types_.size());
    own_types_.push_back({number, std::move(type)});
    return number;
  }

  absl::StatusOr<Frame> ReadFrame(const simdjson::dom::object& object) {
    std::string_view kind, name;
    if (object["kind"].get(kind) != simdjson::SUCCESS || object["name"].get(name) != simdjson::SUCCESS) {
      return Bad("a frame needs kind and name");
    }
    for (uint8_t number = 0; number < kFrameKindCount; ++number) {
      if (kFrameKinds[number].name == kind) {
        return Frame{.kind = static_cast<FrameKind>(number), .name = dictionary_->InternString(name)};
      }
    }
    return Bad("a kind of frame that is not ours");
  }

  ThreadRef Intern(Pid pid, std::string_view executable, std::string_view cgroup, std::string_view attributes) {
    Dictionary& d = *dictionary_;
    Process process;
    process.key = {pid, /*start_time_ns=*/int64_t{pid.value} * kNsPerSecond, 0};
    process.parent = Pid{1};
    process.comm = d.InternString(executable.substr(executable.rfind('/') + 1).substr(0, kCommBytesMax));
    process.executable_path = d.InternString(executable);
    process.container_id = d.InternString(ParseCgroupPath(cgroup).container_id);
    process.cgroup_path = d.InternString(cgroup);
    process.attributes = d.InternString(attributes);
    return d.InternThread({d.InternProcess(process), Tid{pid.value}, process.comm});
  }

  void Take(const Sample& sample) {
    samples_.push_back(sample);
    if (samples_.size() == kBatchSamplesMax) SendBatch();
  }

  void SendBatch() {
    if (samples_.empty()) return;
    std::stable_sort(samples_.begin(), samples_.end(),
                     [](const Sample& a, const Sample& b) { return a.time < b.time; });
    accounting_.captured += CountSamples(samples_);
    Batch batch{
        .clock = clock_, .samples = std::exchange(samples_, {}), .accounting = accounting_, .dictionary = dictionary_};
    batch.sample_types = own_types_;
    if (absl::Status status = delivery_.Take(std::move(batch)); !status.ok()) Stop(status);
  }

  void AnswerWhenDurable() {
    if (delivery_.waiting_samples() > 0) return;
    poll_.Stop();
    poll_is_on_ = false;
    if (lost_ > 0) return Stop(Error(absl::StatusCode::kDataLoss, fmt::format("lost: {} samples", lost_)));
    fmt::print("{{\"durable\": {}}}\n", accounting_.captured.total());
    std::fflush(stdout);
    HandleLines();
  }

  static absl::Status Bad(std::string_view problem) { return Error(absl::StatusCode::kInvalidArgument, problem); }

  void Stop(absl::Status end) {
    end_ = std::move(end);
    loop_.Stop();
  }

  Loop loop_;
  TcpConnector tcp_;
  Metrics metrics_;
  uint64_t lost_ = 0;
  intake::Delivery delivery_;
  ReadWatcher input_;
  Timer poll_;
  bool poll_is_on_ = false, at_end_ = false;
  simdjson::dom::parser parser_;
  std::string lines_;
  // All batches use one pair of clock readings, so that a time is the same in every batch.
  const ClockPair clock_ = Clock::Real().Pair();
  std::shared_ptr<Dictionary> dictionary_ = std::make_shared<Dictionary>();
  std::vector<Sample> samples_;
  std::vector<SampleTypeDefinition> own_types_;
  Accounting accounting_;
  absl::Status end_;
};

absl::Status Run(int argc, char** argv) {
  Arguments arguments;
  Options options("made_up_node", "Sends samples that it reads from standard input.");
  options.Add({.name = "intake-host", .help = "host of the reducer", .value_name = "HOST"}, &arguments.intake_host,
              "127.0.0.1");
  options.Add({.name = "intake-port", .help = "port of the reducer", .value_name = "PORT"}, &arguments.intake_port,
              8000, 1, 65'535);
  options.Add({.name = "node-id", .help = "host.id and host.name", .value_name = "NAME"}, &arguments.node_id,
              "made-up");
  ASSIGN_OR_RETURN(const Options::Outcome outcome, options.Parse(argc, argv, Options::ProcessEnvironment()));
  if (outcome == Options::Outcome::kExit) return absl::OkStatus();
  ASSIGN_OR_RETURN(SessionInfo session, SessionOf(arguments.node_id));
  return MadeUpNode(arguments, std::move(session)).Run();
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (absl::Status status = tributary::Run(argc, argv); !status.ok()) {
    tributary::LogError("made_up_node: {}", tributary::Message(status));
    return 1;
  }
  return 0;
}
