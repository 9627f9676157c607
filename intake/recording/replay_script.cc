#include "intake/recording/replay_script.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/status.h"
#include "intake/codec/batch_encoder.h"
#include "intake/metadata/metadata_message.h"
#include "intake/wire/accounting.h"
#include "intake/wire/wire.h"

namespace tributary::intake {
namespace {

// Time between the last batch of a pass and the first of the next, if the recording has only one batch.
constexpr int64_t kPassGapNs = kNsPerSecond;

// A generation that continues an earlier one continues the previous one: generations are sent without gaps.
void SetGeneration(wire::Definitions::Builder definitions, uint32_t generation) {
  definitions.setGeneration(generation);
  if (definitions.getDerivedFrom() != 0) definitions.setDerivedFrom(generation - 1);
}

absl::Status Rewrite(capnp::MallocMessageBuilder& message, wire::Definitions::Reader from, uint32_t generation) {
  message.setRoot(from);
  SetGeneration(message.getRoot<wire::Definitions>(), generation);
  return absl::OkStatus();
}

// Adds those types of `known` that `from` does not define to the definitions in `to`.
void DefineTypes(wire::Batch::Reader from, const std::vector<SampleTypeDefinition>& known, wire::Batch::Builder to) {
  IncomingBatch batch;
  if (!ReadSampleTypes(from, &batch).ok()) return;  // cannot fail: it was read when the recording was loaded
  for (const SampleTypeDefinition& type : known) {
    const auto same = [&type](const SampleTypeDefinition& other) { return other.type == type.type; };
    if (batch.sample_types.size() < kSampleTypesMax &&
        std::none_of(batch.sample_types.begin(), batch.sample_types.end(), same)) {
      batch.sample_types.push_back(type);
    }
  }
  WriteSampleTypes(batch.sample_types, to);
}

absl::Status Rewrite(capnp::MallocMessageBuilder& message, wire::Batch::Reader from,
                     const std::vector<SampleTypeDefinition>& types, const ReplayScript::Parameters& parameters) {
  message.setRoot(from);
  auto root = message.getRoot<wire::Batch>();
  SetGeneration(root.getDefinitions(), parameters.generation);
  root.getClock().setUnixNs(parameters.closed.value);
  auto lost = root.getLost();
  for (unsigned i = 0; i < lost.size(); ++i) lost.set(i, 0);
  root.initTypeCounts(0);
  Batch totals;
  totals.accounting.captured = parameters.captured;
  totals.accounting.idle = root.getIdle();
  if (!parameters.with_events) {
    root.initFamilies(0);
    totals = WithoutEvents(std::move(totals));
  }
  WriteAccounting(totals.accounting, root);
  if (!types.empty()) DefineTypes(from, types, root);
  // The replay has nothing to do with other sessions of the recorded node.
  root.initCloses(0);
  return absl::OkStatus();
}

// An empty value, because ReadPayload returns a value.
struct Done {};

absl::StatusOr<std::string> Rewrite(const Frame& frame, const std::vector<SampleTypeDefinition>& types,
                                    const ReplayScript::Parameters& parameters) {
  capnp::MallocMessageBuilder message(static_cast<unsigned>(frame.payload.size() / sizeof(capnp::word)) + 64);
  absl::StatusOr<Done> done;
  if (frame.type == MessageType::kDefinitions) {
    done = ReadPayload<wire::Definitions, Done>(frame.payload, [&](wire::Definitions::Reader root, Done*) {
      return Rewrite(message, root, parameters.generation);
    });
  } else {
    done = ReadPayload<wire::Batch, Done>(
        frame.payload, [&](wire::Batch::Reader root, Done*) { return Rewrite(message, root, types, parameters); });
  }
  RETURN_IF_ERROR(done.status());
  return EncodeFrame(frame.type, kChannelSamples, frame.type == MessageType::kBatch ? parameters.sequence : 0,
                     ToPayload(message));
}

}  // namespace

absl::StatusOr<ReplayScript> ReplayScript::Load(const std::string& path) {
  ReplayScript script;
  script.path_ = path;
  script.file_ = Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!script.file_.valid()) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(std::unique_ptr<RecordingReader> reader, RecordingReader::Open(path));
  RecordedFrame first;
  ASSIGN_OR_RETURN(const bool any, reader->Next(&first));
  if (!any || first.frame.type != MessageType::kHello) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{}: a recording must begin with a Hello message", path));
  }
  ASSIGN_OR_RETURN(Hello hello, DecodeHello(first.frame.payload));
  script.session_ = std::move(hello.session);
  RETURN_IF_ERROR(script.AddFrames(*reader));
  if (script.steps_.empty()) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: this recording contains no batch", path));
  }
  return script;
}

absl::Status ReplayScript::AddFrames(RecordingReader& reader) {
  RecordedSession session;
  std::optional<uint64_t> step_offset;  // of the definitions before the next batch
  std::optional<uint32_t> generation;
  MonotonicNs first;
  Step step;
  while (true) {
    RecordedFrame recorded;
    absl::StatusOr<bool> got = reader.Next(&recorded);
    if (absl::IsDataLoss(got.status())) {
      torn_ = got.status();
      return absl::OkStatus();
    }
    if (!got.ok()) return got.status();
    if (!*got) return absl::OkStatus();
    const MessageType type = recorded.frame.type;
    if (type == MessageType::kMetadata) {
      RETURN_IF_ERROR(WithContext(AddMetadata(recorded.frame), fmt::format("{}: offset {}", path_, recorded.offset)));
    }
    if (type != MessageType::kDefinitions && type != MessageType::kBatch) continue;
    absl::StatusOr<IncomingBatch> batch = session.Take(recorded.frame);
    if (!batch.ok()) return WithContext(batch.status(), fmt::format("{}: offset {}", path_, recorded.offset));
    if (!step_offset) step_offset = recorded.offset;
    if (generation != batch->generation) {
      step.generation = generation ? step.generation + 1 : 0;
      if (!batch->derived) step.generation_begin = static_cast<uint32_t>(steps_.size());
      generation = batch->generation;
    }
    if (type == MessageType::kDefinitions) continue;
    step.offset = *std::exchange(step_offset, std::nullopt);
    step.bytes = reader.offset() - step.offset;
    step.samples_before += std::exchange(step.samples, {});
    for (const Sample& sample : batch->samples) step.samples.Add(sample.type, sample.count);
    for (const ProcessEvent& event : batch->events) step.samples.AddEvents(event.events);
    const SampleCounts counts = step.samples_before + step.samples;
    if (counts.parts().size() - (counts.events() > 0 ? 1 : 0) > kSampleTypesMax) {
      return Error(
          absl::StatusCode::kInvalidArgument,
          fmt::format("{}: offset {}: the recording has more than {} sample types, which is the limit of a session",
                      path_, recorded.offset, kSampleTypesMax));
    }
    for (SampleTypeDefinition& defined : batch->sample_types) {
      const auto same = [&defined](const SampleTypeDefinition& other) { return other.type == defined.type; };
      if (types_.size() < kSampleTypesMax && std::none_of(types_.begin(), types_.end(), same)) {
        types_.push_back(std::move(defined));
      }
    }
    if (steps_.empty()) first = batch->clock.monotonic;
    // Steps do not go back in time, whatever the file says.
    step.at_ns = std::max(step.at_ns, batch->clock.monotonic.value - first.value);
    steps_.push_back(step);
  }
}

absl::Status ReplayScript::AddMetadata(const Frame& frame) {
  uint32_t unknown_values = 0;
  ASSIGN_OR_RETURN(MetadataUpdate update, DecodeMetadata(frame.payload, &unknown_values));
  for (Entity& entity : update.entities) {
    // The recording has samples of the entity, even if the entity was gone before the end.
    entity.gone = false;
    entity.from = UnixNs{};
    const auto known = std::find_if(entities_.begin(), entities_.end(), [&](const Entity& other) {
      return other.kind == entity.kind && other.id == entity.id;
    });
    if (known != entities_.end()) {
      *known = std::move(entity);
    } else if (entities_.size() < kUpdateEntitiesMax) {
      entities_.push_back(std::move(entity));
    }
  }
  return absl::OkStatus();
}

int64_t ReplayScript::duration_ns() const {
  const int64_t last = steps_.back().at_ns;
  const int64_t gap = steps_.size() > 1 ? last / static_cast<int64_t>(steps_.size() - 1) : kPassGapNs;
  return last + std::max<int64_t>(gap, kNsPerMs);
}

absl::StatusOr<std::string> ReplayScript::Build(size_t step, const Parameters& parameters) const {
  const Step& source = steps_[step];
  std::string stored(source.bytes, '\0');
  for (size_t done = 0; done < stored.size();) {
    const ssize_t n =
        pread(file_.get(), stored.data() + done, stored.size() - done, static_cast<off_t>(source.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return ErrnoStatus("pread", path_, n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  FrameDecoder decoder;
  decoder.Append(stored);
  std::string out;
  while (true) {
    Frame frame;
    ASSIGN_OR_RETURN(const bool got, decoder.Next(&frame));
    if (!got) return out;
    if (frame.type != MessageType::kDefinitions && frame.type != MessageType::kBatch) continue;
    ASSIGN_OR_RETURN(const std::string rewritten, Rewrite(frame, types_, parameters));
    out += rewritten;
  }
}

}  // namespace tributary::intake
