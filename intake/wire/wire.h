#pragma once

#include <kj/string.h>

#ifdef __clang__
// The headers of Cap'n Proto compare `const char* == StringPtr`, but kj 0.9 defines only `StringPtr == const char*`. It
// relies on the C++20 compiler to swap the operands. clang does not swap them if the type also has an operator!=
// (P2468R2).
namespace kj {
inline bool operator==(const char* a, const StringPtr& b) { return b.operator==(a); }
}  // namespace kj
#endif

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "intake/wire/malformed.h"
#include "intake/wire/messages.h"
#include "schemas/intake/intake.capnp.h"

// Reads and writes Cap'n Proto messages. Only .cc files of intake/ may include this header, directly or through
// accounting.h. The messages that are read may be hostile. Errors are returned as absl::Status. The accessors of Cap'n
// Proto throw exceptions for malformed messages. ReadPayload catches these exceptions, so the other Read functions must
// be called inside its `read`.

namespace tributary::intake {

inline std::string ToPayload(capnp::MessageBuilder& message) {
  const kj::Array<capnp::word> words = capnp::messageToFlatArray(message);
  const auto bytes = words.asBytes();
  return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
}

// Calls `read(root, &t)` and returns `t`, or the error that `read` returns. Reads at most four times as many words as
// the message has, even if hostile pointers loop or overlap. Structures may be nested at most 8 deep. InvalidArgument
// if the message is malformed or exceeds one of these limits.
template <typename Root, typename T, typename Read>
absl::StatusOr<T> ReadPayload(std::string_view payload, Read&& read) {
  if (payload.empty() || payload.size() % sizeof(capnp::word) != 0) {
    return Error(absl::StatusCode::kInvalidArgument, "a message is empty, or its size is not a multiple of 8 bytes");
  }
  const size_t words = payload.size() / sizeof(capnp::word);
  kj::Array<capnp::word> aligned;
  const auto* data = reinterpret_cast<const capnp::word*>(payload.data());
  if (reinterpret_cast<uintptr_t>(payload.data()) % alignof(capnp::word) != 0) {
    aligned = kj::heapArray<capnp::word>(words);
    std::memcpy(aligned.begin(), payload.data(), payload.size());
    data = aligned.begin();
  }
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 4 * words;
  options.nestingLimit = 8;
  try {
    capnp::FlatArrayMessageReader reader(kj::arrayPtr(data, words), options);
    T out{};
    RETURN_IF_ERROR(read(reader.getRoot<Root>(), &out));
    return out;
  } catch (const kj::Exception& e) {
    const auto description = e.getDescription();
    return Error(absl::StatusCode::kInvalidArgument,
                 std::string("malformed message: ") + std::string(description.cStr(), description.size()));
  }
}

inline std::string_view ViewOf(capnp::Data::Reader data) {
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}
inline std::string_view ViewOf(capnp::Text::Reader text) { return {text.begin(), text.size()}; }
inline capnp::Data::Reader DataOf(std::string_view bytes) {
  return {reinterpret_cast<const kj::byte*>(bytes.data()), bytes.size()};
}

inline absl::Status ReadSessionId(capnp::Data::Reader from, std::array<uint8_t, 16>* id) {
  if (from.size() != id->size()) return Malformed("session id is not 16 bytes");
  std::memcpy(id->data(), from.begin(), id->size());
  return absl::OkStatus();
}
inline void WriteCounts(wire::Counts::Builder to, const DictionaryCounts& counts) {
  to.setStrings(counts.strings);
  to.setExecutables(counts.executables);
  to.setFrames(counts.frames);
  to.setNodes(counts.nodes);
  to.setProcesses(counts.processes);
  to.setThreads(counts.threads);
}
inline DictionaryCounts ReadCounts(wire::Counts::Reader from) {
  return {.strings = from.getStrings(),
          .executables = from.getExecutables(),
          .frames = from.getFrames(),
          .nodes = from.getNodes(),
          .processes = from.getProcesses(),
          .threads = from.getThreads()};
}
inline void WriteClock(wire::ClockPair::Builder to, const ClockPair& clock) {
  to.setMonotonicNs(clock.monotonic.value);
  to.setUnixNs(clock.unix.value);
}
inline ClockPair ReadClock(wire::ClockPair::Reader from) {
  return {MonotonicNs{from.getMonotonicNs()}, UnixNs{from.getUnixNs()}};
}

// These two functions write and read the sample types that a batch defines. ReadSampleTypes returns InvalidArgument if
// there are more than kSampleTypesMax types, if a number is reserved or appears twice, or if an aggregation, name or
// unit is not valid.
inline void WriteSampleTypes(const std::vector<SampleTypeDefinition>& types, wire::Batch::Builder to) {
  if (types.empty()) return;
  auto list = to.initSampleTypes(static_cast<unsigned>(types.size()));
  for (unsigned i = 0; i < types.size(); ++i) {
    list[i].setNumber(static_cast<uint8_t>(types[i].type));
    list[i].setName(types[i].info.name);
    list[i].setUnit(types[i].info.unit);
    list[i].setAggregation(static_cast<uint8_t>(types[i].info.aggregation));
  }
}

inline absl::Status ReadSampleTypes(wire::Batch::Reader from, IncomingBatch* out) {
  const auto list = from.getSampleTypes();
  if (list.size() > kSampleTypesMax) return Malformed("there are too many sample types");
  std::bitset<256> seen;
  for (const auto& definition : list) {
    const uint8_t number = definition.getNumber();
    if (number <= kSampleTypesUndefinedMax) return Malformed("a sample type has a reserved number");
    if (seen.test(number)) return Malformed("a sample type is defined twice");
    seen.set(number);
    SampleTypeDefinition& type = out->sample_types.emplace_back();
    type.type = static_cast<SampleType>(number);
    type.info = {std::string(definition.getName().cStr(), definition.getName().size()),
                 std::string(definition.getUnit().cStr(), definition.getUnit().size()),
                 static_cast<Aggregation>(definition.getAggregation())};
    if (definition.getAggregation() > kAggregationLast) return Malformed("a sample type has an unknown aggregation");
    for (const std::string* text : {&type.info.name, &type.info.unit}) {
      if (!IsSampleTypeText(*text)) return Malformed("a sample type has an invalid name or unit");
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary::intake
