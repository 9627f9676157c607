// otlp_send SIGNAL WAY ADDRESS SEED REQUESTS [GENERATION]: builds and sends REQUESTS requests of random samples with
// the reducer's code, and prints the samples' count and nanoseconds. SIGNAL is profiles or logs. WAY is grpc, http
// (protobuf over HTTP) or json (JSON over HTTP). GENERATION is the layout of profiles, such as 1.7; the default is the
// newest one. Exit code 0: the receiver accepted all requests.

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "otlp/generation.h"
#include "otlp/grpc_transport.h"
#include "otlp/http_transport.h"
#include "otlp/otlp_logs_sender.h"
#include "otlp/otlp_profiles_sender.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "test/otlp/validator.h"

namespace tributary::otlp {
namespace {

struct Sent {
  uint64_t count = 0, ns = 0;
};

ProfilesRequestPtr MakeRequest(std::mt19937_64& random, Generation generation, Sent* sent) {
  ProfilesBuilder builder({.generation = generation, .scope_version = "test"});
  auto draw = [&](uint64_t below) { return random() % below; };
  std::vector<ProfilesBuilder::SampleInfo> samples;
  auto add = [&](ProfilesBuilder::SampleInfo sample) {
    sample.time = UnixNs{static_cast<int64_t>(1'700'000'000'000'000'000 + draw(5'000'000'000))};
    sample.value = sample.type != ProfilesBuilder::kCpu ? draw(1'000'000) : (draw(3) == 0 ? 1'001'001 : 52'631'578);
    sent->count += 1;
    sent->ns += sample.value;
    builder.AddSample(sample);
    samples.push_back(sample);
  };
  for (int i = 0; i < 500; ++i) {  // as logs, each takes a few KB
    if (!samples.empty() && draw(3) == 0) {
      add(samples[draw(samples.size())]);  // merged with an equal sample
      continue;
    }
    ProfilesBuilder::SampleInfo sample;
    uint64_t process = draw(8);
    sample.resource = builder.AddResource({{"container.id", process < 4 ? "" : "c" + std::to_string(process)},
                                           {"host.name", "host"},
                                           {"host.id", "m-1"}});
    if (draw(4) == 0) sample.link = builder.AddLink(std::string(16, '\x5a'), std::string(8, static_cast<char>(0xf1)));
    sample.attributes = builder.AddThread({.thread_name = "thr\xc3\xa4"
                                                          "d\x01",
                                           .executable_name = "server",
                                           .executable_path = "/usr/bin/server",
                                           .pid = Pid{static_cast<int32_t>(100 + process)},
                                           .tid = Tid{static_cast<int32_t>(100 + process)}});
    std::vector<LocationIndex> stack;
    for (uint64_t depth = 1 + draw(30); depth > 0; --depth) {
      uint64_t file = draw(5);
      MappingIndex mapping = builder.AddMapping(
          *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string(20, static_cast<char>(file))),
          "/usr/lib/lib" + std::to_string(file) + ".so");
      uint64_t address = draw(200);
      std::vector<ProfilesBuilder::Line> lines;
      if (address % 5 == 0) lines.push_back({builder.AddFunction("inlined", "", "inlined.h"), 7});
      if (address % 4 != 0) lines.push_back({builder.AddFunction("f" + std::to_string(address / 10), "")});
      stack.push_back(builder.AddLocation(FrameKind::kNative, mapping, address, lines));
    }
    sample.stack = builder.AddStack(stack);
    sample.type = draw(10) == 0 ? builder.AddType({"off_cpu", "nanoseconds"}) : ProfilesBuilder::kCpu;
    add(sample);
  }
  return builder.Finish();
}

absl::StatusOr<std::unique_ptr<Transport>> MakeTransport(const Signal& signal, std::string_view way,
                                                         const char* address) {
  TransportOptions options{.target = address, .version = "test"};
  if (way == "grpc") return GrpcTransport::Make(options, signal);
  return HttpTransport::Make({.common = std::move(options),
                              .path = std::string(signal.http_path),
                              .encoding = way == "json" ? Encoding::kJson : Encoding::kProtobuf},
                             Clock::Real());
}

int Main(std::string_view signal, std::string_view way, const char* address, uint64_t seed, int requests,
         Generation generation) {
  std::mt19937_64 random(seed);
  absl::StatusOr<std::unique_ptr<Transport>> transport =
      MakeTransport(signal == "logs" ? kLogsSignal : kProfilesSignal, way, address);
  if (!transport.ok()) {
    fprintf(stderr, "%s\n", transport.status().ToString().c_str());
    return 1;
  }
  std::unique_ptr<ProfilesSender> sender;
  if (signal == "logs") {
    sender = std::make_unique<OtlpLogsSender>(*std::move(transport), LogRecords::kStacks);
  } else {
    sender = std::make_unique<OtlpProfilesSender>(*std::move(transport), generation);
  }
  RequestIdentity identity{.sender = "test-sender", .session = {1}, .first = 0};
  Sent sent;
  for (int i = 0; i < requests; ++i) {
    ProfilesRequestPtr request = MakeRequest(random, generation, &sent);
    std::vector<Finding> findings = ValidateProfiles(*request);
    if (!findings.empty()) {
      fprintf(stderr, "invalid before it was sent: %s", DescribeFindings(findings).c_str());
      return 1;
    }
    const uint64_t next = SetProfileIds(identity, request.get());
    const SendResult result = sender->Send(*request, identity, 10 * kNsPerSecond);
    identity.first = next;
    if (!result.status.ok() || result.rejected_items != 0) {
      fprintf(stderr, "not taken: %s, rejected %ld, %s\n", result.status.ToString().c_str(),
              static_cast<long>(result.rejected_items), result.message.c_str());
      return 1;
    }
  }
  printf("%lu %lu\n", static_cast<unsigned long>(sent.count), static_cast<unsigned long>(sent.ns));
  return 0;
}

}  // namespace
}  // namespace tributary::otlp

int main(int argc, char** argv) {
  const auto generation = tributary::otlp::ParseGeneration(argc == 7 ? argv[6] : "1.10");
  if (argc < 6 || argc > 7 || !generation) {
    fprintf(stderr, "usage: otlp_send profiles|logs grpc|http|json ADDRESS SEED REQUESTS [GENERATION]\n");
    return 2;
  }
  return tributary::otlp::Main(argv[1], argv[2], argv[3], strtoull(argv[4], nullptr, 10), atoi(argv[5]), *generation);
}
