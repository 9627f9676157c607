#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// Makes random samples of a small random world, including hostile bytes.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {}

  uint64_t Draw(uint64_t below) { return random_() % below; }
  std::string Text() {
    std::string text;
    for (uint64_t n = Draw(12); n > 0; --n)
      text.push_back(static_cast<char>(Draw(20) == 0 ? Draw(256) : 'a' + Draw(4)));
    return text;
  }

  ProfilesBuilder::SampleInfo Sample(ProfilesBuilder& builder) {
    ProfilesBuilder::SampleInfo sample;
    sample.resource = builder.AddResource(
        {{"container.id", Draw(2) == 0 ? "" : "c" + std::to_string(Draw(3))}, {"host.name", "h"}, {"host.id", "m"}});
    ThreadInfo thread{.thread_name = Text(), .executable_name = Text(), .executable_path = Text()};
    if (Draw(4) != 0) thread.pid = Pid{static_cast<int32_t>(Draw(5))};
    if (Draw(4) != 0) thread.tid = Tid{static_cast<int32_t>(Draw(5))};
    sample.attributes = builder.AddEnding(builder.AddThread(thread), static_cast<Ending>(Draw(kEndingCount)));
    if (Draw(3) == 0) sample.attributes = builder.AddOwn(sample.attributes, Own());
    if (Draw(3) == 0) {
      sample.link = builder.AddLink(std::string(Draw(8) == 0 ? 3 : 16, static_cast<char>(Draw(3))),
                                    std::string(8, static_cast<char>(Draw(3))));
    }
    std::vector<LocationIndex> frames;
    for (uint64_t n = Draw(10); n > 0; --n) frames.push_back(Frame(builder));
    sample.stack = builder.AddStack(frames);
    sample.type = Draw(3) == 0 ? builder.AddType({"off_cpu", "nanoseconds"}) : ProfilesBuilder::kCpu;
    sample.time = UnixNs{static_cast<int64_t>(1'700'000'000'000'000'000 + Draw(1'000'000))};
    sample.value = Draw(8) == 0 ? Draw(1'000'000) : 10'000'000;
    sample.count = sample.type == ProfilesBuilder::kCpu && Draw(8) == 0 ? static_cast<uint32_t>(1 + Draw(50)) : 1;
    return sample;
  }

 private:
  Attributes Own() {
    Attributes own;
    for (uint64_t n = Draw(6); n > 0; --n) own.push_back({Draw(9) == 0 ? "process.pid" : "k" + Text(), Text()});
    return own;
  }

  LocationIndex Frame(ProfilesBuilder& builder) {
    auto kind = static_cast<ExecutableIdKind>(Draw(4));
    std::string bytes = kind == ExecutableIdKind::kNone ? "" : std::string(1 + Draw(20), static_cast<char>(Draw(3)));
    MappingIndex mapping = builder.AddMapping(*ExecutableId::Make(kind, bytes), Text());
    uint64_t address = Draw(10) == 0 ? UINT64_MAX - Draw(2) : Draw(50);
    std::vector<ProfilesBuilder::Line> lines;
    for (uint64_t count = Draw(4); count > 0; --count) {
      lines.push_back(
          {builder.AddFunction(Text(), Text(), Text()), static_cast<uint32_t>(Draw(3) == 0 ? UINT32_MAX : Draw(9))});
    }
    return builder.AddLocation(static_cast<FrameKind>(Draw(kFrameKindCount)), mapping, address, lines);
  }

  std::mt19937_64 random_;
};

}  // namespace tributary::otlp
